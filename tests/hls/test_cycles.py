"""The cycle formulas, on cases small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rasna import cycles, isa
from rasna.isa import Opcode
from tests.messages import refuses

CONSTANT = cycles.INSTRUCTION_CYCLES + cycles.TILES_PIPELINE_CYCLES


def taps(codes, lists, target="tiny", **fields):
    values = {
        "num_channels": len(codes), "stripes_log2": 0, "out_stripes_log2": 0, "tile_rows": 1,
        "tile_words": 1, "acc_keep": 0, "drain_log2": 0, **fields,
    }
    return cycles.taps_cycles(values, target, np.array(codes), np.array(lists))


def test_one_tile_waits_for_its_stream_and_for_its_own_drain():
    stream = 4 * (2 + 3) + 1  # one more iteration to see that the last word has come
    drain = 4 + cycles.DRAIN_DELAY_CYCLES
    assert taps([10, 20, 15, 12], [3, 3, 3, 3]) == CONSTANT + 1 + stream + 20 + drain


def test_short_lists_are_bound_by_the_words_to_write():
    first, later, drain = 2, 3 * 4, 4 + cycles.DRAIN_DELAY_CYCLES
    stream = 4 * (2 + 1) + 1
    assert taps([2] * 4, [1] * 4, tile_words=4) == CONSTANT + 1 + stream + first + later + drain


def test_kept_accumulators_are_drained_but_not_written():
    first, later, drain = 2, 3 * 4, 4
    stream = 4 * (2 + 1) + 1
    expected = CONSTANT + 1 + stream + first + later + drain
    assert taps([2] * 4, [1] * 4, tile_words=4, acc_keep=1) == expected


def test_the_next_round_waits_for_its_stream():
    stream, next_stream = 4 * (2 + 1) + 1, (2 + 16) + 1
    # the four words of round 0 are written while the loop waits for the list of channel 4
    expected = CONSTANT + 1 + stream + next_stream + 100 + 1 + cycles.DRAIN_DELAY_CYCLES
    assert taps([2, 2, 2, 2, 100], [1, 1, 1, 1, 16]) == expected


def test_stripes_compute_one_channel_each_and_drain_one_word_each():
    stream = (2 + 1) + 1
    round_cycles = 8
    expected = CONSTANT + 4 + 3 * stream + cycles.DRAIN_DELAY_CYCLES
    got = taps([8] * 3, [1] * 3, stripes_log2=2, out_stripes_log2=2)
    assert got == expected - 2 * stream + 3 * round_cycles + 4


def test_words_that_leave_together_take_one_cycle():
    """Eight stripes and one channel a round: 8 words to write after a list of one tap."""
    fields = dict(stripes_log2=3, out_stripes_log2=3, tile_words=4)
    by_drain = [taps([1], [1], "small", **fields, drain_log2=n) for n in range(3)]
    assert [a - b for a, b in zip(by_drain, by_drain[1:], strict=False)] == [4 * 4, 2 * 4]


def test_the_stream_gives_codes_and_list_lengths():
    record = {"num_codes": 9, "list_words": 2, "multiplier": 1, "shift": 1}
    words = isa.pack(isa.CHANNEL_RECORD, 2, "record", **record) + [1, 2]
    record.update(num_codes=0, list_words=0)
    words += isa.pack(isa.CHANNEL_RECORD, 2, "record", **record)
    num_codes, list_words = cycles.stream_lists(np.array(words, np.uint64), 2)
    assert (num_codes.tolist(), list_words.tolist()) == ([9, 0], [2, 0])
    fields = {
        "num_channels": 2, "stripes_log2": 0, "out_stripes_log2": 0, "tile_rows": 1,
        "tile_words": 1, "acc_keep": 0, "drain_log2": 0,
    }
    stream = np.array(words, np.uint64)
    by_stream = cycles.instruction_cycles(Opcode.TAPS, fields, "tiny", stream)
    assert by_stream == taps([9, 0], [2, 0])


def test_a_stream_that_is_too_short_is_refused():
    words = np.zeros(3, np.uint64)
    with refuses(ValueError, "the stream has 3 words, channel 1 starts at 2"):
        cycles.stream_lists(words, 2)
    with refuses(ValueError, "TAPS: stream_words is required, the lists decide the cycles"):
        cycles.instruction_cycles(Opcode.TAPS, {"num_channels": 1}, "tiny")


ROWS = {"num_channels": 2, "num_rows": 3, "num_words": 4}
JOINED = {**ROWS, "dram_row_step": 4, "dram_channel_step": 12}
BY_CHANNEL = {**ROWS, "dram_row_step": 4, "dram_channel_step": 13}
BY_ROW = {**ROWS, "dram_row_step": 5, "dram_channel_step": 15}
TILES = cycles.TILES_PIPELINE_CYCLES
LOADS = TILES + cycles.MEMORY_LATENCY_CYCLES
STORES = cycles.STORE_SETUP_CYCLES + cycles.MEMORY_LATENCY_CYCLES


@pytest.mark.parametrize(
    ("opcode", "fields", "expected"),
    [
        (Opcode.END, {}, cycles.RUN_CYCLES),
        (Opcode.FILL, {"num_blocks": 3, "num_words": 5, "block_step": 8}, TILES + 1 + 3 * 3),
        (Opcode.FILL, {"num_blocks": 5, "num_words": 1, "block_step": 3}, TILES + 1 + 3),
        (Opcode.FILL, {"num_blocks": 5, "num_words": 1, "block_step": 4}, TILES + 1 + 5),
        (Opcode.TABLE, {"num_entries": 40}, 40),
        (Opcode.CURVE, {"stream_addr": 80}, 32),
        (Opcode.LOAD, {**JOINED, "out_stripes_log2": 1}, LOADS + 24 + 2),
        (Opcode.LOAD, {**BY_CHANNEL, "out_stripes_log2": 0}, LOADS + 24 + 1),
        (Opcode.LOAD, {**BY_ROW, "out_stripes_log2": 0}, LOADS + 6 * 5 + 1),
        (Opcode.STORE, JOINED, STORES + 24 + 24),
        (Opcode.STORE, BY_CHANNEL, STORES + 24 + 12),
        (Opcode.STORE, BY_ROW, STORES + 6 * 5 + 4),
        (Opcode.MOVE, {**ROWS, "table_entries": 2}, 1 + TILES + 48),
    ],
)
def test_other_instructions_move_a_word_per_cycle_and_fill_two(opcode, fields, expected):
    got = cycles.instruction_cycles(opcode, fields, "pynq-z2")
    assert got == cycles.INSTRUCTION_CYCLES + expected
