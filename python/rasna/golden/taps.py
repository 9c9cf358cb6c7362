"""TAPS of the golden machine: tap lists, accumulators, requantisation, write-back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import isa
from ..encoding import codes_per_word, decode_list
from .state import ACC_UNWRITTEN, OK, OVERFLOW, STATUS_TEXT, WRITTEN_HERE, State

_LANES = np.arange(isa.WORD_BYTES)
_CHUNK_VALUES = 1 << 20  # gathered values at a time, for bounded memory
_INT32 = np.iinfo(np.int32)


@dataclass
class _Taps:
    """A decoded list: weight int64 (K,), table index and relative byte address int64 (K,)."""

    weight: np.ndarray
    entry: np.ndarray
    address: np.ndarray


def execute_taps(state: State, fields: dict[str, int]) -> None:
    """docs/machine.md, TAPS. Channel by channel; all rows, words and lanes at once."""
    _check_fields(state, fields)
    _check_drain(state, fields)
    records, lists = _read_stream(state, fields)
    num_stripes = 1 << fields["stripes_log2"]
    shape = (fields["num_channels"], num_stripes, fields["tile_rows"], fields["tile_words"])
    places = [] if fields["acc_keep"] else _places(state, fields, records, shape)
    vectors = _readable_vectors(state, fields, places)
    words = np.zeros(shape, np.uint64)
    copies = state.target.slices // num_stripes
    for n in range(fields["num_channels"]):
        record = {name: int(column[n]) for name, column in records.items()}
        owned = slice(n % copies, None, copies)  # its copy of every stripe
        acc, status = _accumulate(state, fields, record, lists[n], vectors[owned], owned, n)
        if fields["acc_keep"]:
            tiles = _acc_tiles(state, fields, n // copies)
            state.acc[owned, tiles] = acc
            state.acc_status[owned, tiles] = status
        else:
            _refuse_poison(state, fields, status, n)
            words[n] = _requantize(state, fields, record, acc).reshape(shape[1:])
    state.write_words(places, words.ravel(), fields)


def _check_fields(state: State, fields: dict[str, int]) -> None:
    state.num_stripes(fields)
    state.num_stripes(fields, "out_stripes_log2")
    state.check_counts(fields, "num_channels", "tile_rows", "tile_words")
    state.check_field(fields, "ib", 12, 24)
    state.check_field(fields, "last_lanes", 1, isa.WORD_BYTES)
    state.check_field(
        fields, "table_entries", isa.MIN_TABLE_ENTRIES, state.target.table_entries
    )
    if fields["circular_rows"]:
        state.check_counts(fields, "out_height")
    state.check_split(fields)
    state.check_field(fields, "func", 0, max(isa.Func))
    if fields["func"] == isa.Func.PRODUCT:
        for name in ("acc_init", "acc_keep"):
            if fields[name]:
                raise state.fail(name, "must be 0 with PRODUCT, is 1", isa.Error.BAD_FIELD)
    if fields["curve"] and state.curve is None:
        raise state.fail("curve", "no CURVE was loaded before", isa.Error.BAD_FIELD)
    if fields["clamp_lo"] > fields["clamp_hi"]:
        raise state.fail(
            "clamp_lo",
            f"must be at most clamp_hi {fields['clamp_hi']}, is {fields['clamp_lo']}",
            isa.Error.BAD_FIELD,
        )
    if fields["acc_init"] or fields["acc_keep"]:
        copies = state.target.slices >> fields["stripes_log2"]
        rounds = -(-fields["num_channels"] // copies)
        last = fields["acc_base"] + rounds * fields["tile_rows"] * fields["tile_words"] - 1
        if last >= state.target.acc_tiles:
            raise state.fail(
                "acc_base",
                f"accumulator {last} lies outside 0 to {state.target.acc_tiles - 1}",
                isa.Error.ACC_RANGE,
            )


def _check_drain(state: State, fields: dict[str, int]) -> None:
    """Refuse words that leave at the same time and that one slice would have to store."""
    state.check_field(fields, "drain_log2", 0, state.target.drain_words.bit_length() - 1)
    together, num_stripes = 1 << fields["drain_log2"], 1 << fields["stripes_log2"]
    if together == 1:
        return
    if together > num_stripes:
        raise state.fail(
            "drain_log2", f"{together} words of {num_stripes} stripes cannot be drained together",
            isa.Error.BAD_FIELD,
        )
    if fields["acc_keep"]:
        return
    row = np.arange(num_stripes * fields["tile_rows"])
    row = row[(row >= fields["row_first"]) & (row < fields["row_limit"])]
    # the same position within a part of the stripes: words that leave at the same time
    when = row % (num_stripes // together * fields["tile_rows"])
    nothing = np.zeros_like(row)
    places = state.destinations(fields, nothing, row + fields["out_row"], nothing)
    for stripe, (chosen, _) in enumerate(places):
        at_once, count = np.unique(when[chosen], return_counts=True)
        if (count > 1).any():
            first = row[chosen][when[chosen] == at_once[count > 1][0]]
            raise state.fail(
                "drain_log2",
                f"rows {first[0]} and {first[1]} are drained together, stripe {stripe} stores both",
                isa.Error.BAD_FIELD,
            )


def _acc_tiles(state: State, fields: dict[str, int], round_index: int) -> slice:
    tiles = fields["tile_rows"] * fields["tile_words"]
    first = fields["acc_base"] + round_index * tiles
    return slice(first, first + tiles)


def _read_stream(state: State, fields: dict[str, int]):
    """Records as int64 columns (num_channels,) and one _Taps per channel."""
    stream = state.stream(fields["stream_addr"], fields["stream_words"], "stream_addr")
    head = isa.CHANNEL_RECORD_WORDS
    rows: list[dict[str, int]] = []
    lists: list[_Taps] = []
    at = 0
    for n in range(fields["num_channels"]):
        if at + head > stream.size:
            raise _stream_error(state, n, "stream_words", "the stream ends before its record")
        record = isa.unpack(isa.CHANNEL_RECORD, stream[at : at + head])
        at += head
        _check_record(state, fields, record, n, rows)
        if at + record["list_words"] > stream.size:
            raise _stream_error(state, n, "stream_words", "the stream ends inside its list")
        if n and fields["list_shared"]:
            lists.append(lists[0])
        else:
            lists.append(_decode(state, fields, stream[at : at + record["list_words"]], record, n))
        _check_source(state, fields, record, lists[n], n)
        at += record["list_words"]
        rows.append(record)
    if at != stream.size:
        raise state.fail(
            "stream_words", f"the records and lists take {at} words, not {stream.size}",
            isa.Error.STREAM_RANGE,
        )
    return {name: np.array([r[name] for r in rows], np.int64) for name in rows[0]}, lists


def _stream_error(state: State, n: int, field: str, text: str, code=isa.Error.STREAM_RANGE):
    return state.fail(field, f"channel {n}: {text}", code)


def _check_record(state: State, fields, record: dict[str, int], n: int, rows: list) -> None:
    for name, lo, hi in (("multiplier", 1, 32767), ("shift", 1, 31), ("pre_shift", 0, 31)):
        if not lo <= record[name] <= hi:
            raise _stream_error(
                state, n, name, f"must be {lo} to {hi}, is {record[name]}", isa.Error.BAD_FIELD
            )
    if fields["func"] == isa.Func.PRODUCT and record["bias"]:
        raise _stream_error(
            state, n, "bias", f"must be 0 with PRODUCT, is {record['bias']}", isa.Error.BAD_FIELD
        )
    exact = -(-record["num_codes"] // codes_per_word(fields["encoding"]))
    if n and fields["list_shared"]:
        exact = 0
        if record["num_codes"] != rows[0]["num_codes"]:
            raise _stream_error(
                state, n, "num_codes",
                f"must be {rows[0]['num_codes']} as in channel 0 (list_shared), "
                f"is {record['num_codes']}",
            )
    if record["list_words"] != exact:
        raise _stream_error(
            state, n, "list_words", f"must be {exact}, is {record['list_words']}"
        )
    if exact > state.target.list_words:
        raise _stream_error(
            state, n, "list_words",
            f"must be at most {state.target.list_words}, is {exact}", isa.Error.LIST_RANGE,
        )


def _decode(state: State, fields, words: np.ndarray, record: dict[str, int], n: int) -> _Taps:
    weight, position = decode_list(words, record["num_codes"], fields["encoding"])
    group, entry = np.divmod(position, fields["table_entries"])
    unwritten = entry[~state.table_written[entry]]
    if unwritten.size:
        raise _stream_error(
            state, n, "num_codes", f"table entry {unwritten[0]} was never written", None
        )
    address = group * fields["group_step"] + state.table["offset"][entry]
    return _Taps(weight.astype(np.int64), entry, address)


def _check_source(state: State, fields, record: dict[str, int], taps: _Taps, n: int) -> None:
    """Every vector lies in the map memory: those of all codes, rows and words."""
    if not taps.address.size:
        return
    far = (fields["tile_rows"] - 1) * fields["src_row_step"]
    far += (fields["tile_words"] - 1) * fields["src_word_step"]
    lo = record["src_base"] + int(taps.address.min())
    hi = record["src_base"] + int(taps.address.max()) + far + isa.WORD_BYTES - 1
    if lo < 0 or hi >= state.target.map_bytes:
        raise _stream_error(
            state, n, "src_base",
            f"vectors from byte {lo} to {hi} lie outside 0 to {state.target.map_bytes - 1}",
            isa.Error.MAP_RANGE,
        )


def _places(state: State, fields, records, shape: tuple[int, ...]):
    """Destinations of the words that are written; indices count into ``shape`` flattened."""
    n, stripe, y, x = np.indices(shape).reshape(4, -1)
    row = stripe * fields["tile_rows"] + y
    wanted = np.flatnonzero((row >= fields["row_first"]) & (row < fields["row_limit"]))
    places = state.destinations(
        fields, records["out_channel"][n[wanted]], row[wanted] + fields["out_row"], x[wanted]
    )
    return [(wanted[chosen], halves) for chosen, halves in places]


def _readable_vectors(state: State, fields, places) -> np.ndarray:
    """int16 (L, map_bytes - 7, 8): the bytes from every address on; -status where not OK."""
    status = state.read_status(fields["stripes_log2"])
    by_word = status.reshape(*state.map_words.shape, isa.WORD_BYTES)
    for stripe, (_, halves) in enumerate(places):
        by_word[state.copies_of(stripe, len(places)), halves >> 1] = WRITTEN_HERE
    values = np.where(status == OK, state.map_bytes.astype(np.int16), -status.astype(np.int16))
    windows = np.lib.stride_tricks.sliding_window_view(values, isa.WORD_BYTES, axis=1)
    return np.ascontiguousarray(windows)


def _accumulate(state: State, fields, record, taps: _Taps, vectors, owned: slice, n: int):
    """Accumulators int64 and status uint8, both (stripes, tile_rows*tile_words, 8)."""
    num_stripes, tiles = vectors.shape[0], fields["tile_rows"] * fields["tile_words"]
    acc = np.full((num_stripes, tiles, isa.WORD_BYTES), record["bias"], np.int64)
    status = np.zeros(acc.shape, np.uint8)
    if fields["acc_init"]:
        held = _acc_tiles(state, fields, n // (state.target.slices // num_stripes))
        acc[:] = state.acc[owned, held]
        status[:] = state.acc_status[owned, held]
    y, x = np.divmod(np.arange(tiles), fields["tile_words"])
    base = record["src_base"] + y * fields["src_row_step"] + x * fields["src_word_step"]
    step = max(1, _CHUNK_VALUES // acc.size)
    live = np.flatnonzero(taps.weight)  # weight 0 reads nothing
    for k in range(0, live.size, step):
        part = live[k : k + step]
        entry = taps.entry[part]
        mask = (state.table["lane_mask"][entry][:, None] >> _LANES & 1).astype(bool)  # (K, 8)
        at = (base[:, None] + taps.address[part]).astype(np.intp, copy=False)  # 32-bit systems
        values = np.take(vectors, at, axis=1)
        if values.min() < 0:
            bad = np.where(mask & (values < 0), -values, 0).max(axis=2).astype(np.uint8)
            status = np.where(status == OK, bad, status)
        values = _as_numbers(values, state.table["is_signed"][entry].astype(bool))
        if fields["func"] != isa.Func.MAX:
            acc += _dot(taps.weight[part], values, mask)
        else:
            values = np.where(mask, values.astype(np.int32), _INT32.min)
            np.maximum(acc, values.max(axis=2), out=acc)
    overflow = (acc < _INT32.min) | (acc > _INT32.max)
    status[overflow & (status == OK)] = OVERFLOW
    return acc.astype(np.int32).astype(np.int64), status


def _as_numbers(values: np.ndarray, is_signed: np.ndarray) -> np.ndarray:
    """Bytes int16 (stripes, tiles, K, 8) as int8 or uint8 values, int16; is_signed: bool (K,)."""
    if not is_signed.any():
        return values
    signed = values.astype(np.int8).astype(np.int16)
    return signed if is_signed.all() else np.where(is_signed[:, None], signed, values)


def _dot(weight: np.ndarray, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Sum over K of weight * values where the mask allows, int64 (stripes, tiles, 8).

    In float64, which is exact: all sums lie far below 2**53.
    """
    numbers = values.astype(np.float64)
    if not mask.all():
        numbers *= mask
    return np.matmul(weight[None].astype(np.float64), numbers)[..., 0, :].astype(np.int64)


