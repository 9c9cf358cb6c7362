"""The Tcl scripts do, in order, what the ISA's register map and the boards ask for.

They run under a Tcl shell against ``stub.tcl``, a strict model of the vendor's commands. No vendor
tool has run them: that the model is right is an assumption.
"""

from __future__ import annotations

import re
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
from overlay_tcl import NO_TCL, TCL

from rasna.targets import TARGETS

pytestmark = pytest.mark.skipif(TCL is None, reason=NO_TCL)
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


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """ready(board) → a directory in which all scripts have run, and the right commands."""
    made: dict[str, tuple[Path, dict[str, list[str]]]] = {}

    def make(board: str) -> tuple[Path, dict[str, list[str]]]:
        if board not in made:
            work = tmp_path_factory.mktemp(board)
            right = wanted(work, board)
            assert stripped(run_all(work, board)) == right
            made[board] = work, right
        return made[board]

    return make


def is_noticed(work: Path, script: str, right: list[str], scripts: Path = TCL_DIR) -> bool:
    """Whether one script fails, or does other things than the right ones."""
    tool = "vitis_hls" if script == "kernel" else "vivado"
    status, _, log = run_script(scripts / f"{script}.tcl", work / "settings.tcl", tool)
    return status != 0 or [line.rstrip() for line in log[1:]] != right


def with_settings(work: Path, **changes: str) -> None:
    """Write settings.tcl again, with some changed. The value of the others stays."""
    path = work / "settings.tcl"
    text = path.read_text()
    for name, value in changes.items():
        text, count = re.subn(
            rf"(set rasna\({name}\)) {{.*}}", lambda m, v=value: f"{m[1]} {{{v}}}", text
        )
        assert count == 1, name
    path.write_text(text)


def changed_registers(registers: str) -> list[str]:
    """The register map with an offset moved, an access turned, one left out, two swapped."""
    words = registers.split()
    last = int(words[-2], 16)
    return [
        " ".join([*words[:-2], f"{last + 4:#04x}", words[-1]]),
        " ".join([*words[:-1], "write-only" if words[-1] != "write-only" else "read-only"]),
        " ".join(words[:-3]),
        " ".join([words[0], words[4], *words[2:4], words[1], *words[5:]]),
        " ".join([*words[3:6], *words[:3], *words[6:]]),
    ]


