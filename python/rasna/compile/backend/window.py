"""Window operations: what a convolution and a max pooling have in common.

Both slide a kernel over a padded map; every output channel reads the ``group_channels`` input
channels of its group through a list of taps. A Window is that view of an operation; it
knows nothing of addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rasna import isa
from rasna.graph import Conv, MaxPool, Padding, Requant, Tensor

from .geometry import Geometry, RowSlot, ceil_div, phase_slot, plain_slot, split_slot

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
    def masks_columns(self) -> bool:
        """Whether lane masks leave out the columns outside the map, so that none are stored.

        A mask is the same for every word of a row: it must be the only one.
        """
        return self.tile_words == 1 and not self.circular

    def lane_mask(self, position: int) -> int:
        """Lanes that take part in a kernel position: all, or those inside the map."""
        if not self.masks_columns:
            return 0xFF
        first, lanes = self._column(position), range(self.out.shape[2])
        inside = [0 <= first + p * self.stride[1] < self.source.shape[2] for p in lanes]
        if not any(inside):
            return 0
        return 0xFF & ~sum(1 << p for p in lanes if not inside[p])

    def _column(self, position: int) -> int:
        """The pixel that output pixel 0 reads for a kernel position."""
        return position % self.kernel[1] * self.dilation[1] - self.padding.left

    @property
    def reach(self) -> tuple[int, int]:
        """Halo pixels that windows read from memory, left and right of the map."""
        if self.masks_columns:
            return 0, 0
        width = self.source.shape[2]
        last = (self.out.shape[2] - 1) * self.stride[1] - self.padding.left + self.extent[1] - 1
        return self.padding.left, max(0, last - width + 1)

    def geometry(
        self, stripes: int, out_rows: int, resident: Geometry | None = None
    ) -> Geometry:
        """Geometry of the prepared source when every stripe computes ``out_rows`` rows.

        A resident source is used as it is, or gives the rows of its phases.
        """
        if resident is not None:
            if self.stride[1] == 1 or resident.slot.split:
                return resident
            return replace(resident, slot=self._phase_slot(), fill=self.fill)
        return Geometry(
            slot=self._slot(),
            stripes=stripes,
            rows=out_rows * self.stride[0],
            halo_top=self.padding.top,
            local_rows=self.local_rows(out_rows),
            height=self.source.shape[1],
            fill=self.fill,
            circular_rows=self.circular,
        )

    def resident_geometry(self, stripes: int, out_rows: int, split: bool = False) -> Geometry:
        """The geometry in which an earlier operation should leave the source.

        split: in two phases, where the window can read them; else in plain rows.
        Every stripe stores all rows that it owns, needed or not, so that others can read
        them too; a single stripe owns the whole map.
        """
        g = self.geometry(stripes, out_rows)
        rows = g.height if stripes == 1 else g.rows
        slot = g.slot if split or self.stride[1] == 1 else plain_slot(self.source.shape[2])
        return replace(
            g, slot=slot, rows=rows, local_rows=max(g.local_rows, g.halo_top + rows),
            used=ceil_div(self.out.shape[1], out_rows),
        )

    def rows_per_stripe(self, g: Geometry) -> int | None:
        """Output rows of every stripe when the source lies in ``g``; None if they do not match."""
        if g.stripes == 1:
            return self.out.shape[1]
        rows, rest = divmod(g.rows, self.stride[0])
        return None if rest or g.stripes * rows < self.out.shape[1] else rows

    def local_rows(self, out_rows: int) -> int:
        return (out_rows - 1) * self.stride[0] + self.extent[0]

    @property
    def reads_split(self) -> bool:
        """Whether its sources can be written in the two phases that it reads.

        Circular columns are gathered by MOVE, and other strides have other phases.
        """
        return self.stride[1] == 2 and not self.circular

    def _slot(self) -> RowSlot:
        left, right = self.reach
        width = self.source.shape[2]
        if self.reads_split:
            return split_slot(width, left, right)
        if self.stride[1] > 1:
            return self._phase_slot()
        return plain_slot(width, left, right, self.circular)

    def _phase_slot(self) -> RowSlot:
        """The slot of phases that MOVE makes of plain rows."""
        return phase_slot(self.source.shape[2], *self.reach, self.stride[1], self.circular)

    def can_read(self, g: Geometry) -> bool:
        """Whether a source that lies in the map memory in geometry ``g`` can be used."""
        rows = self.rows_per_stripe(g)
        if rows is None:
            return False
        if ceil_div(self.out.shape[1], rows) > g.stripes_used:
            return False
        below = self.local_rows(rows) - self.padding.top
        if g.halo_top < self.padding.top or g.local_rows - g.halo_top < below:
            return False
        if self._rows_outside() and (g.circular_rows != self.circular or g.fill != self.fill):
            return False
        slot = g.slot
        if slot.split and not self.reads_split:
            return False
        left, right = self.reach
        if not (left or right) or self.stride[1] > 1 and not slot.split:
            return True
        if slot.left < left or slot.right < right or slot.circular != self.circular:
            return False
        return self.circular or g.fill == self.fill

    def _rows_outside(self) -> bool:
        """Whether windows of real output rows touch rows above or below the map."""
        last = (self.out.shape[1] - 1) * self.stride[0] - self.padding.top + self.extent[0] - 1
        return self.padding.top > 0 or last >= self.source.shape[1]

    def tap_offset(self, geometry: Geometry, position: int) -> int:
        """Bytes from (local row of output row 0, word 0) to the vector of a kernel position."""
        ky = position // self.kernel[1]
        # A tap without lanes reads from anywhere inside the map memory.
        x = self._column(position) if self.lane_mask(position) else 0
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
