"""Builds and opens the objects under test; a test is skipped where there is no compiler."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from pathlib import Path

import build_sim
import pytest
import sim_harness as harness

HERE = Path(__file__).resolve().parent
BUILD = harness.ROOT / "build"


def path_of(target: str, **options: object) -> Path:
    """The object, built when it is out of date."""
    try:
        build_sim.find_compiler(None)
    except build_sim.BuildError as error:
        pytest.skip(str(error))
    return build_sim.build(target, BUILD, **options)


@cache
def fast(target: str) -> ctypes.CDLL:
    return harness.open_library(path_of(target))


@cache
def exact(target: str) -> ctypes.CDLL:
    return harness.open_library(path_of(target, exact=True))


@cache
def emulated(target: str) -> ctypes.CDLL:
    if platform.machine() != "x86_64":
        pytest.skip("the AVX-512 loops are for x86-64")
    return harness.open_library(path_of(
        target, suffix="-emulated", flags=(build_sim.EMULATE_AVX512, "-O1", f"-I{HERE}"),
    ))
