"""Collects instructions and their streams and lays out the program image.

An instruction is kept as (opcode, fields) until the end, since stream addresses follow
the instructions. Equal streams are stored once; a TABLE or CURVE that would load what is loaded
already is left out.
"""

from __future__ import annotations

import numpy as np

from rasna import isa
from rasna.cycles import instruction_cycles
from rasna.isa import Opcode
from rasna.targets import Target

from .contents import MapContents


class Emitter:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.instructions: list[tuple[Opcode, dict[str, int]]] = []
        self.cycles: list[int] = []
        self._streams: list[np.ndarray] = []
        self._stream_words = 0
        self._stream_at: dict[bytes, int] = {}
        self._table: bytes | None = None
        self._curve: bytes | None = None
        self._written: list[int] = []  # out_offset of the table entries with which MOVE writes
        self.contents = MapContents(target)

    def __len__(self) -> int:
        return len(self.instructions)

    @property
    def stream_bytes(self) -> int:
        return self._stream_words * isa.WORD_BYTES

    def add(
        self,
        opcode: Opcode,
        stream: np.ndarray | None = None,
        out_channels: np.ndarray | None = None,
        **fields: int,
    ) -> None:
        """Append one instruction; ``stream`` (uint64) is placed behind the instructions.

        out_channels: of a TAPS, as its records have them.
        """
        if stream is not None:
            fields["stream_addr"] = self._place(stream)
        self.instructions.append((opcode, fields))
        full = self._full(opcode, fields)
        self.cycles.append(instruction_cycles(opcode, full, self.target, stream))
        self.contents.after(opcode, full, out_channels, self._written)

    def table(self, entries: list[dict[str, int]]) -> None:
        """Load the offset table, unless it holds just these entries already."""
        if len(entries) > self.target.table_entries:
            raise ValueError(
                f"{len(entries)} table entries, target {self.target.name} "
                f"has {self.target.table_entries}"
            )
        words = np.array(
            [isa.pack(isa.TABLE_ENTRY, 1, "table entry", **e)[0] for e in entries], np.uint64
        )
        if words.tobytes() == self._table:
            return
        self._table = words.tobytes()
        self._written = [e.get("out_offset", 0) for e in entries if e.get("last", 0)]
        self.add(Opcode.TABLE, words, num_entries=len(entries))

    def curve(self, values: np.ndarray) -> None:
        """Load the curve, integers (256,), unless it is the one that is loaded already."""
        words = (values & 0xFF).astype(np.uint8).view("<u8").astype(np.uint64)
        if words.tobytes() != self._curve:
            self._curve = words.tobytes()
            self.add(Opcode.CURVE, words)

    def image(self) -> np.ndarray:
        """The program image: instructions, END, streams; uint64."""
        first = (len(self.instructions) + 1) * isa.INSTRUCTION_WORDS
        words: list[int] = []
        for opcode, fields in self.instructions:
            if "stream_addr" in fields:
                fields = {**fields, "stream_addr": fields["stream_addr"] + first}
            words += isa.encode(opcode, **fields)
        words += isa.encode(Opcode.END)
        return np.concatenate([np.array(words, np.uint64), *self._streams])

    def _place(self, stream: np.ndarray) -> int:
        key = stream.tobytes()
        if key not in self._stream_at:
            self._stream_at[key] = self._stream_words
            self._streams.append(stream)
            self._stream_words += len(stream)
        return self._stream_at[key]

    @staticmethod
    def _full(opcode: Opcode, fields: dict[str, int]) -> dict[str, int]:
        names = (f.name for f in isa.INSTRUCTIONS[opcode][1])
        return {name: fields.get(name, 0) for name in names if name != "opcode"}
