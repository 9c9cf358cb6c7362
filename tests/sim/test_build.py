"""scripts/build_sim.py: what it needs, what it says, when it builds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import build_sim
import pytest
from build_objects import path_of

SCRIPT = Path(build_sim.__file__)


def fake_compiler(folder: Path, name: str, version: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)


def run_script(*arguments: str, path: Path) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if k != "CXX"}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], env={**environment, "PATH": str(path)},
        capture_output=True, text=True, check=False,
    )


NEEDED = "a C++17 compiler is needed, g++ 8 or clang++ 7 or newer, but "
REMEDY = "; install one (for example the package g++) or give its name with --cxx\n"


def test_no_compiler_is_an_error_that_says_what_is_needed(tmp_path):
    done = run_script("--out", str(tmp_path / "out"), path=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == (
        f"build_sim.py: {NEEDED}no g++ or clang++ was found on PATH{REMEDY}"
    )


def test_old_compilers_are_named(tmp_path):
    fake_compiler(tmp_path, "g++", "g++ (GCC) 4.8.5 20150623")
    fake_compiler(tmp_path, "clang++", "clang version 3.4.2")
    done = run_script("--out", str(tmp_path / "out"), path=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"build_sim.py: {NEEDED}g++ is g++ 4; clang++ is clang++ 3{REMEDY}"
    )


def test_the_compiler_that_is_asked_for_must_exist(tmp_path):
    done = run_script("--cxx", "no-such-c++", "--out", str(tmp_path / "out"), path=tmp_path)
    assert done.stderr == f"build_sim.py: {NEEDED}no no-such-c++ was found on PATH{REMEDY}"


def test_a_compiler_that_fails_leaves_no_object(tmp_path):
    fake_compiler(tmp_path, "g++", "g++ (GCC) 12.2.0")
    (tmp_path / "g++").write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'g++ 12.2.0' && exit 0\n"
        "echo 'disk full' >&2\nexit 1\n"
    )
    done = run_script("--target", "tiny", "--out", str(tmp_path / "out"), path=tmp_path)
    assert done.returncode == 1
    assert "this command failed:" in done.stderr and "disk full" in done.stderr
    assert not list((tmp_path / "out").glob("*.so"))


def test_nothing_is_built_when_nothing_has_changed(capsys):
    path = path_of("tiny")
    before = path.stat().st_mtime_ns
    capsys.readouterr()
    assert path_of("tiny") == path
    assert capsys.readouterr().out == f"{path} is up to date\n"
    assert path.stat().st_mtime_ns == before


def test_a_change_of_any_input_changes_the_hash(tmp_path):
    source = tmp_path / "a.h"
    source.write_text("1")
    hashes = {build_sim.source_hash([source], "-O3"), build_sim.source_hash([source], "-O2")}
    source.write_text("2")
    hashes.add(build_sim.source_hash([source], "-O3"))
    assert len(hashes) == 3


@pytest.mark.skipif(not shutil.which("nm"), reason="nm is not installed")
@pytest.mark.parametrize("source", sorted(build_sim.X86_FLAGS))
def test_loops_for_new_processors_share_no_function_with_the_rest(source, tmp_path):
    """The linker keeps one of several equal inline functions: it must not be an AVX one."""
    flags = build_sim.flags_of(source, [])
    if not flags:
        pytest.skip("these loops are for x86-64")
    compiler, _ = build_sim.find_compiler(os.environ.get("CXX"))
    into = tmp_path / "body.o"
    subprocess.run(
        [compiler, "-std=c++17", "-O0", "-w", "-DRASNA_TARGET_TINY", *flags, "-c",
         str(build_sim.ROOT / "sim" / source), "-o", str(into)], check=True,
    )
    listing = subprocess.run(
        ["nm", "--defined-only", str(into)], capture_output=True, text=True, check=True
    ).stdout
    kinds = {line.split()[2]: line.split()[1] for line in listing.splitlines()}
    assert any("BODY_" in name for name in kinds)
    assert [name for name, kind in kinds.items() if kind in "WwVvu"] == []
