"""Small programs that the tests of the objects share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rasna import encoding, isa
from rasna.isa import Opcode


@dataclass
class Assembly:
    """Instructions whose streams are placed behind END."""

    instructions: list[tuple[Opcode, dict]] = field(default_factory=list)
    streams: list[np.ndarray] = field(default_factory=list)

    def add(self, opcode: Opcode, stream: np.ndarray | None = None, **values: int) -> Assembly:
        self.instructions.append((opcode, dict(values)))
        self.streams.append(np.zeros(0, np.uint64) if stream is None else stream)
        return self

    def words(self) -> np.ndarray:
        """The program, uint64; END is added."""
        at = (len(self.instructions) + 1) * isa.INSTRUCTION_WORDS
        heads = []
        for (opcode, values), stream in zip(self.instructions, self.streams, strict=True):
            if isa.has_stream(opcode):
                values = {"stream_addr": at, **values}
            if opcode is Opcode.TAPS:
                values = {"stream_words": len(stream), **values}
            heads.append(encoding.instruction(opcode, **values))
            at += len(stream)
        heads.append(encoding.instruction(Opcode.END))
        return np.concatenate([*heads, *self.streams])


def copy_program(num_words: int = 4) -> Assembly:
    """INPUT to OUTPUT, `num_words` words, through the map memory."""
    return (
        Assembly()
        .add(Opcode.LOAD, segment=1, last_lanes=8, num_channels=1, num_rows=1,
             num_words=num_words, out_rows=1, out_local_rows=1)
        .add(Opcode.STORE, segment=2, num_channels=1, num_rows=1, num_words=num_words,
             src_rows=1)
    )


# A TAPS that copies two words per row by one tap of weight 1; fields are replaced by tests.
TAPS = dict(
    func=0, encoding=0, ib=17, last_lanes=8, table_entries=16, num_channels=1, tile_rows=1,
    tile_words=2, src_word_step=8, row_limit=1, out_base=8, out_rows=1, out_local_rows=1,
    clamp_lo=-128, clamp_hi=127,
)
RECORD = dict(bias=0, src_base=0, num_codes=1, multiplier=2, shift=1, pre_shift=0,
              out_channel=0, list_words=1)


def taps_program(taps: dict | None = None, record: dict | None = None,
                 entries: dict | None = None, stream: np.ndarray | None = None) -> np.ndarray:
    """LOAD 4 words, TABLE of 16 entries, the TAPS above, STORE its 2 words."""
    if stream is None:
        words = np.array([1], np.uint64)
        stream = np.concatenate([encoding.channel_record(**{**RECORD, **(record or {})}), words])
    table = encoding.table_entries(**{"offset": np.zeros(16, int), "is_signed": 1,
                                      **(entries or {})})
    return (
        Assembly()
        .add(Opcode.LOAD, segment=1, last_lanes=8, num_channels=1, num_rows=1, num_words=4,
             out_rows=1, out_local_rows=1)
        .add(Opcode.TABLE, table, num_entries=len(table))
        .add(Opcode.TAPS, stream, **{**TAPS, **(taps or {})})
        .add(Opcode.STORE, segment=2, num_channels=1, num_rows=1, num_words=2, src_base=8,
             src_rows=1)
        .words()
    )
