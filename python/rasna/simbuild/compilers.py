"""Finds a C++ compiler that is new enough."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

from ..errors import BuildError
from .platforms import Platform

CANDIDATES = ("g++", "clang++", *(f"g++-{v}" for v in range(15, 7, -1)),
              *(f"clang++-{v}" for v in range(21, 6, -1)))  # fmt: skip
MIN_GNU, MIN_CLANG = 8, 7  # C++17 and the AVX-512 VNNI intrinsics


@dataclass(frozen=True)
class Compiler:
    """A command that compiles and links C++ for one kind of processor.

    command : the program and the arguments that belong to it
    description : "g++ 12", for people
    machine : the processor of what it makes, as ``platform.machine()`` of Linux names it
    """

    command: tuple[str, ...]
    description: str
    machine: str


def compiler_version(command: str) -> tuple[str, int] | None:
    """("g++" or "clang++", major version) of a compiler, or None when it does not run."""
    try:
        text = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    clang = re.search(r"clang version (\d+)", text)
    if clang:
        return "clang++", int(clang.group(1))
    gnu = re.search(r"\b(\d+)\.\d+(?:\.\d+)?\b", text)
    return ("g++", int(gnu.group(1))) if gnu else None


def find_compiler(wanted: str | None) -> tuple[str, str]:
    """A command and a description of the first compiler that is new enough.

    wanted: the only candidate (option --cxx or the environment variable CXX).
    Raises BuildError that names what was found and what is needed.
    """
    found = []
    for command in [wanted] if wanted else CANDIDATES:
        path = shutil.which(command)
        version = compiler_version(path) if path else None
        if path is None or version is None:
            continue
        kind, major = version
        if major >= (MIN_CLANG if kind == "clang++" else MIN_GNU):
            return path, f"{kind} {major}"
        found.append(f"{command} is {kind} {major}")
    what = "; ".join(found) if found else f"no {wanted or 'g++ or clang++'} was found on PATH"
    raise BuildError(
        f"a C++17 compiler is needed, g++ {MIN_GNU} or clang++ {MIN_CLANG} or newer, but {what}; "
        "install one (for example the package g++) or give its name with --cxx"
    )


def host_compiler(wanted: str | None) -> Compiler:
    """The compiler of :func:`find_compiler`, for the processor that this runs on."""
    path, description = find_compiler(wanted)
    machine = platform.machine()
    return Compiler((path,), description, "x86_64" if machine == "AMD64" else machine)


def zig_compiler(of: Platform) -> Compiler | None:
    """The C++ compiler of the Python package ziglang for a platform; None where it is missing."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    command = (sys.executable, "-m", "ziglang", "c++", "-target", of.triple, f"-mcpu={of.cpu}")
    return Compiler(command, f"ziglang {importlib.metadata.version('ziglang')}", of.machine)
