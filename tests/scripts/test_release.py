"""scripts/release.py: `make test-release` builds dist/ and runs all of this; else it is skipped."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

for _package, _module in (("ziglang", "ziglang"), ("cyclonedx-python-lib", "cyclonedx")):
    pytest.importorskip(
        _module, reason=f"{_package} is not installed; make test-release runs these tests"
    )

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import release
import release_run
from release_page import CHECKSUMS, INSTALL, LINES

import rasna
from rasna.errors import RasnaError
from rasna.simbuild import PLATFORMS, local_platform, make_object, zig_compiler
from rasna.targets import TARGETS
from tests.program.samples import S8, identity_program

DIST = os.environ.get("RASNA_DIST")
needs_dist = pytest.mark.skipif(not DIST, reason="no dist/; make test-release builds it")


def dist() -> Path:
    return Path(DIST or "")


@pytest.fixture(scope="module")
def zig_tiny(tmp_path_factory) -> Path:
    """The simulator of tiny for this computer, by ziglang."""
    of = local_platform()
    if of is None:
        pytest.skip("a release has nothing for this computer")
    path = tmp_path_factory.mktemp("zig") / of.object_name("tiny")
    make_object(zig_compiler(of), "tiny", path)
    return path


def test_a_simulator_by_ziglang_runs_with_every_loop_of_this_processor(zig_tiny):
    assert release_run.run_object(zig_tiny, "tiny", local_platform()) == release_run.RUN


def test_ziglang_is_compiler_enough_for_a_simulator(tmp_path, monkeypatch):
    if local_platform() is None:
        pytest.skip("a release has nothing for this computer")
    for name in ("RASNA_SIMULATOR", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RASNA_CACHE", str(tmp_path))
    monkeypatch.setattr("rasna.simbuild.compilers.CANDIDATES", ())
    path = rasna.simulator("tiny")
    assert release_run.run_object(path, "tiny", local_platform()) == release_run.RUN


def test_a_simulator_that_is_of_another_target_is_noticed(zig_tiny):
    with pytest.raises(release_run.RunError):
        release_run.run_object(zig_tiny, "pynq-z2", local_platform())


def test_a_word_that_differs_from_golden_is_noticed(zig_tiny, monkeypatch):
    expected = release_run._expected("tiny")
    expected[3][0] ^= np.uint64(1)
    monkeypatch.setattr(release_run, "_expected", lambda target: expected)
    with pytest.raises(release_run.RunError) as error:
        release_run.run_object(zig_tiny, "tiny", local_platform())
    assert str(error.value).endswith(": other words than those of the golden model")


def test_what_cannot_run_here_is_marked(tmp_path):
    of = next(p for p in PLATFORMS.values() if p.name.startswith("macos") and p != local_platform())
    assert release_run.run_object(tmp_path / "none", "tiny", of) == "built, not run"


@needs_dist
def test_dist_has_a_simulator_for_every_target_and_platform():
    wanted = {p.object_name(t) for p in PLATFORMS.values() for t in TARGETS}
    assert wanted <= {path.name for path in dist().iterdir()}


@needs_dist
def test_the_simulators_for_linux_need_glibc_2_17_at_most():
    checked = 0
    for path in dist().glob("rasna-*-linux-*.so"):
        versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", path.read_bytes())
        assert versions and max((int(a), int(b)) for a, b in versions) <= (2, 17), path.name
        checked += 1
    assert checked == 3 * len(TARGETS)


@needs_dist
def test_the_checksums_are_those_of_all_other_files():
    lines = (dist() / CHECKSUMS).read_text().splitlines()
    told = {name: digest for digest, name in (line.split("  ") for line in lines)}
    there = {p.name for p in dist().iterdir()} - {CHECKSUMS}
    assert set(told) == there
    for name, digest in told.items():
        assert hashlib.sha256((dist() / name).read_bytes()).hexdigest() == digest


@needs_dist
def test_the_bill_of_materials_is_valid_and_lists_every_file():
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = next(dist().glob("rasna-*.cdx.json")).read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    components = {c["name"]: c for c in json.loads(text)["components"]}
    files = {p.name for p in dist().glob("rasna-*") if not p.name.endswith(".cdx.json")}
    assert {n for n, c in components.items() if c["type"] == "file"} == files
    assert {"libc++", "libc++abi", "libunwind", "compiler-rt", "numpy"} <= set(components)


@needs_dist
@pytest.mark.parametrize("name", sorted(release_run.EMULATORS))
def test_the_simulators_for_arm_run_in_an_emulated_processor(name):
    of = PLATFORMS[name]
    missing = release_run.missing_tools(of)
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    for target in TARGETS:
        path = dist() / of.object_name(target)
        assert release_run.run_object(path, target, of) == release_run.EMULATED


@needs_dist
def test_the_page_marks_what_was_not_run():
    page = (dist() / "README.md").read_text()
    for of in PLATFORMS.values():
        for target in TARGETS:
            row = next(r for r in page.splitlines() if f"`{of.object_name(target)}`" in r)
            how = row.strip("| ").split(" | ")[-1]
            if of == local_platform():
                assert how == release_run.RUN
            elif of.name not in release_run.EMULATORS:
                assert how == release_run.NOT_RUN


@needs_dist
def test_the_wheel_and_one_simulator_give_a_result_in_a_new_environment(tmp_path):
    """The README's lines: a virtual environment with NumPy alone, no compiler on PATH."""
    if local_platform() != PLATFORMS["linux-x86_64"]:
        pytest.skip("the README's lines are for Linux on x86-64")
    venv.create(tmp_path / "venv", with_pip=True)
    (tmp_path / "dist").symlink_to(dist())
    for line in INSTALL.splitlines()[1:]:
        subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True, capture_output=True)
    program = identity_program([("x", (3, 4, 5), S8)], target="pynq-z2")
    program.save(tmp_path / "model.rasna")
    x = np.arange(60, dtype=np.float32).reshape(4, 5, 3) / 16
    np.save(tmp_path / "x.npy", x)
    lines = f"{LINES}runtime.selfcheck()\nnp.save('y.npy', runtime(x))\n"
    done = subprocess.run(
        [str(tmp_path / "venv" / "bin" / "python"), "-c", lines], cwd=tmp_path, env={"PATH": ""},
        capture_output=True, text=True,
    )
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("[[[")
    assert np.array_equal(np.load(tmp_path / "y.npy"), x)


def test_a_build_without_ziglang_says_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "zig_compiler", lambda of: None)
    with pytest.raises(RasnaError) as error:
        release.build_simulators(tmp_path, ["tiny"], ["linux-x86_64"])
    assert str(error.value) == "the Python package ziglang is needed: pip install ziglang"
