"""RuntimeCSim: a Program on a shared-library runtime object."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RuntimeObjectError, TargetMismatchError
from .base import BaseRuntime
from .difference import locate_difference
from .library import Context, Library, open_library
from .profile import Profile, make_profile

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

    def profile(self, *inputs: Any, channel_last: bool = True) -> Profile:
        """Run, and compare the cycles of the last image with the compiler's estimate, by layer.

        inputs, channel_last : as for a call

        Raises
        ------
        RuntimeObjectError
            The object is a functional simulator, which has no notion of time.
        What a call raises.
        """
        if self.kind != "rtl":
            target = self._program.target
            raise RuntimeObjectError(
                f"{self._library.path}: profile needs an object that counts cycles, this one is "
                f"{self.kind}; build build/rasna-{target}-rtl.so with: "
                f"make sim-rtl-so TARGET={target}"
            )
        self(*inputs, channel_last=channel_last)
        return make_profile(self._program, self._cycles)

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
        context = self._new_context()
        try:
            return locate_difference(self._program, context, words)
        finally:
            context.destroy()


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
