"""The step functions of hls/ compiled into a small shared library, for the tests beside it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rasna.targets import Target, get_target

ROOT = Path(__file__).resolve().parents[2]
CANARY, CANARIES = 0xDEADBEEFDEADBEEF, 8
sys.path[:0] = [str(ROOT / "rtl")]


def compiler_commands() -> dict[str, list[str]]:
    """Commands of the compilers that are here, by name; LLVM 19 is the one of hlsc."""
    from hlsc import llvm

    commands = {name: [name] for name in ("g++", "clang++") if shutil.which(name)}
    found = llvm.from_packages() or llvm.from_path()
    if found:
        commands["LLVM 19"] = [*found.clang, *found.gnu_runtime]
    return commands


COMMANDS = compiler_commands()
COMPILERS = list(COMMANDS)

SOURCE = """
#include <new>
#include "exact_run.h"
typedef rasna::ExactContext<rasna::Target> Context;
extern "C" int run(const uint64_t *program, const uint64_t *input, uint64_t *output,
                   uint64_t *scratch, uint32_t *error_pc,
                   uint32_t *iterations) {
  Context *context = new Context();
  const rasna::ExactSegments segments = {program, input, output, scratch};
  const int error = rasna::exact_run<rasna::Target>(*context, segments, error_pc, iterations);
  delete context;
  return error;
}
"""


class Result(NamedTuple):
    """output: the OUTPUT segment. iterations: of the tile loop, one number per instruction."""

    output: np.ndarray
    error: int
    last_instruction: int
    iterations: np.ndarray


def build(
    folder: Path, target: Target | str, compiler: str, *flags: str, hls: Path = ROOT / "hls"
) -> ctypes.CDLL:
    """Compile the headers in ``hls`` for a target; the library exports ``run``."""
    name = get_target(target).name.upper().replace("-", "_")
    source, library = folder / "exact.cpp", folder / "exact.so"
    source.write_text(SOURCE)
    command = [
        *COMMANDS[compiler], "-std=c++17", "-O2", "-fwrapv", "-fPIC", "-shared", "-Wall", "-Wextra",
        "-Wno-unknown-pragmas", "-Werror", f"-DRASNA_TARGET_{name}", f"-I{hls}", *flags,
        "-o", str(library), str(source),
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def run(
    library: ctypes.CDLL, program: np.ndarray, inputs: np.ndarray, output_words: int,
    scratch_words: int,
) -> Result:
    """Run a program on one image; canary words around OUTPUT and SCRATCH must be unharmed."""
    output, scratch = (
        np.full(n + 2 * CANARIES, CANARY, np.uint64) for n in (output_words, scratch_words)
    )
    program = np.ascontiguousarray(program, np.uint64)
    inputs = np.ascontiguousarray(inputs, np.uint64)
    iterations = np.zeros(len(program) // 8 + 1, np.uint32)
    last = ctypes.c_uint32()

    def pointer(array: np.ndarray, skip: int = 0) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data + 8 * skip)

    error = library.run(
        pointer(program), pointer(inputs), pointer(output, CANARIES), pointer(scratch, CANARIES),
        ctypes.byref(last), pointer(iterations),
    )
    for name, array in (("OUTPUT", output), ("SCRATCH", scratch)):
        edges = np.concatenate([array[:CANARIES], array[-CANARIES:]])
        if np.any(edges != CANARY):
            raise AssertionError(f"words around {name} were overwritten")
    count = last.value + 1
    return Result(output[CANARIES:-CANARIES].copy(), error, last.value, iterations[:count])
