"""The verilated objects under test, built when they are not current.

Without the tools the tests are skipped, with the reason; in CI (CI=true) they fail.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / p) for p in (
    "tests/rtl", "tests/rtl/benches", "tests/programs", "tests/sim", "tests/networks", "examples",
    "scripts", ".",
)]


@pytest.fixture(scope="session")
def rtl_path():
    """rtl_path(target) → path of the verilated object of a target."""
    import build_rtl
    from rtl_harness import unavailable

    def build(target: str) -> Path:
        try:
            build_rtl.check_hlsc_tools()
            build_rtl.verilator_environment()
        except build_rtl.BuildError as error:
            unavailable(str(error))
        return build_rtl.build(target, ROOT / "build")

    return build


@pytest.fixture(scope="session")
def rtl(rtl_path):
    """rtl(target) → the object, opened with ctypes."""
    from sim_harness import open_library

    return lambda target: open_library(rtl_path(target))
