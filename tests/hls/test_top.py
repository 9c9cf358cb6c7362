"""hls/top.cpp as a C simulation, its processes one after the other, as vendor tools run it."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest
from exact_object import COMMANDS, COMPILERS, ROOT
from random_programs import random_program

from rasna import isa
from rasna.golden import run_program

NUM_PROGRAMS = 40
GAP_WORDS = 16

SOURCE = f"""
#define RASNA_TARGET_TINY
#include "{ROOT}/hls/top.cpp"
extern "C" void run(uint64_t *memory, uint64_t words, uint32_t input_base, uint32_t output_base,
                    uint32_t scratch_base, uint32_t *error, uint32_t *error_pc) {{
  MemoryPort program(memory, words), data(memory, words);
  rasna_top(program, data, input_base, output_base, scratch_base, error, error_pc);
}}
"""

pytestmark = pytest.mark.skipif(not COMPILERS, reason="neither g++ nor clang++ is installed")


def vendor_headers() -> Path | None:
    """Xilinx's open ap_int.h and hls_stream.h, which the hls4ml wheel carries."""
    spec = importlib.util.find_spec("hls4ml")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "templates" / "vivado" / "ap_types"
    return folder if (folder / "hls_stream.h").exists() else None


def build(folder: Path, compiler: str, *flags: str) -> ctypes.CDLL:
    source, library = folder / "top.cpp", folder / "top.so"
    source.write_text(SOURCE)
    command = [
        *COMMANDS[compiler], "-std=c++17", "-O1", "-fwrapv", "-fPIC", "-shared",
        "-Wno-unknown-pragmas", *flags, "-o", str(library), str(source),
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def simulate(library: ctypes.CDLL, case: tuple) -> tuple[np.ndarray, int]:
    """(OUTPUT, error code) of one program, all segments in one memory."""
    program, inputs, output_words, scratch_words = case
    sizes = [len(program), len(inputs), output_words, scratch_words]
    bases = np.cumsum([0] + [n + GAP_WORDS for n in sizes])
    memory = np.full(bases[-1], 0x5A5A5A5A5A5A5A5A, np.uint64)
    memory[: len(program)] = program
    memory[bases[1] : bases[1] + len(inputs)] = inputs
    error, error_pc = ctypes.c_uint32(99), ctypes.c_uint32()
    library.run(
        memory.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(memory)),
        *[ctypes.c_uint32(int(b)) for b in bases[1:4]], ctypes.byref(error),
        ctypes.byref(error_pc),
    )
    for base, size in zip(bases, sizes, strict=False):
        gap = memory[base + size : base + size + GAP_WORDS]
        assert np.all(gap == 0x5A5A5A5A5A5A5A5A), "words between the segments changed"
    return memory[bases[2] : bases[2] + output_words], error.value


def check_against_golden(library: ctypes.CDLL) -> None:
    for seed in range(NUM_PROGRAMS):
        case = random_program(seed, "tiny")
        output, error = simulate(library, case)
        assert error == isa.Error.OK, f"seed {seed}"
        assert np.array_equal(output, run_program(*case, "tiny")), f"seed {seed} differs"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_top_equals_golden(tmp_path, compiler):
    check_against_golden(build(tmp_path, compiler, f"-I{ROOT / 'rtl' / 'include'}"))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_top_equals_golden_with_the_vendors_stream(tmp_path, compiler):
    headers = vendor_headers()
    if headers is None:
        pytest.skip("hls4ml, whose wheel carries Xilinx's open headers, is not installed")
    port = ROOT / "rtl" / "include" / "hls_burst_maxi.h"
    (tmp_path / "hls_burst_maxi.h").write_text(f'#include "{port}"\n')
    flags = [f"-I{tmp_path}", "-isystem", str(headers)]
    check_against_golden(build(tmp_path, compiler, *flags))
