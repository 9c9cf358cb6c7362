"""Shared fixtures: where verilator's runtime is kept between tests of one session."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parents[1] / "rtl", HERE.parents[1] / "scripts"):
    sys.path.insert(0, str(folder))


@pytest.fixture(scope="session")
def runtime_cache(tmp_path_factory):
    """Directory for objects that all verilated programs link."""
    return tmp_path_factory.mktemp("verilator_runtime")
