"""Finds the first layer in which a runtime object differs from the golden model.

The golden model and the object are stepped side by side, layer by layer, and the bytes of the
map memory that a program may read are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..errors import RuntimeObjectError
from ..golden.machine import Machine

if TYPE_CHECKING:
    from ..program import Program


class SteppingContext(Protocol):
    """What an object offers for this: run up to an instruction, then read the map memory."""

    def set_option(self, name: str, value: str) -> None: ...

    def run(self, inputs: np.ndarray, outputs: np.ndarray) -> None: ...

    def read_map(self, slice_index: int, words: np.ndarray) -> None: ...


def layer_limits(program: Program) -> list[tuple[str, int]]:
    """Name of every layer and the number of the first instruction behind it, in order."""
    limits = [
        (layer["name"], layer["first_instruction"] + layer["num_instructions"])
        for layer in program.layers
        if "first_instruction" in layer and "num_instructions" in layer
    ]
    return sorted(limits, key=lambda item: item[1])


def locate_difference(program: Program, context: SteppingContext, words: np.ndarray) -> str:
    """Where a run with INPUT ``words`` first differs from the golden model, as a sentence."""
    machine = Machine(
        program.words, words, program.output_words, program.scratch_words, program.target
    )
    try:
        for name, limit in layer_limits(program):
            while machine.state.number < limit and not machine.done:
                machine.step()
            text = _compare_map(context, machine, words, limit)
            if text:
                return f"layer {name} differs first: {text}"
    except RuntimeObjectError as error:
        return f"which layer differs first is not known: {error}"
    expected = program.selfcheck_expected
    if expected is not None and np.array_equal(machine.outputs, expected):
        return "the map memory is right after every layer; the output differs in a store"
    return (
        "the golden model, too, computes another output from these instructions: the "
        "Program does not fit its own self-check; compile the model again"
    )


def _compare_map(context: SteppingContext, machine: Machine, words: np.ndarray, limit: int) -> str:
    """"" when all bytes that a program may read are equal before instruction ``limit``."""
    state = machine.state
    context.set_option("stop_at", str(limit))
    outputs = np.zeros((1, machine.outputs.size), np.uint64)
    context.run(np.ascontiguousarray(words[None]), outputs)
    row = np.empty(state.target.map_words, np.uint64)
    for index in range(state.target.slices):
        context.read_map(index, row)
        # an object may keep the first copy of every stripe alone: others are not compared
        copies = state.target.slices >> np.maximum(state.stripes[index], 0)
        kept = (state.stripes[index] >= 0) & (index % copies == 0)
        compared = state.written[index] & np.repeat(kept, 8)
        wrong = np.flatnonzero((row.view(np.uint8) != state.map_bytes[index]) & compared)
        if wrong.size:
            at = int(wrong[0])
            return (
                f"byte {at} of slice {index} is {row.view(np.uint8)[at]}, must be "
                f"{state.map_bytes[index, at]}"
            )
    return ""
