"""Which columns of a Gather come from where: runs of equal steps, and the taps of every word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rasna.graph import Gather
from rasna.isa import WORD_BYTES

from .geometry import ceil_div

LANES = WORD_BYTES
MAX_STEP = (1 << 16) - 1  # of LOAD in words, of TAPS in bytes


@dataclass(frozen=True)
class Run:
    """``count`` items from ``at`` on that lie at source, source + step, … of an input."""

    at: int
    count: int
    number: int
    source: int
    step: int


def find_runs(numbers: np.ndarray, sizes: list[int], largest: int) -> Iterator[Run]:
    """Runs of equal steps, 0 to ``largest``, within one input each; what is -1 is left out.

    sizes: of the inputs that lie one behind the other.
    """
    starts = np.cumsum([0, *sizes])
    inputs = np.searchsorted(starts, numbers, side="right") - 1
    at = 0
    while at < len(numbers):
        number, end, step = int(inputs[at]), at + 1, 0
        if numbers[at] < 0:
            at += 1
            continue
        if end < len(numbers) and inputs[end] == number:
            step = int(numbers[end] - numbers[at])
            if 0 <= step <= largest:
                while (
                    end < len(numbers) and inputs[end] == number
                    and numbers[end] - numbers[end - 1] == step
                ):
                    end += 1
        source = int(numbers[at] - starts[number])
        yield Run(at, end - at, number, source, step if end - at > 1 else 0)
        at = end


class Columns:
    """Which words of every input are loaded, and the taps of every word of the result.

    ``inputs``: numbers of the inputs that columns come from; with axis 1 all share the words of
    input 0. ``words``: of a loaded row, a byte for the fill included where taps read it.
    """

    def __init__(self, op: Gather, widths: list[int]) -> None:
        self.columns, self.fill = np.asarray(op.columns, np.int64), op.fill
        self.starts = np.cumsum([0, *(widths if op.axis == 2 else widths[:1])])
        numbers = np.searchsorted(self.starts, self.columns, side="right") - 1
        self.first, self.count = {}, {}
        for k in np.unique(numbers[self.columns >= 0]):
            mine = self.columns[numbers == k] - self.starts[k]
            self.first[int(k)] = int(mine.min()) // LANES
            self.count[int(k)] = int(mine.max()) // LANES + 1 - self.first[int(k)]
        self.inputs = list(self.first) or [0]
        if not self.first:
            self.first[0], self.count[0] = 0, 1
        self.data_words = max(self.count.values())
        self.has_blank = bool(self.fill and (self.columns < 0).any())
        self.words = self.data_words + int(self.has_blank)
        self.numbers = numbers

    @property
    def stay(self) -> bool:
        """Whether every column stays where it is, in one input."""
        return self.inputs == [0] and np.array_equal(self.columns, np.arange(self.starts[1]))

    def vectors(self, word: int, bases: dict[int, int]) -> tuple[tuple[int, int], ...]:
        """(byte offset, lane mask) of the vectors of a word. bases: byte of every input's row."""
        masks: dict[int, int] = {}
        lanes = self.columns[word * LANES : (word + 1) * LANES]
        for lane, column in enumerate(lanes):
            if column >= 0:
                k = int(self.numbers[word * LANES + lane])
                offset = bases[k] + int(column - self.starts[k]) - self.first[k] * LANES
            elif self.has_blank:
                offset = bases[self.inputs[0]] + self.data_words * LANES
            else:
                continue
            masks[offset - lane] = masks.get(offset - lane, 0) | 1 << lane
        return tuple(sorted(masks.items()))

    def runs(self, bases: dict[int, int]) -> Iterator[tuple[int, int, int, tuple]]:
        """(word, number of words, bytes from one to the next, vectors of the first)."""
        total = ceil_div(len(self.columns), LANES)
        words = [self.vectors(w, bases) for w in range(total)]
        at = 0
        while at < total:
            end, step = at + 1, self._step(words, at)
            while step is not None and end < total and self._step(words, end - 1) == step:
                end += 1
            yield at, end - at, (step or 0) if end - at > 1 else 0, words[at]
            at = end

    @staticmethod
    def _step(words: list, at: int) -> int | None:
        """By how much all vectors of the next word lie further; None if they do not."""
        if at + 1 == len(words) or len(words[at]) != len(words[at + 1]):
            return None
        pairs = list(zip(words[at], words[at + 1], strict=True))
        steps = {b[0] - a[0] for a, b in pairs} or {0}
        same = all(a[1] == b[1] for a, b in pairs)
        step = steps.pop()
        return step if same and not steps and 0 <= step <= MAX_STEP else None
