"""What the RTL tests share: counters, estimates, small programs."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from sim_harness import Context

from rasna import cycles, isa

ROOT = Path(__file__).resolve().parents[2]
# The target of the tests that need one of a board: `make cosim TARGET=kv260`.
BOARD_TARGET = os.environ.get("RASNA_COSIM_TARGET", "pynq-z2")
STALLS = (
    {},
    {"latency": 1},
    {"stall_seed": 1},
    {"stall_seed": 2, "stall_percent": 80, "latency": 3},
    {"stall_seed": 3, "stall_percent": 10, "latency": 300},
)


def unavailable(reason: str) -> None:
    """Skip the test, or fail it where everything must be there."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"in CI nothing may be missing: {reason}")
    pytest.skip(reason)


def counters(context: Context) -> list[int]:
    """Cycles of every instruction of the last image."""
    count = ctypes.c_uint64()
    library, handle = context.library, context.handle
    context.check(library.rasna_counters(handle, None, 0, ctypes.byref(count)))
    values = (ctypes.c_uint64 * count.value)()
    context.check(library.rasna_counters(handle, values, count.value, ctypes.byref(count)))
    return list(values)


def estimates(words: np.ndarray, num_instructions: int, target: str) -> list[tuple[str, int]]:
    """(opcode, estimated cycles) of every instruction of a program."""
    found = []
    for number in range(num_instructions):
        opcode, f = isa.decode(words[8 * number : 8 * number + 8])
        stream = None
        if opcode == isa.Opcode.TAPS:
            stream = words[f["stream_addr"] : f["stream_addr"] + f["stream_words"]]
        found.append((opcode.name, cycles.instruction_cycles(opcode, f, target, stream)))
    return found


def run_case(context: Context, case: tuple, batch: int = 1) -> np.ndarray:
    """Load and run (program, inputs, output words, scratch words)."""
    program, inputs, output_words, scratch_words = case
    context.load(program, inputs.size, output_words, scratch_words)
    return context.run(np.tile(inputs, batch), batch)
