"""How a map lies in the map memory: row slots, stripes, halos.

A *row slot* is the run of words that one local row of one channel takes. It says where
pixel x of the row lies, also for the halo pixels left (x < 0) and right (x >= width).
A *geometry* adds the stripes: which rows a slice stores. Both are independent of the
base address and of the number of channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rasna.isa import WORD_BYTES


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def row_words(width: int) -> int:
    """Words of a row of ``width`` pixels without any halo."""
    return ceil_div(width, WORD_BYTES)


@dataclass(frozen=True)
class RowSlot:
    """Bytes of a row slot: pixel x = stride*j + q lies at byte ``origins[q] + j``.

    num_words: words from one slot to the next. lead_words: words that must exist before
    the first slot of a region, since negative positions reach back (shared zero gaps).
    split: LOAD and TAPS write both phases of a row themselves (``out_split``).
    """

    width: int
    num_words: int
    stride: int
    origins: tuple[int, ...]
    lead_words: int
    left: int
    right: int
    circular: bool
    split: bool = False

    def byte(self, x: int) -> int:
        """Byte position of pixel x, relative to the start of the slot."""
        return self.origins[x % self.stride] + x // self.stride

    @property
    def first_word(self) -> int:
        """Word of pixel 0; only meaningful for rows that are written as they are."""
        return self.origins[0] // WORD_BYTES

    @property
    def data_words(self) -> int:
        return row_words(self.width)

    @property
    def by_move(self) -> bool:
        """Whether MOVE makes it out of plain rows."""
        return self.stride > 1 and not self.split

    @property
    def phase_step(self) -> int:
        """Words from even to odd pixels of a split slot."""
        return (self.origins[1] - self.origins[0]) // WORD_BYTES

    @cached_property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Runs of words (first, count) that hold halo pixels outside the map and no others.

        The last word of a phase is one of them when only its lower half is written.
        """
        if self.circular:
            return ()
        if self.split:
            return runs(sorted({b // WORD_BYTES % self.num_words for b in self._halo_bytes()}))
        gap = self.num_words - self.data_words
        return ((self.data_words, gap),) if gap else ()

    @property
    def gap_words(self) -> int:
        return sum(count for _, count in self.gaps)

    def _halo_bytes(self) -> list[int]:
        """Bytes of a split slot that halo pixels take; those before pixel 0 are negative."""
        found = []
        for q, origin in enumerate(self.origins):
            first, last = phase_reach(self.width, self.left, self.right, 2, q)
            found += range(origin + first, origin)
            found += range(origin + phase_bytes(self.width), origin + last + 1)
        return found


def runs(numbers: list[int]) -> tuple[tuple[int, int], ...]:
    """Consecutive numbers as (first, count)."""
    found: list[tuple[int, int]] = []
    for n in numbers:
        if found and sum(found[-1]) == n:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((n, 1))
    return tuple(found)


def plain_slot(width: int, left: int = 0, right: int = 0, circular: bool = False) -> RowSlot:
    """A slot with consecutive pixels and room for ``left`` and ``right`` halo pixels.

    Zero halos of neighbouring rows share one gap behind the row; circular halos hold
    different pixels, so each slot has its own words on the left.
    """
    if circular and (left or right):
        left_words = ceil_div(left, WORD_BYTES)
        words = left_words + row_words(width + right)
        return RowSlot(width, words, 1, (left_words * WORD_BYTES,), 0, left, right, True)
    words = row_words(width + max(left, right))
    lead = ceil_div(left, WORD_BYTES)
    return RowSlot(width, words, 1, (0,), lead, left, right, False)


def phase_reach(width: int, left: int, right: int, stride: int, q: int) -> tuple[int, int]:
    """The first and last j of the pixels x = stride*j + q of a row with its halo."""
    return ceil_div(-left - q, stride), (width + right - 1 - q) // stride


def phase_bytes(width: int) -> int:
    """Bytes of each phase of a split row: half of whole words."""
    return row_words(width) * WORD_BYTES // 2


def split_slot(width: int, left: int, right: int) -> RowSlot:
    """A slot whose even and odd pixels are written by ``out_split``; zero halos share gaps.

    Rows are an even number of words apart and the phases an odd one, as the machine requires.
    """
    data = phase_bytes(width)
    reach = [phase_reach(width, left, right, 2, q) for q in range(2)]
    odd = ceil_div(max(reach[0][1] + 1, data - min(0, reach[1][0])), WORD_BYTES)
    odd += 1 - odd % 2
    words = odd + ceil_div(max(reach[1][1] + 1, data - min(0, reach[0][0])), WORD_BYTES)
    words += words % 2
    lead = ceil_div(max(0, -reach[0][0]), WORD_BYTES)
    return RowSlot(width, words, 2, (0, odd * WORD_BYTES), lead, left, right, False, True)


def phase_slot(width: int, left: int, right: int, stride: int, circular: bool) -> RowSlot:
    """A slot that MOVE fills with the pixels x = stride*j + q, every phase q in its own words."""
    origins, words = [], 0
    for q in range(stride):
        first, last = phase_reach(width, left, right, stride, q)
        left_words = ceil_div(max(0, -first), WORD_BYTES)
        origins.append((words + left_words) * WORD_BYTES)
        words += left_words + max(0, row_words(last + 1))
    return RowSlot(width, words, stride, tuple(origins), 0, left, right, circular)


@dataclass(frozen=True)
class Geometry:
    """A row slot in stripes.

    stripes: number of stripes S, a power of two. rows: rows that each stripe owns.
    halo_top: rows stored above them. local_rows: rows stored in all. height: rows of the map.
    fill: byte of everything outside the map when the padding is not circular.
    circular_rows: halo rows above and below wrap around instead. used: stripes that somebody
    reads; 0 stands for those that own rows of the map.
    """

    slot: RowSlot
    stripes: int
    rows: int
    halo_top: int
    local_rows: int
    height: int
    fill: int
    circular_rows: bool = False
    used: int = 0

    @property
    def channel_words(self) -> int:
        return self.local_rows * self.slot.num_words

    @property
    def channel_bytes(self) -> int:
        return self.channel_words * WORD_BYTES

    @property
    def row_bytes(self) -> int:
        return self.slot.num_words * WORD_BYTES

    @property
    def stripes_used(self) -> int:
        return self.used or ceil_div(self.height, self.rows)

    @property
    def wraps_by_itself(self) -> bool:
        """Whether the modulo rule of written rows gives every stripe each row once."""
        return self.local_rows <= self.height

    @property
    def stripes_log2(self) -> int:
        return self.stripes.bit_length() - 1

    @cached_property
    def trail_words(self) -> int:
        """Words behind a region that vectors of junk lanes may touch."""
        return 2

    def region_words(self, channels: int) -> int:
        """Words of a region for that many channels, guard words included."""
        return self.slot.lead_words + channels * self.channel_words + self.trail_words


@dataclass(frozen=True)
class Region:
    """A geometry at a place: ``base`` is the word of local row 0 of channel ``first_channel``."""

    geometry: Geometry
    base: int
    first_channel: int
    num_channels: int

    def byte_address(self, channel: int, local_row: int, x: int) -> int:
        g = self.geometry
        word = self.base + (channel - self.first_channel) * g.channel_words
        return (word + local_row * g.slot.num_words) * WORD_BYTES + g.slot.byte(x)
