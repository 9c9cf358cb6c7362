"""Shared fixtures: what is needed, and where verilator's runtime is kept in one session."""

import os
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


@pytest.fixture(autouse=True)
def llvm_is_there(request):
    """Skip what compiles where there is no LLVM (fail in CI); test_llvm.py makes do without."""
    from hlsc import HlsError, llvm

    if request.path.name == "test_llvm.py":
        return
    try:
        llvm.find()
    except HlsError as error:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"in CI nothing may be missing: {error}")
        pytest.skip(str(error))
