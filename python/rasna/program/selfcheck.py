"""Inputs of self-checks: pseudo-random from a seed, the same on every machine and NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from ..golden.layers import evaluate
from .ports import PortInfo, pack

if TYPE_CHECKING:
    from ..graph import QuantGraph
    from .program import Program

_GOLDEN_GAMMA = 0x9E3779B97F4A7C15


def _splitmix64(seed: int, count: int) -> np.ndarray:
    """The first ``count`` outputs of the SplitMix64 generator (Steele et al., 2014), uint64."""
    start = np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
    z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN_GAMMA)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def selfcheck_inputs(ports: list[PortInfo], seed: int) -> list[np.ndarray]:
    """One integer array (1, *port.shape) per port over the whole range of its type."""
    arrays = []
    for index, port in enumerate(ports):
        bits = _splitmix64(seed + (index << 32), port.num_elems) >> np.uint64(40)
        span = np.uint64(port.type.hi - port.type.lo + 1)
        values = (bits % span).astype(np.int64) + port.type.lo
        arrays.append(values.astype(port.dtype).reshape((1, *port.shape)))
    return arrays


def layer_checksum(array: np.ndarray) -> int:
    """CRC-32 of the low bytes of a tensor (C, H, W) in C order."""
    return crc32((np.asarray(array) & 0xFF).astype(np.uint8).tobytes())


def attach_selfcheck(program: Program, graph: QuantGraph, seed: int = 0) -> None:
    """Compute the expected output and the checksums of all layers with the golden layer form.

    The layers of ``program.layers`` whose "output" names a tensor of the graph get
    "checksum".
    """
    arrays = selfcheck_inputs(program.inputs, seed)
    values = evaluate(graph, arrays)
    outputs = [values[port.tensor][None] for port in graph.outputs]
    program.selfcheck_seed = seed
    program.selfcheck_expected = pack(program.outputs, outputs, program.output_words)[0]
    for layer in program.layers:
        if layer.get("output") in values:
            layer["checksum"] = layer_checksum(values[layer["output"]])