def _refuse_poison(state: State, fields, status: np.ndarray, n: int) -> None:
    """Refuse a lane that is written and whose value must not be used."""
    num_stripes = status.shape[0]
    shape = (num_stripes, fields["tile_rows"], fields["tile_words"], isa.WORD_BYTES)
    stripe, y, x, lane = np.indices(shape, sparse=True)
    row = stripe * fields["tile_rows"] + y
    written = (row >= fields["row_first"]) & (row < fields["row_limit"])
    written = written & ((x < fields["tile_words"] - 1) | (lane < fields["last_lanes"]))
    bad = np.argwhere((status.reshape(shape) != OK) & written)
    if bad.size:
        stripe, y, x, lane = bad[0]
        why = int(status.reshape(shape)[tuple(bad[0])])
        field = "acc_base" if why == ACC_UNWRITTEN else "stream_addr"
        raise state.fail(
            field,
            f"channel {n}, stripe {stripe}, row {y}, word {x}, lane {lane} comes from "
            + STATUS_TEXT[why],
        )


def _factors(fields, record: dict[str, int], acc: np.ndarray):
    """What is multiplied: two int64 arrays or numbers that broadcast with ``acc``."""
    if fields["func"] == isa.Func.PRODUCT:
        half = 1 << (isa.PRODUCT_BITS - 1)
        first = (acc + half) % (2 * half) - half
        second = (acc - first) >> isa.PRODUCT_BITS
        return first, (second + half) % (2 * half) - half
    limit = 1 << (fields["ib"] - 1)
    return np.clip(acc >> record["pre_shift"], -limit, limit - 1), record["multiplier"]


def _requantize(state: State, fields, record: dict[str, int], acc: np.ndarray) -> np.ndarray:
    """Words uint64 (stripes, tiles) of accumulators int64 (stripes, tiles, 8)."""
    t, multiplier = _factors(fields, record, acc)
    shift = record["shift"]
    v = np.clip(
        (t * multiplier + (1 << (shift - 1))) >> shift,
        fields["clamp_lo"], fields["clamp_hi"],
    )
    lanes = (v & 0xFF).astype(np.uint8)
    if fields["curve"]:
        assert state.curve is not None  # _check_fields
        lanes = state.curve[lanes]
    last = np.arange(lanes.shape[1]) % fields["tile_words"] == fields["tile_words"] - 1
    lanes[:, last, fields["last_lanes"] :] = fields["fill"]
    return np.ascontiguousarray(lanes).view("<u8")[..., 0]
