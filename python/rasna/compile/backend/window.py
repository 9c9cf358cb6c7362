"""Window operations: what a convolution and a max pooling have in common.

Both slide a kernel over a padded map; every output channel reads the ``group_channels`` input
channels of its group through a list of taps. A Window is that view of an operation; it
knows nothing of addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rasna import isa
from rasna.graph import Conv, MaxPool, Padding, Requant, Tensor

from .geometry import Geometry, ceil_div, phase_slot, plain_slot

MAX_START = -(1 << 15)  # below every int8 and uint8


@dataclass
class Window:
    """``weights`` is (OC, group_channels, KH*KW) int8; None means all ones (max pooling)."""

    name: str
    source: Tensor
    out: Tensor
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: Padding
    circular: bool
    groups: int
    weights: np.ndarray | None
    bias: np.ndarray
    requant: Requant
    func: isa.Func
    fill: int

    @property
    def group_channels(self) -> int:
        return self.source.shape[0] // self.groups

    @property
    def group_outputs(self) -> int:
        return self.out.shape[0] // self.groups

    @property
    def num_positions(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns that the dilated kernel spans."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def reach(self) -> tuple[int, int]:
        """Halo pixels that windows really touch, left and right of the map."""
        width = self.source.shape[2]
        last = (self.out.shape[2] - 1) * self.stride[1] - self.padding.left + self.extent[1] - 1
        return self.padding.left, max(0, last - width + 1)

    def geometry(self, stripes: int, out_rows: int) -> Geometry:
        """Geometry of the prepared source when every stripe computes ``out_rows`` rows."""
        _, height, width = self.source.shape
        left, right = self.reach
        if self.stride[1] > 1:
            slot = phase_slot(width, left, right, self.stride[1], self.circular)
        else:
            slot = plain_slot(width, left, right, self.circular)
        return Geometry(
            slot=slot,
            stripes=stripes,
            rows=out_rows * self.stride[0],
            halo_top=self.padding.top,
            local_rows=(out_rows - 1) * self.stride[0] + self.extent[0],
            height=height,
            fill=self.fill,
        )

    def tap_offset(self, geometry: Geometry, position: int) -> int:
        """Bytes from (local row of output row 0, word 0) to the vector of a kernel position."""
        ky, kx = divmod(position, self.kernel[1])
        x = kx * self.dilation[1] - self.padding.left
        return ky * self.dilation[0] * geometry.row_bytes + geometry.slot.byte(x)

    @property
    def tile_words(self) -> int:
        return ceil_div(self.out.shape[2], isa.WORD_BYTES)

    @property
    def last_lanes(self) -> int:
        return self.out.shape[2] - (self.tile_words - 1) * isa.WORD_BYTES


def conv_window(op: Conv, source: Tensor, out: Tensor) -> Window:
    oc, icg = op.weight.shape[:2]
    return Window(
        name=op.name,
        source=source,
        out=out,
        kernel=op.weight.shape[2:],
        stride=tuple(op.stride),
        dilation=tuple(op.dilation),
        padding=op.padding,
        circular=op.padding_mode == "circular",
        groups=op.groups,
        weights=np.ascontiguousarray(op.weight.reshape(oc, icg, -1)),
        bias=op.bias,
        requant=op.requant,
        func=isa.Func.MAC,
        fill=0,
    )


def identity_requant(channels: int, lo: int, hi: int) -> Requant:
    """y = clamp(acc, lo, hi): (2*t + 1) >> 1 is t."""
    ones = np.ones(channels, np.int32)
    return Requant(0 * ones, 2 * ones, ones, lo, hi)


def pool_window(op: MaxPool, source: Tensor, out: Tensor) -> Window:
    channels = source.shape[0]
    lo, hi = max(op.lo, out.type.lo), min(op.hi, out.type.hi)
    return Window(
        name=op.name,
        source=source,
        out=out,
        kernel=tuple(op.kernel),
        stride=tuple(op.stride),
        dilation=tuple(op.dilation),
        padding=op.padding,
        circular=False,
        groups=channels,
        weights=None,
        bias=np.full(channels, MAX_START, np.int32),
        requant=identity_requant(channels, lo, hi),
        func=isa.Func.MAX,
        fill=source.type.lo & 0xFF,
    )
