"""Named targets: frozen, validated configurations of the machine and their hash.

A Program depends on the ISA version, the number of slices and the memory sizes: the
configuration hash covers just these, never the clock, the bus or the board.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from . import isa


def _is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


@dataclass(frozen=True)
class Target:
    """Sizes of one machine.

    slices: number of slices L, a power of two; every slice has one tap per cycle.
    map_words: 8-byte words of map memory in every slice.
    list_words: 64-bit words in each half of a slice's list memory.
    table_entries: entries of the offset table.
    acc_tiles: tiles of 8 accumulators that every slice can keep.
    drain_words: words D that are requantised in a cycle, a power of two up to 8.
    clock_mhz, bus_bytes, part, boards: for estimates and the documentation only.
    """

    name: str
    slices: int
    map_words: int
    list_words: int
    table_entries: int
    acc_tiles: int
    drain_words: int
    clock_mhz: int
    bus_bytes: int
    part: str
    boards: tuple[str, ...]

    lanes: int = isa.WORD_BYTES

    def __post_init__(self) -> None:
        for field in ("slices", "map_words", "list_words", "table_entries", "acc_tiles",
                      "drain_words"):
            value = getattr(self, field)
            if not _is_power_of_two(value):
                raise ValueError(f"target {self.name}: {field} must be a power of two, not {value}")
        if self.drain_words > min(8, self.slices):
            raise ValueError(
                f"target {self.name}: drain_words is at most 8 and the slices, "
                f"not {self.drain_words}"
            )
        if self.slices > 128:
            raise ValueError(f"target {self.name}: at most 128 slices, not {self.slices}")
        if self.map_words > 4096:
            raise ValueError(f"target {self.name}: map_words is at most 4096, not {self.map_words}")
        if self.table_entries < isa.MIN_TABLE_ENTRIES:
            raise ValueError(f"target {self.name}: table_entries is at least 16")

    @property
    def map_bytes(self) -> int:
        return self.map_words * isa.WORD_BYTES

    @property
    def macs_per_cycle(self) -> int:
        return self.slices * self.lanes

    @property
    def config_hash(self) -> str:
        """16 hexadecimal digits over all that a Program depends on."""
        text = (
            f"rasna isa={isa.ISA_VERSION} slices={self.slices} lanes={self.lanes} "
            f"map_words={self.map_words} list_words={self.list_words} "
            f"table_entries={self.table_entries} acc_tiles={self.acc_tiles} "
            f"drain_words={self.drain_words}"
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("tiny", 4, 128, 16, 32, 16, 1, 100, 8, "", ()),
        Target("small", 8, 128, 16, 32, 16, 4, 100, 8, "", ()),
        Target(
            "pynq-z2", 32, 1024, 256, 128, 64, 2, 150, 8, "xc7z020clg400-1",
            ("pynq-z1", "pynq-z2", "ultra96v2"),
        ),
        Target(
            "kv260", 64, 1024, 2048, 128, 16, 4, 200, 16, "xck26-sfvc784-2LV-c",
            ("kv260", "zcu104"),
        ),
    )
}

DEFAULT_TARGET = "pynq-z2"


def get_target(name: str | Target) -> Target:
    """The target of that name. Raises ValueError that lists the known names."""
    if isinstance(name, Target):
        return name
    if name not in TARGETS:
        raise ValueError(f"target {name!r} is unknown; the targets are {', '.join(TARGETS)}")
    return TARGETS[name]
