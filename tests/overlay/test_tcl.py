"""The Tcl scripts do, in order, what the ISA's register map and the boards ask for.

They run under tclsh against ``stub.tcl``, a strict model of the vendor's commands. No vendor
tool has run them: that the model is right is an assumption.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import overlay_expected as expected
import pytest
from bitstream_settings import (
    TCL_DIR,
    board_names,
    load_board,
    rtl_files,
    settings,
    settings_tcl,
    verilog_wrapper,
)
from overlay_flow import ROOT, run_script

from rasna.targets import TARGETS

pytestmark = pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is not installed")
SCRIPTS = ("kernel", "package", "design", "synthesis", "implementation")


def prepare(work: Path, board_name: str, scripts: Path = TCL_DIR) -> tuple[Path, list[str]]:
    """settings.tcl in ``work`` and the names of the sources it lists."""
    board = load_board(board_name)
    kernel, wrapper = work / "rasna_top.sv", work / "rasna_accelerator_ip.v"
    kernel.write_text("")
    wrapper.write_text(verilog_wrapper(TARGETS[board.target].config_hash))
    sources = rtl_files([kernel], wrapper)
    values = settings(board, "hlsc", work, sources, 1)
    values["tcl_dir"] = str(scripts)
    path = work / "settings.tcl"
    path.write_text(settings_tcl(values))
    return path, [source.name for source in sources]


def run_all(work: Path, board: str, scripts: Path = TCL_DIR) -> dict[str, list[str] | str]:
    """Recorded commands by script; a text instead when a script fails, and no more after it."""
    path, _ = prepare(work, board, scripts)
    results: dict[str, list[str] | str] = {}
    for script in SCRIPTS:
        tool = "vitis_hls" if script == "kernel" else "vivado"
        status, output, log = run_script(scripts / f"{script}.tcl", path, tool)
        results[script] = output if status else log[1:]
        if status:
            break
    return results


def wanted(work: Path, board: str) -> dict[str, list[str]]:
    _, sources = prepare(work, board)
    target = load_board(board).target
    return {
        "kernel": expected.kernel_commands(board, target, str(ROOT)),
        "package": expected.package_commands(board, sources),
        "design": expected.design_commands(board),
        "synthesis": expected.SYNTHESIS, "implementation": expected.IMPLEMENTATION,
    }


def stripped(results):
    return {k: [x.rstrip() for x in v] if isinstance(v, list) else v for k, v in results.items()}


@pytest.mark.parametrize("board", sorted(expected.BOARDS))
def test_the_scripts_do_what_the_board_and_the_isa_ask_for(board, tmp_path):
    assert stripped(run_all(tmp_path, board)) == wanted(tmp_path, board)


def test_every_board_is_tested():
    assert board_names() == sorted(expected.BOARDS)
    meant = {b for t in TARGETS.values() for b in t.boards}
    assert set(board_names()) == meant


def test_the_memory_ports_are_as_wide_as_the_target_says():
    for name in board_names():
        board = load_board(name)
        target = TARGETS[board.target]
        assert name in target.boards
        assert board.port_bits == 8 * target.bus_bytes
        assert board.clock_mhz == target.clock_mhz


def test_the_packager_may_have_found_no_memory_map_by_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("STUB_INFERS", "0")
    path, sources = prepare(tmp_path, "pynq-z2")
    status, output, log = run_script(TCL_DIR / "package.tcl", path)
    assert status == 0, output
    lines = [line.rstrip() for line in log[1:]]
    assert "set_property s_axi slave_memory_map_ref=s_axi" in lines
    lines.remove("set_property s_axi slave_memory_map_ref=s_axi")
    assert lines == expected.package_commands("pynq-z2", sources)


MUTATIONS = [
    # an address, a range, a width, a clock, a name, a register, an interrupt, a port
    ("design.tcl", "-offset $rasna(control_base)", "-offset 0x43c00000"),
    ("design.tcl", "-range $rasna(control_range)", "-range 0x10000"),
    ("design.tcl", "-range $rasna(memory_bytes)", "-range 0x10000000"),
    ("design.tcl", "rasna_0/m_axi_program] [get_bd_addr_segs $ps_program_segment]",
     "rasna_0/m_axi_program] [get_bd_addr_segs $ps_data_segment]"),
    ("design.tcl", "program_0/M00_AXI] [get_bd_intf_pins $ps_program]",
     "program_0/M00_AXI] [get_bd_intf_pins $ps_data]"),
    ("design.tcl", "reset_0/peripheral_aresetn", "reset_0/interconnect_aresetn"),
    ("design.tcl", " program_0/aclk data_0/aclk}]", " program_0/aclk}]"),
    ("design.tcl", "connect_bd_net [get_bd_pins rasna_0/irq] [get_bd_pins $ps_irq]", ""),
    ("zynq.tcl", "CONFIG.PCW_S_AXI_HP0_DATA_WIDTH $rasna(port_bits)",
     "CONFIG.PCW_S_AXI_HP0_DATA_WIDTH 32"),
    ("zynq.tcl", "CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ $rasna(clock_mhz)",
     "CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ 100"),
    ("zynq.tcl", "CONFIG.PCW_IRQ_F2P_INTR 1", "CONFIG.PCW_IRQ_F2P_INTR 0"),
    ("zynq.tcl", "apply_board_preset 1", "apply_board_preset 0"),
    ("package.tcl", "set_property address_offset $offset $register",
     "set_property address_offset 0x00 $register"),
    ("package.tcl", "set_property size 32 $register", "set_property size 64 $register"),
    ("package.tcl", "-vendor $rasna(ip_vendor)", "-vendor xilinx"),
    ("package.tcl", "set_property range $rasna(control_range) $block",
     "set_property range 64 $block"),
    ("kernel.tcl", "create_clock -period $rasna(period_ns)", "create_clock -period 10"),
    ("kernel.tcl", "-m_axi_max_widen_bitwidth 64", "-m_axi_max_widen_bitwidth 128"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new"), MUTATIONS)
def test_one_changed_address_width_or_name_is_noticed(name, old, new, tmp_path):
    changed = tmp_path / "tcl"
    shutil.copytree(TCL_DIR, changed)
    text = (changed / name).read_text()
    assert old in text
    (changed / name).write_text(text.replace(old, new, 1))
    assert stripped(run_all(tmp_path, "pynq-z2", changed)) != wanted(tmp_path, "pynq-z2")


def one_line_commands(name: str) -> list[int]:
    """Numbers of the lines of a script that are a whole command at the outermost level."""
    lines = (TCL_DIR / name).read_text().splitlines()
    return [
        number for number, line in enumerate(lines)
        if re.match(r"[a-z]", line) and not line.endswith("{") and not line.endswith("\\")
        and not line.startswith(("set core", "set map", "set block", "set slack", "source"))
    ]


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_command_that_is_left_out_and_every_pair_out_of_order_is_noticed(script, tmp_path):
    name = f"{script}.tcl"
    lines = (TCL_DIR / name).read_text().splitlines()
    numbers = one_line_commands(name)
    assert len(numbers) >= 6
    right = wanted(tmp_path, "pynq-z2")
    path, _ = prepare(tmp_path, "pynq-z2")
    for before in SCRIPTS[: SCRIPTS.index(script)]:
        tool = "vitis_hls" if before == "kernel" else "vivado"
        run_script(TCL_DIR / f"{before}.tcl", path, tool)
    survivors = []
    for number in numbers:
        variants = {"without": lines[:number] + lines[number + 1 :]}
        if number + 1 in numbers and lines[number] != lines[number + 1]:
            swapped = [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]
            variants["after the next"] = swapped
        for how, variant in variants.items():
            changed = tmp_path / name
            changed.write_text("\n".join(variant) + "\n")
            tool = "vitis_hls" if script == "kernel" else "vivado"
            status, _, log = run_script(changed, path, tool)
            if status == 0 and [x.rstrip() for x in log[1:]] == right[script]:
                survivors.append(f"{lines[number]} ({how})")
    assert survivors == (["exit (without)"] if script == "kernel" else [])


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("STUB_PART", "the part xc7z020clg400-1 is not installed or not licensed"),
        ("STUB_BOARD_PART", "the board files of tul.com.tw:pynq-z2:part0:1.0 are not installed"),
    ],
)
def test_a_missing_part_or_board_is_named(variable, message, tmp_path, monkeypatch):
    path, _ = prepare(tmp_path, "pynq-z2")
    monkeypatch.setenv(variable, "other")
    status, output, _ = run_script(TCL_DIR / "design.tcl", path)
    assert status == 1 and message in output


def test_the_stub_refuses_what_it_does_not_know(tmp_path):
    path, _ = prepare(tmp_path, "pynq-z2")
    script = tmp_path / "unknown.tcl"
    script.write_text("create_gremlin\n")
    status, output, _ = run_script(script, path)
    assert status == 1 and 'invalid command name "create_gremlin"' in output


def test_the_wrapper_has_the_ports_of_the_top_and_the_hash():
    text = verilog_wrapper(TARGETS["tiny"].config_hash)
    source = (ROOT / "rtl" / "top" / "rasna_accelerator.sv").read_text()
    ports = re.findall(r"^    (?:input|output) +wire +(?:\[[^]]*\] )?(\w+),?$", source, re.M)
    assert len(ports) > 60 and ports[-1] == "irq"
    assert re.findall(r"\.(\w+)\(\1\)", text) == ports
    assert f"32'h{TARGETS['tiny'].config_hash[:8]}" in text
    assert not re.search(r"\b(logic|always_ff|localparam)\b", text)
