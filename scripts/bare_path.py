"""Makes a folder of links to the few commands that the README asks for, to be a whole PATH.

What works with it works on a machine that has nothing else; a tool that slips in fails there.

usage: python scripts/bare_path.py [FOLDER]     prints FOLDER, build/bare without it
       PATH=$(python scripts/bare_path.py) make test
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Command → why it is there. The headings are what "You need" of the README names.
COMPILER = {
    "g++": "builds the simulators, the verilated RTL and the tests' programs",
    "c++": "its other name, which Verilator's makefile calls",
    "gcc": "compiles the C programs that test the C ABI; comes with g++",
    "as": "g++ calls it",
    "ld": "g++ calls it",
    "ar": "packs the objects of a verilated model",
    "nm": "lists the symbols that a simulator exports; comes with ar, as and ld",
}
MAKE = {
    "make": "runs the targets, and builds what Verilator writes",
    "sh": "runs make's recipes and scripts/preflight.sh",
}
UTILITIES = {
    "cat": "Verilator's makefile calls it",
    "env": "first line of scripts; sets PATH for a recipe",
    "expand": "lays out make help",
    "grep": "finds the lines of make help",
    "mkdir": "makes .venv/.stamps and the folders of a build",
    "rm": "removes what make clean, and a build that failed, leave",
    "sed": "shortens the lines of make help",
    "touch": "sets the stamps of what is installed",
    "uname": "tells Python's platform module and Verilator's makefile what the machine is",
    "xargs": "Verilator's makefile packs its objects with it",
}
# The README's Python is python3; a launcher, see write_python.
PYTHON = "python3"


class BarePathError(Exception):
    """A command that the README asks for is not on PATH, or the folder is not this script's."""


def write_python(folder: Path) -> None:
    """A launcher of this interpreter: a link would be taken for the home of a virtual environment.

    The python3 on PATH may itself be a launcher that needs a shell and more of its own.
    """
    launcher = folder / PYTHON
    program = Path(sys.executable)
    if sys.prefix != sys.base_prefix:
        program = Path(getattr(sys, "_base_executable", sys.executable))
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program.resolve()))} "$@"\n')
    launcher.chmod(0o755)


def empty_folder(folder: Path) -> None:
    """Make ``folder``, or remove what an earlier run put there; nothing else is ever removed."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = sorted(folder.iterdir())
    for entry in entries:
        if not entry.is_symlink() and entry.name != PYTHON:
            raise BarePathError(
                f"{folder} holds {entry.name}, which is no link that this script made; "
                "name another folder"
            )
    for entry in entries:
        entry.unlink()


def make_folder(folder: Path, commands: tuple[str, ...]) -> Path:
    """Fill ``folder`` with links to ``commands`` as PATH finds them, and nothing else.

    Raises BarePathError when one is not on PATH, or the folder holds something else.
    """
    places = {command: shutil.which(command) for command in commands}
    missing = [command for command, place in places.items() if place is None]
    if missing:
        raise BarePathError(f"not on PATH: {', '.join(missing)}; install what README.md names")
    empty_folder(folder)
    for command, place in places.items():
        os.symlink(os.path.realpath(str(place)), folder / command)
    write_python(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "bare")
    folder = parser.parse_args().folder.absolute()
    try:
        print(make_folder(folder, (*COMPILER, *MAKE, *UTILITIES)))
    except BarePathError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
