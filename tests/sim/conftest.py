"""Runtime objects for the tests, built once into the folder that `make sim-so` uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
for _folder in (_HERE.parents[1] / "scripts", _HERE.parent / "programs", _HERE):
    sys.path.insert(0, str(_folder))

import build_objects


@pytest.fixture(scope="session")
def fast():
    """fast(target): the fast functional object, opened."""
    return build_objects.fast


@pytest.fixture(scope="session")
def exact():
    """exact(target): the exact functional object, opened."""
    return build_objects.exact


@pytest.fixture(scope="session")
def emulated():
    """emulated(target): a fast object whose VNNI loops run on every x86 processor."""
    return build_objects.emulated