@pytest.mark.parametrize("board", sorted(expected.BOARDS))
def test_every_changed_address_width_clock_part_or_register_is_noticed(board, ready):
    work, right = ready(board)
    values = settings(load_board(board), "hlsc", work, [], 1)
    base, bits = int(values["control_base"], 16), int(values["port_bits"])
    memory = int(values["memory_bytes"], 16)
    changes = [
        ("design", "control_base", f"{base + 0x1000:#x}"), ("design", "control_range", "0x2000"),
        ("design", "port_bits", str(bits // 2)), ("design", "port_bits", str(bits * 2)),
        ("design", "memory_base", f"{memory:#x}"), ("design", "memory_bytes", f"{memory // 2:#x}"),
        ("design", "clock_mhz", str(int(values["clock_mhz"]) + 1)), ("design", "part", "xc7z010"),
        ("design", "board_part", "a:b:part0:1.0"), ("design", "ip_name", "rasna"),
        ("package", "control_range", "0x2000"), ("package", "part", "xc7z010"),
        ("package", "top", "rasna_accelerator"), ("package", "ip_version", "9.9"),
        *(("package", "registers", r) for r in changed_registers(values["registers"])),
        ("kernel", "period_ns", "10.000"), ("kernel", "part", "xc7z010"),
        ("kernel", "hls_flags", values["hls_flags"] + "X"),
    ]  # fmt: skip
    kept = (work / "settings.tcl").read_text()
    survivors = []
    try:
        for script, name, value in changes:
            with_settings(work, **{name: value})
            if not is_noticed(work, script, right[script]):
                survivors.append(f"{script}: {name} = {value}")
            (work / "settings.tcl").write_text(kept)
    finally:
        (work / "settings.tcl").write_text(kept)
    assert survivors == []
    assert not any(is_noticed(work, script, right[script]) for script in ("package", "design"))


DESIGN = [
    # an address, a range, a segment, a port, a reset, a clock, an interrupt
    ("-offset $rasna(control_base)", "-offset 0x43c00000"),
    ("-range $rasna(control_range)", "-range 0x10000"),
    ("-range $rasna(memory_bytes)", "-range 0x10000000"),
    ("rasna_0/m_axi_program] [get_bd_addr_segs $ps_program_segment]",
     "rasna_0/m_axi_program] [get_bd_addr_segs $ps_data_segment]"),
    ("program_0/M00_AXI] [get_bd_intf_pins $ps_program]",
     "program_0/M00_AXI] [get_bd_intf_pins $ps_data]"),
    ("reset_0/peripheral_aresetn", "reset_0/interconnect_aresetn"),
    (" program_0/aclk data_0/aclk}]", " program_0/aclk}]"),
    ("connect_bd_net [get_bd_pins rasna_0/irq] [get_bd_pins $ps_irq]\n", ""),
    # order: the board after its use, addresses before the joints, saved before it is checked
    ("update_ip_catalog\ncreate_bd_design rasna", "create_bd_design rasna\nupdate_ip_catalog"),
    ("validate_bd_design\nsave_bd_design", "save_bd_design\nvalidate_bd_design"),
]  # fmt: skip
OTHERS = [
    ("package", "set_property address_offset $offset $register",
     "set_property address_offset 0x00 $register"),
    ("package", "set_property size 32 $register", "set_property size 64 $register"),
    ("package", "-vendor $rasna(ip_vendor)", "-vendor xilinx"),
    ("package", "set_property range $rasna(control_range) $block",
     "set_property range 64 $block"),
    ("kernel", "create_clock -period $rasna(period_ns)", "create_clock -period 10"),
    ("kernel", "-m_axi_max_widen_bitwidth 64", "-m_axi_max_widen_bitwidth 128"),
]  # fmt: skip


def system_changes(name: str) -> list[tuple[str, str]]:
    """Every setting and name of a processing system: one left out, two swapped, one changed."""
    lines = (TCL_DIR / name).read_text().splitlines()
    settings_at = [n for n, line in enumerate(lines) if line.startswith("        CONFIG.")]
    names_at = [n for n, line in enumerate(lines) if re.match(r"    set ps_\w+ ps/", line)]
    assert len(settings_at) >= 8 and len(names_at) >= 9
    found = []
    for n in settings_at:
        found.append((f"without {lines[n]}", [*lines[:n], *lines[n + 1 :]]))
        if n + 1 in settings_at:
            swapped = [*lines[:n], lines[n + 1], lines[n], *lines[n + 2 :]]
            found.append((f"order of {lines[n]}", swapped))
        other = re.sub(r"(\S+)( \\)$", r"2\2", lines[n])
        found.append((f"value of {lines[n]}", [*lines[:n], other, *lines[n + 1 :]]))
    for n in names_at:
        found.append((f"name of {lines[n]}", [*lines[:n], lines[n] + "X", *lines[n + 1 :]]))
    preset = [line.replace("apply_board_preset 1", "apply_board_preset 0") for line in lines]
    return [(what, "\n".join(text) + "\n") for what, text in [*found, ("preset", preset)]]


@pytest.mark.parametrize("board", sorted(expected.BOARDS))
def test_one_changed_line_of_the_design_is_noticed(board, ready, tmp_path):
    work, right = ready(board)
    text = (TCL_DIR / "design.tcl").read_text()
    survivors = []
    for old, new in DESIGN:
        assert old in text
        (tmp_path / "design.tcl").write_text(text.replace(old, new, 1))
        if not is_noticed(work, "design", right["design"], tmp_path):
            survivors.append(f"{old} -> {new}")
    assert survivors == []


@pytest.mark.parametrize(("script", "old", "new"), OTHERS)
def test_one_changed_line_of_the_ip_or_the_kernel_is_noticed(script, old, new, ready, tmp_path):
    work, right = ready("pynq-z2")
    text = (TCL_DIR / f"{script}.tcl").read_text()
    assert old in text
    (tmp_path / f"{script}.tcl").write_text(text.replace(old, new, 1))
    assert is_noticed(work, script, right[script], tmp_path)


@pytest.mark.parametrize(("board", "name"), [("pynq-z2", "zynq"), ("kv260", "zynqmp")])
def test_every_changed_line_of_a_processing_system_is_noticed(board, name, ready, tmp_path):
    work, right = ready(board)
    kept = (work / "settings.tcl").read_text()
    with_settings(work, tcl_dir=str(tmp_path))
    (tmp_path / "design.tcl").write_text((TCL_DIR / "design.tcl").read_text())
    survivors = []
    try:
        for what, text in system_changes(f"{name}.tcl"):
            (tmp_path / f"{name}.tcl").write_text(text)
            if not is_noticed(work, "design", right["design"], tmp_path):
                survivors.append(what)
    finally:
        (work / "settings.tcl").write_text(kept)
    assert survivors == []


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
