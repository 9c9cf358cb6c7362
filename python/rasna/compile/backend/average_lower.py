"""Lowers average pooling: sums of windows, one requantisation for every kind of window.

All slices hold the whole map of their channels (one stripe). For every output row and
every kind of window in it one TAPS computes the lanes of that kind, chosen by lane masks;
where a row has windows of several kinds, a MOVE puts the lanes together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rasna import isa
from rasna.errors import CompileError
from rasna.graph import AvgPool, Requant, Tensor
from rasna.isa import Opcode

from .emitter import Emitter
from .geometry import Geometry, Region, ceil_div, plain_slot, row_words
from .memory import FirstFit, more_room
from .plan import Limits
from .source import HostTensor, RowWindow, SourceLoader, destination_fields
from .taps import Channels, Table, emit_taps, ones
from .window_lower import Sink, emit_store

LANES = isa.WORD_BYTES


@dataclass
class Part:
    """Lanes of one kind of window in one output word of one output row."""

    word: int
    kind: int
    slot: int  # number among the parts of this row: accumulators and temporary word
    columns: dict[int, int]  # byte offset in the row -> lane mask


class AverageLowering:
    def __init__(
        self, emitter: Emitter, memory: FirstFit, op: AvgPool, source: Tensor, out: Tensor,
        place: HostTensor | Region, sink: Sink, limits: Limits,
    ) -> None:
        self.emitter, self.memory, self.op = emitter, memory, op
        self.source, self.out, self.place, self.sink = source, out, place, sink
        self.limits = limits
        self.loader = SourceLoader(emitter, memory)
        self.parts = [self._parts(i) for i in range(out.shape[1])]
        self.most_parts = max(map(len, self.parts))
        self.channels, self.hold_rows = self._shares()

    def describe(self) -> str:
        held = "" if self.hold_rows == self.source.shape[1] else f", {self.hold_rows} rows at once"
        return f"1 stripes x {self.emitter.target.slices} copies{held}"

    def _parts(self, i: int) -> list[Part]:
        parts: dict[tuple[int, int], Part] = {}
        for j, (first, limit) in enumerate(self.op.columns):
            word, lane = divmod(j, LANES)
            key = (word, int(self.op.requant_index[i, j]))
            part = parts.setdefault(key, Part(*key, len(parts), {}))
            for x in range(first, limit):
                part.columns[x - lane] = part.columns.get(x - lane, 0) | 1 << lane
        return list(parts.values())

    def _shares(self) -> tuple[int, int]:
        """Channels of a chunk and source rows held at once."""
        t = self.emitter.target
        channels, height, width = self.source.shape
        rounds = t.acc_tiles // self.most_parts
        out_words = self.out.shape[1] * row_words(self.out.shape[2])
        room = self.limits.budget - 8
        each = self.most_parts + (0 if self.sink.region else out_words)
        resident = isinstance(self.place, Region)
        for hold in (height,) if resident else range(height, 0, -1):
            held = 0 if resident else hold * row_words(width)
            n = min(channels, rounds * t.slices, room // (each + held))
            if n >= 1:
                return n, hold
        needed = 8 + each + (0 if resident else row_words(width))
        raise CompileError(
            f"{self.op.name}: average pooling from {height}x{width} to "
            f"{self.out.shape[1]}x{self.out.shape[2]} needs {needed} words of map memory and "
            f"{self.most_parts} accumulator tiles in every slice, target {t.name} has "
            f"{self.limits.budget} and {t.acc_tiles}; "
            f"{more_room(t, needed, num_tiles=self.most_parts)}"
        )

    def run(self) -> None:
        for first in range(0, self.source.shape[0], self.channels):
            self._chunk(first, min(self.channels, self.source.shape[0] - first))

    def _chunk(self, first: int, count: int) -> None:
        temporary = Geometry(plain_slot(LANES * self.most_parts), 1, 1, 0, 1, 1, 0)
        with self.memory.block(count * temporary.channel_words, high=True) as spare:
            work = Region(temporary, spare, first, count)
            if self.sink.region is not None:
                self._rows(self.sink.region, work)
                return
            _, height, width = self.out.shape
            g = Geometry(plain_slot(width), 1, height, 0, height, height, 0)
            with self.memory.block(count * g.channel_words, high=True) as base:
                out = Region(g, base, first, count)
                self._rows(out, work)
                for host in self.sink.hosts:
                    emit_store(self.emitter, host, out, 0, height)

    def _rows(self, out: Region, work: Region) -> None:
        held = None
        for i in range(self.out.shape[1]):
            held = self._row(i, out, work, held)
        self._release(held)

    def _row(self, i: int, out: Region, work: Region, held):
        """One output row: accumulate over the row ranges that are held one after another."""
        low, limit = self.op.rows[i]
        merge = len({p.word for p in self.parts[i]}) < len(self.parts[i])
        ranges = self._row_ranges(low, limit)
        for number, (a, b) in enumerate(ranges):
            held = self._hold(a, b, work, held)
            region = held[1]
            rows = range(max(low, a), min(limit, b))
            for part in self.parts[i]:
                dest = (work, 0, part.slot) if merge else (out, i, part.word)
                self._taps(part, region, work, [r - a for r in rows], dest,
                           number > 0, number + 1 < len(ranges))
        if merge:
            self._merge(i, out, work)
        return held

    def _row_ranges(self, low: int, limit: int) -> list[tuple[int, int]]:
        height = self.source.shape[1]
        if self.hold_rows == height:
            return [(0, height)]
        return [(a, min(a + self.hold_rows, limit)) for a in range(low, limit, self.hold_rows)]

    def _hold(self, a: int, b: int, work: Region, held):
        if isinstance(self.place, Region):
            return None, self.place, None
        if held is not None and held[0] == (a, b):
            return held
        self._release(held)
        width = self.source.shape[2]
        g = Geometry(plain_slot(width), 1, b - a, 0, b - a, self.source.shape[1], 0)
        rows = RowWindow(a, 1, False)
        region, block = self.loader.load(self.place, g, rows, work.first_channel, work.num_channels)
        return (a, b), region, block

    def _release(self, held) -> None:
        if held is not None and held[2] is not None:
            self.memory.release(held[2])

    def _taps(
        self, part: Part, region: Region, work: Region, rows, dest, continued: bool, more: bool
    ) -> None:
        out, out_row, word = dest
        row_bytes = region.geometry.row_bytes
        signed = int(self.source.type.signed)
        entries = [
            dict(offset=r * row_bytes + offset, lane_mask=mask, is_signed=signed)
            for r in rows for offset, mask in sorted(part.columns.items())
        ]
        size = self.emitter.target.table_entries
        pieces = [entries[at : at + size] for at in range(0, len(entries), size)]
        count = work.num_channels
        outputs = np.arange(work.first_channel, work.first_channel + count)
        rounds = ceil_div(count, self.emitter.target.slices)
        first = region.byte_address(work.first_channel, region.geometry.halo_top, 0)
        src_base = first + np.arange(count) * region.geometry.channel_bytes
        destination = destination_fields(out.geometry, out, out_row, wrap=True)
        destination["out_base"] += word
        lanes = self.out.shape[2] - part.word * LANES
        for number, piece in enumerate(pieces):
            emit_taps(
                self.emitter, Table.single(piece),
                Channels(outputs - out.first_channel, src_base, np.zeros(count, np.int32),
                         self._requant(part, count)),
                ones(len(piece)),
                acc_init=int(continued or number > 0),
                acc_keep=int(more or number + 1 < len(pieces)),
                acc_base=part.slot * rounds, stripes_log2=0, last_lanes=min(LANES, lanes),
                fill=out.geometry.fill & 0xFF, tile_rows=1, tile_words=1, row_limit=1,
                **destination,
            )

    def _requant(self, part: Part, count: int) -> Requant:
        r, k = self.op.requant, part.kind
        full = [np.full(count, a[k], np.int32) for a in (r.pre_shift, r.multiplier, r.shift)]
        return Requant(*full, r.lo, r.hi, r.ib, r.curve)

    def _merge(self, i: int, out: Region, work: Region) -> None:
        """Put the lanes of the temporary words together to the words of output row i."""
        entries = []
        for word in sorted({p.word for p in self.parts[i]}):
            for part in (p for p in self.parts[i] if p.word == word):
                mask = 0
                for m in part.columns.values():
                    mask |= m
                entries.append(
                    dict(offset=part.slot * LANES, lane_mask=mask, out_offset=word, last=0)
                )
            entries[-1]["last"] = 1
        self.emitter.table(entries)
        self.emitter.add(
            Opcode.MOVE, fill=out.geometry.fill & 0xFF, table_entries=len(entries),
            num_channels=work.num_channels, num_rows=1, num_words=1,
            src_base=work.base * LANES, src_channel_step=work.geometry.channel_bytes,
            out_base=out.byte_address(work.first_channel, out.geometry.halo_top + i, 0) // LANES,
            out_channel_step=out.geometry.channel_words,
        )
