"""RuntimeCSim: a Program on a shared-library runtime object."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..errors import RuntimeObjectError, TargetMismatchError
from ..golden.machine import Machine
from .base import BaseRuntime
from .library import Context, Library, open_library

if TYPE_CHECKING:
    from ..program import Program


class RuntimeCSim(BaseRuntime):
    """A Program on a simulator ``.so``, functional or cycle-accurate.

    Calls are thread-safe: every call in flight has a context of its own, and the object runs
    without the GIL. A runtime may be used in forked processes.

    Parameters
    ----------
    program : Program
    path : path of the shared library. A private copy is loaded: rebuilding it does not disturb
        this runtime, and a new runtime sees the new object.

    Raises
    ------
    RuntimeObjectError, TargetMismatchError
    """

    def __init__(self, program: Program, path: str | os.PathLike[str]) -> None:
        super().__init__(program)
        self._library = open_library(os.fspath(path))
        _check_match(program, self._library)
        self._words = np.array(program.words, np.uint64)  # later contexts load the same
        self._cycles: list[int] = []
        # Contexts that no call uses. Its operations are atomic: there is no lock that a fork
        # or an interrupt could leave locked, and a lost context is freed as garbage.
        self._idle: deque[Context] = deque(maxlen=max(2, os.cpu_count() or 1))
        self._idle.append(self._new_context())  # the program is checked here

    def _new_context(self) -> Context:
        context = Context(self._library)
        try:
            context.load(
                self._words, self._program.input_words, self._program.output_words,
                self._program.scratch_words,
            )
        except RuntimeObjectError:
            context.destroy()
            raise
        return context

    @contextmanager
    def _context(self) -> Iterator[Context]:
        """A context for the calling thread alone."""
        try:
            context = self._idle.pop()
        except IndexError:
            context = self._new_context()
        try:
            yield context
        finally:
            if not self._closed:
                self._idle.append(context)

    def _run_words(self, words: np.ndarray) -> np.ndarray:
        words = np.ascontiguousarray(words, np.uint64)
        outputs = np.zeros((words.shape[0], self._program.output_words), np.uint64)
        with self._context() as context:
            context.run(words, outputs)
            self._cycles = context.counters()
        return outputs

    @property
    def counters(self) -> list[int]:
        """Cycles of every instruction of the last image that was run, in program order.

        Empty for functional simulators, which have no notion of time.
        """
        return list(self._cycles)

    @property
    def kind(self) -> str:
        """What the object is: "functional", "functional-exact" or "rtl"."""
        return self._library.kind

    @property
    def build(self) -> str:
        """How the object was built, for people."""
        return self._library.build

    def close(self) -> None:
        """Free all contexts; calls that are running finish first, in their own threads."""
        self._closed = True
        self._idle.clear()

    def __reduce__(self) -> tuple:
        """Pickled as Program and path: another process loads the object anew."""
        return RuntimeCSim, (self._program, self._library.path)

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<rasna.RuntimeCSim {self.kind} {self.target} {self._library.path}{state}>"

    def _locate_difference(self, words: np.ndarray) -> str:
        """Step the golden model and the object side by side, layer by layer."""
        program = self._program
        machine = Machine(
            program.words, words, program.output_words, program.scratch_words, program.target
        )
        context = self._new_context()
        try:
            for name, limit in _layer_limits(program):
                while machine.state.number < limit and not machine.done:
                    machine.step()
                text = _compare_map(context, machine, words, limit)
                if text:
                    return f"layer {name} differs first: {text}"
        except RuntimeObjectError as error:
            return f"which layer differs first is not known: {error}"
        finally:
            context.destroy()
        expected = program.selfcheck_expected
        if expected is not None and np.array_equal(machine.outputs, expected):
            return "the map memory is right after every layer; the output differs in a store"
        return (
            "the golden model, too, computes another output from these instructions: the "
            "Program does not fit its own self-check; compile the model again"
        )


def _layer_limits(program: Program) -> list[tuple[str, int]]:
    """Name of every layer and the number of the first instruction behind it, in order."""
    limits = [
        (layer["name"], layer["first_instruction"] + layer["num_instructions"])
        for layer in program.layers
        if "first_instruction" in layer and "num_instructions" in layer
    ]
    return sorted(limits, key=lambda item: item[1])


def _compare_map(context: Context, machine: Machine, words: np.ndarray, limit: int) -> str:
    """"" when all bytes that a program may read are equal before instruction ``limit``."""
    state = machine.state
    context.set_option("stop_at", str(limit))
    outputs = np.zeros((1, machine.outputs.size), np.uint64)
    context.run(np.ascontiguousarray(words[None]), outputs)
    row = np.empty(state.target.map_words, np.uint64)
    for index in range(state.target.slices):
        context.read_map(index, row)
        # an object may keep one copy of every stripe: slices behind them are not compared
        kept = (state.stripes[index] >= 0) & (index < (1 << np.maximum(state.stripes[index], 0)))
        compared = state.written[index] & np.repeat(kept, 8)
        wrong = np.flatnonzero((row.view(np.uint8) != state.map_bytes[index]) & compared)
        if wrong.size:
            at = int(wrong[0])
            return (
                f"byte {at} of slice {index} is {row.view(np.uint8)[at]}, must be "
                f"{state.map_bytes[index, at]}"
            )
    return ""


def _check_match(program: Program, library: Library) -> None:
    if program.isa_version != library.isa_version:
        raise TargetMismatchError(
            f"the Program has ISA version {program.isa_version}, {library.path} has "
            f"{library.isa_version}; compile the model again or build the object again"
        )
    if program.target != library.target or program.config_hash != library.config_hash:
        raise TargetMismatchError(
            f"the Program is for target {program.target} (configuration {program.config_hash}), "
            f"{library.path} is {library.target} (configuration {library.config_hash}); "
            f'compile with target="{library.target}", or run it on the object of {program.target}'
        )
