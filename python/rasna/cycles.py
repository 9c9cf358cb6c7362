"""Cycles of one instruction on the hardware: the formulas of docs/hardware.md as code.

They count iterations of the loops in ``hls/``, each of which takes one cycle (II = 1), plus
constants for pipelines that fill and memory that answers late. The compiler chooses mappings
by them and reports them; a run on RTL measures the real number.

Pure Python and NumPy; no torch.
"""

from __future__ import annotations

import numpy as np

from . import isa
from .isa import Opcode
from .targets import Target, get_target

INSTRUCTION_CYCLES = 13  # an instruction is read, decoded and dispatched
TILES_PIPELINE_CYCLES = 24  # depth of the loop of TAPS, MOVE, LOAD and FILL, and its setup
DRAIN_DELAY_CYCLES = 12  # from a drained word to its write, at the end of a TAPS
STORE_SETUP_CYCLES = 9  # products and steps of STORE
MEMORY_LATENCY_CYCLES = 30  # from a burst request to its first word, or to its response
WRITE_BURST_WORDS = 64  # a write burst leaves when all of it is there
RUN_CYCLES = 50  # start of a run, its first instruction on the way, and its end
MIN_BURST_CYCLES = 5  # of one of many short bursts: eight of them hide the latency


def instruction_cycles(
    opcode: Opcode,
    fields: dict[str, int],
    target: Target | str,
    stream_words: np.ndarray | None = None,
) -> int:
    """Estimated cycles of one instruction.

    opcode, fields: as :func:`rasna.isa.decode` gives them.
    target: a target or its name.
    stream_words: uint64 array of the records and lists of a TAPS instruction; not used by others.

    Raises ValueError when a TAPS instruction comes without its stream or does not match it.
    """
    target = get_target(target)
    if opcode == Opcode.TAPS:
        if stream_words is None:
            raise ValueError("TAPS: stream_words is required, the lists decide the cycles")
        num_codes, list_words = stream_lists(stream_words, fields["num_channels"])
        return taps_cycles(fields, target, num_codes, list_words)
    if opcode == Opcode.FILL:
        return INSTRUCTION_CYCLES + 1 + TILES_PIPELINE_CYCLES + fill_steps(fields)
    if opcode in (Opcode.LOAD, Opcode.STORE):
        return transfer_cycles(opcode, fields)
    if opcode in (Opcode.TABLE, Opcode.CURVE):
        return INSTRUCTION_CYCLES + isa.stream_length(opcode, fields)
    if opcode == Opcode.MOVE:
        words = fields["num_channels"] * fields["num_rows"] * fields["num_words"]
        return INSTRUCTION_CYCLES + 1 + TILES_PIPELINE_CYCLES + words * fields["table_entries"]
    return INSTRUCTION_CYCLES + RUN_CYCLES


def fill_steps(fields: dict[str, int]) -> int:
    """Cycles in which a FILL writes: two neighbouring words, or two blocks in different banks."""
    words, blocks = fields["num_words"], fields["num_blocks"]
    if words == 1 and fields["block_step"] % 2:
        return (blocks + 1) // 2
    return blocks * ((words + 1) // 2)


def transfer_cycles(opcode: Opcode, fields: dict[str, int]) -> int:
    """Estimated cycles of LOAD or STORE: a word per cycle, bursts as long as the steps allow."""
    row = fields["num_words"]
    channel = fields["num_rows"] * row
    words = fields["num_channels"] * channel
    burst = row
    if fields["dram_row_step"] == row or fields["num_rows"] == 1:
        burst = channel
        if fields["dram_channel_step"] == channel or fields["num_channels"] == 1:
            burst = words
    cycles = INSTRUCTION_CYCLES + MEMORY_LATENCY_CYCLES
    cycles += words // burst * max(burst, MIN_BURST_CYCLES)
    if opcode == Opcode.LOAD:
        return cycles + TILES_PIPELINE_CYCLES + (1 << fields["out_stripes_log2"])
    return cycles + STORE_SETUP_CYCLES + min(burst, WRITE_BURST_WORDS)


def stream_lists(stream_words: np.ndarray, num_channels: int) -> tuple[np.ndarray, np.ndarray]:
    """(num_codes, list_words), one int64 each per channel, out of the stream of a TAPS.

    Raises ValueError when the stream ends before the last channel's list does.
    """
    places = {f.name: f for f in isa.CHANNEL_RECORD}
    codes, lists = places["num_codes"], places["list_words"]
    num_codes = np.empty(num_channels, np.int64)
    list_words = np.empty(num_channels, np.int64)
    at = 0
    for n in range(num_channels):
        if at + isa.CHANNEL_RECORD_WORDS > len(stream_words):
            given = len(stream_words)
            raise ValueError(f"the stream has {given} words, channel {n} starts at {at}")
        num_codes[n] = int(stream_words[at + codes.word]) >> codes.bit & ((1 << codes.bits) - 1)
        words = int(stream_words[at + lists.word]) >> lists.bit & ((1 << lists.bits) - 1)
        list_words[n] = words
        at += isa.CHANNEL_RECORD_WORDS + words
    if at > len(stream_words):
        raise ValueError(f"the stream has {len(stream_words)} words, its lists end at {at}")
    return num_codes, list_words


def taps_cycles(
    fields: dict[str, int],
    target: Target | str,
    num_codes: np.ndarray,
    list_words: np.ndarray,
) -> int:
    """Estimated cycles of a TAPS instruction.

    num_codes, list_words: integers, one per output channel in stream order.

    A tile takes as many cycles as the longest list of its round, or as the words of the tile
    before it that still have to be written; the stream of the next round arrives meanwhile.
    """
    target = get_target(target)
    num_channels = fields["num_channels"]
    stripes = 1 << fields["stripes_log2"]
    copies = target.slices // stripes
    rounds = -(-num_channels // copies)
    padding = (0, rounds * copies - num_channels)
    codes = np.pad(np.asarray(num_codes, np.int64), padding).reshape(rounds, copies).max(axis=1)
    stream = np.asarray(list_words, np.int64) + isa.CHANNEL_RECORD_WORDS
    stream = np.pad(stream, padding).reshape(rounds, copies).sum(axis=1)
    channels = np.full(rounds, copies, np.int64)
    channels[-1] = num_channels - (rounds - 1) * copies
    drain = channels * stripes >> fields["drain_log2"]
    tiles = fields["tile_rows"] * fields["tile_words"]
    later_tiles = (tiles - 1) * np.maximum(np.maximum(codes, drain), 1)

    total, pending = int(stream[0]) + 1, 0
    for r in range(rounds):
        busy = max(int(codes[r]), pending, 1) + int(later_tiles[r])
        length = max(busy, int(stream[r + 1]) + 1) if r + 1 < rounds else busy
        pending = max(0, int(drain[r]) - (length - busy))
        total += length
    setup = 1 << fields["out_stripes_log2"]
    if not fields["acc_keep"]:
        total += DRAIN_DELAY_CYCLES
    return INSTRUCTION_CYCLES + setup + total + pending + TILES_PIPELINE_CYCLES
