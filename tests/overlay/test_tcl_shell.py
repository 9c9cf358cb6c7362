"""The Tcl inside of Python runs a script as tclsh does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import overlay_tcl
import pytest

TKINTER = [sys.executable, str(Path(overlay_tcl.__file__).resolve())]
SCRIPT = """
set file [open $env(OUT) w]
puts $file "kept"
puts [list $argc $argv [file tail $argv0]]
if {[lindex $argv 0] eq "fail"} { error "as asked" }
if {[lindex $argv 0] eq "exit"} { catch { exit 3 } }
puts end
"""


def shells() -> list:
    tclsh = shutil.which("tclsh")
    why = pytest.mark.skipif(tclsh is None, reason="tclsh is not installed")
    return [pytest.param(TKINTER, id="tkinter"), pytest.param([tclsh], id="tclsh", marks=why)]


@pytest.mark.parametrize("shell", shells())
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["a b", "$c"], 0, "2 {{a b} {$c}} it.tcl\nend\n"),
        ([], 0, "0 {} it.tcl\nend\n"),
        (["exit"], 3, "1 exit it.tcl\n"),
        (["fail"], 1, "1 fail it.tcl\n"),
    ],
    ids=["arguments", "none", "exit", "error"],
)
def test_arguments_output_files_and_status_are_those_of_tclsh(
    shell, arguments, status, said, tmp_path
):
    pytest.importorskip("tkinter", reason="this Python has no tkinter")
    script, out = tmp_path / "it.tcl", tmp_path / "out"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [*shell, str(script), *arguments], capture_output=True, text=True,
        env={**os.environ, "OUT": str(out)},
    )
    assert (done.returncode, done.stdout) == (status, said), done.stderr
    assert out.read_text() == "kept\n"
    assert done.stderr.startswith("as asked\n    while executing") == (status == 1)


def test_tclsh_is_taken_where_it_is_and_python_where_not(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    pytest.importorskip("tkinter", reason="this Python has no tkinter")
    assert overlay_tcl.find_tcl() == TKINTER
    (tmp_path / "tclsh").write_text("#!/bin/sh\n")
    (tmp_path / "tclsh").chmod(0o755)
    assert overlay_tcl.find_tcl() == [str(tmp_path / "tclsh")]
    (tmp_path / "tclsh").unlink()
    monkeypatch.setitem(sys.modules, "tkinter", None)
    assert overlay_tcl.find_tcl() is None
