"""scripts/test_versions.py and cuda_stand_ins.py: the versions that are run, and how."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import cuda_stand_ins  # noqa: E402
import test_versions as versions  # noqa: E402


def test_the_oldest_versions_and_pythons_are_those_of_pyproject():
    text = (ROOT / "pyproject.toml").read_text()
    lowest = dict(re.findall(r'^    "(numpy|torch)>=([\d.]+)[;"]', text, re.MULTILINE))
    assert sorted(lowest) == ["numpy", "torch"]
    assert {name: lowest[name] + ".0" for name in lowest} == versions.OLDEST
    classified = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    assert tuple(classified) == versions.PYTHONS
    assert f'requires-python = ">={versions.PYTHONS[0]}"' in text


def test_a_python_without_wheels_of_the_oldest_takes_its_own_oldest():
    assert versions.pairs("3.10")["oldest"] == versions.OLDEST
    assert versions.pairs("3.13")["oldest"] == versions.OLDEST_OF_PYTHON["3.13"]
    assert set(versions.pairs("3.12")["newest"].values()) == {""}


@pytest.fixture
def package(tmp_path) -> Path:
    """A package with a shared object that needs a versioned and a plain library, both gone."""
    if not (shutil.which("gcc") and shutil.which("readelf")):
        pytest.skip("gcc and readelf are not installed")
    folder = tmp_path / "torch"
    (folder / "lib").mkdir(parents=True)
    script = tmp_path / "a.map"
    script.write_text("libcua.so.1 { global: cua; };")
    shared = ["gcc", "-shared", "-fPIC"]

    def compile_c(name: str, text: str, *options: object) -> None:
        source = tmp_path / f"{name}.c"
        source.write_text(text)
        subprocess.run([*shared, source, "-o", tmp_path / name, *options], check=True)

    compile_c("libcua.so.1", "int cua() { return 1; }", f"-Wl,--version-script={script}",
              "-Wl,-soname,libcua.so.1")
    compile_c("libncclb.so", "int ncclb() { return 1; }", "-Wl,-soname,libncclb.so")
    main = "int cua(); int ncclb(); int sum() { return cua() + ncclb(); }"
    compile_c("libuser.so", main, tmp_path / "libcua.so.1", tmp_path / "libncclb.so", "-Wl,-z,now")
    (tmp_path / "libuser.so").rename(folder / "lib" / "libuser.so")
    return folder


def test_stand_ins_load_by_name_and_version_and_say_that_no_device_is_there(package, tmp_path):
    libraries = cuda_stand_ins.write_stand_ins(package, tmp_path / "stand-ins")
    assert libraries == ["libcua.so.1", "libncclb.so"]
    code = f"import ctypes; print(ctypes.CDLL('{package}/lib/libuser.so').sum())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"LD_LIBRARY_PATH": str(tmp_path / "stand-ins")},
        capture_output=True, text=True, check=True,
    )
    assert done.stdout.strip() == str(2 * cuda_stand_ins.NO_DEVICE)
