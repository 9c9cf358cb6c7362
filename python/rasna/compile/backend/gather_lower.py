"""Lowers Gather: LOAD puts rows where the result has them, one list of taps arranges the columns.

Rows that follow each other in equal steps are one LOAD, so that pads, crops and steps of the
height cost nothing of their own. Words of a row whose taps only move on by equal steps are one
TAPS; lanes that no tap reaches are 0. Where no column moves, what was loaded is stored as it is.
"""

from __future__ import annotations

import numpy as np

from rasna.errors import CompileError
from rasna.graph import Gather, Tensor
from rasna.isa import Opcode

from .columns import LANES, MAX_STEP, Columns, Run, find_runs
from .emitter import Emitter
from .geometry import Geometry, Region, RowSlot, ceil_div, plain_slot, runs
from .memory import FirstFit, more_room
from .plan import Limits
from .source import HostTensor, SourceLoader, destination_fields
from .taps import Channels, Table, emit_taps, ones
from .window import identity_requant
from .window_lower import Sink, emit_store


def _words_of_row(op: Gather, columns: Columns, stores_source: bool, writes_resident: bool) -> int:
    """Words of map memory for one row of one channel."""
    out = 0 if stores_source or writes_resident else plain_slot(len(op.columns)).num_words
    return len(columns.inputs) * columns.words + out


def _fixed_words(columns: Columns) -> int:
    return 2 * len(columns.inputs) + 4  # guards


def smallest_words(op: Gather, tensors: dict[str, Tensor], writes_resident: bool) -> int:
    """Words of map memory that must be free at least."""
    columns = Columns(op, [tensors[name].shape[2] for name in op.inputs])
    return _fixed_words(columns) + _words_of_row(op, columns, False, writes_resident)


