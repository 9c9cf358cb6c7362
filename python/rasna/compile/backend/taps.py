"""Builds TAPS instructions: records, tap lists and the fields they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rasna import encoding, isa
from rasna.graph import Requant
from rasna.isa import Encoding, Func, Opcode
from rasna.targets import Target

from .emitter import Emitter

MAX_OFFSET = 32767  # of a table entry and of group_step, in bytes


@dataclass
class TapLists:
    """Tap lists of all channels, one after another (see encoding.encode_lists).

    A single list for several channels is shared by them.
    """

    weights: np.ndarray
    positions: np.ndarray
    starts: np.ndarray

    @property
    def num_lists(self) -> int:
        return len(self.starts) - 1


def lists_of(dense: np.ndarray) -> TapLists:
    """Tap lists of a (channels, positions) int8 array: zeros are left out."""
    rows, positions = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(dense.shape[0] + 1))
    return TapLists(dense[rows, positions], positions, starts)


def ones(positions: int) -> TapLists:
    """One shared list of ones at the first ``positions`` positions."""
    return TapLists(np.ones(positions, np.int8), np.arange(positions), np.array([0, positions]))


@dataclass
class Table:
    """Offset table entries and the step from one repetition to the next."""

    entries: list[dict[str, int]]
    group_step: int

    @staticmethod
    def repeat(entries: list[dict[str, int]], step: int) -> Table:
        """Repeat the entries of one channel until the table has 16 or more.

        Offsets and steps beyond the fields' range lead out of any map memory, so that no list
        reaches them: such entries are idle, such a step is 0.
        """
        times = -(-isa.MIN_TABLE_ENTRIES // len(entries))
        repeated = [
            {**e, "offset": e["offset"] + i * step} for i in range(times) for e in entries
        ]
        idle = dict(offset=0, lane_mask=0)
        repeated = [e if e["offset"] <= MAX_OFFSET else idle for e in repeated]
        return Table(repeated, times * step if times * step <= MAX_OFFSET else 0)

    @staticmethod
    def single(entries: list[dict[str, int]]) -> Table:
        """A table of one channel only, padded with entries that no list reaches."""
        idle = [dict(offset=0, lane_mask=0)] * (isa.MIN_TABLE_ENTRIES - len(entries))
        return Table([*entries, *idle], 0)


@dataclass
class Channels:
    """Records of the output channels: arrays of one entry per channel."""

    out_channel: np.ndarray
    src_base: np.ndarray
    bias: np.ndarray
    requant: Requant


def choose_encoding(lists: TapLists, tiles: int, copies: int, list_words: int) -> Encoding:
    """The encoding with fewer cycles, then fewer words, of those that fit the list memory."""
    counts = np.diff(lists.starts)
    last = np.zeros(lists.num_lists, np.int64)
    full = counts > 0
    last[full] = lists.positions[lists.starts[1:][full] - 1] + 1
    share = min(copies, lists.num_lists)
    costs = {}
    for kind, codes in ((Encoding.DENSE, last), (Encoding.SPARSE, counts)):
        words = -(-codes // encoding.codes_per_word(kind))
        per_round = max(tiles * float(codes.mean()), share * float(words.mean()))
        costs[kind] = (int(words.max()) > list_words, per_round, int(words.sum()))
    return min(costs, key=lambda k: costs[k])


def drain_log2(fields: dict[str, int], target: Target) -> int:
    """Log2 of the most words that can be drained together: no slice may store two of them."""
    num_rows = fields["tile_rows"] << fields["stripes_log2"]
    most = min(target.drain_words.bit_length() - 1, fields["stripes_log2"])
    if fields.get("acc_keep"):
        return most
    row = np.arange(num_rows)
    written = (row >= fields.get("row_first", 0)) & (row < fields["row_limit"])
    stripe = np.arange(1 << fields["out_stripes_log2"])[:, None]
    local = row + fields.get("out_row", 0) - stripe * fields["out_rows"] + fields["out_halo_top"]
    if fields.get("circular_rows"):
        local = local % fields["out_height"]
    stored = (local >= 0) & (local < fields["out_local_rows"]) & written
    for log2 in range(most, 0, -1):
        together = stored.reshape(len(stripe), 1 << log2, num_rows >> log2)
        if together.sum(axis=1).max(initial=0) <= 1:
            return log2
    return 0


def emit_taps(
    emitter: Emitter,
    table: Table,
    channels: Channels,
    lists: TapLists,
    func: Func = Func.MAC,
    **fields: int,
) -> None:
    """Emit TABLE and CURVE (if needed) and TAPS.

    fields: tile, source, accumulator and destination.

    Channels are computed in the order given; accumulators that are kept belong to it.
    """
    count = len(channels.out_channel)
    shared = lists.num_lists == 1
    copies = emitter.target.slices >> fields["stripes_log2"]
    tiles = fields["tile_rows"] * fields["tile_words"]
    kind = choose_encoding(lists, tiles, copies, emitter.target.list_words)
    words, word_starts, num_codes = encoding.encode_lists(
        lists.weights, lists.positions, lists.starts, kind
    )
    r = channels.requant
    records = encoding.channel_records(
        bias=channels.bias,
        src_base=channels.src_base,
        num_codes=np.broadcast_to(num_codes, count),
        multiplier=r.multiplier,
        shift=r.shift,
        pre_shift=r.pre_shift,
        out_channel=channels.out_channel,
        list_words=_list_words(word_starts, count),
    )
    stream = encoding.join_stream(records, words, word_starts)
    emitter.table(table.entries)
    curved = r.curve is not None and not fields.get("acc_keep")
    if r.curve is not None and curved:
        emitter.curve(r.curve.values)
    emitter.add(
        Opcode.TAPS,
        stream,
        channels.out_channel,
        func=int(func),
        drain_log2=drain_log2(fields, emitter.target),
        curve=int(curved),
        list_shared=int(shared and count > 1),
        encoding=int(kind),
        ib=r.ib,
        table_entries=len(table.entries),
        group_step=table.group_step,
        num_channels=count,
        clamp_lo=r.lo,
        clamp_hi=r.hi,
        stream_words=len(stream),
        **fields,
    )


def _list_words(word_starts: np.ndarray, count: int) -> np.ndarray:
    lengths = np.diff(word_starts)
    if lengths.size == 1:
        lengths = np.concatenate([lengths, np.zeros(count - 1, np.int64)])
    return lengths
