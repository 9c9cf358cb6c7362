"""Lowers Select: every output channel reads its channels where they lie, by a list of its own kind.

A TAPS gives each channel its own source address, so any order of channels costs the same.
Repeated rows are written by one TAPS per phase of the rows; repeated or interleaved columns
are lanes of several taps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from rasna import isa
from rasna.errors import CompileError
from rasna.graph import Requant, Select, Tensor

from .emitter import Emitter
from .geometry import Geometry, Region, ceil_div, plain_slot
from .memory import FirstFit, more_room
from .plan import Limits
from .source import HostTensor, RowWindow, SourceLoader, destination_fields
from .taps import Channels, Table, emit_taps, ones
from .window_lower import Sink, emit_store

LANES = isa.WORD_BYTES
FIXED_WORDS = 8  # guards of the source and of the result


def can_write(op: Select, g: Geometry) -> bool:
    """Whether the phases of repeated rows fall into the same rows of every stripe of ``g``."""
    return g.stripes == 1 or g.rows % np.asarray(op.channels).shape[1] == 0


def whole_geometry(shape: tuple[int, int, int], slices: int, rows: int | None = None) -> Geometry:
    """A map without halo in as many stripes as it has rows; ``rows``: at most so many each."""
    _, height, width = shape
    stripes = min(slices, 1 << (height - 1).bit_length())
    most = ceil_div(height, stripes)
    rows = most if rows is None else min(rows, most)
    return Geometry(plain_slot(width), stripes, rows, 0, rows, height, 0)


def _numbers(op: Select, tensors: dict[str, Tensor]) -> np.ndarray:
    """The input of every channel."""
    return np.repeat(np.arange(len(op.inputs)), [tensors[n].shape[0] for n in op.inputs])


def words_of_channel(
    op: Select, tensors: dict[str, Tensor], loaded: Collection[str], rows: int | None,
    writes_resident: bool, slices: int,
) -> int:
    """Words that one output channel takes in a slice: itself, and channels to be loaded for it.

    loaded: inputs in host memory. rows: of a stripe of the source; None for all.
    """
    g = whole_geometry(tensors[op.inputs[0]].shape, slices, rows)
    channels = np.asarray(op.channels)
    out = g.rows * channels.shape[1] * plain_slot(tensors[op.output].shape[2]).num_words
    needed = 0 if writes_resident else out
    names = np.asarray(op.inputs)[_numbers(op, tensors)[channels[:, :, 0]]]
    used = np.isin(names, list(loaded)).any(axis=1)
    if used.any():
        needed += g.channel_words * max(len(np.unique(c)) for c in channels[used])
    return needed


@dataclass(frozen=True)
class Piece:
    """Output channels that one row phase takes from one input, all in the same way.

    sources: (n,) channel of the input that column 0 comes from; steps: channels from there to
    those of the columns, one per column phase.
    """

    number: int
    phase: int
    outputs: np.ndarray
    sources: np.ndarray
    steps: tuple[int, ...]


class SelectLowering:
    """``sources``: a host tensor or a resident region for every distinct input tensor."""

    def __init__(
        self, emitter: Emitter, memory: FirstFit, op: Select, tensors: dict[str, Tensor],
        sources: dict[str, HostTensor | Region], sink: Sink, limits: Limits,
    ) -> None:
        self.emitter, self.memory, self.op = emitter, memory, op
        self.tensors, self.inputs = tensors, [tensors[name] for name in op.inputs]
        self.out = tensors[op.output]
        self.sources, self.sink, self.limits = sources, sink, limits
        self.loader = SourceLoader(emitter, memory)
        self.channels = np.asarray(op.channels, np.int64)
        self.whole = sink.region is not None or any(
            isinstance(s, Region) for s in sources.values()
        )
        self.row_phases, self.column_phases = self.channels.shape[1:]
        self.rows = self._tile_rows()
        self.step = self._channel_step()

    def describe(self) -> str:
        g = self._source_geometry()
        tiles = ceil_div(g.height, g.stripes * g.rows)
        text = f"{g.stripes} stripes x {self.emitter.target.slices // g.stripes} copies"
        return text + (f", {tiles} row tiles" if tiles > 1 else "")

    # ---- shares of the map memory

    def _source_geometry(self) -> Geometry:
        return whole_geometry(self.inputs[0].shape, self.emitter.target.slices, self.rows)

    def _out_geometry(self) -> Geometry:
        g, (_, height, width) = self._source_geometry(), self.out.shape
        rows = g.rows * self.row_phases
        return Geometry(plain_slot(width), g.stripes, rows, 0, rows, height, 0)

    def _words(self, rows: int | None) -> int:
        loaded = [n for n, s in self.sources.items() if isinstance(s, HostTensor)]
        slices, resident = self.emitter.target.slices, self.sink.region is not None
        return words_of_channel(self.op, self.tensors, loaded, rows, resident, slices)

    def _tile_rows(self) -> int | None:
        """Rows of a stripe that are held at once; None for all."""
        if self.whole or self._words(None) + FIXED_WORDS <= self.limits.budget:
            return None
        rows = whole_geometry(self.inputs[0].shape, self.emitter.target.slices).rows
        while rows > 1 and self._words(rows) + FIXED_WORDS > self.limits.budget:
            rows -= 1
        return rows

    def _channel_step(self) -> int:
        each = self._words(self.rows)
        room = self.limits.budget - FIXED_WORDS
        step = room // each if each else len(self.channels)
        if step < 1:
            raise CompileError(
                f"{self.op.name}: one row of an output channel and of the channels it is made of "
                f"needs {FIXED_WORDS + each} words of map memory in every slice, target "
                f"{self.emitter.target.name} has {self.limits.budget}; "
                f"{more_room(self.emitter.target, FIXED_WORDS + each)}"
            )
        return min(step, len(self.channels))

    # ---- what comes from where

    def _pieces(self, first: int, count: int) -> Iterator[Piece]:
        """Pieces of the output channels first …, input by input."""
        starts = np.cumsum([0, *[t.shape[0] for t in self.inputs]])
        numbers = _numbers(self.op, self.tensors)
        part = self.channels[first : first + count]
        outputs = np.arange(first, first + count)
        for number in np.unique(numbers[part]):
            for phase in range(self.row_phases):
                rows = part[:, phase]
                mine = numbers[rows[:, 0]] == number
                steps = rows - rows[:, :1]
                for kind in np.unique(steps[mine], axis=0):
                    same = mine & (steps == kind).all(axis=1)
                    sources = rows[same, 0] - starts[number]
                    yield Piece(int(number), phase, outputs[same], sources, tuple(map(int, kind)))

    # ---- instructions

    def run(self) -> None:
        height = self.inputs[0].shape[1]
        g = self._source_geometry()
        tile = g.stripes * g.rows
        for first in range(0, height, tile):
            for c in range(0, len(self.channels), self.step):
                count = min(self.step, len(self.channels) - c)
                self._chunk(first, min(tile, height - first), c, count)

    def _chunk(self, first: int, num_rows: int, channel: int, count: int) -> None:
        if self.sink.region is not None:
            self._fill(first, num_rows, channel, count, self.sink.region)
            return
        g = self._out_geometry()
        with self.memory.block(count * g.channel_words, high=True) as base:
            out = Region(g, base, channel, count)
            self._fill(first, num_rows, channel, count, out)
            for host in self.sink.hosts:
                rows = num_rows * self.row_phases
                emit_store(self.emitter, host, out, first * self.row_phases, rows)

    def _fill(self, first: int, num_rows: int, channel: int, count: int, out: Region) -> None:
        """Compute ``count`` channels of ``out``, one input after another."""
        pieces = list(self._pieces(channel, count))
        for number in dict.fromkeys(p.number for p in pieces):
            mine = [p for p in pieces if p.number == number]
            source = self.sources[self.op.inputs[number]]
            if isinstance(source, Region):
                for piece in mine:
                    self._taps(piece, source, num_rows, out)
                continue
            needed = np.unique([s + d for p in mine for s in p.sources for d in p.steps])
            region, block = self._load(source, needed, first, num_rows)
            for piece in mine:
                sources = np.searchsorted(needed, piece.sources)
                steps = np.searchsorted(needed, piece.sources[0] + np.array(piece.steps))
                steps = tuple(int(s) for s in steps - sources[0])
                self._taps(replace(piece, sources=sources, steps=steps), region, num_rows, out)
            self.memory.release(block)

    def _load(
        self, host: HostTensor, needed: np.ndarray, first: int, num_rows: int
    ) -> tuple[Region, int]:
        """Rows of the channels ``needed``, one behind the other, and their allocation."""
        g = self._source_geometry()
        block = self.memory.allocate(g.region_words(len(needed)))
        rows = RowWindow(first, ceil_div(num_rows, g.rows), False)
        ends = np.flatnonzero(np.diff(needed) != 1) + 1
        for run in np.split(np.arange(len(needed)), ends):
            base = block + int(run[0]) * g.channel_words
            part = Region(g, base, int(needed[run[0]]), len(run))
            self.loader.load_into(host, part, rows)
        return Region(g, block, 0, len(needed)), block

    def _taps(self, piece: Piece, region: Region, num_rows: int, out: Region) -> None:
        g = region.geometry
        first = region.byte_address(region.first_channel, g.halo_top, 0) - g.slot.byte(0)
        bases = first + (piece.sources - region.first_channel) * g.channel_bytes
        signed = int(self.inputs[piece.number].type.signed)
        width = self.out.shape[2]
        num_words = ceil_div(width, LANES)
        destination = self._destination(out, piece.phase)
        if destination["out_local_rows"] < 1:
            return
        even = LANES % self.column_phases == 0
        for word in (0,) if even else range(num_words):
            words = num_words if even else 1
            last = word + words == num_words
            entries = self._entries(piece, word, g, signed)
            emit_taps(
                self.emitter, Table.single(entries),
                Channels(
                    piece.outputs - out.first_channel, bases,
                    np.zeros(len(bases), np.int32), self._requant(piece.number, len(bases)),
                ),
                ones(len(entries)),
                stripes_log2=g.stripes_log2,
                last_lanes=width - (num_words - 1) * LANES if last else LANES,
                fill=out.geometry.fill & 0xFF, tile_rows=g.rows, tile_words=words,
                src_row_step=g.row_bytes, src_word_step=LANES // self.column_phases,
                row_limit=num_rows, **{**destination, "out_base": destination["out_base"] + word},
            )

    def _entries(self, piece: Piece, word: int, g: Geometry, signed: int) -> list[dict[str, int]]:
        """Taps of one word: lane p shows pixel (8*word + p) // columns of its column's channel."""
        masks: dict[int, int] = {}
        for lane in range(LANES):
            pixel, column = divmod(word * LANES + lane, self.column_phases)
            offset = piece.steps[column] * g.channel_bytes + g.slot.byte(0) + pixel - lane
            masks[offset] = masks.get(offset, 0) | 1 << lane
        return [
            dict(offset=offset, lane_mask=mask, is_signed=signed) for offset, mask in masks.items()
        ]

    def _requant(self, number: int, count: int) -> Requant:
        r = self.op.requant
        full = [np.full(count, a[number], np.int32) for a in (r.pre_shift, r.multiplier, r.shift)]
        return Requant(*full, r.lo, r.hi, r.ib, r.curve)

    def _destination(self, out: Region, phase: int) -> dict[str, int]:
        """Rows phase, phase + RH, … of ``out`` as a tensor of its own: its rows lie RH apart."""
        n, g = self.row_phases, out.geometry
        fields = destination_fields(g, out, wrap=True)
        halo, shift = divmod(phase + g.halo_top, n)
        fields["out_base"] += shift * g.slot.num_words
        fields["out_row_step"] *= n
        fields["out_halo_top"] = halo
        fields["out_local_rows"] = ceil_div(g.local_rows - shift, n)
        fields["out_rows"] = max(1, g.rows // n)
        fields["out_height"] = g.height // n
        if fields["circular_rows"]:
            fields["out_rows"] = min(fields["out_rows"], fields["out_height"])
        return fields
