"""Measurements on a board: throughput, cycles per layer, the map memory between layers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import isa
from ..targets import get_target
from .board_memory import Buffer, check_window
from .difference import layer_limits

if TYPE_CHECKING:
    from ..program import Program
    from .board import Runtime

_REPEATS = 5  # the best of so many is taken: the rest is what else the processor did


@dataclass(frozen=True)
class Throughput:
    """What ``Runtime.throughput_test`` measured.

    Attributes
    ----------
    batch : int
        Images of one call in the throughput measurements.
    latency_seconds, machine_latency_seconds : float
        One image: with packing, copies and cache maintenance; and start to end alone, data in
        place.
    images_per_second, machine_images_per_second : float
        The same for batches.
    cycles : int
        Cycles of one image, counted by the accelerator.
    """

    batch: int
    latency_seconds: float
    machine_latency_seconds: float
    images_per_second: float
    machine_images_per_second: float
    cycles: int

    def __str__(self) -> str:
        return (
            f"one image, with data movement      {self.latency_seconds * 1e3:10.3f} ms\n"
            f"one image, without data movement   {self.machine_latency_seconds * 1e3:10.3f} ms\n"
            f"batch of {self.batch:4}, with data movement  {self.images_per_second:10,.1f} "
            "images/s\n"
            f"batch of {self.batch:4}, without            {self.machine_images_per_second:10,.1f} "
            "images/s\n"
            f"cycles of one image                {self.cycles:10,}"
        )


def _best_seconds(function, *arguments) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def measure_throughput(runtime: Runtime, batch: int) -> Throughput:
    """Called with the lock of the overlay held."""
    program = runtime.program
    packed = [
        np.zeros((batch, *port.shape), port.dtype) for port in program.inputs
    ]

    def call(count: int) -> None:
        runtime(*(array[:count] for array in packed), channel_last=False, normalize=False)

    call(batch)  # the buffers are made here
    images = runtime._images_for(batch)
    in_place = min(batch, images.capacity)
    latency = _best_seconds(call, 1)
    machine_latency = _best_seconds(runtime._run_images, runtime._single, 1)
    seconds = _best_seconds(call, batch)
    machine_seconds = _best_seconds(runtime._run_images, images, in_place)
    return Throughput(
        batch, latency, machine_latency, batch / seconds, in_place / machine_seconds,
        runtime.cycles,
    )


class BoardStepper:
    """Runs a Program up to an instruction and reads the map memory: a SteppingContext.

    The program is copied into a buffer of its own, where END takes the place of the instruction
    to stop at. The map memory is read by a program that stores all of it.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._program = runtime, runtime.program
        self._target = get_target(self._program.target)
        allocate = runtime._loaded.allocate
        self._buffers: list[Buffer] = []
        map_words = self._target.slices * self._target.map_words
        try:
            for num_words, what in (
                (self._program.words.size, "copy of the program"),
                (2 * isa.INSTRUCTION_WORDS, "program that stores the map"),
                (map_words, "copy of the map memory"),
            ):
                self._buffers.append(Buffer(allocate, num_words, what))
            self._code, self._dump, self._map = self._buffers
            single = runtime._single
            check_window({"input": single.input, "copy of the map memory": self._map})
            self._dump.write(self._dump_program())
        except BaseException:
            self.close()
            raise
        self._stop_at = self._program.num_instructions
        self._map_is_current = False
        self.cycles = 0

    def _dump_program(self) -> np.ndarray:
        target = self._target
        words = isa.encode(
            isa.Opcode.STORE, stripes_log2=target.slices.bit_length() - 1,
            segment=isa.Segment.OUTPUT, num_channels=1, num_rows=target.slices,
            num_words=target.map_words, src_rows=1, dram_row_step=target.map_words,
        ) + isa.encode(isa.Opcode.END)
        return np.array(words, np.uint64)

    def set_option(self, name: str, value: str) -> None:
        """``stop_at`` only: the number of the instruction before which runs end."""
        assert name == "stop_at", name
        self._stop_at = int(value)

    def run(self, inputs: np.ndarray, outputs: np.ndarray) -> None:
        """inputs: uint64 (1, input_words); outputs: uint64 (1, output_words), filled."""
        runtime = self._runtime
        words = np.array(self._program.words, np.uint64)
        if self._stop_at < self._program.num_instructions:
            first = self._stop_at * isa.INSTRUCTION_WORDS
            words[first : first + isa.INSTRUCTION_WORDS] = isa.encode(isa.Opcode.END)
        self._code.write(words)
        single = runtime._single
        single.input.write(inputs)
        self.cycles = runtime._run_once((
            self._code.address, single.input.address, single.output.address,
            runtime._scratch.address,
        ))
        single.output.sync_from_device()
        outputs[0] = single.output.words[: outputs.shape[1]]
        self._map_is_current = False

    def read_map(self, slice_index: int, words: np.ndarray) -> None:
        """Fill ``words`` (map_words,) with the map memory of a slice as the run left it."""
        if not self._map_is_current:
            single = self._runtime._single
            self._map.words[:] = 0
            self._map.sync_to_device()
            self._runtime._run_once((
                self._dump.address, single.input.address, self._map.address,
                self._runtime._scratch.address,
            ))
            self._map.sync_from_device()
            self._map_is_current = True
        words[:] = self._map.words.reshape(self._target.slices, -1)[slice_index]

    def close(self) -> None:
        """Free the buffers."""
        while self._buffers:
            self._buffers.pop().free()

    def __enter__(self) -> BoardStepper:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def measure_layers(program: Program, stepper: BoardStepper) -> dict[str, int]:
    """Cycles from the end of one layer to the end of the next."""
    inputs = np.zeros((1, program.input_words), np.uint64)
    outputs = np.zeros((1, program.output_words), np.uint64)
    cycles: dict[str, int] = {}
    before = 0
    for name, limit in layer_limits(program):
        stepper.set_option("stop_at", str(limit))
        stepper.run(inputs, outputs)
        cycles[name] = cycles.get(name, 0) + stepper.cycles - before
        before = stepper.cycles
    return cycles