class GatherLowering:
    """``sources``: the host tensor of every distinct input."""

    def __init__(
        self, emitter: Emitter, memory: FirstFit, op: Gather, tensors: dict[str, Tensor],
        sources: dict[str, HostTensor], sink: Sink, limits: Limits,
    ) -> None:
        self.emitter, self.memory, self.op, self.sink = emitter, memory, op, sink
        self.hosts = [sources[name] for name in op.inputs]
        self.out = tensors[op.output]
        self.loader = SourceLoader(emitter, memory)
        self.columns = Columns(op, [h.shape[2] for h in self.hosts])
        self.stores_source = self._stores_source()
        self.geometry, self.step = self._shares(limits.budget)

    def describe(self) -> str:
        g = self.geometry
        tiles = ceil_div(g.height, g.stripes * g.rows)
        text = f"{g.stripes} stripes x {self.emitter.target.slices // g.stripes} copies"
        return text + (f", {tiles} row tiles" if tiles > 1 else "")

    def _stores_source(self) -> bool:
        """Whether what is loaded is the result already, zeros behind its rows included."""
        op, type_, width = self.op, self.out.type, self.out.shape[2]
        blank = min(np.min(op.channels), np.min(op.rows)) < 0
        zeros = op.fill == 0 or width % LANES == 0 or not blank
        unclamped = op.lo <= type_.lo and op.hi >= type_.hi
        return self.sink.region is None and self.columns.stay and unclamped and zeros

    def _shares(self, budget: int) -> tuple[Geometry, int]:
        """The geometry of rows that are held at once, and how many channels are."""
        channels, height, _ = self.out.shape
        resident = self.sink.region is not None
        row = _words_of_row(self.op, self.columns, self.stores_source, resident)
        room = budget - _fixed_words(self.columns)
        stripes = min(self.emitter.target.slices, 1 << (height - 1).bit_length())
        rows = min(ceil_div(height, stripes), room // row)
        if rows < 1:
            needed = row + _fixed_words(self.columns)
            raise CompileError(
                f"{self.op.name}: one row of the result and of what it is made of needs "
                f"{needed} words of map memory in every slice, target "
                f"{self.emitter.target.name} has {budget}; "
                f"{more_room(self.emitter.target, needed)}"
            )
        words = self.columns.words
        width = self.columns.data_words * LANES
        slot = RowSlot(width, words, 1, (0,), 0, 0, 0, False)
        g = Geometry(slot, stripes, rows, 0, rows, height, self.op.fill)
        return g, min(channels, room // (row * rows))

    # ---- instructions

    def run(self) -> None:
        channels, height, _ = self.out.shape
        tile = self.geometry.stripes * self.geometry.rows
        for first in range(0, height, tile):
            for c in range(0, channels, self.step):
                self._chunk(first, min(tile, height - first), c, min(self.step, channels - c))

    def _chunk(self, first: int, num_rows: int, channel: int, count: int) -> None:
        g, regions = self.geometry, {}
        for k in self.columns.inputs:
            block = self.memory.allocate(g.region_words(count))
            regions[k] = Region(g, block, channel, count)
            self._load(k, regions[k], first, num_rows)
        if self.stores_source:
            self._store(regions[0], first, num_rows)
        elif self.sink.region is not None:
            self._taps(regions, num_rows, self.sink.region, first)
        else:
            slot = plain_slot(self.out.shape[2])
            out_g = Geometry(slot, g.stripes, g.rows, 0, g.rows, g.height, 0)
            with self.memory.block(count * out_g.channel_words, high=True) as base:
                out = Region(out_g, base, channel, count)
                self._taps(regions, num_rows, out, 0)
                self._store(out, first, num_rows)
        for region in regions.values():
            self.memory.release(region.base)

    def _store(self, region: Region, first: int, num_rows: int) -> None:
        for host in self.sink.hosts:
            emit_store(self.emitter, host, region, first, num_rows)

    def _load(self, k: int, region: Region, first: int, num_rows: int) -> None:
        """Fill what is blank, then load the rows of input ``k`` (axis 1: of all inputs)."""
        op = self.op
        low, high = region.first_channel, region.first_channel + region.num_channels
        channels = np.asarray(op.channels, np.int64)[low:high]
        rows = np.asarray(op.rows, np.int64)[first : first + num_rows]
        self._fill(region, channels, rows)
        hosts = self.hosts if op.axis == 1 else [self.hosts[k]]
        for row in find_runs(rows, [h.shape[1] for h in hosts], MAX_STEP // hosts[0].row_words):
            for run in find_runs(channels, [hosts[0].shape[0]], hosts[0].shape[0]):
                self._load_rows(k, hosts[row.number], region, row, run)

    def _fill(self, region: Region, channels: np.ndarray, rows: np.ndarray) -> None:
        g = region.geometry
        blank = np.zeros(ceil_div(len(rows), g.rows) * g.rows, bool)
        blank[: len(rows)] = rows < 0
        local = np.flatnonzero(blank.reshape(-1, g.rows).any(axis=0))
        for at, count in runs([int(n) for n in local]):
            start = region.base + at * g.slot.num_words
            words = count * g.slot.num_words
            self.loader.fill(g, start, words, region.num_channels, g.channel_words)
        for at, count in runs([int(n) for n in np.flatnonzero(channels < 0)]):
            start = region.base + at * g.channel_words
            self.loader.fill(g, start, count * g.channel_words, 1, 0)
        if self.columns.has_blank:
            blocks = region.num_channels * g.local_rows
            start = region.base + self.columns.data_words
            self.loader.fill(g, start, 1, blocks, g.slot.num_words)

    def _load_rows(self, k: int, host: HostTensor, region: Region, row: Run, run: Run) -> None:
        g = region.geometry
        part = Region(g, region.base + run.at * g.channel_words, 0, run.count)
        first, count = self.columns.first[k], self.columns.count[k]
        whole = first + count == host.row_words
        self.emitter.add(
            Opcode.LOAD,
            segment=int(host.segment),
            last_lanes=host.last_lanes if whole else LANES,
            fill=0,
            num_channels=run.count,
            num_rows=row.count,
            num_words=count,
            dram_addr=host.addr + run.source * host.channel_words
            + row.source * host.row_words + first,
            dram_channel_step=run.step * host.channel_words,
            dram_row_step=row.step * host.row_words,
            **destination_fields(g, part, row.at),
        )

    def _taps(self, regions: dict[int, Region], num_rows: int, out: Region, out_row: int) -> None:
        """Arrange the columns of all channels of ``regions`` into ``out``."""
        g, width = self.geometry, self.out.shape[2]
        base = regions[self.columns.inputs[0]]
        bases = {k: (r.base - base.base) * LANES for k, r in regions.items()}
        channels = np.arange(base.first_channel, base.first_channel + base.num_channels)
        src_base = base.base * LANES + np.arange(base.num_channels) * g.channel_bytes
        requant = identity_requant(len(channels), self.op.lo, self.op.hi)
        signed = int(self.out.type.signed)
        destination = destination_fields(out.geometry, out, out_row, wrap=True)
        total = ceil_div(width, LANES)
        for word, words, step, vectors in self.columns.runs(bases):
            entries = [
                dict(offset=offset, lane_mask=mask, is_signed=signed)
                for offset, mask in vectors or ((0, 0),)
            ]
            last = word + words == total
            emit_taps(
                self.emitter, Table.single(entries),
                Channels(
                    channels - out.first_channel, src_base, np.zeros(len(channels), np.int32),
                    requant,
                ),
                ones(len(entries)),
                stripes_log2=g.stripes_log2,
                last_lanes=width - (total - 1) * LANES if last else LANES,
                fill=out.geometry.fill & 0xFF, tile_rows=g.rows, tile_words=words,
                src_row_step=g.row_bytes, src_word_step=step, row_limit=num_rows,
                **{**destination, "out_base": destination["out_base"] + word},
            )
