"""What the validator refuses, and the sentence that says so."""

from __future__ import annotations

import numpy as np
import pytest
from sim_harness import Context, SimError
from small_programs import RECORD, Assembly, copy_program, taps_program

from rasna import encoding, isa
from rasna.isa import Error, Opcode

LOAD = dict(segment=1, last_lanes=8, num_channels=1, num_rows=1, num_words=4, out_rows=1,
            out_local_rows=1)
STORE = dict(segment=2, num_channels=1, num_rows=1, num_words=4, src_rows=1)
FILL = dict(num_words=1, num_blocks=1)
MOVE = dict(table_entries=1, num_channels=1, num_rows=1, num_words=1)
FIELD, MAP = Error.BAD_FIELD, Error.MAP_RANGE


def program(opcode: Opcode, **values: int) -> np.ndarray:
    return Assembly().add(opcode, **values).words()


def move(entry: dict | None = None, **values: int) -> np.ndarray:
    table = encoding.table_entries(**{"offset": [0], "last": 1, **(entry or {})})
    assembly = Assembly().add(Opcode.TABLE, table, num_entries=1)
    return assembly.add(Opcode.MOVE, **{**MOVE, **values}).words()


def stream(num_words: int, **record: int) -> np.ndarray:
    """A channel record and a list of so many words of weight 1."""
    return np.concatenate([
        encoding.channel_record(**{**RECORD, **record}), np.full(num_words, 1, np.uint64)
    ])


