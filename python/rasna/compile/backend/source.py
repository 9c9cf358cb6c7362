"""Brings the source of an operation into the map memory: FILL, LOAD and MOVE.

A source is either a tensor in host memory or one that an earlier operation left in the
map memory. What comes out is a Region in the geometry that the operation asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rasna import isa
from rasna.isa import Opcode

from .emitter import Emitter
from .gather import emit_gathers, halo_gathers, phase_gathers
from .geometry import Geometry, Region, plain_slot, row_words, runs
from .memory import FirstFit


@dataclass(frozen=True)
class HostTensor:
    """A tensor in host memory: canonical order, channel by channel, rows of whole words."""

    segment: isa.Segment
    addr: int
    shape: tuple[int, int, int]

    @property
    def row_words(self) -> int:
        return row_words(self.shape[2])

    @property
    def channel_words(self) -> int:
        return self.shape[1] * self.row_words

    @property
    def num_words(self) -> int:
        return self.shape[0] * self.channel_words

    @property
    def last_lanes(self) -> int:
        return self.shape[2] - (self.row_words - 1) * isa.WORD_BYTES


@dataclass(frozen=True)
class RowWindow:
    """Rows of a tile. Tile row d is map row ``first + d``; ``stripes_used`` hold needed rows."""

    first: int
    stripes_used: int
    circular: bool


def destination_fields(
    geometry: Geometry, region: Region, out_row: int = 0, wrap: bool = False
) -> dict[str, int]:
    """The destination fields of LOAD and TAPS for a region of plain or split slots.

    ``wrap``: rows are rows of the whole map, so halo rows may be written by the modulo rule.
    """
    return dict(
        out_stripes_log2=geometry.stripes_log2,
        out_base=region.base + geometry.slot.first_word,
        out_channel_step=geometry.channel_words,
        out_row_step=geometry.slot.num_words,
        out_rows=geometry.rows,
        out_halo_top=geometry.halo_top,
        out_local_rows=geometry.local_rows,
        out_row=out_row,
        out_height=geometry.height,
        circular_rows=int(wrap and geometry.circular_rows and geometry.wraps_by_itself),
        out_split=int(geometry.slot.split),
        out_phase_step=geometry.slot.phase_step if geometry.slot.split else 0,
    )


class SourceLoader:
    """Emits the instructions that prepare a source region."""

    def __init__(self, emitter: Emitter, memory: FirstFit) -> None:
        self.emitter, self.memory = emitter, memory

    def load(
        self, host: HostTensor, geometry: Geometry, rows: RowWindow, first: int, channels: int
    ) -> tuple[Region, int]:
        """Load channels first … first+channels-1. Returns the region and its allocation."""
        slot = geometry.slot
        block = self.memory.allocate(geometry.region_words(channels))
        region = Region(geometry, block + slot.lead_words, first, channels)
        if slot.stride == 1 or slot.split:
            self.fill_outside(region, rows)
            self._load_plain(host, region, rows)
            self.finish_halo(region)
        else:
            self._load_phases(host, region, rows)
        return region, block

    def load_into(self, host: HostTensor, region: Region, rows: RowWindow) -> None:
        """Load the channels of ``region``, whose memory is allocated; plain slots, no halo."""
        self.fill_outside(region, rows)
        self._load_plain(host, region, rows)

    def prepare_sink(self, region: Region) -> None:
        """FILL around a region that an operation is going to write row by row."""
        g = region.geometry
        self.fill_outside(region, RowWindow(0, g.stripes_used, g.circular_rows))

    def finish_sink(self, region: Region) -> None:
        """Complete the halo of a region that holds all rows of the map."""
        g = region.geometry
        if g.circular_rows and not g.wraps_by_itself:
            below = g.local_rows - g.halo_top - g.height
            self._copy_rows(region, g.height, 0, g.halo_top)
            self._copy_rows(region, g.halo_top, g.halo_top + g.height, below)
        self.finish_halo(region)

    def _copy_rows(self, region: Region, source_row: int, dest_row: int, count: int) -> None:
        """MOVE ``count`` local rows inside every channel (one stripe)."""
        if count <= 0:
            return
        g, slot = region.geometry, region.geometry.slot
        base = region.base + slot.first_word
        self.emitter.table([dict(offset=0, lane_mask=0xFF, last=1)])
        self.emitter.add(
            Opcode.MOVE,
            stripes_log2=g.stripes_log2,
            table_entries=1,
            num_channels=region.num_channels,
            num_rows=count,
            num_words=slot.data_words,
            src_base=(base + source_row * slot.num_words) * isa.WORD_BYTES,
            src_channel_step=g.channel_bytes,
            src_row_step=g.row_bytes,
            src_word_step=isa.WORD_BYTES,
            out_base=base + dest_row * slot.num_words,
            out_channel_step=g.channel_words,
            out_row_step=slot.num_words,
            out_word_step=1,
        )

    def finish_halo(self, region: Region) -> None:
        """Write the circular columns of a region whose rows are there."""
        slot = region.geometry.slot
        if slot.circular and (slot.left or slot.right):
            emit_gathers(self.emitter, halo_gathers(slot), region, region, isa.WORD_BYTES)

    def split(
        self, source: Region, geometry: Geometry, first: int, channels: int
    ) -> tuple[Region, int]:
        """Stride phases of some channels of a resident region, and their allocation."""
        block = self.memory.allocate(geometry.region_words(channels))
        region = Region(geometry, block + geometry.slot.lead_words, first, channels)
        base = source.base + (first - source.first_channel) * source.geometry.channel_words
        self.make_phases(Region(source.geometry, base, first, channels), region)
        return region, block

    def make_phases(self, plain: Region, region: Region) -> None:
        """Split the plain rows of ``plain`` into the stride phases of ``region``."""
        slot = region.geometry.slot
        origin = plain.geometry.slot.byte(0)
        gathers = phase_gathers(slot, origin)
        emit_gathers(self.emitter, gathers, plain, region, isa.WORD_BYTES * slot.stride)

    def _load_phases(self, host: HostTensor, region: Region, rows: RowWindow) -> None:
        g = region.geometry
        plain = Geometry(
            plain_slot(g.slot.width), g.stripes, g.rows, g.halo_top, g.local_rows, g.height, g.fill
        )
        room = (self.memory.largest_gap() - plain.trail_words) // plain.channel_words
        step = max(1, min(room, region.num_channels))
        for at in range(0, region.num_channels, step):
            n = min(step, region.num_channels - at)
            with self.memory.block(plain.region_words(n)) as block:
                part = Region(plain, block, region.first_channel + at, n)
                self.fill_outside(part, rows)
                self._load_plain(host, part, rows)
                base = region.base + at * g.channel_words
                self.make_phases(part, Region(g, base, part.first_channel, n))

    def _load_plain(self, host: HostTensor, region: Region, rows: RowWindow) -> None:
        g = region.geometry
        height = host.shape[1]
        low = -g.halo_top + rows.first
        high = (rows.stripes_used - 1) * g.rows - g.halo_top + g.local_rows + rows.first
        if not rows.circular:
            low, high = max(0, low), min(height, high)
        at = low
        while at < high:
            y = at % height
            n = min(high - at, height - y)
            self._load_rows(host, region, y, n, at - rows.first)
            at += n

    def _load_rows(self, host: HostTensor, region: Region, y: int, num_rows: int, d: int) -> None:
        g = region.geometry
        self.emitter.add(
            Opcode.LOAD,
            segment=int(host.segment),
            last_lanes=host.last_lanes,
            fill=g.fill & 0xFF,
            num_channels=region.num_channels,
            num_rows=num_rows,
            num_words=host.row_words,
            dram_addr=host.addr + region.first_channel * host.channel_words + y * host.row_words,
            dram_channel_step=host.channel_words,
            dram_row_step=host.row_words,
            **destination_fields(g, region, d),
        )

    def fill_outside(self, region: Region, rows: RowWindow) -> None:
        """FILL what lies outside the map: rows above and below, zero gaps between rows.

        What an earlier FILL has left there is not filled again.
        """
        g, slot = region.geometry, region.geometry.slot
        if slot.lead_words:
            self.fill(g, region.base - slot.lead_words, slot.lead_words, 1, 0)
        row_words = region.base + np.arange(region.num_channels)[:, None] * g.channel_words
        row_words = row_words + np.arange(slot.num_words)
        outside = []
        for local, stripes in [] if rows.circular else self._outside_rows(g, rows):
            words = (row_words + local * slot.num_words).reshape(-1)
            if not self.emitter.contents.holds(g.fill & 0xFF, g.stripes_log2, words, stripes):
                outside.append(local)
        for first, count in runs(outside):
            if count == g.local_rows:
                self.fill(g, region.base, region.num_channels * g.channel_words, 1, 0)
                return
            start = region.base + first * slot.num_words
            n = count * slot.num_words
            self.fill(g, start, n, region.num_channels, g.channel_words)
        for first, count in slot.gaps:
            blocks = region.num_channels * g.local_rows
            self.fill(g, region.base + first, count, blocks, slot.num_words)

    @staticmethod
    def _outside_rows(g: Geometry, rows: RowWindow) -> list[tuple[int, list[int]]]:
        """Local rows that lie outside the map in some stripe that is used, and those stripes."""
        outside = []
        for local in range(g.local_rows):
            first = rows.first - g.halo_top + local
            at = [first + j * g.rows for j in range(rows.stripes_used)]
            stripes = [j for j, y in enumerate(at) if y < 0 or y >= g.height]
            if stripes:
                outside.append((local, stripes))
        return outside

    def fill(self, g: Geometry, base: int, words: int, blocks: int, step: int) -> None:
        """FILL ``blocks`` blocks of ``words`` words, unless they hold the byte already."""
        at = (base + np.arange(blocks)[:, None] * step + np.arange(words)).reshape(-1)
        if self.emitter.contents.holds(g.fill & 0xFF, g.stripes_log2, at):
            return
        self.emitter.add(
            Opcode.FILL,
            fill=g.fill & 0xFF,
            stripes_log2=g.stripes_log2,
            out_base=base,
            num_words=words,
            num_blocks=blocks,
            block_step=step,
        )
