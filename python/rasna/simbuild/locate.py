"""Finds or builds the simulator of a target: what :func:`rasna.simulator` does."""

from __future__ import annotations

import logging
import os
import platform
import sys
from pathlib import Path

from ..errors import (
    BuildError,
    RasnaFileError,
    RasnaValueError,
    TargetMismatchError,
)
from ..isa import ISA_VERSION
from ..runtime.library import open_library
from ..targets import Target, get_target
from .build import COMMON_FLAGS, make_object, object_key
from .compilers import Compiler, host_compiler, zig_compiler
from .files import locked
from .platforms import local_platform

SIMULATOR_VARIABLE = "RASNA_SIMULATOR"
CACHE_VARIABLE = "RASNA_CACHE"
_log = logging.getLogger("rasna")


def simulator(target: str | Target) -> Path:
    """Path of a simulator of ``target``; see :func:`rasna.simulator`."""
    try:
        machine = get_target(target)
    except ValueError as error:
        raise RasnaValueError(str(error)) from None
    named = os.environ.get(SIMULATOR_VARIABLE)
    if named:
        return _named(Path(named), machine)
    folder = cache_folder()
    downloaded = folder / _downloaded_name(machine.name)
    if downloaded.is_file():
        _require_fit(downloaded, machine)
        return downloaded
    return _built(folder, machine)


def cache_folder() -> Path:
    """Where built and downloaded simulators lie: $RASNA_CACHE, else the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "rasna"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rasna"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rasna"


def _downloaded_name(target: str) -> str:
    """Name of the file of a release for this computer."""
    of = local_platform()
    return of.object_name(target) if of else f"rasna-{target}.so"


def _named(path: Path, machine: Target) -> Path:
    """The simulator that $RASNA_SIMULATOR names: a file, or a folder that holds one."""
    if path.is_dir():
        names = (f"rasna-{machine.name}.so", _downloaded_name(machine.name))
        found = [path / name for name in names if (path / name).is_file()]
        if not found:
            raise RasnaFileError(
                f"{SIMULATOR_VARIABLE} is the folder {path}, which has neither "
                f"{' nor '.join(dict.fromkeys(names))}; name a file, or unset the variable"
            )
        path = found[0]
    elif not path.exists():
        raise RasnaFileError(
            f"{SIMULATOR_VARIABLE} is {path}, and there is no such file; name a simulator or a "
            "folder that holds one, or unset the variable"
        )
    _require_fit(path, machine)
    return path


def _require_fit(path: Path, machine: Target) -> None:
    """Raises RuntimeObjectError, or TargetMismatchError for another machine or version."""
    library = open_library(os.fspath(path))
    is_it = (library.target, library.isa_version, library.config_hash)
    if is_it != (machine.name, ISA_VERSION, machine.config_hash):
        raise TargetMismatchError(
            f"{path} is a simulator of {library.target} (ISA version {library.isa_version}, "
            f"configuration {library.config_hash}); needed is {machine.name} (ISA version "
            f"{ISA_VERSION}, configuration {machine.config_hash}); take the file of this version "
            f"of rasna, or remove it and unset {SIMULATOR_VARIABLE} to have one built"
        )


def _built(folder: Path, machine: Target) -> Path:
    """The simulator built out of the sources of this package, made now if need be.

    The name has a hash of all that decides its bits, not of the compiler: what was built stays
    good when the compiler is gone. One process builds, others wait for it.
    """
    of = local_platform()
    key = object_key(False, " ".join([platform.machine(), *COMMON_FLAGS]))
    path = folder / f"rasna-{machine.name}-{key[:16]}{of.suffix if of else '.so'}"
    if path.is_file():
        return path
    compiler = _compiler(folder, machine)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"{path.name}.lock"):
            if not path.is_file():
                _log.info("building %s with %s", path, compiler.description)
                make_object(compiler, machine.name, path)
    except OSError as error:
        raise RasnaFileError(
            f"the simulator cannot be kept in {folder}: {error.strerror or error}; give a folder "
            f"that can be written in {CACHE_VARIABLE}"
        ) from error
    return path


def _compiler(folder: Path, machine: Target) -> Compiler:
    """g++ or clang++, else ziglang. Raises BuildError that tells all ways to a simulator."""
    try:
        return host_compiler(os.environ.get("CXX"))
    except BuildError as error:
        of = local_platform()
        compiler = zig_compiler(of) if of else None
        if compiler:
            return compiler
        needed = str(error).split("; install one")[0]
    raise BuildError(
        f"there is no simulator of {machine.name} in {folder}, and none can be built: {needed}, "
        f"and the Python package ziglang is not there; copy {_downloaded_name(machine.name)} of a "
        f"release into that folder (or name it in {SIMULATOR_VARIABLE}), install g++ or clang++, "
        "or: pip install ziglang"
    )
