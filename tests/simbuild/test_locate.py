"""rasna.simulator: which simulator it gives, and what it says where there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rasna
from rasna.simbuild import locate
from rasna.targets import TARGETS
from tests.messages import refuses

NAME = "rasna-tiny-linux-x86_64.so"
NEEDED = "a C++17 compiler is needed, g++ 8 or clang++ 7 or newer"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache folder, on a computer for which a release has a file."""
    for name in ("RASNA_SIMULATOR", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RASNA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        locate, "_downloaded_name", lambda target: f"rasna-{target}-linux-x86_64.so"
    )
    return tmp_path / "cache"


def test_the_file_that_the_environment_names_comes_first(tiny_object, cache, monkeypatch):
    cache.mkdir()
    shutil.copyfile(tiny_object, cache / NAME)
    monkeypatch.setenv("RASNA_SIMULATOR", str(tiny_object))
    assert rasna.simulator("tiny") == tiny_object


@pytest.mark.parametrize("name", ["rasna-tiny.so", NAME])
def test_the_environment_may_name_a_folder(tiny_object, tmp_path, monkeypatch, name):
    shutil.copyfile(tiny_object, tmp_path / name)
    monkeypatch.setenv("RASNA_SIMULATOR", str(tmp_path))
    assert rasna.simulator(target="tiny") == tmp_path / name


def test_a_name_in_the_environment_that_leads_nowhere_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RASNA_SIMULATOR", str(tmp_path / "none.so"))
    with refuses(
        rasna.RasnaFileError,
        f"RASNA_SIMULATOR is {tmp_path / 'none.so'}, and there is no such file; name a simulator "
        "or a folder that holds one, or unset the variable",
    ):
        rasna.simulator("tiny")
    monkeypatch.setenv("RASNA_SIMULATOR", str(tmp_path))
    with refuses(
        rasna.RasnaFileError,
        f"RASNA_SIMULATOR is the folder {tmp_path}, which has neither rasna-kv260.so nor "
        "rasna-kv260-linux-x86_64.so; name a file, or unset the variable",
    ):
        rasna.simulator("kv260")


def test_a_simulator_of_another_target_is_refused(tiny_object, monkeypatch):
    monkeypatch.setenv("RASNA_SIMULATOR", str(tiny_object))
    version, tiny, kv260 = rasna.isa.ISA_VERSION, TARGETS["tiny"], TARGETS["kv260"]
    with refuses(
        rasna.TargetMismatchError,
        f"{tiny_object} is a simulator of tiny (ISA version {version}, configuration "
        f"{tiny.config_hash}); needed is kv260 (ISA version {version}, configuration "
        f"{kv260.config_hash}); take the file of this version of rasna, or remove it and unset "
        "RASNA_SIMULATOR to have one built",
    ):
        rasna.simulator("kv260")


def test_a_file_that_is_no_simulator_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "text.so"
    path.write_text("not a library")
    monkeypatch.setenv("RASNA_SIMULATOR", str(path))
    with refuses(
        rasna.RuntimeObjectError,
        f"{path}: cannot be loaded as a shared library on this machine: text.so: file too short",
    ):
        rasna.simulator("tiny")


def test_a_downloaded_file_in_the_cache_is_taken(tiny_object, cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    cache.mkdir()
    shutil.copyfile(tiny_object, cache / NAME)
    assert rasna.simulator("tiny") == cache / NAME


def test_a_simulator_is_built_once_and_stays_when_the_compiler_goes(
    fake_compiler, cache, monkeypatch
):
    monkeypatch.setenv("CXX", str(fake_compiler.path))
    path = rasna.simulator("tiny")
    assert re.fullmatch(r"rasna-tiny-[0-9a-f]{16}\.(so|dylib|dll)", path.name)
    assert path.parent == cache and path.is_file() and fake_compiler.links == 1
    assert rasna.simulator("tiny") == path and fake_compiler.links == 1
    monkeypatch.setenv("CXX", "no-such-c++")
    assert rasna.simulator("tiny") == path


def test_other_sources_give_another_file(fake_compiler, monkeypatch):
    monkeypatch.setenv("CXX", str(fake_compiler.path))
    first = rasna.simulator("tiny")
    monkeypatch.setattr(locate, "object_key", lambda *_: "0" * 64)
    assert rasna.simulator("tiny") != first and fake_compiler.links == 2


def test_processes_that_start_at_once_build_one_simulator(fake_compiler):
    code = "import rasna; print(rasna.simulator('tiny'))"
    environment = {**os.environ, "CXX": str(fake_compiler.path)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE,
                         text=True)
        for _ in range(4)
    ]  # fmt: skip
    paths = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0] * 4
    assert len(paths) == 1 and fake_compiler.links == 1


def test_a_compiler_that_fails_leaves_no_simulator(fake_compiler, cache, monkeypatch):
    fake_compiler.path.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'g++ 12.2.0' && exit 0\n"
        "echo 'disk full' >&2\nexit 1\n"
    )
    monkeypatch.setenv("CXX", str(fake_compiler.path))
    with pytest.raises(rasna.BuildError, match="this command failed:\n(.*\n)*disk full"):
        rasna.simulator("tiny")
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_without_simulator_and_compiler_all_remedies_are_told(cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(locate, "zig_compiler", lambda of: None)
    with refuses(
        rasna.BuildError,
        f"there is no simulator of pynq-z2 in {cache}, and none can be built: {NEEDED}, but no "
        "g++ or clang++ was found on PATH, and the Python package ziglang is not there; copy "
        "rasna-pynq-z2-linux-x86_64.so of a release into that folder (or name it in "
        "RASNA_SIMULATOR), install g++ or clang++, or: pip install ziglang",
    ):
        rasna.simulator()


def test_a_cache_that_cannot_be_written_is_named(fake_compiler, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "cache"
    monkeypatch.setenv("RASNA_CACHE", str(folder))
    monkeypatch.setenv("CXX", str(fake_compiler.path))
    with refuses(
        rasna.RasnaFileError,
        f"the simulator cannot be kept in {folder}: Not a directory; give a folder that can be "
        "written in RASNA_CACHE",
    ):
        rasna.simulator("tiny")


def test_an_unknown_target_is_refused():
    with refuses(
        rasna.RasnaValueError,
        "target 'zcu999' is unknown; the targets are tiny, small, pynq-z2, kv260",
    ):
        rasna.simulator("zcu999")


@pytest.mark.parametrize(
    ("system", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/rasna"),
        ("linux", {"HOME": "/home/u"}, "/home/u/.cache/rasna"),
        ("darwin", {"HOME": "/Users/u"}, "/Users/u/Library/Caches/rasna"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/rasna"),
    ],
)
def test_the_cache_is_where_the_system_keeps_caches(monkeypatch, system, variables, folder):
    for name in ("RASNA_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    assert locate.cache_folder() == Path(folder)


def test_neither_torch_nor_a_checkout_is_needed(tiny_object):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import rasna; print(rasna.simulator('tiny'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/",
        env={**os.environ, "RASNA_SIMULATOR": str(tiny_object)},
    )
    assert (done.stdout, done.stderr) == (f"{tiny_object}\n", "")
