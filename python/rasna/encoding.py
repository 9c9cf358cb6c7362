"""Tap lists, channel records, table entries and instructions as arrays of 64-bit words.

The vectorised companion of :mod:`rasna.isa`: the same layouts, applied to whole arrays.
The assembler, the golden model and the back end of the compiler all build and read
streams with these functions. Nothing here knows the size of a target.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from . import isa

_SPARSE_STEP = isa.SPARSE_RUN_MAX + 1  # positions that an escape code (run 15, weight 0) skips


def codes_per_word(encoding: int) -> int:
    """Codes in one 64-bit word of a tap list: 8 dense, 5 sparse."""
    if isa.Encoding(encoding) is isa.Encoding.DENSE:
        return isa.DENSE_CODES_PER_WORD
    return isa.SPARSE_CODES_PER_WORD


def pack_arrays(
    fields: tuple[isa.Field, ...], num_words: int, what: str, **values: object
) -> np.ndarray:
    """Pack columns of field values into rows of 64-bit words.

    Parameters
    ----------
    fields : a layout of :mod:`rasna.isa`
    num_words : words of one row
    what : name of the layout, for messages
    **values : integer or integer array (N,) by field name; scalars serve every row

    Returns
    -------
    uint64 array (N, num_words); fields that are not given are 0.

    Raises
    ------
    ValueError for an unknown field or a value outside its field (the row is named).
    """
    by_name = {f.name: f for f in fields}
    columns = {}
    for name, value in values.items():
        if name not in by_name:
            raise ValueError(f"{what} has no field {name}; it has {', '.join(by_name)}")
        columns[name] = np.atleast_1d(np.asarray(value)).astype(np.int64)
    num_rows = np.broadcast_shapes(*(c.shape for c in columns.values()), (1,))[0]
    words = np.zeros((num_rows, num_words), np.uint64)
    for name, column in columns.items():
        f = by_name[name]
        bad = np.flatnonzero((column < f.lo) | (column > f.hi))
        if bad.size:
            raise ValueError(
                f"{what} {bad[0]}: field {name} holds {f.lo} to {f.hi}, "
                f"{column[bad[0]]} was given"
            )
        mask = np.uint64((1 << f.bits) - 1)
        words[:, f.word] |= (column.astype(np.uint64) & mask) << np.uint64(f.bit)
    return words


def unpack_arrays(fields: tuple[isa.Field, ...], words: np.ndarray) -> dict[str, np.ndarray]:
    """The inverse of :func:`pack_arrays`: int64 columns by field name.

    words : uint64 array (N, num_words)
    """
    words = np.asarray(words, np.uint64)
    columns = {}
    for f in fields:
        mask = np.uint64((1 << f.bits) - 1)
        value = ((words[:, f.word] >> np.uint64(f.bit)) & mask).astype(np.int64)
        if f.signed:
            value -= (value >> (f.bits - 1)) << f.bits
        columns[f.name] = value
    return columns


def channel_records(**values: object) -> np.ndarray:
    """Channel records of TAPS, uint64 (N, CHANNEL_RECORD_WORDS); see isa.CHANNEL_RECORD."""
    return pack_arrays(
        isa.CHANNEL_RECORD, isa.CHANNEL_RECORD_WORDS, "channel record", **values
    )


def channel_record(**values: int) -> np.ndarray:
    """One channel record, uint64 (CHANNEL_RECORD_WORDS,)."""
    return channel_records(**values)[0]


def table_entries(**values: object) -> np.ndarray:
    """Entries of the offset table, uint64 (N,); lane_mask is 0xff unless given."""
    values.setdefault("lane_mask", 0xFF)
    return pack_arrays(isa.TABLE_ENTRY, 1, "table entry", **values)[:, 0]


def instruction(opcode: isa.Opcode, **values: int) -> np.ndarray:
    """One instruction as uint64 (INSTRUCTION_WORDS,)."""
    return np.array(isa.encode(opcode, **values), np.uint64)


def encode_lists(
    weights: ArrayLike, positions: ArrayLike, starts: ArrayLike, encoding: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Encode the tap lists of many channels at once.

    Parameters
    ----------
    weights : int8 (N,), the taps of all channels one after another
    positions : integers (N,), position of each tap, strictly increasing within a channel
    starts : integers (num_channels + 1,); channel c has the taps starts[c] … starts[c+1]-1
    encoding : isa.Encoding

    Returns
    -------
    words : uint64, the lists one after another, each starting in a new word
    word_starts : int64 (num_channels + 1,); channel c has words[word_starts[c]:word_starts[c+1]]
    num_codes : int64 (num_channels,)

    Notes
    -----
    Sparse: one code per tap, after as many escapes (run 15, weight 0) as the gap needs; each
    skips 16 positions. Dense: one code for every position from 0 to the last tap.

    Raises
    ------
    ValueError when the positions do not increase or the shapes do not agree.
    """
    weights = np.asarray(weights, np.int8).ravel()
    positions = np.asarray(positions, np.int64).ravel()
    starts = np.asarray(starts, np.int64).ravel()
    gaps = _gaps(weights, positions, starts)
    if isa.Encoding(encoding) is isa.Encoding.DENSE:
        return _encode_dense(weights, positions, starts)
    return _encode_sparse(weights, gaps, starts)


def encode_list(
    weights: ArrayLike, positions: ArrayLike, encoding: int
) -> tuple[np.ndarray, int]:
    """Encode one tap list; see :func:`encode_lists`. Returns (uint64 words, num_codes)."""
    words, _, num_codes = encode_lists(weights, positions, [0, np.size(weights)], encoding)
    return words, int(num_codes[0])


