"""Tap lists, records and table entries as words: vectorised equals one by one."""

import os

import numpy as np
import pytest

from rasna import encoding, isa

SEED = int(os.environ.get("RASNA_SEED", "0"))


def _plain_list(weights, positions, kind):
    """Words and number of codes, straight from docs/machine.md."""
    codes, at = [], 0
    for weight, position in zip(weights, positions, strict=True):
        if kind == isa.Encoding.DENSE:
            codes += [0] * (position - at)
        else:
            while position - at > isa.SPARSE_RUN_MAX:
                codes.append(isa.SPARSE_RUN_MAX << 8)
                at += isa.SPARSE_RUN_MAX + 1
        run = 0 if kind == isa.Encoding.DENSE else position - at
        codes.append(run << 8 | int(weight) & 0xFF)
        at = position + 1
    per_word, bits = ((8, 8), (5, 12))[kind]
    words = [
        sum(code << bits * i for i, code in enumerate(codes[k : k + per_word]))
        for k in range(0, len(codes), per_word)
    ]
    return words, len(codes)


def _random_lists(rng):
    weights, positions, starts = [], [], [0]
    for _ in range(rng.integers(1, 7)):
        count = int(rng.integers(0, 25))
        reach = int(rng.choice([25, 90, 700]))
        positions.append(np.sort(rng.choice(reach, count, replace=False)))
        weights.append(rng.integers(-128, 128, count).astype(np.int8))
        starts.append(starts[-1] + count)
    return weights, positions, starts


@pytest.mark.parametrize("kind", list(isa.Encoding))
@pytest.mark.parametrize("index", range(40))
def test_random_lists_equal_one_by_one(kind, index):
    seed = SEED + index
    print(f"repeat: RASNA_SEED={seed} pytest {__file__} -k random_lists")
    weights, positions, starts = _random_lists(np.random.default_rng(seed))
    words, word_starts, num_codes = encoding.encode_lists(
        np.concatenate(weights), np.concatenate(positions), starts, kind
    )
    for c in range(len(weights)):
        expected, count = _plain_list(weights[c], positions[c].tolist(), kind)
        own = words[word_starts[c] : word_starts[c + 1]]
        assert own.tolist() == expected and num_codes[c] == count
        weight, position = encoding.decode_list(own, count, kind)
        kept = weights[c] != 0
        assert weight[weight != 0].tolist() == weights[c][kept].tolist()
        assert position[weight != 0].tolist() == positions[c][kept].tolist()


def test_gaps_at_the_border_of_an_escape():
    for gap, codes in ((15, 2), (16, 3), (31, 3), (32, 4)):
        words, num_codes = encoding.encode_list([1, 2], [0, gap + 1], isa.Encoding.SPARSE)
        weight, position = encoding.decode_list(words, num_codes, isa.Encoding.SPARSE)
        assert num_codes == codes
        assert position[weight != 0].tolist() == [0, gap + 1]


def test_empty_list_has_no_words():
    for kind in isa.Encoding:
        words, num_codes = encoding.encode_list([], [], kind)
        assert words.size == 0 and num_codes == 0


@pytest.mark.parametrize(
    "weights, positions, message",
    [
        ([1, 2], [3, 3], "in list 0 tap 1 has position 3 after 3"),
        ([1], [-1], "in list 0 tap 0 has position -1 after -1"),
        ([1, 2], [3], "2 weights and 1 positions were given"),
    ],
)
def test_wrong_positions_are_refused(weights, positions, message):
    with pytest.raises(ValueError, match=message):
        encoding.encode_list(weights, positions, isa.Encoding.SPARSE)


def test_wrong_starts_are_refused():
    with pytest.raises(ValueError, match="starts must rise from 0 to the number of taps, 2"):
        encoding.encode_lists([1, 2], [0, 1], [0, 1], isa.Encoding.DENSE)


@pytest.mark.parametrize("fields, words", [(isa.TABLE_ENTRY, 1), (isa.CHANNEL_RECORD, 2)])
def test_columns_equal_single_rows(fields, words):
    rng = np.random.default_rng(SEED)
    columns = {f.name: rng.integers(f.lo, f.hi + 1, 50) for f in fields}
    packed = encoding.pack_arrays(fields, words, "row", **columns)
    for i in range(50):
        row = {name: int(column[i]) for name, column in columns.items()}
        assert packed[i].tolist() == isa.pack(fields, words, "row", **row)
    unpacked = encoding.unpack_arrays(fields, packed)
    assert all((unpacked[name] == columns[name]).all() for name in columns)


def test_a_value_outside_its_field_names_row_and_field():
    with pytest.raises(ValueError) as caught:
        encoding.channel_records(shift=[1, 300])
    assert str(caught.value) == "channel record 1: field shift holds 0 to 255, 300 was given"


def test_a_shared_list_follows_the_first_record():
    words, starts, num_codes = encoding.encode_lists([1, 2], [0, 9], [0, 2], isa.Encoding.DENSE)
    records = encoding.channel_records(bias=[1, 2, 3])
    stream = encoding.join_stream(records, words, starts)
    assert stream[:2].tolist() == records[0].tolist()
    assert stream[2:4].tolist() == words.tolist()
    assert stream[4:].tolist() == records[1:].ravel().tolist()
    with pytest.raises(ValueError, match="3 channel records need as many lists or one shared"):
        encoding.join_stream(records, words, [0, 1, 2])
