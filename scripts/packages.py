"""Builds the wheel and the source archive from a copy of the repository.

A copy, so that nothing of an earlier build gets into them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAVE = shutil.ignore_patterns("__pycache__", "*.egg-info", "obj_dir", "sim_build", ".pytest_cache")


class PackageError(Exception):
    """A package was not built; the text has the output of the tool."""


def source_names() -> list[str]:
    """Files and folders at the top of the source archive: those that MANIFEST.in names."""
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    commands = [line.split() for line in lines]
    named = [words[1:] for words in commands if words and words[0] in ("include", "graft")]
    return [name for names in named for name in names]


@contextmanager
def source_copy() -> Iterator[Path]:
    """A temporary folder with the sources of the archive."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for top in source_names():
            if (ROOT / top).is_dir():
                shutil.copytree(ROOT / top, folder / top, ignore=LEAVE)
            else:
                shutil.copyfile(ROOT / top, folder / top)
        yield folder


def build_wheel(folder: Path, isolated: bool = True) -> Path:
    """Write the wheel into ``folder``. Raises PackageError.

    isolated: False: with the setuptools that is installed; needs no network.
    """
    with source_copy() as source:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
             "--no-deps", *([] if isolated else ["--no-build-isolation"]),
             "--wheel-dir", str(folder), str(source)],
            capture_output=True, text=True,
        )
    return _newest(folder, "rasna-*.whl", done)


def build_both(folder: Path) -> tuple[Path, Path]:
    """Write the source archive, and the wheel made out of it, with the Python package build."""
    with source_copy() as source:
        done = subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source)],
            capture_output=True, text=True,
        )
    return _newest(folder, "rasna-*.tar.gz", done), _newest(folder, "rasna-*.whl", done)


def _newest(folder: Path, pattern: str, done: subprocess.CompletedProcess[str]) -> Path:
    found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if done.returncode or not found:
        raise PackageError(f"{pattern} was not built:\n{done.stdout}{done.stderr}")
    return found[-1]
