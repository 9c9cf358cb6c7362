"""Every kind of inner loop against the plain one, at the extremes and on every shape of tiles."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sim_harness import Context, bodies
from small_programs import Assembly

from rasna import encoding, golden, isa
from rasna.isa import Opcode

SEED = int(os.environ.get("RASNA_SEED", "7000"))
TARGET = "pynq-z2"

# tile_words, bytes from one tile to the next, stripes: rows of 4, 2 and 1 words, alone and mixed
SHAPES = [(1, 8, 0), (2, 8, 0), (3, 8, 1), (4, 8, 1), (5, 8, 2), (7, 8, 3), (8, 8, 5), (1, 8, 1),
          (1, 8, 2), (1, 8, 3), (2, 8, 3), (2, 8, 4), (6, 16, 2), (3, 24, 3)]
NUM_CHANNELS, NUM_ROWS, TABLE = 5, 2, 48
SOURCE_WORDS, OUT = 64, 64


def taps_program(rng, shape, data: str, taps: str, **fields: int):
    """LOAD of SOURCE_WORDS words into every stripe, TABLE, the TAPS under test, STORE."""
    tile_words, word_step, stripes_log2 = shape
    stripes = 1 << stripes_log2
    table = encoding.table_entries(
        offset=rng.integers(0, 64, TABLE),
        is_signed=rng.integers(0, 2, TABLE) if data == "mixed" else int(data == "signed"),
        lane_mask=rng.choice([0xFF, 0xFE, 0x01, 0x7F, 0x00, 0x55], TABLE)
        if taps == "masked" else 0xFF,
    )
    low, high = (-128, 128) if taps != "extreme" else (0, 0)
    num_lists = 1 if fields.get("list_shared") else NUM_CHANNELS
    counts = rng.integers(1, 40, num_lists) if taps != "none" else np.zeros(num_lists, int)
    starts = np.concatenate([[0], np.cumsum(counts)])
    total = int(starts[-1])
    if taps == "extreme":  # in some channels all of one sign, so that sums grow as they can
        weights = rng.choice([-128, -127, 127], total)
        weights[: starts[1]], weights[starts[1] : starts[2]] = 127, -127
    elif taps == "pairs":  # of one sign, so that two products just fit or just do not fit int16
        weights = rng.integers(58, 72, total) * rng.choice([-1, 1])
    else:
        weights = rng.integers(low, high, total)
    positions = np.concatenate(
        [np.sort(rng.choice(TABLE, n, replace=False)) for n in counts] + [np.zeros(0, int)]
    )
    sparse = int(rng.integers(2))
    words, word_starts, num_codes = encoding.encode_lists(
        weights.astype(np.int8), positions.astype(int), starts, sparse
    )
    wide = rng.random() < 0.5
    requant = dict(
        bias=rng.integers(-(2**20), 2**20, NUM_CHANNELS),
        multiplier=rng.choice([1, 2, 181, 16384, 32767], NUM_CHANNELS),
        shift=rng.integers(1, 32 if wide else 12, NUM_CHANNELS),
        pre_shift=rng.integers(0, 32 if wide else 6, NUM_CHANNELS),
    )
    if fields.get("func") == isa.Func.MAX:  # near the data, where the maximum is decided
        requant.update(bias=rng.integers(-130, 130, NUM_CHANNELS), pre_shift=0)
        if rng.random() < 0.7:
            requant.update(multiplier=2, shift=1)
    if fields.get("func") == isa.Func.PRODUCT:
        requant.update(bias=np.zeros(NUM_CHANNELS, int))
    if taps == "pairs":  # unsigned sums come out as 0 to 99, bit for bit
        sums = np.add.reduceat(np.append(weights, 0), starts[:-1]) * (counts > 0)
        bias = rng.integers(0, 100, NUM_CHANNELS) - 255 * sums
        requant, wide = dict(bias=bias, multiplier=2, shift=1, pre_shift=0), False
    list_words = np.zeros(NUM_CHANNELS, int)
    list_words[:num_lists] = np.diff(word_starts)
    records = encoding.channel_records(
        **requant, src_base=rng.integers(0, 64, NUM_CHANNELS), num_codes=num_codes,
        out_channel=np.arange(NUM_CHANNELS), list_words=list_words,
    )
    out_words = tile_words * NUM_ROWS
    values = dict(
        encoding=sparse, stripes_log2=stripes_log2, out_stripes_log2=stripes_log2,
        ib=rng.choice([12, 17, 24]), last_lanes=rng.integers(1, 9), fill=rng.integers(256),
        table_entries=TABLE, num_channels=NUM_CHANNELS, tile_rows=NUM_ROWS, tile_words=tile_words,
        src_row_step=rng.integers(0, 100), src_word_step=word_step,
        row_limit=stripes * NUM_ROWS, out_base=OUT, out_channel_step=out_words,
        out_row_step=tile_words, out_rows=NUM_ROWS, out_local_rows=NUM_ROWS, **fields,
    )
    clamp = np.sort(rng.integers(-300, 300, 2)) if wide else (-128, 255)
    values.update(clamp_lo=clamp[0], clamp_hi=clamp[1])
    load = dict(out_stripes_log2=stripes_log2, segment=1, last_lanes=8, num_channels=1,
                num_rows=stripes, num_words=SOURCE_WORDS, out_rows=1, out_local_rows=1,
                dram_row_step=SOURCE_WORDS)
    program = Assembly().add(Opcode.LOAD, **load)
    program.add(Opcode.TABLE, table, num_entries=TABLE)
    if values.get("curve"):
        program.add(Opcode.CURVE, rng.integers(0, 1 << 64, isa.CURVE_WORDS, dtype=np.uint64))
    program.add(Opcode.TAPS, encoding.join_stream(records, words, word_starts),
                **{name: int(value) for name, value in values.items()})
    if values.get("acc_keep"):  # take the sums up again, without taps
        records = encoding.channel_records(
            src_base=np.zeros(NUM_CHANNELS, int), multiplier=1, shift=1, pre_shift=9,
            out_channel=np.arange(NUM_CHANNELS),
        )
        again = {**values, "acc_keep": 0, "acc_init": 1, "ib": 17}
        program.add(Opcode.TAPS, records.ravel(), **{n: int(v) for n, v in again.items()})
    program.add(
        Opcode.STORE, stripes_log2=stripes_log2, segment=2, num_channels=NUM_CHANNELS,
        num_rows=stripes * NUM_ROWS, num_words=tile_words, src_base=OUT,
        src_channel_step=out_words, src_row_step=tile_words, src_rows=NUM_ROWS,
        dram_channel_step=stripes * NUM_ROWS * tile_words, dram_row_step=tile_words,
    )
    return program.words(), NUM_CHANNELS * stripes * NUM_ROWS * tile_words, stripes


def inputs_for(rng, num_words: int, taps: str) -> np.ndarray:
    if taps == "pairs":
        return np.full(num_words, 2**64 - 1, np.uint64)
    if taps != "extreme":
        return rng.integers(0, 2**64, num_words, np.uint64)
    lanes = rng.choice(np.array([0, 255, 128, 127], np.uint8), num_words * 8)
    lanes[: num_words * 2] = 255
    return lanes.view(np.uint64)


def check(seed: int, contexts: dict[str, Context], shape, data: str, taps: str, **fields) -> None:
    rng = np.random.default_rng(seed)
    program, output_words, stripes = taps_program(rng, shape, data, taps, **fields)
    inputs = inputs_for(rng, stripes * SOURCE_WORDS, taps)
    expected = golden.run_program(program, inputs, output_words, 0, TARGET)
    for body, context in contexts.items():
        context.load(program, inputs.size, output_words)
        assert np.array_equal(context.run(inputs), expected), (
            f"{body} differs from golden for {shape}, {data}, {taps}, {fields}; repeat with "
            f"RASNA_SEED={seed} pytest {__file__} -x"
        )


@pytest.fixture(scope="module")
def contexts(fast, emulated):
    library = fast(TARGET)
    found = {body: Context(library, body=body) for body in bodies(library)}
    try:
        found["vnni, emulated"] = Context(emulated(TARGET), body="vnni")
    except pytest.skip.Exception:
        pass
    assert "plain" in found
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("taps", ["random", "extreme", "pairs", "masked", "none"])
def test_mac_is_exact(contexts, shape, taps):
    for i, data in enumerate(("unsigned", "signed", "mixed")):
        check(SEED + i, contexts, shape, data, taps)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("taps", ["random", "masked", "none"])
def test_max_is_exact(contexts, shape, taps):
    for i, data in enumerate(("unsigned", "signed", "mixed")):
        check(SEED + 10 + i, contexts, shape, data, taps, func=isa.Func.MAX)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("curve", [0, 1])
def test_products_are_exact(contexts, shape, curve):
    for i, data in enumerate(("unsigned", "signed", "mixed")):
        check(SEED + 40 + i, contexts, shape, data, "random", func=isa.Func.PRODUCT, curve=curve)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("func", [isa.Func.MAC, isa.Func.MAX])
def test_curves_are_looked_up_in_every_lane(contexts, shape, func):
    for i, taps in enumerate(("random", "masked")):
        check(SEED + 50 + i, contexts, shape, "mixed", taps, func=func, curve=1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("func", list(isa.Func))
def test_channels_share_a_list_from_their_own_bases(contexts, shape, func):
    for i, taps in enumerate(("random", "masked")):
        check(SEED + 30 + i, contexts, shape, "mixed", taps, func=func, list_shared=1)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s[0] * NUM_ROWS <= 8], ids=str)
@pytest.mark.parametrize("func", [isa.Func.MAC, isa.Func.MAX])
def test_accumulators_are_kept(contexts, shape, func):
    for i, data in enumerate(("unsigned", "signed", "mixed")):
        check(SEED + 20 + i, contexts, shape, data, "masked", func=func, acc_keep=1)


def test_every_requantisation_is_exact(contexts):
    """Every pre_shift, shift and ib, with the multipliers at both ends."""
    for seed in range(SEED + 100, SEED + 180):
        check(seed, contexts, (2, 8, 1), "mixed", "extreme")