def _gaps(weights: np.ndarray, positions: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Positions skipped before each tap, int64 (N,); checks the arguments of encode_lists."""
    if weights.shape != positions.shape:
        raise ValueError(f"{weights.size} weights and {positions.size} positions were given")
    if not starts.size or starts[0] != 0 or starts[-1] != weights.size or np.any(
        np.diff(starts) < 0
    ):
        raise ValueError(
            f"starts must rise from 0 to the number of taps, {weights.size}; {starts} was given"
        )
    before = np.empty_like(positions)
    before[1:] = positions[:-1]
    before[starts[:-1][starts[:-1] < positions.size]] = -1
    gaps = positions - before - 1
    bad = np.flatnonzero(gaps < 0)
    if bad.size:
        channel = int(np.searchsorted(starts, bad[0], side="right")) - 1
        raise ValueError(
            f"the positions of a tap list must start at 0 or more and increase; in list {channel} "
            f"tap {bad[0] - starts[channel]} has position {positions[bad[0]]} "
            f"after {before[bad[0]]}"
        )
    return gaps


def _places(num_codes: np.ndarray, per_word: int) -> tuple[np.ndarray, np.ndarray]:
    """Word starts (channels + 1,) of lists of so many codes, and (channels,) their first slots."""
    word_starts = np.zeros(num_codes.size + 1, np.int64)
    np.cumsum(-(-num_codes // per_word), out=word_starts[1:])
    return word_starts, word_starts[:-1] * per_word


def _encode_dense(weights, positions, starts):
    counts = np.diff(starts).astype(np.intp, copy=False)  # np.repeat takes no wider counts
    num_codes = np.zeros(counts.size, np.int64)
    full = counts > 0
    num_codes[full] = positions[starts[1:][full] - 1] + 1
    word_starts, slots = _places(num_codes, isa.DENSE_CODES_PER_WORD)
    codes = np.zeros(word_starts[-1] * isa.DENSE_CODES_PER_WORD, np.int8)
    codes[np.repeat(slots, counts) + positions] = weights
    return codes.view("<u8").astype(np.uint64), word_starts, num_codes


def _encode_sparse(weights, gaps, starts):
    counts = np.diff(starts).astype(np.intp, copy=False)  # np.repeat takes no wider counts
    ends = np.cumsum(gaps // _SPARSE_STEP + 1)  # codes up to and with each tap
    total = np.concatenate([[0], ends])
    num_codes = total[starts[1:]] - total[starts[:-1]]
    word_starts, slots = _places(num_codes, isa.SPARSE_CODES_PER_WORD)
    codes = np.zeros(word_starts[-1] * isa.SPARSE_CODES_PER_WORD, np.uint64)
    # slot of list code i is slots[channel] + i: all are escapes first, taps overwrite theirs
    first_code = total[starts[:-1]]
    shift = np.repeat(slots - first_code, num_codes.astype(np.intp, copy=False))
    within = np.arange(total[-1]) + shift
    codes[within] = np.uint64(isa.SPARSE_RUN_MAX << 8)
    tap_slots = ends - 1 + np.repeat(slots - first_code, counts)
    runs = (gaps % _SPARSE_STEP).astype(np.uint64)
    codes[tap_slots] = weights.view(np.uint8).astype(np.uint64) | (runs << np.uint64(8))
    by_word = codes.reshape(-1, isa.SPARSE_CODES_PER_WORD)
    words = np.zeros(by_word.shape[0], np.uint64)
    for i in range(isa.SPARSE_CODES_PER_WORD):
        words |= by_word[:, i] << np.uint64(i * isa.SPARSE_CODE_BITS)
    return words, word_starts, num_codes


def decode_list(
    words: np.ndarray, num_codes: int, encoding: int
) -> tuple[np.ndarray, np.ndarray]:
    """The codes of one list: weights int8 (num_codes,) and positions int64 (num_codes,).

    Zero weights (escapes and dense zeros) are in the result like any other code.
    """
    words = np.ascontiguousarray(words, dtype="<u8")
    if isa.Encoding(encoding) is isa.Encoding.DENSE:
        return words.view(np.int8)[:num_codes].copy(), np.arange(num_codes, dtype=np.int64)
    shifts = np.arange(isa.SPARSE_CODES_PER_WORD, dtype=np.uint64) * np.uint64(
        isa.SPARSE_CODE_BITS
    )
    codes = ((words[:, None] >> shifts) & np.uint64(0xFFF)).ravel()[:num_codes]
    weights = (codes & np.uint64(0xFF)).astype(np.uint8).view(np.int8)
    runs = (codes >> np.uint64(8)).astype(np.int64)
    return weights, np.cumsum(runs + 1) - 1


def join_stream(
    records: np.ndarray, words: np.ndarray, word_starts: np.ndarray
) -> np.ndarray:
    """The stream of a TAPS: every record followed by its list.

    Parameters
    ----------
    records : uint64 (num_channels, CHANNEL_RECORD_WORDS)
    words, word_starts : the lists as :func:`encode_lists` gives them. A single list for
        several records is a shared one (list_shared): it follows record 0 only.

    Returns
    -------
    uint64 (stream_words,)
    """
    lengths = np.diff(np.asarray(word_starts, np.int64))
    if lengths.size == 1 and records.shape[0] > 1:
        lengths = np.concatenate([lengths, np.zeros(records.shape[0] - 1, np.int64)])
    if lengths.size != records.shape[0]:
        raise ValueError(
            f"{records.shape[0]} channel records need as many lists or one shared list, "
            f"{lengths.size} were given"
        )
    sizes = lengths + records.shape[1]
    is_list = np.ones(int(sizes.sum()), bool)
    heads = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    for i in range(records.shape[1]):
        is_list[heads + i] = False
    stream = np.empty(is_list.size, np.uint64)
    stream[is_list] = words
    stream[~is_list] = records.ravel()
    return stream
