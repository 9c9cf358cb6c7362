"""Lowers element-wise sums and products: every operand lies in the same geometry, a tap reads each.

A coefficient beyond +-127 becomes several taps at the same place. An operand of one pixel
per channel is spread over a whole map first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rasna import isa
from rasna.errors import CompileError
from rasna.graph import Product, Sum, Tensor
from rasna.isa import Func, Opcode

from .emitter import Emitter
from .geometry import Geometry, Region, ceil_div, plain_slot
from .memory import FirstFit, more_room
from .plan import Limits
from .source import HostTensor, RowWindow, SourceLoader, destination_fields
from .taps import Channels, Table, TapLists, emit_taps
from .window_lower import Sink, emit_store

MAX_WEIGHT = 127


def split_coefficient(coefficient: int) -> list[int]:
    """Weights within +-127 that add up to the coefficient; as few as possible."""
    sign, rest = (1, coefficient) if coefficient >= 0 else (-1, -coefficient)
    parts = []
    while rest > 0:
        parts.append(sign * min(rest, MAX_WEIGHT))
        rest -= MAX_WEIGHT
    return parts


class SumLowering:
    """``sources``: a host tensor or a resident region for every distinct input tensor."""

    def __init__(
        self, emitter: Emitter, memory: FirstFit, op: Sum, tensors: dict[str, Tensor],
        sources: dict[str, HostTensor | Region], sink: Sink, limits: Limits,
    ) -> None:
        self.emitter, self.memory, self.op = emitter, memory, op
        self.inputs = {name: tensors[name] for name in dict.fromkeys(op.inputs)}
        self.out = tensors[op.output]
        self.sources, self.sink, self.limits = sources, sink, limits
        self.loader = SourceLoader(emitter, memory)
        self.geometry = self._geometry()
        self.step = self._channel_step()

    def describe(self) -> str:
        g = self.geometry
        tiles = ceil_div(self.out.shape[1], g.stripes * g.rows)
        text = f"{g.stripes} stripes x {self.emitter.target.slices // g.stripes} copies"
        return text + (f", {tiles} row tiles" if tiles > 1 else "")

    def _resident(self) -> list[Region]:
        return [r for r in self.sources.values() if isinstance(r, Region)]

    def _geometry(self) -> Geometry:
        if self._resident():
            return self._resident()[0].geometry
        _, height, width = self.out.shape
        stripes = min(self.emitter.target.slices, 1 << (height - 1).bit_length())
        slot = plain_slot(width)
        per_row = (len(self.inputs) + 1) * slot.num_words
        rows = min(ceil_div(height, stripes), max(1, (self.limits.budget - 8) // per_row))
        return Geometry(slot, stripes, rows, 0, rows, height, 0)

    def _channel_step(self) -> int:
        """Channels of a chunk: all operands and the output must fit."""
        g = self.geometry
        loaded = sum(isinstance(s, HostTensor) for s in self.sources.values())
        spread = any(t.shape != self.out.shape for t in self.inputs.values())
        each = loaded * g.channel_words + int(spread)
        if self.sink.region is None:
            each += g.rows * g.slot.data_words
        fixed = loaded * (g.slot.lead_words + g.trail_words) + 4
        step = (self.limits.budget - fixed) // each if each else self.out.shape[0]
        if step < 1:
            raise CompileError(
                f"{self.op.name}: one row of each of {len(self.inputs)} operands and the result "
                f"needs {fixed + each} words of map memory in every slice, target "
                f"{self.emitter.target.name} has {self.limits.budget}; "
                f"{more_room(self.emitter.target, fixed + each)}"
            )
        return min(step, self.out.shape[0])

    def run(self) -> None:
        channels, height, _ = self.out.shape
        rows = self.geometry.stripes * self.geometry.rows
        for first in range(0, height, rows):
            for c in range(0, channels, self.step):
                self._chunk(first, min(rows, height - first), c, min(self.step, channels - c))

    def _chunk(self, first: int, num_rows: int, channel: int, count: int) -> None:
        regions, blocks = {}, []
        for name in self.inputs:
            regions[name], block = self._operand(name, first, num_rows, channel, count)
            blocks += [block] if block is not None else []
        if self.sink.region is not None:
            self._taps(regions, num_rows, channel, count, self.sink.region, first)
        else:
            g = self.geometry
            slot = plain_slot(self.out.shape[2])
            out_geometry = Geometry(slot, g.stripes, g.rows, 0, g.rows, g.height, 0)
            with self.memory.block(count * out_geometry.channel_words) as base:
                out = Region(out_geometry, base, channel, count)
                self._taps(regions, num_rows, channel, count, out, 0)
                for host in self.sink.hosts:
                    emit_store(self.emitter, host, out, first, num_rows)
        for block in blocks:
            self.memory.release(block)

    def _operand(self, name, first, num_rows, channel, count) -> tuple[Region, int | None]:
        source, g = self.sources[name], self.geometry
        if isinstance(source, Region):
            return source, None
        if self.inputs[name].shape != self.out.shape:
            return self._spread(source, channel, count)
        rows = RowWindow(first, ceil_div(num_rows, g.rows), False)
        return self.loader.load(source, g, rows, channel, count)

    def _spread(self, host: HostTensor, channel: int, count: int) -> tuple[Region, int]:
        """Load one pixel per channel into every stripe and repeat it over the map."""
        g = self.geometry
        block = self.memory.allocate(g.region_words(count))
        region = Region(g, block + g.slot.lead_words, channel, count)
        with self.memory.block(count + 2) as pixel:
            every = Geometry(plain_slot(1), g.stripes, 0, 0, 1, 1, 0)
            one_pixel = Region(every, pixel + 1, channel, count)
            self.emitter.add(
                Opcode.LOAD, segment=int(host.segment), last_lanes=1, num_channels=count,
                num_rows=1, num_words=1, dram_addr=host.addr + channel, dram_channel_step=1,
                dram_row_step=1, **destination_fields(every, one_pixel),
            )
            lanes = isa.WORD_BYTES
            entries = [
                dict(offset=lanes - 1 - p, lane_mask=1 << p, last=int(p == lanes - 1))
                for p in range(lanes)
            ]
            self.emitter.table(entries)
            self.emitter.add(
                Opcode.MOVE, stripes_log2=g.stripes_log2, table_entries=lanes, num_channels=count,
                num_rows=g.local_rows, num_words=g.slot.data_words,
                src_base=(pixel + 1) * lanes - (lanes - 1), src_channel_step=lanes,
                out_base=region.base + g.slot.first_word, out_channel_step=g.channel_words,
                out_row_step=g.slot.num_words, out_word_step=1,
            )
        return region, block

    def _taps(self, regions, num_rows, channel, count, out: Region, out_row: int) -> None:
        g = self.geometry
        base = regions[self.op.inputs[0]]
        origin = base.byte_address(channel, g.halo_top, 0)
        entries, weights = [], []
        for name, coefficient in zip(self.op.inputs, self.op.coefficients, strict=True):
            region = regions[name]
            offset = region.byte_address(channel, region.geometry.halo_top, 0) - origin
            signed = int(self.inputs[name].type.signed)
            for weight in split_coefficient(int(coefficient)):
                entries.append(dict(offset=offset, lane_mask=0xFF, is_signed=signed))
                weights.append(weight)
        outputs = np.arange(channel, channel + count)
        r = self.op.requant
        requant = replace(
            r, pre_shift=r.pre_shift[outputs], multiplier=r.multiplier[outputs],
            shift=r.shift[outputs],
        )
        src_base = origin + (outputs - channel) * g.channel_bytes
        records = Channels(outputs - out.first_channel, src_base, self.op.bias[outputs], requant)
        lists = TapLists(
            np.array(weights, np.int8), np.arange(len(weights)), np.array([0, len(weights)])
        )
        width = self.out.shape[2]
        words = ceil_div(width, isa.WORD_BYTES)
        emit_taps(
            self.emitter, Table.single(entries), records, lists,
            Func.PRODUCT if isinstance(self.op, Product) else Func.MAC,
            stripes_log2=g.stripes_log2, last_lanes=width - (words - 1) * isa.WORD_BYTES,
            fill=out.geometry.fill & 0xFF, tile_rows=g.rows, tile_words=words,
            src_row_step=g.row_bytes, src_word_step=isa.WORD_BYTES, row_limit=num_rows,
            **destination_fields(out.geometry, out, out_row, wrap=True),
        )
