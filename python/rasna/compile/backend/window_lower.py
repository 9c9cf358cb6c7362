"""Lowers a window operation (convolution, max pooling) by its plan to instructions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rasna import isa
from rasna.isa import Opcode

from .emitter import Emitter
from .geometry import Geometry, Region, ceil_div, plain_slot
from .memory import FirstFit
from .plan import Plan
from .source import HostTensor, RowWindow, SourceLoader, destination_fields
from .taps import Channels, Table, TapLists, emit_taps, lists_of, ones
from .window import Window


@dataclass
class Sink:
    """Where an output goes: host tensors to STORE to, or a region it is written into."""

    hosts: list[HostTensor]
    region: Region | None = None


def emit_store(
    emitter: Emitter, host: HostTensor, region: Region, first_row: int, num_rows: int
) -> None:
    """STORE ``num_rows`` rows of a plain region to rows first_row … of its channels.

    Raises ValueError for a region of phases, whose words are no words of the tensor.
    """
    g = region.geometry
    if g.slot.stride != 1:
        raise ValueError("STORE reads plain rows, the region lies in phases")
    emitter.add(
        Opcode.STORE,
        stripes_log2=g.stripes_log2,
        segment=int(host.segment),
        num_channels=region.num_channels,
        num_rows=num_rows,
        num_words=host.row_words,
        src_base=region.base + g.slot.first_word,
        src_channel_step=g.channel_words,
        src_row_step=g.slot.num_words,
        src_rows=g.rows,
        src_halo_top=g.halo_top,
        dram_addr=host.addr + region.first_channel * host.channel_words
        + first_row * host.row_words,
        dram_channel_step=host.channel_words,
        dram_row_step=host.row_words,
    )


def emit_copy(
    emitter: Emitter, memory: FirstFit, source: HostTensor, sinks: list[HostTensor],
    shape: tuple[int, int, int],
) -> None:
    """Copy a tensor in host memory through the map memory, in pieces that fit."""
    channels, height, width = shape
    slot = plain_slot(width)
    stripes = min(emitter.target.slices, 1 << (height - 1).bit_length())
    room = memory.largest_gap() - 2
    rows = min(ceil_div(height, stripes), max(1, room // slot.num_words))
    g = Geometry(slot, stripes, rows, 0, rows, height, 0)
    step = max(1, room // g.channel_words)
    loader = SourceLoader(emitter, memory)
    for first in range(0, height, stripes * rows):
        num_rows = min(stripes * rows, height - first)
        for channel in range(0, channels, step):
            count = min(step, channels - channel)
            window = RowWindow(first, ceil_div(num_rows, rows), False)
            region, block = loader.load(source, g, window, channel, count)
            for host in sinks:
                emit_store(emitter, host, region, first, num_rows)
            memory.release(block)


@dataclass(frozen=True)
class Chunk:
    """Output channels of one chunk: ``outputs`` of each of the groups first_group … ."""

    first_group: int
    num_groups: int
    first_output: int
    num_outputs: int

    def channels(self, w: Window) -> np.ndarray:
        groups = np.arange(self.first_group, self.first_group + self.num_groups)
        within = np.arange(self.first_output, self.first_output + self.num_outputs)
        return (groups[:, None] * w.group_outputs + within).ravel()

    def sorted_channels(self, w: Window) -> np.ndarray:
        """Channels with most taps first: the lists of one round are about equally long."""
        channels = self.channels(w)
        if w.weights is None:
            return channels
        taps = np.count_nonzero(w.weights[channels], axis=(1, 2))
        return channels[np.argsort(-taps, kind="stable")]


class WindowLowering:
    """One window operation with its plan; ``source`` is a host tensor or a prepared region."""

    def __init__(
        self, emitter: Emitter, memory: FirstFit, window: Window, plan: Plan,
        source: HostTensor | Region, sink: Sink,
    ) -> None:
        self.emitter, self.memory = emitter, memory
        self.w, self.plan, self.source, self.sink = window, plan, source, sink
        self.loader = SourceLoader(emitter, memory)
        resident = source.geometry if isinstance(source, Region) else None
        self.geometry = window.geometry(plan.stripes, plan.out_rows, resident)
        self.held: tuple[tuple, Region, int] | None = None
        self.backwards = False

    def run(self) -> None:
        height = self.w.out.shape[1]
        step = self.plan.stripes * self.plan.out_rows
        for first in range(0, height, step):
            self._tile(first, min(step, height - first))
            self._release()

    def _tile(self, first: int, num_rows: int) -> None:
        for chunk in self._chunks():
            if self.sink.region is not None:
                self._chunk(chunk, first, num_rows, self.sink.region, first)
                continue
            channels = chunk.channels(self.w)
            g = self._output_geometry()
            # Phase splitting needs room beside the source, which the output may take later.
            self._hold(chunk, self._holds()[0], first, num_rows)
            with self.memory.block(len(channels) * g.channel_words, high=True) as base:
                region = Region(g, base, int(channels[0]), len(channels))
                self._chunk(chunk, first, num_rows, region, 0)
                for host in self.sink.hosts:
                    emit_store(self.emitter, host, region, first, num_rows)

    def _chunks(self):
        w, p = self.w, self.plan
        for group in range(0, w.groups, p.groups):
            for output in range(0, w.group_outputs, p.outputs):
                yield Chunk(
                    group, min(p.groups, w.groups - group),
                    output, min(p.outputs, w.group_outputs - output),
                )

    def _holds(self) -> list[tuple[int, int]]:
        """Ranges of a group's input channels that are held at once, in serpentine order."""
        n = self.w.group_channels
        parts = [(i, min(i + self.plan.hold, n)) for i in range(0, n, self.plan.hold)]
        return parts[::-1] if self.backwards else parts

    def _chunk(self, chunk: Chunk, first: int, num_rows: int, out: Region, out_row: int) -> None:
        w, p = self.w, self.plan
        parts = range(0, w.tile_words, p.x_words)
        total = p.num_passes(w)
        for x in parts:
            done = 0
            for part in self._holds():
                region = self._hold(chunk, part, first, num_rows)
                for c in range(part[0], part[1], p.channel_pass):
                    channels = (c, min(c + p.channel_pass, part[1]))
                    for positions in p.positions:
                        self._taps(
                            chunk, region, channels, positions, x, num_rows, out, out_row,
                            acc_init=int(done > 0), acc_keep=int(done + 1 < total),
                        )
                        done += 1
            self.backwards = not self.backwards

    def _hold(self, chunk: Chunk, part: tuple[int, int], first: int, num_rows: int) -> Region:
        """The region with these channels of the chunk's groups; loads it if it is not there."""
        w = self.w
        if isinstance(self.source, Region) and self.geometry is self.source.geometry:
            return self.source
        low = chunk.first_group * w.group_channels + part[0]
        count = part[1] - part[0]
        if chunk.num_groups > 1:
            count = chunk.num_groups * w.group_channels
        key = (low, count, first)
        if self.held is None or self.held[0] != key:
            self._release()
            if isinstance(self.source, Region):
                region, block = self.loader.split(self.source, self.geometry, low, count)
            else:
                used = ceil_div(num_rows, self.plan.out_rows)
                rows = RowWindow(first * w.stride[0], used, w.circular)
                region, block = self.loader.load(self.source, self.geometry, rows, low, count)
            self.held = (key, region, block)
        return self.held[1]

    def _release(self) -> None:
        if self.held is not None:
            self.memory.release(self.held[2])
            self.held = None

    def _taps(
        self, chunk, region, channels, positions, x, num_rows, out, out_row, acc_init, acc_keep
    ) -> None:
        w, p = self.w, self.plan
        g = region.geometry
        outputs = chunk.sorted_channels(w)
        low = outputs // w.group_outputs * w.group_channels + channels[0]
        extra = g.halo_top - w.padding.top
        src_base = np.array([region.byte_address(int(c), extra, 0) for c in low])
        src_base += x * isa.WORD_BYTES - g.slot.byte(0)
        words = min(p.x_words, w.tile_words - x)
        last = x + words == w.tile_words
        fields = dict(
            acc_init=acc_init,
            acc_keep=acc_keep,
            stripes_log2=g.stripes_log2,
            last_lanes=w.last_lanes if last else isa.WORD_BYTES,
            fill=out.geometry.fill & 0xFF,
            tile_rows=p.out_rows,
            tile_words=words,
            src_row_step=w.stride[0] * g.row_bytes,
            src_word_step=isa.WORD_BYTES,
            row_limit=num_rows,
        )
        destination = destination_fields(out.geometry, out, out_row, wrap=True)
        destination["out_base"] += x >> destination["out_split"]
        emit_taps(
            self.emitter, self._table(g, positions), self._records(outputs, src_base, out),
            self._lists(outputs, channels, positions), w.func, **fields, **destination,
        )

    def _table(self, g: Geometry, positions: tuple[int, ...]) -> Table:
        signed = int(self.w.source.type.signed)
        entries = [
            dict(
                offset=self.w.tap_offset(g, i), lane_mask=self.w.lane_mask(i), is_signed=signed
            )
            for i in positions
        ]
        if self.w.weights is None:
            return Table.single(entries)
        return Table.repeat(entries, g.channel_bytes)

    def _records(self, outputs: np.ndarray, src_base: np.ndarray, out: Region) -> Channels:
        w = self.w
        channels = Channels(outputs - out.first_channel, src_base, w.bias, w.requant)
        r = w.requant
        channels.bias = w.bias[outputs]
        channels.requant = replace(
            r, pre_shift=r.pre_shift[outputs], multiplier=r.multiplier[outputs],
            shift=r.shift[outputs],
        )
        return channels

    def _lists(self, outputs: np.ndarray, channels: tuple[int, int], positions) -> TapLists:
        weights = self.w.weights
        if weights is None:
            return ones(len(positions))
        part = weights[outputs, channels[0] : channels[1]]
        if len(positions) != self.w.num_positions:
            part = part[:, :, list(positions)]
        return lists_of(part.reshape(len(outputs), -1))

    def _output_geometry(self) -> Geometry:
        w, p = self.w, self.plan
        return Geometry(
            plain_slot(w.out.shape[2]), p.stripes, p.out_rows, 0, p.out_rows,
            w.out.shape[1], 0,
        )
