"""Runs the flow of scripts/bitstream.py against the strict stub of the vendor tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STUB = HERE / "stub.tcl"
sys.path[:0] = [str(ROOT / "scripts")]

from bitstream import Flow
from bitstream_preflight import Tool
from bitstream_settings import load_board
from overlay_tcl import TCL

SHELL = TCL or ["tclsh"]  # the tests that call it are skipped without one
STUB_TOOLS = {
    "vivado": Tool([*SHELL, str(STUB), "vivado"], (2023, 2), "stub v2023.2"),
    "vitis": Tool([*SHELL, str(STUB), "vitis_hls", "-f"], (2023, 2), "stub v2023.2"),
}


def run_flow(board: str, out: Path, hls: str = "vitis", first: str = "", **stub: str):
    """(summary, recorded commands). stub: the STUB_* variables. Raises BitstreamError."""
    log = out / "commands.log"
    log.unlink(missing_ok=True)
    before = dict(os.environ)
    os.environ.update(STUB_LOG=str(log), **stub)
    said: list[str] = []
    try:
        flow = Flow(load_board(board), hls, out, dict(STUB_TOOLS), 1, said.append)
        summary = flow.run(first)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return summary, log.read_text().splitlines() if log.exists() else [], said


def run_script(script: Path, settings: Path, tool: str = "vivado") -> tuple[int, str, list[str]]:
    """(exit status, output, recorded commands) of one Tcl script under the stub."""
    log = settings.parent / "commands.log"
    log.unlink(missing_ok=True)
    arguments = ["-source", str(script), "-tclargs"] if tool == "vivado" else ["-f", str(script)]
    done = subprocess.run(
        [*SHELL, str(STUB), tool, *arguments, str(settings)], capture_output=True, text=True,
        env={**os.environ, "STUB_LOG": str(log)}, timeout=60,
    )
    return done.returncode, done.stdout + done.stderr, log.read_text().splitlines()
