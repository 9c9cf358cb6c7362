"""Allocation of map memory (words of every slice) and of host memory segments."""

from __future__ import annotations

from contextlib import contextmanager

from rasna.targets import TARGETS, Target


def more_room(target: Target, num_words: int, what: str = "maps", num_tiles: int = 0) -> str:
    """The remedy where so many words of map memory are needed: which target has them.

    num_tiles: accumulator tiles that are needed too; 0 where they do not matter.
    """
    for other in TARGETS.values():
        larger = other.map_words > target.map_words or other.acc_tiles > target.acc_tiles
        if larger and other.map_words > num_words and other.acc_tiles >= num_tiles:
            tiles = f" and {other.acc_tiles}" if num_tiles else ""
            room = f"{other.map_words - 1}{tiles}"
            return f"use narrower {what}, or target={other.name!r}, which has {room}"
    return f"use narrower {what}: no target has as many"


class OutOfMap(Exception):
    """The map memory is too small for a request; carries the numbers for the message."""

    def __init__(self, needed_words: int, free_words: int) -> None:
        super().__init__(f"{needed_words} words are needed, {free_words} are free")
        self.needed_words = needed_words
        self.free_words = free_words


class FirstFit:
    """First-fit allocation of [0, size); ``size`` None means unbounded."""

    def __init__(self, size: int | None = None) -> None:
        self.size = size
        self.used: list[tuple[int, int]] = []  # sorted (first, limit)
        self.peak = 0

    def allocate(self, num_words: int, high: bool = False) -> int:
        """First word of a new block: the lowest that fits, or with ``high`` the highest."""
        if high:
            return self._take(num_words, self._highest(num_words))
        at = 0
        for first, limit in self.used:
            if first - at >= num_words:
                break
            at = limit
        return self._take(num_words, at)

    def _highest(self, num_words: int) -> int:
        limit = self.size
        for first, end in reversed(self.used):
            if limit - end >= num_words:
                break
            limit = first
        return limit - num_words

    def _take(self, num_words: int, at: int) -> int:
        if at < 0 or (self.size is not None and at + num_words > self.size):
            raise OutOfMap(num_words, self.largest_gap())
        self.used.append((at, at + num_words))
        self.used.sort()
        self.peak = max(self.peak, at + num_words)
        return at

    def release(self, first: int) -> None:
        index = next(i for i, (start, _) in enumerate(self.used) if start == first)
        del self.used[index]

    def largest_gap(self) -> int:
        """Words of the largest request that would succeed now (bounded memories only)."""
        edges = [0, *(e for pair in self.used for e in pair), self.size]
        return max(b - a for a, b in zip(edges[::2], edges[1::2], strict=True))

    @contextmanager
    def block(self, num_words: int, high: bool = False):
        """A block for the duration of a with statement; gives its first word."""
        first = self.allocate(num_words, high)
        try:
            yield first
        finally:
            self.release(first)
