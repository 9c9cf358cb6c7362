"""What the golden machine remembers, with poison: nothing may be read before it is written.

Every byte of the map memory knows whether it was written and with how many stripes;
accumulators, table entries and words of OUTPUT and SCRATCH know whether they were written.
"""

from __future__ import annotations

import numpy as np

from .. import isa
from ..encoding import unpack_arrays
from ..errors import GoldenError
from ..targets import Target

# Why a value must not be used; stored beside values, 0 is fine.
OK, UNWRITTEN, WRONG_STRIPES, WRITTEN_HERE, OVERFLOW, ACC_UNWRITTEN = range(6)
STATUS_TEXT = {
    UNWRITTEN: "a byte that was never written",
    WRONG_STRIPES: "a byte that was written with another number of stripes",
    WRITTEN_HERE: "a byte of a word that the same instruction writes",
    OVERFLOW: "a sum outside int32",
    ACC_UNWRITTEN: "an accumulator that was never written",
}


class State:
    """Memories of one machine.

    map_bytes: uint8 (L, map_bytes); map_words: the same memory as uint64 (L, map_words).
    written: bool (L, map_bytes); stripes: int8 (L, map_words), log2 or -1.
    acc: int64 (L, acc_tiles, 8); acc_status: uint8, same shape.
    table: int64 columns by name; table_written: bool (table_entries,).
    curve: uint8 (256,), or None before the first CURVE.
    segments: uint64 arrays by isa.Segment; segment_written: bool arrays.
    """

    def __init__(
        self,
        program: np.ndarray,
        inputs: np.ndarray,
        output_words: int,
        scratch_words: int,
        target: Target,
    ) -> None:
        self.target = target
        slices = target.slices
        self.map_words = np.full((slices, target.map_words), 0xA5A5A5A5A5A5A5A5, "<u8")
        self.map_bytes = self.map_words.view(np.uint8)
        self.written = np.zeros(self.map_bytes.shape, bool)
        self.stripes = np.full(self.map_words.shape, -1, np.int8)
        self.acc = np.zeros((slices, target.acc_tiles, isa.WORD_BYTES), np.int64)
        self.acc_status = np.full(self.acc.shape, ACC_UNWRITTEN, np.uint8)
        empty = np.zeros((target.table_entries, 1), np.uint64)
        self.table = unpack_arrays(isa.TABLE_ENTRY, empty)
        self.table_written = np.zeros(target.table_entries, bool)
        self.curve: np.ndarray | None = None
        self.segments = {
            isa.Segment.PROGRAM: program,
            isa.Segment.INPUT: inputs,
            isa.Segment.OUTPUT: np.zeros(output_words, np.uint64),
            isa.Segment.SCRATCH: np.zeros(scratch_words, np.uint64),
        }
        self.segment_written = {
            key: np.full(words.size, key in (isa.Segment.PROGRAM, isa.Segment.INPUT))
            for key, words in self.segments.items()
        }
        self.number = 0  # of the instruction being executed
        self.opcode_name = ""

    def fail(
        self, field: str | None, text: str, code: isa.Error | None = None
    ) -> GoldenError:
        """The error of the current instruction; raise what this returns."""
        where = f"instruction {self.number} ({self.opcode_name})"
        if field:
            where += f", {field}"
        return GoldenError(f"{where}: {text}", self.number, field, code)

    def check_field(self, fields: dict[str, int], name: str, lo: int, hi: int) -> None:
        """Refuse a field outside lo … hi."""
        if not lo <= fields[name] <= hi:
            raise self.fail(
                name, f"must be {lo} to {hi}, is {fields[name]}", isa.Error.BAD_FIELD
            )

    def check_counts(self, fields: dict[str, int], *names: str) -> None:
        """Refuse counts of 0."""
        for name in names:
            if fields[name] < 1:
                raise self.fail(name, "must be at least 1, is 0", isa.Error.BAD_FIELD)

    def num_stripes(self, fields: dict[str, int], name: str = "stripes_log2") -> int:
        """1 << field, which must not be more than the slices."""
        self.check_field(fields, name, 0, self.target.slices.bit_length() - 1)
        return 1 << fields[name]

    def copies_of(self, stripe: int, num_stripes: int) -> slice:
        """The slices that hold copies of a stripe: neighbours."""
        copies = self.target.slices // num_stripes
        return slice(stripe * copies, (stripe + 1) * copies)

    def check_range(
        self, name: str, index: np.ndarray, limit: int, code: isa.Error, what: str
    ) -> None:
        """Refuse indices outside 0 … limit-1; ``what`` names them in the message."""
        bad = (index < 0) | (index >= limit)
        if bad.any():
            worst = np.asarray(index)[bad].ravel()[0]
            raise self.fail(name, f"{what} {worst} lies outside 0 to {limit - 1}", code)

    def check_distinct(
        self, name: str, index: np.ndarray, what: str, per_name: int = 1
    ) -> None:
        """Refuse an instruction that writes the same place twice.

        per_name: places that the message calls by one number.
        """
        ordered = np.sort(index, axis=None)
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if twice.size:
            place = ordered[twice[0]] // per_name
            raise self.fail(name, f"{what} {place} is written twice")

    def destinations(
        self, fields: dict[str, int], channel: np.ndarray, row: np.ndarray, word: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Where ``write_word`` puts N words: for every stripe (indices into N, halves).

        channel, row, word: int64 (N,); row is the destination row, out_row included.
        halves: int64 (n, 2), numbers of half words of 4 bytes, for both parts of a word: its
        halves, or with ``out_split`` its even and its odd bytes.
        """
        num_stripes = self.num_stripes(fields, "out_stripes_log2")
        if fields["circular_rows"]:
            self._check_circular(fields, row)
        self.check_split(fields)
        split = fields["out_split"]
        found = []
        for stripe in range(num_stripes):
            local = row - stripe * fields["out_rows"] + fields["out_halo_top"]
            if fields["circular_rows"]:
                local = local % fields["out_height"]
            chosen = np.flatnonzero((local >= 0) & (local < fields["out_local_rows"]))
            address = (
                fields["out_base"]
                + channel[chosen] * fields["out_channel_step"]
                + local[chosen] * fields["out_row_step"]
                + (word[chosen] >> split)
            )
            first = 2 * address + (word[chosen] & split)
            second = first + (2 * fields["out_phase_step"] if split else 1)
            halves = np.stack([first, second], axis=1)
            self.check_range(
                "out_base", halves >> 1, self.target.map_words, isa.Error.MAP_RANGE, "map word"
            )
            self.check_distinct("out_base", halves, "map word", per_name=2)
            found.append((chosen, halves))
        return found

    def check_split(self, fields: dict[str, int]) -> None:
        """Refuse steps with which the halves of a word would not lie in different banks."""
        if not fields["out_split"]:
            return
        for name, odd in (
            ("out_channel_step", 0), ("out_row_step", 0), ("out_phase_step", 1)
        ):
            if fields[name] % 2 != odd:
                raise self.fail(
                    name,
                    f"must be {'odd' if odd else 'even'} with out_split, is {fields[name]}",
                    isa.Error.BAD_FIELD,
                )

    def _check_circular(self, fields: dict[str, int], row: np.ndarray) -> None:
        """Refuse what one comparison could not bring back into the map."""
        self.check_counts(fields, "out_height")
        height = fields["out_height"]
        self.check_field(fields, "out_rows", 0, height)
        self.check_field(fields, "out_halo_top", 0, height)
        outside = row[(row < 0) | (row >= height)]
        if outside.size:
            raise self.fail(
                "out_row",
                f"row {outside[0]} is written, circular rows are 0 to {height - 1}",
                isa.Error.BAD_FIELD,
            )

    def write_words(
        self,
        places: list[tuple[np.ndarray, np.ndarray]],
        words: np.ndarray,
        fields: dict[str, int],
    ) -> None:
        """Write uint64 words (N,) to the places that :meth:`destinations` found.

        A half whose other half was written with another number of stripes leaves that unwritten.
        """
        stripes_log2, num_stripes = fields["out_stripes_log2"], len(places)
        parts = words.astype("<u8").view("<u4").reshape(-1, 2)
        if fields["out_split"]:
            lanes = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
            lanes = lanes.reshape(-1, isa.WORD_BYTES // 2, 2).transpose(0, 2, 1)
            parts = np.ascontiguousarray(lanes).view("<u4")[..., 0]
        for stripe, (chosen, halves) in enumerate(places):
            owners, address = self.copies_of(stripe, num_stripes), halves >> 1
            kept = self.stripes[owners, address] == stripes_log2
            self.written.view("<u8")[owners, address] *= kept
            self.stripes[owners, address] = stripes_log2
            self.map_words.view("<u4")[owners, halves] = parts[chosen]
            self.written.view("<u4")[owners, halves] = 0x01010101

    def read_status(self, stripes_log2: int) -> np.ndarray:
        """uint8 (L, map_bytes): OK, UNWRITTEN or WRONG_STRIPES for a reader of such stripes."""
        wrong = np.where(self.stripes == stripes_log2, OK, WRONG_STRIPES).astype(np.uint8)
        return np.where(self.written, np.repeat(wrong, isa.WORD_BYTES, axis=1), UNWRITTEN)

    def segment_indices(self, fields: dict[str, int]) -> np.ndarray:
        """Word addresses (channels, rows, words) of a LOAD or STORE, checked."""
        channel = np.arange(fields["num_channels"])[:, None, None]
        row = np.arange(fields["num_rows"])[:, None]
        word = np.arange(fields["num_words"])
        index = (
            fields["dram_addr"]
            + channel * fields["dram_channel_step"]
            + row * fields["dram_row_step"]
            + word
        )
        segment = isa.Segment(fields["segment"])
        self.check_range(
            "dram_addr", index, self.segments[segment].size, isa.Error.DRAM_RANGE,
            f"word of {segment.name}",
        )
        return index

    def stream(self, address: int, num_words: int, field: str) -> np.ndarray:
        """Words of the PROGRAM segment that follow an instruction; checked."""
        program = self.segments[isa.Segment.PROGRAM]
        if address + num_words > program.size:
            raise self.fail(
                field,
                f"words {address} to {address + num_words - 1} lie outside the program of "
                f"{program.size} words",
                isa.Error.STREAM_RANGE,
            )
        return program[address : address + num_words]
