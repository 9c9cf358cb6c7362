"""scripts/packages.py: what is in the wheel and in the source archive."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import packages

from rasna.errors import BuildError
from rasna.simbuild import FAST_SOURCES, SHARED_SOURCES, find_compiler


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return packages.build_wheel(tmp_path_factory.mktemp("wheel"), isolated=False)


def test_the_source_archive_has_every_folder_of_the_repository():
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {path.split("/")[0] for path in tracked} == set(packages.source_names())


def test_the_wheel_carries_the_sources_of_the_simulator(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    top = "rasna/simbuild/sources"
    needed = {f"{top}/sim/{name}" for name in (*SHARED_SOURCES, *FAST_SOURCES)}
    needed |= {f"{top}/hls/{path.name}" for path in (ROOT / "hls").glob("*.h")}
    assert len(needed) > 20 and needed <= names
    assert not [name for name in names if "/rtl_" in name]


def test_the_wheel_alone_builds_a_simulator(wheel, tmp_path):
    """Unpacked far from the repository, without torch."""
    try:
        compiler, _ = find_compiler(os.environ.get("CXX"))
    except BuildError as error:
        pytest.skip(str(error))
    quick = tmp_path / "g++"
    quick.write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')
    quick.chmod(0o755)
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "installed")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import rasna\nfrom rasna.runtime.library import open_library\n"
        "path = rasna.simulator('tiny')\n"
        "print(rasna.__file__, path.parent, open_library(str(path)).target, sep='\\n')"
    )
    environment = {k: v for k, v in os.environ.items() if k != "RASNA_SIMULATOR"}
    environment |= {"PYTHONPATH": str(tmp_path / "installed"),
                    "RASNA_CACHE": str(tmp_path / "cache"), "CXX": str(quick)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          cwd=tmp_path, env=environment)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        str(tmp_path / "installed" / "rasna" / "__init__.py"), str(tmp_path / "cache"), "tiny",
    ]


def test_a_wheel_that_cannot_be_built_tells_what_the_tool_said(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "source_names", lambda: ["LICENSE"])
    with pytest.raises(packages.PackageError) as error:
        packages.build_wheel(tmp_path, isolated=False)
    assert str(error.value).startswith("rasna-*.whl was not built:\n")
    assert "Neither 'setup.py' nor 'pyproject.toml' found" in str(error.value)
