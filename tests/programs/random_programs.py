"""Seeded random programs that keep to docs/machine.md and use every opcode and field.

They mean nothing as networks: the map memory is divided into regions, each FILLed with some
number of stripes; then random instructions copy, combine and store regions, and at the end
all regions are stored. Addresses of taps are random within a region, not a convolution's.

    python tests/programs/random_programs.py SEED [TARGET]     prints one as text
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from rasna import isa
from rasna.assembler import ProgramBuilder, disassemble
from rasna.compile.backend.taps import drain_log2
from rasna.encoding import (
    channel_records,
    codes_per_word,
    encode_lists,
    join_stream,
    table_entries,
)
from rasna.isa import Opcode, Segment
from rasna.targets import Target, get_target

NUM_STEPS = 8  # random steps of a program; each is one to six instructions


@dataclass
class _Region:
    base: int  # first word
    num_words: int
    stripes_log2: int

    @property
    def num_bytes(self) -> int:
        return self.num_words * isa.WORD_BYTES


def random_program(
    seed: int, target: Target | str
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """A legal program and an input for it.

    Returns
    -------
    program_words : uint64 (N,)
    inputs : uint64 (M,)
    output_words, scratch_words : int
    """
    return _Generator(seed, get_target(target)).generate()


class _Generator:
    def __init__(self, seed: int, target: Target) -> None:
        self.rng = np.random.default_rng(seed)
        self.target = target
        self.builder = ProgramBuilder()
        self.output_words = 0
        self.scratch_words = 0
        self.input_words = self.below(64) + 1
        self.max_stripes_log2 = target.slices.bit_length() - 1
        self.has_curve = False
        self.acc_written: list[tuple[int, int]] = []  # (first, limit) of all slices
        self.regions: list[_Region] = []

    def below(self, limit: int) -> int:
        """Random integer 0 … limit-1."""
        return int(self.rng.integers(limit))

    def between(self, lo: int, hi: int) -> int:
        """Random integer lo … hi."""
        return int(self.rng.integers(lo, hi + 1))

    def flag(self, probability: float = 0.5) -> int:
        return int(self.rng.random() < probability)

    def generate(self) -> tuple[np.ndarray, np.ndarray, int, int]:
        self._make_regions()
        steps = (self._load, self._taps, self._move, self._store_and_reload, self._refill)
        for _ in range(NUM_STEPS):
            steps[self.rng.choice(5, p=(0.2, 0.45, 0.15, 0.1, 0.1))]()
        for region in self.regions:
            self._store(region, Segment.OUTPUT)
        words = self.builder.words()
        inputs = self.rng.integers(0, 1 << 64, self.input_words, dtype=np.uint64)
        return words, inputs, self.output_words, self.scratch_words

    def _make_regions(self) -> None:
        limit = min(self.target.map_words, 512)
        count = self.between(3, 5)
        cuts = np.sort(self.rng.choice(np.arange(1, limit // 8), count - 1, replace=False)) * 8
        edges = [0, *cuts.tolist(), limit - self.below(4)]
        shift = self.target.map_words - limit
        for first, last in zip(edges[:-1], edges[1:], strict=True):
            region = _Region(first + shift, last - first, 0)
            self.regions.append(region)
            self._fill(region, self.below(self.max_stripes_log2 + 1))
        self._load()

    def _fill(self, region: _Region, stripes_log2: int) -> None:
        """Write the whole region in one or several blocks that may overlap."""
        blocks = self.between(1, min(4, region.num_words))
        words = -(-region.num_words // blocks)
        step = (region.num_words - words) // (blocks - 1) if blocks > 1 else self.below(9)
        while blocks > 1 and step * (blocks - 1) + words < region.num_words:
            words += 1
        region.stripes_log2 = stripes_log2
        self.builder.add(
            Opcode.FILL, fill=self.below(256), stripes_log2=stripes_log2, out_base=region.base,
            num_words=words, num_blocks=blocks, block_step=step,
        )
        if self.flag():
            self._fill_a_part(region)

    def _fill_a_part(self, region: _Region) -> None:
        """Other bytes in blocks of a filled region, with words between and behind them."""
        words, step = self.between(1, 4), self.between(1, 9)
        most = 1 + (region.num_words - words) // step
        if most < 1:
            return
        blocks = self.between(1, min(5, most))
        extent = (blocks - 1) * step + words
        self.builder.add(
            Opcode.FILL, fill=self.below(256), stripes_log2=region.stripes_log2,
            out_base=region.base + self.below(region.num_words - extent + 1),
            num_words=words, num_blocks=blocks, block_step=step,
        )

    def _refill(self) -> None:
        """Write a few words of a region anew: even and odd counts and steps of blocks."""
        region = self._pick()
        words, blocks = self.between(1, 3), self.between(1, 5)
        room = region.num_words - words
        step = self.below(min(6, room // max(1, blocks - 1) + 1))
        far = step * (blocks - 1)
        if room < far:
            return
        self.builder.add(
            Opcode.FILL, fill=self.below(256), stripes_log2=region.stripes_log2,
            out_base=region.base + self.below(room - far + 1), num_words=words,
            num_blocks=blocks, block_step=step,
        )

    def _pick(self, *others: _Region) -> _Region:
        free = [r for r in self.regions if r not in others]
        return free[self.below(len(free))]

    def _destination(
        self, region: _Region, num_channels: int, num_rows: int, num_words: int,
        like: int | None = None,
    ) -> dict[str, int] | None:
        """Fields of a layout inside ``region`` that holds so much without writing twice.

        like: log2 of stripes that a compiler would keep: each owns the rows that it computes.
        """
        log2 = self.below(self.max_stripes_log2 + 1) if like is None else like
        stripes = 1 << log2
        circular = self.flag()
        out_rows = self.between(1, max(1, -(-num_rows // stripes)) + 1)
        halo_top = self.below(3)
        out_row, out_height = self.between(-2, 2), self.below(5)
        if circular:
            out_height = num_rows + self.below(3)
            out_row = self.below(out_height - num_rows + 1)
            out_rows, halo_top = min(out_rows, out_height), min(halo_top, out_height)
        if like is not None:
            out_rows, halo_top, out_row = num_rows // stripes, self.below(2), 0
            out_height = num_rows if circular else out_height
        below = self.below(3) if like is None else self.below(2)
        local_rows = min(out_rows + halo_top + below, 8)
        split, phase_step = self.flag(0.4), self.below(9)
        if split:
            run, row_step, phase_step = self._split_steps(num_words)
            channel_step = local_rows * row_step + 2 * self.below(2)
        else:
            run, row_step = num_words, num_words + self.below(3)
            channel_step = local_rows * row_step + self.below(3)
        extent = (num_channels - 1) * channel_step + (local_rows - 1) * row_step + run
        if extent > region.num_words:
            return None
        if log2 != region.stripes_log2 or self.flag(0.3):
            self._fill(region, log2)
        return dict(
            circular_rows=circular, out_stripes_log2=log2,
            out_base=region.base + self.below(region.num_words - extent + 1),
            out_channel_step=channel_step, out_row_step=row_step, out_rows=out_rows,
            out_halo_top=halo_top, out_local_rows=local_rows, out_row=out_row,
            out_height=out_height, out_split=split, out_phase_step=phase_step,
        )

    def _split_steps(self, num_words: int) -> tuple[int, int, int]:
        """Words that a split row reaches over, its row step, and from even to odd bytes."""
        each = -(-num_words // 2)
        phase_step = each + self.below(3)
        phase_step += 1 - phase_step % 2
        run = phase_step + each
        row_step = run + self.below(3)
        return run, row_step + row_step % 2, phase_step

    def _load(self, segment: Segment = Segment.INPUT, available: int | None = None) -> None:
        available = self.input_words if available is None else available
        region = self._pick()
        channels, rows, words = self.between(1, 3), self.between(1, 6), self.between(1, 3)
        row_step = words + self.below(2)
        channel_step = self.below(rows * row_step + 2)
        extent = (channels - 1) * channel_step + (rows - 1) * row_step + words
        if extent > available:
            channels, rows, words, extent = 1, 1, 1, 1
        destination = self._destination(region, channels, rows, words)
        if destination is None:
            return
        self.builder.add(
            Opcode.LOAD, segment=segment, last_lanes=self.between(1, 8), fill=self.below(256),
            num_channels=channels, num_rows=rows, num_words=words,
            dram_addr=self.below(available - extent + 1), dram_channel_step=channel_step,
            dram_row_step=row_step, **destination,
        )

    def _store(self, region: _Region, segment: Segment) -> None:
        """Store a region; OUTPUT: as much of all stripes as rows of some length hold."""
        words = self.between(1, min(8, region.num_words))
        channels = self.between(1, 3) if region.num_words >= 3 * 2 * words else 1
        channel_step = region.num_words // channels
        halo = self.below(2) if channel_step >= 2 * words else 0
        src_rows = max(1, min(channel_step // words - halo, 64))
        stripes = 1 << region.stripes_log2
        num_rows = stripes * src_rows - self.below(src_rows)
        is_output = segment is Segment.OUTPUT
        self.builder.add(
            Opcode.STORE, stripes_log2=region.stripes_log2, segment=segment,
            num_channels=channels, num_rows=num_rows, num_words=words, src_base=region.base,
            src_row_step=words, src_channel_step=channel_step, src_rows=src_rows,
            src_halo_top=halo, dram_addr=self.output_words if is_output else self.scratch_words,
            dram_channel_step=num_rows * words, dram_row_step=words,
        )
        if is_output:
            self.output_words += channels * num_rows * words
        else:
            self.scratch_words += channels * num_rows * words

    def _store_and_reload(self) -> None:
        self._store(self._pick(), Segment.SCRATCH)
        self._load(Segment.SCRATCH, self.scratch_words)

    def _table(self, entries: np.ndarray) -> None:
        self.builder.add(Opcode.TABLE, stream=entries)

    def _move(self) -> None:
        source = self._pick()
        target = self._pick(source)
        if target.stripes_log2 != source.stripes_log2:
            self._fill(target, source.stripes_log2)
        count = self.between(1, min(12, self.target.table_entries))
        counts = dict(num_channels=self.between(1, 3), num_rows=self.between(1, 3),
                      num_words=self.between(1, 3))
        read = self._steps(counts, source.num_bytes // 2, "src")
        write = self._steps(counts, target.num_words // 2, "out")
        read_far, write_far = read.pop("far"), write.pop("far")
        room = source.num_bytes - isa.WORD_BYTES - read_far
        low = self.below(room + 1)
        low_word = self.below(target.num_words - write_far)
        last = self.rng.random(count) < 0.4
        last[-1] = True
        self._table(table_entries(
            offset=self.rng.integers(-low, room - low + 1, count),
            lane_mask=self.rng.choice([0xFF, 0x0F, 0xF0, 0x55, 1, 0, self.below(256)], count),
            is_signed=self.rng.integers(0, 2, count), last=last,
            out_offset=self.rng.integers(-low_word, target.num_words - write_far - low_word, count),
        ))
        self.builder.add(
            Opcode.MOVE, fill=self.below(256), stripes_log2=source.stripes_log2,
            table_entries=count, src_base=source.base * isa.WORD_BYTES + low,
            out_base=target.base + low_word, **counts, **read, **write,
        )

    def _steps(self, counts: dict[str, int], limit: int, side: str) -> dict[str, int]:
        """Random steps whose farthest address stays below ``limit``; ``far`` is that address."""
        steps, far = {}, 0
        for name in ("channel", "row", "word"):
            count = f"num_{name}s"
            longest = (limit // 3) // max(1, counts[count] - 1)
            steps[f"{side}_{name}_step"] = self.below(longest + 1)
            far += steps[f"{side}_{name}_step"] * (counts[count] - 1)
        return {**steps, "far": far}

    def _taps(self) -> None:
        """One to three TAPS: passes over one accumulator, or a single instruction."""
        source = self._pick()
        log2 = source.stripes_log2
        stripes = 1 << log2
        copies = self.target.slices // stripes
        channels = self.between(1, min(2 * copies + 1, 12))
        rows, words = self.between(1, 3), self.between(1, 3)
        tiles = -(-channels // copies) * rows * words
        passes = self.between(1, 3) if tiles <= self.target.acc_tiles else 1
        region = self._pick(source)
        like = log2 if self.flag() else None
        destination = self._destination(
            region, channels + self.below(2), rows * stripes, words, like)
        if destination is None:
            return
        acc_base = self.below(max(0, self.target.acc_tiles - tiles) + 1)
        for number in range(passes):
            self._taps_pass(
                source, destination, channels, rows, words,
                acc_init=int(number > 0), acc_keep=int(number < passes - 1), acc_base=acc_base,
            )

    def _taps_pass(self, source, destination, channels, rows, words, **acc: int) -> None:
        encoding, shared = self.flag(), self.flag(0.3)
        entries = self.between(isa.MIN_TABLE_ENTRIES, self.target.table_entries)
        lists = self._lists(channels, encoding, shared, entries)
        room = source.num_bytes - isa.WORD_BYTES
        row_step, word_step = self.below(room // 4 // rows + 1), self.below(room // 4 // words + 1)
        room -= (rows - 1) * row_step + (words - 1) * word_step
        groups = lists["last_position"] // entries
        step = self.below(room // 2 // max(1, groups) + 1)
        offset_room = room - step * groups
        group_step = step if self.flag() else -step
        low = self.below(offset_room + 1)
        spread = self.rng.integers(-low, offset_room - low + 1, entries)
        origin = source.base * isa.WORD_BYTES + low + (step * groups if group_step < 0 else 0)
        signed = self.rng.integers(0, 2, entries) if self.flag() else self.flag()
        masks = self.rng.integers(0, 256, entries) if self.flag(0.3) else 0xFF
        last, out = self.rng.integers(0, 2, entries), self.rng.integers(-9, 9, entries)  # unused
        self._table(table_entries(
            offset=spread, is_signed=signed, lane_mask=masks, last=last, out_offset=out))
        stripes = 1 << source.stripes_log2
        whole = self.flag()
        first = 0 if whole else self.below(2)
        row_limit = rows * stripes if whole else self.between(first, rows * stripes + 1)
        most = drain_log2(
            dict(tile_rows=rows, stripes_log2=source.stripes_log2, row_first=first,
                 row_limit=row_limit, **acc, **destination), self.target)
        alone = not acc["acc_init"] and not acc["acc_keep"]
        func = self.below(3) if alone else self.flag(0.3)
        self.builder.add(
            Opcode.TAPS, self._stream(lists, channels, origin, shared, func),
            drain_log2=most if self.flag() else self.below(most + 1),
            func=func, curve=self._curve(), list_shared=shared, encoding=encoding,
            stripes_log2=source.stripes_log2, ib=self.between(12, 24),
            last_lanes=self.between(1, 8), fill=self.below(256), table_entries=entries,
            group_step=group_step, num_channels=channels, tile_rows=rows, tile_words=words,
            src_row_step=row_step, src_word_step=word_step, row_first=first,
            row_limit=row_limit, **acc, **self._clamp(),
            **destination,
        )

    def _clamp(self) -> dict[str, int]:
        lo, hi = ((-128, 127), (0, 255), (-7, 9), (0, 60))[self.below(4)]
        return dict(clamp_lo=lo, clamp_hi=hi)

    def _lists(self, channels: int, encoding: int, shared: int, entries: int) -> dict:
        """Random lists; a shared one is a single list."""
        num_lists = 1 if shared else channels
        capacity = self.target.list_words * codes_per_word(encoding)
        weights, positions, starts = [], [], [0]
        for _ in range(num_lists):
            reach = self.between(1, min(capacity, self.rng.choice([8, 40, 3 * entries])))
            count = self.below(reach + 1)
            place = np.sort(self.rng.choice(reach, count, replace=False))
            kind = self.below(3)
            value = self.rng.integers(-127, 128, count)
            if kind == 0:
                value = np.where(value < 0, -127, 127)  # the extremes
            positions.append(place)
            weights.append(value)
            starts.append(starts[-1] + count)
        words, word_starts, num_codes = encode_lists(
            np.concatenate(weights), np.concatenate(positions), starts, encoding
        )
        return dict(words=words, word_starts=word_starts, num_codes=num_codes,
                    last_position=max([0, *(int(p[-1]) for p in positions if p.size)]))

    def _curve(self) -> int:
        """The field of a TAPS; loads a curve before it now and then."""
        if self.flag(0.2):
            self.builder.add(
                Opcode.CURVE, self.rng.integers(0, 1 << 64, isa.CURVE_WORDS, dtype=np.uint64)
            )
            self.has_curve = True
        return self.flag() if self.has_curve else 0

    def _stream(self, lists, channels, origin, shared, func) -> np.ndarray:
        sizes = np.diff(lists["word_starts"])
        codes = lists["num_codes"]
        if shared:
            codes = np.repeat(codes, channels)
            sizes = np.concatenate([sizes, np.zeros(channels - 1, np.int64)])
        # bits that are shifted out: few, or so many that also the largest values come through
        total = self.rng.integers(2, 18 if self.flag() else 32, channels)
        pre_shift = np.minimum(self.rng.integers(0, self.below(12) + 1, channels), total - 1)
        bias = self.rng.integers(-1, 2, channels) * self.rng.integers(
            0, 1 << self.between(1, 24), channels)
        records = channel_records(
            bias=np.zeros_like(bias) if func == isa.Func.PRODUCT else bias,
            src_base=origin, num_codes=codes, list_words=sizes, pre_shift=pre_shift,
            shift=total - pre_shift,
            multiplier=self.rng.choice([1, 3, self.between(1, 32767)], channels),
            out_channel=self.rng.permutation(channels),
        )
        return join_stream(records, lists["words"], lists["word_starts"])


if __name__ == "__main__":
    _seed = int(sys.argv[1])
    _words, *_ = random_program(_seed, sys.argv[2] if len(sys.argv) > 2 else "tiny")
    print(f"; random_program({_seed})")
    print(disassemble(_words), end="")
