"""From the accelerator's integers to the results of a model: real numbers, host steps, layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..golden.host import run_steps
from ..golden.layers import dequantize

if TYPE_CHECKING:
    from ..program import Program


class Finish:
    """What becomes of the outputs of a run.

    Without ``normalize`` the integers are the results; in the place of a host step's result are
    those that the chain of steps in front of it starts with.
    """

    def __init__(self, program: Program, channel_last: bool, normalize: bool) -> None:
        self.program, self.channel_last, self.normalize = program, channel_last, normalize
        self.ports = {port.name: port for port in program.outputs}
        self.steps = {step.name: step for step in program.host_steps}
        self.names = program.results if normalize else [self._origin(n) for n in program.results]

    def _origin(self, name: str) -> str:
        """The output port from which a result is made."""
        while name in self.steps:
            name = self.steps[name].source
        return name

    def empty(self, batch: int) -> list[np.ndarray]:
        """One array per result, in the layout of the user."""
        return [np.empty((batch, *self._shape(n)), self._dtype(n)) for n in self.names]

    def _dtype(self, name: str) -> np.dtype:
        if name in self.steps:
            return np.dtype(self.steps[name].dtype)
        return np.dtype(np.float32) if self.normalize else self.ports[name].dtype

    def _moves(self, name: str) -> bool:
        """Whether the channels of a result are moved behind its other dimensions."""
        thing = self.steps.get(name) or self.ports[name]
        return self.channel_last and len(thing.shape) in (2, 3) and getattr(thing, "channels", True)

    def _shape(self, name: str) -> tuple[int, ...]:
        shape = (self.steps.get(name) or self.ports[name]).shape
        return (*shape[1:], shape[0]) if self._moves(name) else shape

    def store(
        self, integers: Sequence[np.ndarray], results: Sequence[np.ndarray], part: slice
    ) -> None:
        """Finish a chunk. integers: (batch, *port.shape) per output port."""
        program = self.program
        outputs = dict(zip(self.ports, integers, strict=True))
        if self.normalize:
            outputs = {n: dequantize(x, self.ports[n].type) for n, x in outputs.items()}
            values = run_steps(program.host_steps, self.names, outputs)
        else:
            values = [outputs[name] for name in self.names]
        for name, value, result in zip(self.names, values, results, strict=True):
            result[part] = np.moveaxis(value, 1, -1) if self._moves(name) else value
