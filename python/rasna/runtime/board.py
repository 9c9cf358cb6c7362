"""Runtime: a Program on an FPGA board with PYNQ. Not run on hardware yet; see docs/boards.md."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

import numpy as np

from .. import isa
from ..errors import BoardMemoryError, BoardTimeoutError, RasnaValueError
from . import board_measure, board_overlay
from .base import BaseRuntime
from .board_memory import Buffer, check_window
from .difference import locate_difference

if TYPE_CHECKING:
    from ..program import Program

_BATCH_BYTES = 1 << 22  # most memory of the images of one transfer
_MAX_BATCH = 64


class _Images:
    """Input and output buffers for ``capacity`` images."""

    def __init__(self, loaded: board_overlay.LoadedOverlay, program: Program, capacity: int):
        self.capacity = capacity
        self.input = Buffer(loaded.allocate, capacity * program.input_words, "input buffer")
        try:
            self.output = Buffer(loaded.allocate, capacity * program.output_words, "output buffer")
        except BoardMemoryError:
            self.input.free()
            raise
        # Words that a program does not write are 0, as on the simulators. No line of it stays
        # dirty in the cache, or it could be written over what the accelerator writes.
        self.output.words[:] = 0
        self.output.sync_to_device()

    def free(self) -> None:
        self.input.free()
        self.output.free()


class _Resources:
    """All that a runtime holds, so that it is freed with it even without ``close()``.

    The garbage collector may call ``free`` in any thread, so it takes no lock but the overlay's.
    """

    def __init__(self, loaded: board_overlay.LoadedOverlay, user: object) -> None:
        self.loaded, self.user = loaded, user
        self.buffers: list[Buffer | _Images] = []

    def free(self) -> None:
        with self.loaded.lock:
            while self.buffers:
                self.buffers.pop().free()
        self.loaded.users.discard(self.user)


class Runtime(BaseRuntime):
    """A Program on a PYNQ board. **Not run on hardware yet**: tested on simulated devices only.

    Calls are thread-safe; runtimes of one bitstream share the accelerator, one run at a time.

    Parameters
    ----------
    program : Program
    path : path of a bitstream ``.bit`` with its ``.hwh`` beside it. It is loaded unless the
        board has it already.
    timeout_seconds : how long one image may take; the attribute can be changed later

    Raises
    ------
    NotOnBoardError : pynq is missing, finds no device, or the process is not root
    RuntimeObjectError : a file is missing, stale or of another board
    TargetMismatchError : the accelerator is of another target, configuration or ISA version
    BoardMemoryError : a MemoryError with the bytes that are needed and available
    """

    def __init__(
        self, program: Program, path: str | os.PathLike[str], *, timeout_seconds: float = 10.0
    ) -> None:
        super().__init__(program)
        self.timeout_seconds = float(timeout_seconds)
        self._path = os.fspath(path)
        user = object()
        self._loaded = board_overlay.acquire(program, self._path, user)
        self._resources = _Resources(self._loaded, user)
        self._finalizer = weakref.finalize(self, self._resources.free)
        self._cycles = 0
        self._batch: _Images | None = None
        try:
            self._program_buffer = self._allocate(program.words.size, "program buffer")
            self._scratch = self._allocate(program.scratch_words, "scratch buffer")
            self._single = self._allocate_images(1)
            self._program_buffer.write(np.asarray(program.words, np.uint64))
        except BaseException:
            self.close()
            raise

    def _allocate(self, num_words: int, what: str) -> Buffer:
        buffer = Buffer(self._loaded.allocate, num_words, what)
        self._resources.buffers.append(buffer)
        return buffer

    def _allocate_images(self, capacity: int) -> _Images:
        images = _Images(self._loaded, self._program, capacity)
        self._resources.buffers.append(images)
        check_window({"input": images.input, "output": images.output, "scratch": self._scratch})
        return images

    def _images_for(self, batch: int) -> _Images:
        """Buffers for a batch; of less capacity where memory is short. One image always fits."""
        program = self._program
        image_bytes = (program.input_words + program.output_words) * isa.WORD_BYTES
        wanted = max(1, min(batch, _MAX_BATCH, _BATCH_BYTES // max(1, image_bytes)))
        if wanted == 1:
            return self._single
        if self._batch is None or self._batch.capacity < wanted:
            if self._batch is not None:
                self._resources.buffers.remove(self._batch)
                self._batch.free()
                self._batch = None
            while wanted > 1 and self._batch is None:
                try:
                    self._batch = self._allocate_images(wanted)
                except BoardMemoryError:
                    wanted //= 2
        return self._batch or self._single

    def _run_words(self, words: np.ndarray) -> np.ndarray:
        outputs = np.empty((words.shape[0], self._program.output_words), np.uint64)
        with self._loaded.lock:
            self._check_open()  # another thread may have closed it
            images = self._images_for(words.shape[0])
            for first in range(0, words.shape[0], images.capacity):
                part = slice(first, first + images.capacity)
                images.input.write(words[part])
                self._run_images(images, words[part].shape[0])
                images.output.sync_from_device()
                count = outputs[part].size
                outputs[part] = images.output.words[:count].reshape(outputs[part].shape)
        return outputs

    def _run_images(self, images: _Images, count: int) -> None:
        """Run the first ``count`` images that lie in the buffers."""
        program = self._program
        for index in range(count):
            self._cycles = self._run_once((
                self._program_buffer.address,
                images.input.address + index * program.input_words * isa.WORD_BYTES,
                images.output.address + index * program.output_words * isa.WORD_BYTES,
                self._scratch.address,
            ))

    def _run_once(self, bases: tuple[int, ...]) -> int:
        """One run with these segments; returns its cycles. A hang ends in a usable runtime."""
        try:
            return self._loaded.machine.run(bases, self.timeout_seconds)
        except BoardTimeoutError as error:
            if error.recovered:
                raise
            recovered = self._loaded.reload()
            outcome = (
                "the bitstream was loaded again, the runtime can be used again" if recovered
                else "loading the bitstream again did not help either: switch the board off and on"
            )
            again = BoardTimeoutError(f"{error}; {outcome}")
            again.recovered = recovered
            raise again from None

    @property
    def cycles(self) -> int:
        """Cycles of the last image that was run, counted by the accelerator."""
        return self._cycles

    @property
    def path(self) -> str:
        """Path of the bitstream."""
        return self._path

    def throughput_test(self, batch: int = 64) -> board_measure.Throughput:
        """Measure latency and throughput, with and without moving data.

        Parameters
        ----------
        batch : images of the throughput measurement, at least 1

        Returns
        -------
        Throughput : its text is a small table
        """
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise RasnaValueError(f"throughput_test: batch must be an integer of 1 or more, "
                                  f"{batch!r} was given")
        self._check_open()
        with self._loaded.lock:
            return board_measure.measure_throughput(self, batch)

    def layer_cycles(self) -> dict[str, int]:
        """Measured cycles of every layer, by runs that end behind each of them.

        Layers are those of ``program.layers``, in order. Cycles do not depend on the input.
        """
        self._check_open()
        with self._loaded.lock, board_measure.BoardStepper(self) as stepper:
            return board_measure.measure_layers(self._program, stepper)

    def _locate_difference(self, words: np.ndarray) -> str:
        with self._loaded.lock, board_measure.BoardStepper(self) as stepper:
            return locate_difference(self._program, stepper, words)

    def close(self) -> None:
        """Free all buffers; a call that is running finishes first. May be called twice."""
        self._closed = True
        self._finalizer()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<rasna.Runtime {self.target} {self._path}{state}>"
