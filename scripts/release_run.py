"""Runs a simulator of a release where this computer can, on random programs against golden.

Objects of this computer are loaded; those of Arm Linux run under qemu-user, where it is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT)]

from rasna.errors import RasnaError
from rasna.golden import run_program
from rasna.runtime.library import Context, open_library
from rasna.simbuild import Platform, local_platform, zig_compiler
from rasna.targets import get_target
from tests.programs.random_programs import random_program

SEEDS = range(5000, 5010)
RUN, EMULATED, NOT_RUN = "run", "run in an emulated processor (qemu-user)", "built, not run"
EMULATORS = {  # by platform: emulator, folder with the C library of Debian's cross packages
    "linux-aarch64": ("qemu-aarch64", "/usr/aarch64-linux-gnu"),
    "linux-armv7l": ("qemu-arm", "/usr/arm-linux-gnueabihf"),
}


class RunError(Exception):
    """A simulator gave other words than the golden model, or none."""


def run_object(path: Path, target: str, of: Platform) -> str:
    """RUN, EMULATED or NOT_RUN: how the object was run. Raises RunError."""
    if of == local_platform():
        _run_here(path, target)
        return RUN
    if missing_tools(of):
        return NOT_RUN
    _run_emulated(path, target, of)
    return EMULATED


def missing_tools(of: Platform) -> list[str]:
    """What is not installed that would run objects of a platform here; [] when they can be run."""
    if of.name not in EMULATORS:
        return [of.title]
    emulator, libraries = EMULATORS[of.name]
    loader = [] if Path(libraries).is_dir() else [libraries]
    return [*([] if _emulator(emulator) else [emulator]), *loader]


def _emulator(name: str) -> str | None:
    return shutil.which(name) or shutil.which(f"{name}-static")


def _cases(target: str) -> list[tuple[np.ndarray, np.ndarray, int, int]]:
    """(program, inputs, output words, scratch words)."""
    return [random_program(seed, target) for seed in SEEDS]


def _expected(target: str) -> list[np.ndarray]:
    return [run_program(*case, get_target(target)) for case in _cases(target)]


def _run_here(path: Path, target: str) -> None:
    """Every loop that this processor has, in this process."""
    try:
        library = open_library(str(path))
        context = Context(library)
        for body in context.get_option("bodies").split():
            context.set_option("body", body)
            for case, expected in zip(_cases(target), _expected(target), strict=True):
                words, inputs, output_words, scratch_words = case
                context.load(words, inputs.size, output_words, scratch_words)
                outputs = np.zeros((1, output_words), np.uint64)
                context.run(np.ascontiguousarray(inputs).reshape(1, -1), outputs)
                _compare(path, body, outputs[0], expected)
    except RasnaError as error:
        raise RunError(str(error)) from error


def _run_emulated(path: Path, target: str, of: Platform) -> None:
    """tests/sim/run_cases.cpp, compiled for the platform, with the object."""
    emulator, libraries = EMULATORS[of.name]
    compiler = zig_compiler(of)
    if compiler is None:
        raise RunError("the Python package ziglang is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_cases(folder / "cases", target)
        _call([*compiler.command, "-std=c++17", f"-I{ROOT / 'sim'}",
               str(ROOT / "tests" / "sim" / "run_cases.cpp"), str(path.resolve()),
               "-o", str(folder / "run_cases")])
        for body in ("neon", "plain"):
            _call([str(_emulator(emulator)), "-L", libraries, str(folder / "run_cases"), body,
                   str(folder / "cases"), str(folder / "results")])
            got = np.fromfile(folder / "results", "<u8")
            _compare(path, body, got, np.concatenate(_expected(target)))


def _write_cases(path: Path, target: str) -> None:
    words = []
    for program, inputs, output_words, scratch_words in _cases(target):
        sizes = np.array([program.size, inputs.size, output_words, scratch_words], np.uint64)
        words += [sizes, program, inputs]
    np.concatenate(words).astype("<u8").tofile(path)


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RunError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _compare(path: Path, body: str, got: np.ndarray, expected: np.ndarray) -> None:
    if expected.size == 0 or not np.array_equal(got, expected):
        raise RunError(f"{path}, loops {body}: other words than those of the golden model")
