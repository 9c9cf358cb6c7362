"""The preflight asks Vivado for the part, the board files and the licence, before any stage."""

from __future__ import annotations

import bitstream
import bitstream_preflight as preflight
import pytest
from bitstream_probe import probe
from bitstream_settings import board_names, load_board
from overlay_flow import STUB_TOOLS
from overlay_tcl import NO_TCL, TCL
from test_bitstream import fake_tools

pytestmark = pytest.mark.skipif(TCL is None, reason=NO_TCL)


def run(work, monkeypatch, name="kv260", **stub):
    log = work / "commands.log"
    log.unlink(missing_ok=True)
    monkeypatch.setenv("STUB_LOG", str(log))
    for variable in ("STUB_PART", "STUB_BOARD_PART", "STUB_LICENCE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in stub.items():
        monkeypatch.setenv(variable, value)
    findings = probe(load_board(name), STUB_TOOLS["vivado"], work)
    return findings, log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("name", board_names())
def test_a_complete_vivado_is_asked_once(name, tmp_path, monkeypatch):
    board = load_board(name)
    findings, log = run(tmp_path, monkeypatch, name)
    assert [f.what for f in findings] == [
        f"part {board.part}", f"board files {board.board_part}", f"licence for {board.part}"
    ]
    assert all(f.ok and f.checked for f in findings)
    assert log == [
        "script probe.tcl", f"create_project -in_memory part={board.part}",
        "read_verilog probe.v", f"synth_design -top rasna_probe -part {board.part}",
        "close_project",
    ]
    findings, log = run(tmp_path, monkeypatch, name)
    assert log == [] and all(f.ok and f.found == "found by an earlier run" for f in findings)


@pytest.mark.parametrize(
    ("stub", "texts"),
    [
        ({"STUB_PART": "other"}, ["part xck26-sfvc784-2LV-c: missing", "add the device family"]),
        ({"STUB_BOARD_PART": "other"},
         ["board files xilinx.com:kv260_som:part0:1.4: missing", "Vivado store"]),
        ({"STUB_LICENCE": "0"},
         ["licence for xck26-sfvc784-2LV-c: ERROR: [Common 17-345] A valid license was not found",
          "install Vivado ML Standard"]),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(stub, texts, tmp_path, monkeypatch):
    for _ in range(2):  # nothing that failed is noted as found
        findings, log = run(tmp_path, monkeypatch, **stub)
        missing = [str(f) for f in findings if not f.ok]
        assert log and len(missing) == 1 and all(text in missing[0] for text in texts)


def test_a_vivado_that_does_not_answer_is_said_with_its_reason(tmp_path, monkeypatch):
    broken = preflight.Tool(["sh", "-c", "echo 'ERROR: no display'; exit 3"], (2023, 2), "v2023.2")
    (finding,) = probe(load_board("kv260"), broken, tmp_path)
    assert not finding.ok and "ERROR: no display" in finding.found
    assert str(tmp_path / "probe.log") in finding.advice
    silent = preflight.Tool(["sh", "-c", ""], (2023, 2), "v2023.2")
    (finding,) = probe(load_board("kv260"), silent, tmp_path)
    assert not finding.ok and "the log is empty" in finding.found
    (finding,) = probe(load_board("kv260"), preflight.Tool(["/nowhere"], None, ""), tmp_path)
    assert not finding.ok and "/nowhere" in finding.found


def test_a_missing_licence_ends_the_command_before_any_stage(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", fake_tools(tmp_path, "vivado", "vitis_hls") + ":/usr/bin:/bin")
    monkeypatch.setattr(preflight, "check_machine", lambda board, work: [])
    monkeypatch.setenv("STUB_LOG", str(tmp_path / "commands.log"))
    monkeypatch.setenv("STUB_LICENCE", "0")
    out = tmp_path / "out"
    assert bitstream.main(["zcu104", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert "1 missing: licence for xczu7ev-ffvc1156-2-e" in said
    assert not list(out.rglob("kernel.*"))
    monkeypatch.delenv("STUB_LICENCE")
    assert bitstream.main(["zcu104", "--out", str(out), "--check"]) == 0
    assert "ok      licence for xczu7ev-ffvc1156-2-e: found" in capsys.readouterr().out


def test_without_vivado_the_licence_is_a_note(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("XILINX_VIVADO", "XILINX_HLS", "XILINX_VITIS"):
        monkeypatch.delenv(variable, raising=False)
    assert bitstream.main(["zcu104", "--out", str(tmp_path)]) == 1
    assert "note    licence for xczu7ev-ffvc1156-2-e: looked up by Vivado when nothing else" in (
        capsys.readouterr().err
    )
