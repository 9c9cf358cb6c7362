"""What the map memory is known to hold while a program is emitted: which FILLs are needless.

Between rows of a map lie words that are filled once and only read. Maps of equal shape take turns
in the same places, and what FILL has put there is still there unless something else was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rasna.isa import Opcode, writes_map
from rasna.targets import Target

UNKNOWN = -1


class MapContents:
    """Words that hold eight times the same byte, slice by slice, by the last FILL.

    A FILL counts only for maps of as many stripes as it was made for: simulators need not keep
    the slices that hold copies.
    """

    def __init__(self, target: Target) -> None:
        self.byte = np.full((target.slices, target.map_words), UNKNOWN, np.int16)
        self.stripes_log2 = np.full(target.map_words, UNKNOWN, np.int8)

    def holds(
        self, fill: int, stripes_log2: int, words: np.ndarray, stripes: Sequence[int] | None = None
    ) -> bool:
        """True if the words hold ``fill`` in the slices of these stripes (None: of all)."""
        if (self.stripes_log2[words] != stripes_log2).any():
            return False
        if stripes is None:
            return bool((self.byte[:, words] == fill).all())
        return all(
            bool((self.byte[self._copies_of(j, stripes_log2), words] == fill).all())
            for j in stripes
        )

    def after(
        self,
        opcode: Opcode,
        fields: Mapping[str, int],
        channels: np.ndarray | None = None,
        offsets: Sequence[int] = (),
    ) -> None:
        """Follow one instruction.

        fields: all of them. channels: what ``out_channel`` of the records of a TAPS says; None:
        unknown. offsets: ``out_offset`` of the table entries with which MOVE writes.
        """
        if opcode == Opcode.FILL:
            self._fill(fields)
        elif opcode == Opcode.LOAD:
            channels = np.arange(fields["num_channels"])
            self._rows(fields, channels, fields["num_rows"], fields["num_words"])
        elif opcode == Opcode.TAPS and not fields["acc_keep"]:
            if channels is None:
                self.byte[:] = UNKNOWN
            else:
                self._rows(fields, channels, fields["row_limit"], fields["tile_words"])
        elif opcode == Opcode.MOVE:
            words = _sums(
                fields["out_base"] + np.asarray(offsets, np.int64),
                np.arange(fields["num_channels"]) * fields["out_channel_step"],
                np.arange(fields["num_rows"]) * fields["out_row_step"],
                np.arange(fields["num_words"]) * fields["out_word_step"],
            )
            self.byte[:, words] = UNKNOWN
        elif writes_map(opcode) and opcode != Opcode.TAPS:
            self.byte[:] = UNKNOWN

    def _fill(self, f: Mapping[str, int]) -> None:
        blocks = np.arange(f["num_blocks"]) * f["block_step"]
        words = _sums(f["out_base"] + blocks, np.arange(f["num_words"]))
        self.byte[:, words] = f["fill"]
        self.stripes_log2[words] = f["stripes_log2"]

    def _rows(
        self, f: Mapping[str, int], channels: np.ndarray, num_rows: int, num_words: int
    ) -> None:
        """write_word of docs/machine.md for destination rows 0 ... num_rows-1."""
        stripes_log2 = f["out_stripes_log2"]
        starts = f["out_base"] + np.asarray(channels, np.int64) * f["out_channel_step"]
        run = np.arange(num_words)
        if f.get("out_split"):
            run = np.unique([run // 2, run // 2 + f["out_phase_step"]])
        anywhere = _sums(starts, np.arange(f["out_local_rows"]) * f["out_row_step"], run)
        anywhere = anywhere[anywhere < self.byte.shape[1]]
        if (self.byte[:, anywhere] == UNKNOWN).all():
            return
        rows = np.arange(num_rows) + f["out_row"] + f["out_halo_top"]
        for stripe in range(1 << stripes_log2):
            local = rows - stripe * f["out_rows"]
            if f["circular_rows"]:
                local = local % f["out_height"]
            local = local[(local >= 0) & (local < f["out_local_rows"])]
            copies = self._copies_of(stripe, stripes_log2)
            self.byte[copies, _sums(starts, local * f["out_row_step"], run)] = UNKNOWN

    def _copies_of(self, stripe: int, stripes_log2: int) -> slice:
        """The slices that hold copies of a stripe."""
        copies = self.byte.shape[0] >> stripes_log2
        return slice(stripe * copies, (stripe + 1) * copies)


def _sums(*parts: np.ndarray) -> np.ndarray:
    """All sums of one number of every part, flat."""
    total = np.zeros(1, np.int64)
    for part in parts:
        total = (total[:, None] + part[None, :]).reshape(-1)
    return total
