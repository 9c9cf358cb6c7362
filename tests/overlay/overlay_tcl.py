"""A Tcl for the tests: tclsh where it is, else the one that is inside of Python's tkinter.

    python overlay_tcl.py script.tcl [arguments]      runs a script as tclsh does, with tkinter
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path


def find_tcl() -> list[str] | None:
    """A command that runs the Tcl script that follows, or None."""
    tclsh = shutil.which("tclsh")
    if tclsh:
        return [tclsh]
    try:
        importlib.import_module("tkinter")
    except ImportError:
        return None
    return [sys.executable, str(Path(__file__).resolve())]


TCL = find_tcl()
NO_TCL = "there is no Tcl: neither tclsh (Debian: tcl) nor Python's tkinter (Debian: python3-tk)"


def leave(interpreter, status: str = "0") -> None:
    """End the process as Tcl's exit, which tkinter takes away: what was written is not lost."""
    interpreter.eval("foreach channel [file channels] {catch {flush $channel}}")
    sys.stderr.flush()
    os._exit(int(status))


def main(script: str, *arguments: str) -> None:
    """Run a script; an error ends with status 1 and Tcl's trace, as in tclsh."""
    import tkinter

    tcl = tkinter.Tcl()
    tcl.createcommand("exit", lambda status="0": leave(tcl, status))
    for name, value in (("argv0", script), ("argc", len(arguments)), ("tcl_interactive", 0)):
        tcl.setvar(name, value)
    tcl.setvar("argv", arguments)
    try:
        tcl.call("source", script)
    except tkinter.TclError:
        print(tcl.eval("set ::errorInfo"), file=sys.stderr)
        leave(tcl, "1")
    leave(tcl)


if __name__ == "__main__":
    main(*sys.argv[1:])
