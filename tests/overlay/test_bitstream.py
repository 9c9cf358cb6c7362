"""The flow around the tools: preflight, stages, reports, failures with their reasons."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time

import bitstream
import bitstream_preflight as preflight
import build_rtl
import build_sim
import overlay_flow
import pytest
from bitstream_reports import over_used, parse_timing, parse_utilisation, reason_of
from bitstream_settings import BitstreamError, board_names, load_board
from overlay_flow import HERE, ROOT, STUB, run_flow

from rasna.targets import TARGETS

needs_tclsh = pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is not installed")
STAGES = bitstream.STAGES
TIMING, UTILISATION = (HERE / name for name in ("timing.rpt", "utilization.rpt"))


def command_line(*arguments: str, path: str = "", python: tuple = (sys.executable,), **variables):
    environment = {
        "PATH": path, "HOME": os.environ.get("HOME", "/"), "STUB_LOG": os.devnull, **variables
    }
    return subprocess.run(
        [*python, str(ROOT / "scripts" / "bitstream.py"), *arguments], env=environment,
        capture_output=True, text=True, timeout=60,
    )


def fake_tools(folder, *names: str, version: str = "") -> str:
    """A PATH with commands of these names that run the stub."""
    tclsh = shutil.which("tclsh")
    for name in names:
        script = folder / name
        say = f'echo "{name} v{version} (64-bit)"; exit 0' if version else ""
        script.write_text(
            f'#!/bin/sh\ncase "$1" in -version) {say or ":"};; esac\n'
            f'exec {tclsh} {STUB} {name} "$@"\n'
        )
        script.chmod(0o755)
    return str(folder)


# Preflight ------------------------------------------------------------------------------


def test_without_tools_it_ends_quickly_and_lists_all_that_is_missing(tmp_path):
    start = time.perf_counter()
    done = command_line("pynq-z2", path=str(tmp_path))
    assert time.perf_counter() - start < 2
    assert done.returncode == 1 and done.stdout == ""
    for text in ("MISSING Vivado: not found", "MISSING Vitis HLS: not found",
                 "2 missing: Vivado, Vitis HLS", "make sim-so TARGET=pynq-z2",
                 "HLS=hlsc", "has not been run with real vendor tools"):
        assert text in done.stderr
    bare = (sys.executable, "-S")  # without the packages of this environment
    done = command_line("kv260", "--hls", "hlsc", path=str(tmp_path), python=bare)
    assert "MISSING LLVM 19: not found; needed: exactly this version\n" in done.stderr
    assert "\n            make llvm\n" in done.stderr
    assert "2 missing: Vivado, LLVM 19" in done.stderr
    assert "Vivado alone" not in done.stderr  # that is what was asked for
    assert "make bitstream BOARD=kv260 HLS=hlsc on another computer" in done.stderr


@pytest.mark.parametrize("board", board_names())
def test_every_board_says_at_once_what_is_missing(board, tmp_path):
    start = time.perf_counter()
    done = command_line(board, path=str(tmp_path))
    assert time.perf_counter() - start < 2
    assert done.returncode == 1 and "2 missing: Vivado, Vitis HLS" in done.stderr
    assert load_board(board).part in done.stderr


def test_make_bitstream_needs_no_virtual_environment(tmp_path):
    start = time.perf_counter()
    done = subprocess.run(
        ["make", "-C", str(ROOT), "--no-print-directory", "bitstream", "BOARD=pynq-z2",
         "VENV=/nowhere", f"PYTHON={sys.executable}"],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "XILINX_VIVADO": "", "XILINX_HLS": "", "XILINX_VITIS": ""},
    )
    assert done.returncode and "missing: Vivado, Vitis HLS" in done.stderr
    assert time.perf_counter() - start < 2


def test_an_unknown_board_lists_those_that_exist(tmp_path):
    done = command_line("de10")
    assert done.returncode == 1
    assert "'de10' is unknown; BOARD is one of kv260, pynq-z1, pynq-z2, ultra96v2, zcu104" in (
        done.stderr
    )


@needs_tclsh
@pytest.mark.parametrize("version", ["2021.2", "2020.1"])
def test_releases_with_the_date_overflow_are_named(version, tmp_path):
    path = fake_tools(tmp_path, "vivado", "vitis_hls", version=version)
    done = command_line("pynq-z2", "--check", path=path)
    assert done.returncode == 1
    assert done.stderr.count("overflows since 1 January 2022") == 2
    assert f"v{version}" in done.stderr


@needs_tclsh
def test_other_old_releases_are_refused_with_what_is_needed(tmp_path):
    path = fake_tools(tmp_path, "vivado", "vitis_hls", version="2022.1")
    done = command_line("pynq-z2", "--check", path=path)
    assert done.returncode == 1 and "needed: 2022.2 or later" in done.stderr
    assert "overflow" not in done.stderr


@needs_tclsh
def test_a_tool_that_does_not_say_its_version(tmp_path):
    path = fake_tools(tmp_path, "vivado", "vitis_hls", version="x")
    assert "it does not say its version" in command_line("pynq-z2", "--check", path=path).stderr


def test_the_newer_command_of_vitis_is_found(tmp_path, monkeypatch):
    script = tmp_path / "vitis-run"
    script.write_text("#!/bin/sh\necho 'vitis-run v2024.2 (64-bit)'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert preflight.find_vitis().command == [str(script), "--mode", "hls", "--tcl"]
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XILINX_VITIS", str(tmp_path))
    assert preflight.find_vitis() is None
    (tmp_path / "bin").mkdir()
    script.rename(tmp_path / "bin" / "vitis-run")
    assert preflight.find_vitis().version == (2024, 2)


def test_disk_memory_and_processor_are_checked(tmp_path, monkeypatch):
    board = load_board("kv260")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 8, 1))
    monkeypatch.setattr(preflight, "memory_bytes", lambda: 4 << 30)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    missing = [f.what for f in preflight.check_machine(board, tmp_path) if not f.ok]
    assert missing == ["computer", "disk", "memory"]


# The whole way --------------------------------------------------------------------------


@needs_tclsh
@pytest.mark.parametrize("board", ["pynq-z2", "kv260"])
def test_the_flow_ends_with_bit_hwh_and_summary(board, tmp_path):
    summary, log, _ = run_flow(board, tmp_path)
    stem = tmp_path / f"rasna-{board}"
    written = json.loads(stem.with_suffix(".json").read_text())
    target = TARGETS[load_board(board).target]
    assert written == summary
    assert written["config_hash"] == target.config_hash and written["target"] == target.name
    assert written["tools"] == {"vivado": "v2023.2", "vitis": "v2023.2"}
    assert written["timing"] == {"wns_ns": 0.352, "whs_ns": 0.014, "met": True}
    assert written["utilisation"]["dsps"] == {"used": 170, "available": 220, "percent": 77.27}
    for kind in ("bit", "hwh"):
        content = stem.with_suffix(f".{kind}").read_bytes()
        assert content and written[f"{kind}_sha256"] == hashlib.sha256(content).hexdigest()
    scripts = [line.split()[1] for line in log if line.startswith("script")]
    assert scripts == ["run_kernel.tcl", *(f"{stage}.tcl" for stage in STAGES[1:])]


@needs_tclsh
def test_the_command_line_runs_the_flow(tmp_path):
    path = fake_tools(tmp_path, "vivado", "vitis_hls") + ":/usr/bin:/bin"
    out = tmp_path / "out"
    log = tmp_path / "commands.log"
    done = command_line("pynq-z2", "--out", str(out), path=path, STUB_LOG=str(log))
    if "missing: " in done.stderr and "Vivado" not in done.stderr.split("missing: ")[1]:
        pytest.skip("this computer is too small")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "has not been run with real vendor tools" in done.stdout
    assert (out / "rasna-pynq-z2.bit").exists()


@needs_tclsh
def test_stages_are_resumed(tmp_path, monkeypatch):
    run_flow("pynq-z2", tmp_path)
    _, log, said = run_flow("pynq-z2", tmp_path)
    assert log == [] and said == [f"{stage}: up to date" for stage in STAGES]
    with pytest.raises(BitstreamError, match="timing is not met"):
        run_flow("pynq-z2", tmp_path, first="implementation", STUB_WNS="-0.431")
    _, log, said = run_flow("pynq-z2", tmp_path)
    assert [s for s in said if "up to date" not in s] and "script implementation.tcl" in log
    assert "script synthesis.tcl" not in log


@needs_tclsh
def test_a_stage_that_is_repeated_repeats_those_after_it(tmp_path):
    run_flow("pynq-z2", tmp_path)
    _, log, _ = run_flow("pynq-z2", tmp_path, first="design")
    assert [line for line in log if line.startswith("script")] == [
        "script design.tcl", "script synthesis.tcl", "script implementation.tcl"
    ]


@needs_tclsh
def test_the_newer_command_of_vitis_runs_the_kernel(tmp_path, monkeypatch):
    """It takes one script and passes nothing on to it."""
    newer = preflight.Tool(
        ["tclsh", str(STUB), "vitis-run", "--mode", "hls", "--tcl"], (2024, 2), "stub v2024.2"
    )
    monkeypatch.setitem(overlay_flow.STUB_TOOLS, "vitis", newer)
    _, log, _ = run_flow("zcu104", tmp_path)
    first = log.index("script run_kernel.tcl")
    assert log[first + 1 : first + 3] == ["open_project hls", "set_top rasna_vitis"]
    assert "csynth_design" in log


@needs_tclsh
def test_ports_of_the_top_that_change_reach_the_wrapper_and_the_ip(tmp_path, monkeypatch):
    run_flow("pynq-z2", tmp_path)
    monkeypatch.setattr(bitstream, "verilog_wrapper", lambda config_hash: "// other ports\n")
    _, log, said = run_flow("pynq-z2", tmp_path)
    assert said[0] == "kernel: up to date" and "script package.tcl" in log
    wrapper = tmp_path / "bitstream" / "pynq-z2" / "rasna_accelerator_ip.v"
    assert wrapper.read_text() == "// other ports\n"


@needs_tclsh
def test_a_stage_is_repeated_when_its_result_is_gone_or_the_board_has_changed(
    tmp_path, monkeypatch
):
    run_flow("pynq-z2", tmp_path)
    (tmp_path / "bitstream" / "pynq-z2" / "timing.rpt").unlink()
    _, log, said = run_flow("pynq-z2", tmp_path)
    assert said[:4] == [f"{stage}: up to date" for stage in STAGES[:4]]
    assert "script implementation.tcl" in log
    board = dataclasses.replace(load_board("pynq-z2"), clock_mhz=100)
    said.clear()
    monkeypatch.setenv("STUB_LOG", os.devnull)
    flow = bitstream.Flow(board, "vitis", tmp_path, dict(overlay_flow.STUB_TOOLS), 7, said.append)
    flow.run()
    assert not [line for line in said if "up to date" in line]


@needs_tclsh
def test_the_open_compiler_makes_the_rtl_and_vivado_alone_is_enough(tmp_path):
    """hlsc really runs; the RTL of tiny, which takes seconds. Vivado is the stub."""
    try:
        build_rtl.check_hlsc_tools()
    except build_sim.BuildError as error:
        pytest.skip(str(error))
    board = dataclasses.replace(load_board("pynq-z2"), target="tiny")
    tools = {"vivado": overlay_flow.STUB_TOOLS["vivado"]}
    log = tmp_path / "commands.log"
    said: list[str] = []
    flow = bitstream.Flow(board, "hlsc", tmp_path, tools, 1, said.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUB_LOG", str(log))
        summary = flow.run()
    assert summary["hls"] == "hlsc" and list(summary["tools"]) == ["vivado"]
    assert summary["config_hash"] == TARGETS["tiny"].config_hash
    commands = log.read_text().splitlines()
    assert "script run_kernel.tcl" not in commands and "script implementation.tcl" in commands
    added = [line.split()[1] for line in commands if line.startswith("add_files")]
    assert "rasna_top.sv" in added and "rasna_top_kernel.sv" not in added
    assert "module rasna_top_kernel" in (tmp_path / "rtl/tiny/rasna_top.sv").read_text()


@needs_tclsh
def test_the_reason_is_found_in_the_log_of_the_run_too(tmp_path):
    run_flow("pynq-z2", tmp_path)
    log = tmp_path / "bitstream/pynq-z2/project/rasna.runs/impl_1/runme.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "ERROR: [Place 30-640] Place Check : This design requires more RAMB36/FIFO cells than are "
        "available in the target device. This design requires 180 of such cell types but only "
        "140 compatible sites are available in the target device.\n"
    )
    with pytest.raises(BitstreamError) as caught:
        run_flow("pynq-z2", tmp_path, first="implementation", STUB_PROGRESS="60%")
    message = str(caught.value)
    assert "the design does not fit the part" in message
    assert "requires 180 of such cell types but only 140" in message


@needs_tclsh
def test_timing_that_is_not_met_gives_the_slack(tmp_path):
    with pytest.raises(BitstreamError) as caught:
        run_flow("pynq-z2", tmp_path, STUB_WNS="-0.431")
    assert str(caught.value).startswith(
        "implementation failed: timing is not met at 150 MHz: worst setup slack -0.431 ns, worst "
        "hold slack 0.014 ns; lower clock_mhz in overlay/boards/pynq-z2.json"
    )
    assert not (tmp_path / "rasna-pynq-z2.bit").exists()
    with pytest.raises(BitstreamError, match="worst hold slack -0.2 ns"):
        run_flow("pynq-z2", tmp_path, STUB_WHS="-0.200")


@needs_tclsh
def test_a_design_that_is_too_large_gives_the_numbers(tmp_path):
    with pytest.raises(BitstreamError) as caught:
        run_flow("pynq-z2", tmp_path, STUB_LUTS="60001")
    assert "xc7z020clg400-1 is too small: luts: 60001 of 53200" in str(caught.value)
    log = (tmp_path / "commands.log").read_text()
    assert "script implementation.tcl" not in log


@needs_tclsh
def test_a_failed_run_gives_its_reason_and_the_log(tmp_path):
    with pytest.raises(BitstreamError) as caught:
        run_flow("pynq-z2", tmp_path, STUB_PROGRESS="40%")
    assert "synthesis failed: ERROR: synthesis failed: synth_1 ERROR" in str(caught.value)
    assert "synthesis.log" in str(caught.value)


# Reports --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("ERROR: '2201011128' is an invalid argument. Please specify an integer value.",
         "the date overflow of Vivado and Vitis 2021"),
        ("ERROR: [Common 17-345] A valid license was not found for feature 'Synthesis'",
         "no licence for the part"),
        ("ERROR: [Place 30-640] Place Check : This design requires more RAMB36/FIFO cells than "
         "are available in the target device. This design requires 180 of such cell types but "
         "only 140 compatible sites are available", "requires 180 of such cell types but only 140"),
        ("Abnormal program termination (11)", "killed or crashed"),
        ("no errors\nhere", "here"),
        ("", "the log is empty"),
    ],
)  # fmt: skip
def test_reasons_are_found_in_logs(log, reason):
    assert reason in reason_of(log)


def timing(wns="0.352", whs="0.014") -> str:
    return TIMING.read_text().replace("@WNS@", wns).replace("@WHS@", whs)


def test_reports_are_read():
    assert parse_timing(timing(), "t") == {"wns_ns": 0.352, "whs_ns": 0.014, "met": True}
    assert not parse_timing(timing("-0.001"), "t")["met"]
    assert not parse_timing(timing(whs="-0.001"), "t")["met"]
    used = parse_utilisation(UTILISATION.read_text().replace("@LUTS@", "31842"), "u")
    assert used["bram36"] == {"used": 118.5, "available": 140, "percent": 84.64}
    assert used["luts"]["used"] == 31842 and over_used(used) == []


def test_reports_of_older_releases_have_a_column_less():
    row = "| CLB LUTs | 10 | 0 | 100 | 10.00 |\n| CLB Registers | 1 | 0 | 9 | <0.01 |\n"
    row += "| Block RAM Tile | 1 | 0 | 9 | 9.0 |\n| DSPs | 1 | 0 | 9 | 9.0 |\n"
    used = parse_utilisation(row, "u")
    assert used["luts"] == {"used": 10, "available": 100, "percent": 10}
    assert used["registers"]["percent"] == 0.01


def test_reports_without_numbers_are_refused():
    with pytest.raises(BitstreamError, match="t: there is no design timing summary"):
        parse_timing("", "t")
    with pytest.raises(BitstreamError, match="no clock constraint"):
        parse_timing(timing("NA"), "t")
    with pytest.raises(BitstreamError, match="u: there are no rows of luts, registers, bram36"):
        parse_utilisation("", "u")