# (program, code, text without the sentence of the code)
CASES = [
    (np.zeros(0, np.uint64), Error.NO_END,
     "the program of 0 words has no END among its 0 instructions; END must be the last"),
    (copy_program().words()[:-8], Error.NO_END,
     "the program of 16 words has no END among its 2 instructions; END must be the last"),
    (np.full(8, 0xFF, np.uint64), Error.BAD_OPCODE,
     "instruction 0 (?): opcode is 255, allowed are 0 to 7"),
    (program(Opcode.FILL, **FILL, stripes_log2=3), FIELD,
     "instruction 0 (FILL): stripes_log2 is 3, allowed are 0 to 2"),
    (program(Opcode.FILL, num_words=1), FIELD,
     "instruction 0 (FILL): num_blocks is 0, allowed are 1 to 65535"),
    (program(Opcode.FILL, num_words=2, num_blocks=2, block_step=100, out_base=28), MAP,
     "instruction 0 (FILL): the words from out_base on reach from 28 to 129, allowed are 0 to "
     "127"),
    (program(Opcode.LOAD, **{**LOAD, "segment": 2}), FIELD,
     "instruction 0 (LOAD): segment is 2 (OUTPUT), allowed are 1 (INPUT) and 3 (SCRATCH)"),
    (program(Opcode.LOAD, **{**LOAD, "last_lanes": 9}), FIELD,
     "instruction 0 (LOAD): last_lanes is 9, allowed are 1 to 8"),
    (program(Opcode.LOAD, **{**LOAD, "num_words": 5}), Error.DRAM_RANGE,
     "instruction 0 (LOAD): its counts and steps from dram_addr on reach word 4 of the segment "
     "INPUT, which has 4"),
    (program(Opcode.LOAD, **LOAD, out_base=125), MAP,
     "instruction 0 (LOAD): out_base 125 with channel 0 and local row 0 writes up to word 128, "
     "allowed are 0 to 127"),
    (program(Opcode.LOAD, **LOAD, circular_rows=1), FIELD,
     "instruction 0 (LOAD): out_height is 0, allowed are 1 to 65535"),
    (program(Opcode.LOAD, **LOAD, circular_rows=1, out_height=2, out_row=2), FIELD,
     "instruction 0 (LOAD): its rows with out_row 2 are 2 to 2, allowed are 0 to 1 "
     "(circular_rows)"),
    (program(Opcode.LOAD, **LOAD, circular_rows=1, out_height=2, out_halo_top=3), FIELD,
     "instruction 0 (LOAD): out_halo_top is 3, allowed are 0 to 2"),
    (program(Opcode.LOAD, **LOAD, out_split=1, out_phase_step=2), FIELD,
     "instruction 0 (LOAD): out_phase_step is 2, required is an odd number (out_split)"),
    (program(Opcode.LOAD, **LOAD, out_split=1, out_phase_step=3, out_row_step=5), FIELD,
     "instruction 0 (LOAD): out_row_step is 5, required is an even number (out_split)"),
    (program(Opcode.LOAD, **LOAD, out_split=1, out_phase_step=3, out_base=124), MAP,
     "instruction 0 (LOAD): out_base 124 with channel 0 and local row 0 writes up to word 128, "
     "allowed are 0 to 127"),
    (taps_program({"out_split": 1, "out_phase_step": 3, "out_channel_step": 7}), FIELD,
     "instruction 2 (TAPS): out_channel_step is 7, required is an even number (out_split)"),
    (program(Opcode.STORE, **{**STORE, "segment": 1}), FIELD,
     "instruction 0 (STORE): segment is 1 (INPUT), allowed are 2 (OUTPUT) and 3 (SCRATCH)"),
    (program(Opcode.STORE, **{**STORE, "num_rows": 3}, stripes_log2=1), FIELD,
     "instruction 0 (STORE): num_rows is 3, allowed are 1 to 2"),
    (program(Opcode.STORE, **STORE, dram_addr=1), Error.DRAM_RANGE,
     "instruction 0 (STORE): its counts and steps from dram_addr on reach word 4 of the segment "
     "OUTPUT, which has 4"),
    (program(Opcode.STORE, **STORE, src_base=1, src_halo_top=2, src_row_step=64), MAP,
     "instruction 0 (STORE): the words from src_base on reach from 1 to 132, allowed are 0 to "
     "127"),
    (program(Opcode.TABLE, num_entries=33), Error.TABLE_RANGE,
     "instruction 0 (TABLE): num_entries is 33, allowed are 1 to 32"),
    (program(Opcode.TABLE, num_entries=2, stream_addr=15), Error.STREAM_RANGE,
     "instruction 0 (TABLE): stream_addr is 15 and the stream has 2 words, but the program has "
     "16"),
    (program(Opcode.MOVE, **MOVE), Error.TABLE_RANGE,
     "instruction 0 (MOVE): table_entries uses table entry 0, but TABLE has loaded only 0"),
    (move({"last": 0}), FIELD,
     "instruction 1 (MOVE): last of table entry 0 is 0, required is 1"),
    (move({"offset": [-1]}), MAP,
     "instruction 1 (MOVE): the bytes of table entry 0 (offset -1) reach from -1 to 6, allowed "
     "are 0 to 1023"),
    (move({"out_offset": 120}, num_words=5, out_word_step=2), MAP,
     "instruction 1 (MOVE): the words of table entry 0 (out_offset 120) reach from 120 to 128, "
     "allowed are 0 to 127"),
    (taps_program({"ib": 11}), FIELD,
     "instruction 2 (TAPS): ib is 11, allowed are 12 to 24"),
    (taps_program({"func": 3}), FIELD,
     "instruction 2 (TAPS): func is 3, allowed are 0 to 2"),
    (taps_program({"func": 2, "acc_init": 1}), FIELD,
     "instruction 2 (TAPS): acc_init of a PRODUCT is 1, allowed are 0 to 0"),
    (taps_program({"func": 2, "acc_keep": 1}), FIELD,
     "instruction 2 (TAPS): acc_keep of a PRODUCT is 1, allowed are 0 to 0"),
    (taps_program({"func": 2}, record={"bias": -1}), FIELD,
     "instruction 2 (TAPS): bias of a PRODUCT of channel record 0 is -1, allowed are 0 to 0"),
    (taps_program({"curve": 1}), FIELD,
     "instruction 2 (TAPS): curve is 1, but no CURVE comes before"),
    (program(Opcode.CURVE), Error.STREAM_RANGE,
     "instruction 0 (CURVE): stream_addr is 16 and the stream has 32 words, but the program has "
     "16"),
    (taps_program({"clamp_lo": 5, "clamp_hi": 4}), FIELD,
     "instruction 2 (TAPS): clamp_lo is 5, allowed is at most clamp_hi, 4"),
    (taps_program({"table_entries": 15}), Error.TABLE_RANGE,
     "instruction 2 (TAPS): table_entries is 15, allowed are 16 to 32"),
    (taps_program({"tile_rows": 40000}), FIELD,
     "instruction 2 (TAPS): tile_rows * tile_words is 80000, allowed are 1 to 65536"),
    (taps_program({"stream_addr": 10**6}), Error.STREAM_RANGE,
     "instruction 2 (TAPS): stream_addr is 1000000 and the stream has 3 words, but the program "
     "has 59"),
    (taps_program({"stream_words": 1}), Error.STREAM_RANGE,
     "instruction 2 (TAPS): stream_words is 1, but channel record 0 would end at word 2"),
    (taps_program({"stream_words": 2}), Error.STREAM_RANGE,
     "instruction 2 (TAPS): stream_words is 2, but the list of channel record 0 would end at "
     "word 3"),
    (taps_program(stream=stream(2)), Error.STREAM_RANGE,
     "instruction 2 (TAPS): stream_words is 4, but its 1 channel records and their lists have 3 "
     "words"),
    (taps_program(record={"multiplier": 0}), FIELD,
     "instruction 2 (TAPS): multiplier of channel record 0 is 0, allowed are 1 to 32767"),
    (taps_program(record={"shift": 32}), FIELD,
     "instruction 2 (TAPS): shift of channel record 0 is 32, allowed are 1 to 31"),
    (taps_program(record={"pre_shift": 32}), FIELD,
     "instruction 2 (TAPS): pre_shift of channel record 0 is 32, allowed are 0 to 31"),
    (taps_program(record={"num_codes": 9}), Error.STREAM_RANGE,
     "instruction 2 (TAPS): list_words of channel record 0 is 1, allowed are 2 to 2"),
    (taps_program(stream=stream(17, num_codes=136, list_words=17)), Error.LIST_RANGE,
     "instruction 2 (TAPS): list_words of channel record 0 is 17, allowed are 0 to 16"),
    (taps_program(
        {"list_shared": 1, "num_channels": 2, "stream_words": 5},
        stream=np.concatenate([stream(1), stream(0, num_codes=2, list_words=0)])),
     Error.STREAM_RANGE,
     "instruction 2 (TAPS): num_codes of channel record 1 is 2, allowed are 1 to 1"),
    (taps_program(record={"src_base": 1010}), MAP,
     "instruction 2 (TAPS): the bytes that the taps of channel record 0 read (src_base 1010) "
     "reach from 1010 to 1025, allowed are 0 to 1023"),
    (taps_program(entries={"offset": np.full(16, -2)}), MAP,
     "instruction 2 (TAPS): the bytes that the taps of channel record 0 read (src_base 0) "
     "reach from -2 to 13, allowed are 0 to 1023"),
    (taps_program({"table_entries": 32}, record={"num_codes": 24, "list_words": 3},
                  stream=stream(3, num_codes=24, list_words=3)), Error.TABLE_RANGE,
     "instruction 2 (TAPS): the list of channel record 0 uses table entry 23, but TABLE has "
     "loaded only 16"),
    (taps_program({"acc_keep": 1, "acc_base": 15}), Error.ACC_RANGE,
     "instruction 2 (TAPS): the accumulators from acc_base on reach from 15 to 16, allowed are "
     "0 to 15"),
    (taps_program(record={"out_channel": 60}, taps={"out_channel_step": 2}), MAP,
     "instruction 2 (TAPS): out_base 8 with channel 60 and local row 0 writes up to word 129, "
     "allowed are 0 to 127"),
]


