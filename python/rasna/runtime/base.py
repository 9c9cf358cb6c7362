"""The Python face that all runtimes share: checking, quantising, packing, batching."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import isa
from ..errors import ClosedError, RasnaTypeError, RasnaValueError, SelfCheckError
from ..program.ports import pack, unpack
from ..program.selfcheck import selfcheck_inputs
from ..structure import nest
from . import arrays as convert
from .finish import Finish

if TYPE_CHECKING:
    from ..program import Program

_CHUNK_SECONDS = 0.1  # about how long one call into the object lasts, so that Ctrl-C works
_CHUNK_BYTES = 1 << 25  # most memory of the packed words of one chunk


class BaseRuntime(ABC):
    """A Program on a runtime object; call it with arrays.

    Subclasses implement :meth:`_run_words` and :meth:`close`.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._closed = False

    @property
    def program(self) -> Program:
        """The Program that it runs."""
        return self._program

    @property
    def target(self) -> str:
        """Name of the target."""
        return self._program.target

    def __call__(
        self, *inputs: Any, channel_last: bool | None = None, normalize: bool = True
    ) -> Any:
        """Run the model.

        Parameters
        ----------
        *inputs : one array per input of the model
            Maps: (batch, H, W, C) or (H, W, C); with ``channel_last=False`` (batch, C, H, W) or
            (C, H, W). Sequences: (batch, L, C) or (batch, C, L) likewise. Feature vectors:
            (batch, F) or (F,). NumPy arrays of any strides and any float or integer dtype, lists,
            torch tensors. The batch may have any length, also 0.
        channel_last : order of the dimensions of maps and sequences, of inputs and outputs; True
            where it is not given. If an input fits both orders then, and the samples of ``compile``
            had their channels second, a warning asks for it.
        normalize : True: real numbers in, float32 out (int64 of argmax and argmin). False: packed
            integers of exactly ``program.inputs[i].dtype`` in, of ``program.outputs[i].dtype`` out;
            host steps (softmax, argmax and so on) are left out then: in the place of their results
            are the accelerator's integers that they would read.

        Returns
        -------
        One array, or the model's tuple, list, dict or record of arrays (a named tuple, dataclass or
        model output gives one of the same kind, name and fields); without a batch dimension when
        the inputs have none. Arrays are fresh: they never change later.

        Raises
        ------
        RasnaTypeError, RasnaValueError (a TypeError, a ValueError) for arguments that do not fit,
        ClosedError after :meth:`close`, RuntimeObjectError when the object reports a failure.
        """
        self._check_open()
        if channel_last is None:
            channel_last = True
            convert.warn_ambiguous(self._program)
        checked, batched = self._check(inputs, channel_last, normalize)
        results = self._run_batch(checked, channel_last, normalize)
        if not batched:
            results = [result[0] for result in results]
        return nest(self._program.structure, results)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this runtime is closed; make a new one with program.to_runtime")

    def _check(
        self, inputs: tuple, channel_last: bool, normalize: bool
    ) -> tuple[list[np.ndarray], bool]:
        """The inputs as NumPy arrays with a batch dimension, and whether they came with one."""
        ports = self._program.inputs
        if len(inputs) != len(ports):
            names = ", ".join(port.name for port in ports)
            raise RasnaTypeError(
                f"the model takes {len(ports)} inputs ({names}), {len(inputs)} were given"
            )
        arrays = [convert.to_numpy(x, p.name) for p, x in zip(ports, inputs, strict=True)]
        flags = [
            convert.has_batch(p, a, channel_last) for p, a in zip(ports, arrays, strict=True)
        ]
        if len(set(flags)) > 1:
            raise RasnaValueError(
                "all inputs or none must have a batch dimension: "
                + _describe(ports, arrays)
            )
        if flags[0]:
            if len({a.shape[0] for a in arrays}) > 1:
                raise RasnaValueError(
                    "all inputs must have the same batch: " + _describe(ports, arrays)
                )
        else:
            arrays = [a[None] for a in arrays]
        for port, array in zip(ports, arrays, strict=True):
            convert.check_numbers(port, array, normalize)
        return arrays, flags[0]

    def _run_batch(
        self, inputs: list[np.ndarray], channel_last: bool, normalize: bool
    ) -> list[np.ndarray]:
        """Run in chunks that last about _CHUNK_SECONDS: between them Python sees Ctrl-C."""
        program, batch, first, chunk = self._program, inputs[0].shape[0], 0, 1
        image_bytes = (program.input_words + program.output_words) * isa.WORD_BYTES
        most = max(1, _CHUNK_BYTES // image_bytes)
        finish = Finish(program, channel_last, normalize)
        results = finish.empty(batch)
        while first < batch:
            part = slice(first, first + chunk)
            integers = [
                convert.to_integers(port, array[part], channel_last, normalize)
                for port, array in zip(program.inputs, inputs, strict=True)
            ]
            words = pack(program.inputs, integers, program.input_words)
            start = time.perf_counter()
            output = self._run_words(words)
            seconds = time.perf_counter() - start
            finish.store(unpack(program.outputs, output), results, part)
            first += chunk
            if seconds < _CHUNK_SECONDS / 2:
                chunk = min(2 * chunk, most)
            elif seconds > 2 * _CHUNK_SECONDS:
                chunk = max(1, chunk // 2)
        return results

    @abstractmethod
    def _run_words(self, words: np.ndarray) -> np.ndarray:
        """Run uint64 (batch, input_words), batch >= 1; returns uint64 (batch, output_words)."""

    @abstractmethod
    def close(self) -> None:
        """Release what the runtime holds; later calls raise ClosedError. May be called twice."""

    def selfcheck(self) -> None:
        """Run the pseudo-random input of the Program and compare with the expected output.

        Raises
        ------
        SelfCheckError that names the first layer that differs, as far as the object can tell.
        RasnaValueError when the Program was compiled without a self-check.
        """
        self._check_open()
        program = self._program
        if program.selfcheck_expected is None:
            raise RasnaValueError("the Program has no self-check; compile the model again")
        arrays = selfcheck_inputs(program.inputs, program.selfcheck_seed)
        words = pack(program.inputs, arrays, program.input_words)
        output = self._run_words(words)[0]
        wrong = np.flatnonzero(output != program.selfcheck_expected)
        if not wrong.size:
            return
        port = next(
            p for p in reversed(program.outputs) if p.word_offset <= wrong[0]
        )
        raise SelfCheckError(
            f"{self!r} differs from the expected output in {wrong.size} of {output.size} words, "
            f"first in output {port.name}, word {wrong[0] - port.word_offset}; "
            + self._locate_difference(words[0])
        )

    def _locate_difference(self, words: np.ndarray) -> str:
        """Where a run with INPUT ``words`` first differs from the golden model, as a sentence."""
        return "this kind of object cannot tell which layer differs first"

    def __enter__(self) -> BaseRuntime:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _describe(ports: list, arrays: list[np.ndarray]) -> str:
    return ", ".join(f"{p.name} {a.shape}" for p, a in zip(ports, arrays, strict=True))
