"""Choice of mapping for a window operation: stripes, row tiles, passes, chunks.

The search enumerates stripes and rows per stripe, derives the largest channel chunks
that fit the map, accumulator and list memories, and takes the plan with the fewest
estimated cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rasna import isa
from rasna.errors import CompileError
from rasna.targets import Target

from .geometry import Geometry, ceil_div, row_words
from .memory import more_room
from .window import Window

FIXED_CYCLES = 60  # start and drain of an instruction, for comparing plans only


@dataclass(frozen=True)
class Plan:
    """How one window operation is cut.

    stripes, out_rows: mapping; a row tile computes stripes*out_rows rows.
    hold: input channels of a group that the map memory holds at once.
    channel_pass, positions: input channels and kernel positions of one TAPS.
    groups, outputs: groups of a chunk and output channels of each group in it.
    x_words: words of an output row per TAPS.
    """

    stripes: int
    out_rows: int
    hold: int
    channel_pass: int
    positions: tuple[tuple[int, ...], ...]
    groups: int
    outputs: int
    x_words: int
    cycles: int

    def num_passes(self, w: Window) -> int:
        """TAPS instructions that add up to one result."""
        full, rest = divmod(w.group_channels, self.hold)
        parts = full * ceil_div(self.hold, self.channel_pass) + ceil_div(rest, self.channel_pass)
        return parts * len(self.positions)

    def describe(self, w: Window, target: Target) -> str:
        """Mapping text of the per-layer table."""
        tiles = ceil_div(w.out.shape[1], self.stripes * self.out_rows)
        parts = [f"{self.stripes} stripes x {target.slices // self.stripes} copies"]
        if tiles > 1:
            parts.append(f"{tiles} row tiles")
        if self.num_passes(w) > 1:
            parts.append(f"{self.num_passes(w)} passes")
        return ", ".join(parts)


def position_chunks(w: Window, target: Target) -> tuple[tuple[int, ...], ...]:
    """Kernel positions cut so that each part fits the offset table."""
    n, limit = w.num_positions, target.table_entries
    parts = ceil_div(n, limit)
    return tuple(tuple(int(i) for i in part) for part in np.array_split(np.arange(n), parts))


def sparsity(w: Window) -> float:
    if w.weights is None or w.weights.size == 0:
        return 0.0
    return 1.0 - np.count_nonzero(w.weights) / w.weights.size


def prefers_sparse(w: Window) -> bool:
    """Sparse codes: fewer cycles; 12.8 bits each instead of 8 for every position."""
    return sparsity(w) > 0.3


def list_channels(w: Window, positions: int, target: Target) -> int:
    """Input channels whose taps surely fit half of a list memory."""
    per_word = isa.SPARSE_CODES_PER_WORD if prefers_sparse(w) else isa.DENSE_CODES_PER_WORD
    return max(1, target.list_words * per_word // positions)


@dataclass(frozen=True)
class Limits:
    """What a plan may use: ``budget`` words of map memory.

    resident: the geometry in which the source already lies in the map memory; then one row
    tile is required, and the source costs no memory unless it must be parted in phases.
    writes_resident: the output goes to memory that is allocated elsewhere. writes_split: in
    phases, so that a part of a row begins at an even word.
    """

    budget: int
    resident: Geometry | None = None
    writes_resident: bool = False
    writes_split: bool = False


class Planner:
    """Finds the best plan for one window operation within the limits."""

    def __init__(self, window: Window, target: Target, limits: Limits) -> None:
        self.w, self.target, self.limits = window, target, limits
        self.positions = position_chunks(window, target)
        self.most_positions = max(map(len, self.positions))
        self.list_limit = list_channels(window, self.most_positions, target)
        self.density = 1.0 - sparsity(window)

    def best(self) -> Plan | None:
        plans = [p for s, r in self._mappings() for p in self._plans(s, r)]
        return min(plans, key=lambda p: p.cycles, default=None)

    def _mappings(self):
        height, stripes = self.w.out.shape[1], 1
        if self.limits.resident is not None:
            g = self.limits.resident
            if self.w.can_read(g):
                yield g.stripes, self.w.rows_per_stripe(g)
            return
        while stripes <= self.target.slices and stripes < 2 * height:
            most = ceil_div(height, stripes)
            fewer = {r for r in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if r < most}
            for rows in sorted({most} | fewer):
                yield stripes, rows
            stripes *= 2

    def _plans(self, stripes: int, out_rows: int):
        w, copies = self.w, self.target.slices // stripes
        g = w.geometry(stripes, out_rows, self.limits.resident)
        for groups, hold, outputs in self._chunks(g, out_rows):
            channel_pass = min(hold, self.list_limit)
            channel_pass = ceil_div(hold, ceil_div(hold, channel_pass))
            x_words = w.tile_words
            if channel_pass < w.group_channels or len(self.positions) > 1:
                x_words = min(x_words, self.target.acc_tiles // out_rows)
                if self.limits.writes_split and x_words < w.tile_words:
                    x_words -= x_words % 2
                if x_words == 0:
                    continue
                most = self.target.acc_tiles // (out_rows * x_words) * copies
                if groups * outputs > most:
                    groups, outputs = max(1, most // outputs), min(outputs, most)
            cycles = self._cycles(g, out_rows, hold, channel_pass, groups, outputs, x_words)
            yield Plan(stripes, out_rows, hold, channel_pass, self.positions, groups, outputs,
                       x_words, cycles)

    def _chunks(self, g: Geometry, out_rows: int):
        """(groups, channels held, outputs of a group) that fit the map memory."""
        w = self.w
        out_words = 0 if self.limits.writes_resident else out_rows * w.tile_words
        resident, parts = self.limits.resident is not None, g.slot.by_move
        if resident and not parts:
            most = w.out.shape[0] if out_words == 0 else (self.limits.budget - 2) // out_words
            yield from self._shares(most, w.group_channels)
            return
        room = self.limits.budget - g.slot.lead_words - g.trail_words - 2
        scratch = 0
        if parts and not resident:
            scratch = 2 + g.local_rows * row_words(w.source.shape[2])
        if w.groups > 1:
            source_words = w.group_channels * g.channel_words
            both = source_words + out_words * w.group_outputs
            n = min((room - scratch) // source_words, room // both)
            if n >= 1:
                yield min(n, w.groups), w.group_channels, w.group_outputs
                return
        most = min(w.group_channels, (room - max(out_words, scratch)) // g.channel_words)
        if most < 1:
            return
        fewest = ceil_div(w.group_channels, most)
        for n in sorted({fewest, fewest + 1, 2 * fewest}):
            hold = ceil_div(w.group_channels, n)
            left = room - hold * g.channel_words - (scratch if hold < w.group_channels else 0)
            outputs = left // out_words if out_words else w.group_outputs
            if outputs >= 1:
                yield 1, hold, min(outputs, w.group_outputs)

    def _shares(self, most: int, hold: int):
        """Chunks of at most ``most`` output channels when the source costs nothing."""
        w = self.w
        if w.groups > 1 and most >= w.group_outputs:
            yield min(w.groups, most // w.group_outputs), hold, w.group_outputs
        elif most >= 1:
            yield 1, hold, min(most, w.group_outputs)

    def _cycles(self, g, out_rows, hold, channel_pass, groups, outputs, x_words) -> int:
        w = self.w
        tiles = ceil_div(w.out.shape[1], g.stripes * out_rows)
        copies = self.target.slices // g.stripes
        passes = ceil_div(w.group_channels, channel_pass) * len(self.positions)
        chunks = ceil_div(w.groups, groups) * ceil_div(w.group_outputs, outputs)
        x_parts = ceil_div(w.tile_words, x_words)
        words = out_rows * w.tile_words
        codes = max(1.0, self.density * channel_pass * self.most_positions)
        lanes = min(copies, groups * outputs)
        drain = lanes * g.stripes / self._together(g.stripes, out_rows)
        inner = passes * max(codes, drain) * words
        per_word = isa.SPARSE_CODES_PER_WORD if prefers_sparse(w) else isa.DENSE_CODES_PER_WORD
        stream = lanes * (codes / per_word + isa.CHANNEL_RECORD_WORDS) * passes * x_parts
        rounds = ceil_div(groups * outputs, copies)
        cycles = chunks * (rounds * max(inner, stream) + passes * x_parts * FIXED_CYCLES)
        reloads = chunks * x_parts if w.groups == 1 and hold < w.group_channels else 1
        cycles += self._source_cycles(g, reloads)
        if not self.limits.writes_resident:
            cycles += w.out.shape[0] * words * g.stripes
        return int(tiles * cycles)

    def _together(self, stripes: int, out_rows: int) -> int:
        """Words that are drained at once, if the result has one halo row above and below."""
        n = self.target.drain_words
        while n > 1 and out_rows * (stripes // n) < out_rows + 2:
            n //= 2
        return n

    def _source_cycles(self, g: Geometry, times: int) -> float:
        """Cycles to load the source of a row tile ``times`` times and to prepare its slots."""
        w = self.w
        channels = w.source.shape[0] * times
        slots = channels * g.local_rows
        resident = self.limits.resident is not None
        rows = min(g.height, g.stripes * g.rows + g.local_rows - g.rows)
        cycles = 0 if resident else channels * rows * row_words(w.source.shape[2])
        if g.slot.by_move:
            return cycles + slots * g.slot.num_words * isa.WORD_BYTES
        if resident:
            return 0
        if w.circular and (g.slot.left or g.slot.right):
            return cycles + slots * 3
        return cycles + slots * g.slot.gap_words


def plan_window(window: Window, target: Target, limits: Limits) -> Plan:
    """The best plan. Raises CompileError with the numbers if none fits."""
    plan = Planner(window, target, limits).best()
    if plan is not None:
        return plan
    raise CompileError(_too_large(window, target, limits))


def _too_large(w: Window, target: Target, limits: Limits) -> str:
    """The message with the words of the smallest tile: one row of one channel, as in _chunks."""
    g = w.geometry(1, 1)
    parting = 2 + g.local_rows * row_words(w.source.shape[2]) if g.slot.by_move else 0
    around = g.slot.lead_words + g.trail_words + 2
    output = 0 if limits.writes_resident else w.tile_words
    if w.group_channels == 1:  # parted before there is an output: one place serves both
        parting, output = (parting, 0) if parting > output else (0, output)
    parts = [f"{g.local_rows} input rows of {g.slot.num_words} words"]
    if output:
        parts.append(f"{output} output words")
    if parting:
        parts.append(f"{parting} to part the columns by the stride of {w.stride[1]}")
    needed = g.channel_words + output + parting + around
    listed = ", ".join([*parts, f"{around} around them"])
    return (
        f"{w.name}: one output row needs {needed} words of map memory in every slice ({listed}), "
        f"target {target.name} has {limits.budget}; {more_room(target, needed, 'inputs')}"
    )
