"""The NEON loops, in an emulated Arm processor: needs a cross compiler and qemu-user."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import build_sim
import numpy as np
import pytest
import test_bodies
from random_programs import random_program

from rasna import golden

SEED = int(os.environ.get("RASNA_SEED", "9000"))
TARGET = "pynq-z2"
MACHINES = {  # compiler, emulator, libraries of the emulated system, flags
    "aarch64": ("aarch64-linux-gnu-g++", "qemu-aarch64", "/usr/aarch64-linux-gnu", ()),
    "armv7l": ("arm-linux-gnueabihf-g++", "qemu-arm", "/usr/arm-linux-gnueabihf",
               ("-mfpu=neon", "-march=armv7-a")),
}


def build(folder: Path, compiler: str, flags: tuple[str, ...]) -> Path:
    """An executable of the fast object's sources and run_cases.cpp."""
    sources = [build_sim.ROOT / "sim" / s
               for s in (*build_sim.SHARED_SOURCES, *build_sim.FAST_SOURCES)]
    sources.append(Path(__file__).parent / "run_cases.cpp")
    options = ["-std=c++17", "-O1", "-fwrapv", "-w", "-DRASNA_TARGET_PYNQ_Z2",
               f"-I{build_sim.ROOT / 'sim'}", *flags]

    def compile_one(source: Path) -> Path:
        into = folder / f"{source.name}.o"
        subprocess.run([compiler, *options, "-c", str(source), "-o", str(into)], check=True)
        return into

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, sources))
    program = folder / "run_cases"
    subprocess.run([compiler, *map(str, objects), "-o", str(program)], check=True)
    return program


def cases() -> list[tuple[np.ndarray, np.ndarray, int, int]]:
    """(program, inputs, output words, scratch words): random ones and the extremes."""
    found = [random_program(seed, TARGET) for seed in range(SEED, SEED + 15)]
    for i, shape in enumerate(test_bodies.SHAPES):
        rng = np.random.default_rng(SEED + i)
        data = ("unsigned", "signed", "mixed")[i % 3]
        taps = ("extreme", "masked", "random")[i // 3 % 3]
        for fields in ({}, {"func": 1}):
            program, output_words, stripes = test_bodies.taps_program(
                rng, shape, data, taps, **fields
            )
            inputs = test_bodies.inputs_for(rng, stripes * test_bodies.SOURCE_WORDS, taps)
            found.append((program, inputs, output_words, 0))
    return found


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_arm_gives_the_bits_of_golden(machine, tmp_path):
    compiler, emulator, libraries, flags = MACHINES[machine]
    missing = [tool for tool in (compiler, emulator) if not shutil.which(tool)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    program, found = build(tmp_path, compiler, flags), cases()
    words, expected = [], []
    for code, inputs, output_words, scratch_words in found:
        sizes = np.array([code.size, inputs.size, output_words, scratch_words], np.uint64)
        words += [sizes, code, inputs]
        expected.append(golden.run_program(code, inputs, output_words, scratch_words, TARGET))
    np.concatenate(words).astype("<u8").tofile(tmp_path / "cases")
    for body in ("neon", "plain"):
        subprocess.run(
            [emulator, "-L", libraries, str(program), body, str(tmp_path / "cases"),
             str(tmp_path / "results")], check=True, timeout=300,
        )
        got = np.fromfile(tmp_path / "results", "<u8")
        assert got.size > 0
        assert np.array_equal(got, np.concatenate(expected)), f"{body}: RASNA_SEED={SEED}"
