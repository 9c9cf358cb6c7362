"""The compiler of ziglang; tests/sim/test_build.py has g++ and clang++."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys

import pytest

from rasna.errors import BuildError
from rasna.simbuild import PLATFORMS, Compiler, compilers, locate, zig_compiler

ARM = PLATFORMS["linux-armv7l"]


@pytest.fixture
def ziglang(monkeypatch):
    """ziglang 9.9, as far as the look-up sees."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")


def test_finding_a_compiler_needs_nothing_but_python():
    """`make` asks for one before it has installed anything."""
    code = (
        "import sys; sys.modules.update(numpy=None, torch=None)\n"
        "from rasna.simbuild import find_compiler; print('imported')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("imported\n", "")


def test_ziglang_compiles_for_the_platform_that_is_asked_for(ziglang):
    command = (sys.executable, "-m", "ziglang", "c++", "-target", "arm-linux-gnueabihf.2.17",
               "-mcpu=generic+v7a+neon")  # fmt: skip
    assert zig_compiler(ARM) == Compiler(command, "ziglang 9.9", "armv7l")


def test_without_ziglang_there_is_no_such_compiler(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert zig_compiler(ARM) is None


def test_ziglang_is_taken_where_no_other_compiler_is(ziglang, monkeypatch, tmp_path):
    def nothing(wanted):
        raise BuildError("no compiler")

    monkeypatch.setattr(locate, "host_compiler", nothing)
    monkeypatch.setattr(locate, "local_platform", lambda: ARM)
    found = locate._compiler(tmp_path, locate.get_target("tiny"))
    assert found == compilers.zig_compiler(ARM)
