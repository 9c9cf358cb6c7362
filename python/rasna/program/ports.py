"""Inputs and outputs of a Program: how arrays of integers lie in a segment.

Canonical words of a tensor of C x H x W: [C][H][ceil(W / 8)], lane 0 in the lowest byte, the lanes
behind W zero. Several ports follow one another in their segment, each from ``word_offset`` on.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from .. import isa
from ..graph import FixedPoint, Port, Tensor


@dataclass(frozen=True)
class PortInfo:
    """One input or output of a Program.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Without the batch dimension, in PyTorch's order: (C, H, W), (C, L), or another shape with
        the same elements in the same order, as (F,).
    tensor_shape : (C, H, W) as it lies in memory
    type : FixedPoint
    word_offset : first word in the segment of one image
    """

    name: str
    shape: tuple[int, ...]
    tensor_shape: tuple[int, int, int]
    type: FixedPoint
    word_offset: int = 0

    @property
    def dtype(self) -> np.dtype:
        """int8 or uint8: what ``normalize=False`` takes or gives."""
        return self.type.dtype

    @property
    def num_elems(self) -> int:
        return prod(self.tensor_shape)

    @property
    def row_words(self) -> int:
        """Words of one row of one channel."""
        return -(-self.tensor_shape[2] // isa.WORD_BYTES)

    @property
    def num_words(self) -> int:
        """Words of one image."""
        return self.tensor_shape[0] * self.tensor_shape[1] * self.row_words

    @property
    def layout(self) -> str:
        """The order of the dimensions of ``shape``: "CHW", "CL", "F" or, for others, "elements"."""
        return {3: "CHW", 2: "CL", 1: "F"}.get(len(self.shape), "elements")

    def array_shape(self, channel_last: bool) -> tuple[int, ...]:
        """Shape of one image as the user sees it."""
        if channel_last and len(self.shape) in (2, 3):
            return (*self.shape[1:], self.shape[0])
        return self.shape

    def __str__(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.shape))} {self.type} ({self.dtype})"


def make_ports(ports: list[Port], tensors: dict[str, Tensor]) -> tuple[list[PortInfo], int]:
    """Lay ports of a quantised graph one after another; also the words of the segment."""
    result, at = [], 0
    for port in ports:
        tensor = tensors[port.tensor]
        info = PortInfo(port.name, tuple(port.shape), tensor.shape, tensor.type, at)
        result.append(info)
        at += info.num_words
    return result, at


def pack(ports: list[PortInfo], arrays: list[np.ndarray], segment_words: int) -> np.ndarray:
    """Integers to the words of a segment.

    arrays : one per port, (batch, *anything with num_elems in NCHW order), values of the type

    Returns uint64 (batch, segment_words), contiguous.
    """
    batch = arrays[0].shape[0]
    words = np.zeros((batch, segment_words), np.uint64)
    for port, array in zip(ports, arrays, strict=True):
        channels, height, width = port.tensor_shape
        lanes = np.zeros((batch, channels, height, port.row_words * isa.WORD_BYTES), port.dtype)
        lanes[..., :width] = array.reshape(batch, channels, height, width)
        at = slice(port.word_offset, port.word_offset + port.num_words)
        words[:, at] = lanes.view("<u8").reshape(batch, port.num_words)
    return words


def unpack(ports: list[PortInfo], words: np.ndarray) -> list[np.ndarray]:
    """Words of a segment (batch, segment_words) to fresh integer arrays (batch, *port.shape)."""
    batch = words.shape[0]
    arrays = []
    for port in ports:
        channels, height, width = port.tensor_shape
        at = slice(port.word_offset, port.word_offset + port.num_words)
        lanes = np.ascontiguousarray(words[:, at], "<u8").view(port.dtype)
        lanes = lanes.reshape(batch, channels, height, port.row_words * isa.WORD_BYTES)
        arrays.append(lanes[..., :width].reshape((batch, *port.shape)).copy())
    return arrays