@pytest.mark.parametrize("kind", ["fast", "exact"])
@pytest.mark.parametrize("words, code, text", CASES, ids=[c[2].split(": ")[-1] for c in CASES])
def test_bad_programs_are_refused(kind, words, code, text, request):
    with Context(request.getfixturevalue(kind)("tiny")) as context:
        with pytest.raises(SimError) as error:
            context.load(words, 4, 4)
    if text.startswith("instruction"):
        text += f" ({isa.ERROR_TEXT[code]})"
        assert error.value.instruction == int(text.split()[1])
    assert (error.value.text, error.value.code) == (text, code)


@pytest.mark.parametrize("words", [
    copy_program().words(), taps_program(), move(),
    taps_program({"out_split": 1, "out_phase_step": 1, "out_base": 8}),
    taps_program(record={"src_base": 1008}),  # the last vectors that lie inside
    taps_program(record={"out_channel": 59}, taps={"out_channel_step": 2}),
    taps_program({"acc_keep": 1, "acc_base": 14}),
    taps_program({"func": 2}),  # PRODUCT
    copy_program().add(Opcode.CURVE, np.zeros(isa.CURVE_WORDS, np.uint64)).words(),
    taps_program(record={"num_codes": 0, "list_words": 0},
                 stream=stream(0, num_codes=0, list_words=0)),
])
def test_their_legal_neighbours_are_accepted(fast, exact, words):
    for library in (fast("tiny"), exact("tiny")):
        with Context(library) as context:
            context.load(words, 4, 4)
            assert context.run(np.arange(4)).size == 4


def test_every_error_code_of_the_validator_has_a_case():
    codes = {code for _, code, _ in CASES}
    of_the_validator = {e for e in Error if Error.OK < e <= Error.NO_END}
    assert codes == of_the_validator


def test_endless_programs_are_refused(fast):
    words = program(Opcode.FILL, num_words=128, num_blocks=65535)
    with Context(fast("tiny"), step_limit=10**6) as context:
        with pytest.raises(SimError) as error:
            context.load(words)
    assert error.value.text == (
        "instruction 0 (FILL): its counts give 8388480 steps, allowed are at most 1000000 "
        "(option step_limit) (a field holds a value that the ISA forbids)"
    )
