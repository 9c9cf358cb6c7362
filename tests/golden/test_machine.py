"""The golden machine: equal to plain loops, and strict about what docs/machine.md forbids."""

import os

import numpy as np
import pytest

from rasna import encoding, isa
from rasna.assembler import assemble
from rasna.errors import GoldenError
from rasna.golden import Machine, run_program
from rasna.targets import TARGETS
from tests.golden.naive_machine import run_naive
from tests.programs.random_programs import random_program

SEED = int(os.environ.get("RASNA_SEED", "0"))
NUM_PROGRAMS = int(os.environ.get("RASNA_PROGRAMS", "25"))


@pytest.mark.parametrize("index", range(NUM_PROGRAMS))
def test_random_programs_equal_plain_loops(index):
    seed = SEED + index
    print(f"repeat: RASNA_SEED={seed} RASNA_PROGRAMS=1 pytest {__file__} -k plain_loops")
    program, inputs, output_words, scratch_words = random_program(seed, "tiny")
    result = run_program(program, inputs, output_words, scratch_words, "tiny")
    assert output_words > 0
    assert result.tolist() == run_naive(
        program, inputs, output_words, scratch_words, TARGETS["tiny"]
    )


def test_random_programs_use_every_field():
    """Every field of every opcode, the table and the records takes several values."""
    seen: dict[tuple, set] = {}
    for seed in range(40):
        target = "tiny" if seed < 30 else "small"  # tiny drains one word at a time
        program, inputs, output_words, scratch_words = random_program(seed, target)
        machine = Machine(program, inputs, output_words, scratch_words, target)
        while not machine.done:
            opcode, fields = machine.step()
            for name, value in fields.items():
                seen.setdefault((opcode.name, name), set()).add(value)
            if opcode is isa.Opcode.TAPS:
                record = isa.unpack(isa.CHANNEL_RECORD, program[fields["stream_addr"] :][:2])
                for name, value in record.items():
                    seen.setdefault(("record", name), set()).add(value)
            if opcode is isa.Opcode.TABLE:
                for name, column in machine.state.table.items():
                    seen.setdefault(("entry", name), set()).update(column.tolist())
    wanted = {
        (o.name, f.name) for o, (_, fields) in isa.INSTRUCTIONS.items() for f in fields
        if f.name != "opcode"
    }
    wanted |= {("record", f.name) for f in isa.CHANNEL_RECORD}
    wanted |= {("entry", f.name) for f in isa.TABLE_ENTRY}
    assert {key for key in wanted if len(seen.get(key, ())) < 2} == set()


def test_a_larger_target_equals_plain_loops():
    program, inputs, output_words, scratch_words = random_program(SEED, "pynq-z2")
    result = run_program(program, inputs, output_words, scratch_words, "pynq-z2")
    assert result.tolist() == run_naive(
        program, inputs, output_words, scratch_words, TARGETS["pynq-z2"]
    )


def test_a_planted_fault_in_the_weights_changes_the_result():
    text = _conv(taps="0:3")
    good = assemble(text)
    bad = assemble(text.replace("0:3", "0:2"))
    assert (_run(good) != _run(bad)).any()


def test_the_extremes_fit_the_accumulator():
    """The longest dense list of tiny, every tap 127 x 255, is exact."""
    length = TARGETS["tiny"].list_words * isa.DENSE_CODES_PER_WORD
    taps = " ".join(f"{k}:127" for k in range(length))
    words = _run(assemble(_conv(taps=taps, fill=255, pre_shift=13, ib=24)))
    expected = min(255, ((length * 127 * 255 >> 13) + 1) >> 1)
    assert words.view(np.uint8).tolist() == [expected] * 8


CONV = """
FILL fill={fill} num_words=8 num_blocks=1 {source}
TABLE stream=t
{before}
TAPS encoding={encoding} table_entries=16 num_channels=1 tile_rows=1 tile_words=1 last_lanes=8 \
ib={ib} clamp_lo={clamp_lo} clamp_hi=255 row_limit=1 out_base={out_base} out_rows=1 \
out_local_rows=1 {more} stream=c
STORE segment=2 num_channels=1 num_rows=1 num_words=1 src_base=16 src_rows=1
END
table t
{table}
channels c
  multiplier=1 shift=1 pre_shift={pre_shift} bias={bias} {record}
  taps {taps}
"""


def _conv(**changes):
    values = dict(
        fill=7, encoding=0, ib=17, clamp_lo=0, more="", pre_shift=0, taps="0:3", source="",
        bias=0, record="", before="", out_base=16, table="offset=0\n" * 16,
    )
    unknown = set(changes) - set(values)
    assert not unknown
    return CONV.format(**{**values, **changes})


def _run(assembly, output_words=1):
    return run_program(
        assembly.words, assembly.inputs, output_words, assembly.scratch_words, "tiny"
    )


KEEP = "acc_keep=1 tile_words=16 acc_base=1"
REFUSED = {
    "stripes": (
        dict(more="stripes_log2=3"),
        "instruction 2 (TAPS), stripes_log2: must be 0 to 2, is 3",
    ),
    "lanes": (dict(more="last_lanes=0"), "last_lanes: must be 1 to 8, is 0"),
    "ib": (dict(ib=11), "instruction 2 (TAPS), ib: must be 12 to 24, is 11"),
    "func": (dict(more="func=3"), "instruction 2 (TAPS), func: must be 0 to 2, is 3"),
    "product_of_kept_sums": (
        dict(more="func=2 acc_init=1"), "acc_init: must be 0 with PRODUCT, is 1"
    ),
    "product_that_is_kept": (
        dict(more="func=2 acc_keep=1"), "acc_keep: must be 0 with PRODUCT, is 1"
    ),
    "product_with_a_bias": (
        dict(more="func=2", bias=3), "bias: channel 0: must be 0 with PRODUCT, is 3"
    ),
    "curve": (dict(more="curve=1"), "instruction 2 (TAPS), curve: no CURVE was loaded before"),
    "clamp": (dict(clamp_lo=256), "clamp_lo: must be at most clamp_hi 255, is 256"),
    "table_entries": (
        dict(more="table_entries=64"), "table_entries: must be 16 to 32, is 64"
    ),
    "count": (
        dict(more="tile_rows=0"), "instruction 2 (TAPS), tile_rows: must be at least 1, is 0"
    ),
    "multiplier": (
        dict(record="multiplier=0"), "multiplier: channel 0: must be 1 to 32767, is 0"
    ),
    "shift": (dict(record="shift=32"), "shift: channel 0: must be 1 to 31, is 32"),
    "pre_shift": (dict(pre_shift=32), "pre_shift: channel 0: must be 0 to 31, is 32"),
    "list_words": (
        dict(record="list_words=2"), "list_words: channel 0: must be 1, is 2"
    ),
    "list_too_long": (
        dict(taps="128:1"), "list_words: channel 0: must be at most 16, is 17"
    ),
    "source_low": (
        dict(taps="1:1", table="offset=0\noffset=-1\n" + "offset=0\n" * 14),
        "src_base: channel 0: vectors from byte -1 to 7 lie outside 0 to 1023",
    ),
    "source_high": (
        dict(record="src_base=1017"),
        "src_base: channel 0: vectors from byte 1017 to 1024 lie outside 0 to 1023",
    ),
    "source_of_a_zero_weight": (
        dict(record="src_base=1017", taps="0:0"),
        "src_base: channel 0: vectors from byte 1017 to 1024 lie outside 0 to 1023",
    ),
    "unwritten_byte": (
        dict(record="src_base=60"),
        "channel 0, stripe 0, row 0, word 0, lane 4 comes from a byte that was never written",
    ),
    "other_stripes": (
        dict(source="stripes_log2=1"),
        "lane 0 comes from a byte that was written with another number of stripes",
    ),
    "written_here": (
        dict(out_base=0),
        "lane 0 comes from a byte of a word that the same instruction writes",
    ),
    "overflow": (
        dict(bias=2**31 - 1), "lane 0 comes from a sum outside int32",
    ),
    "unwritten_accumulator": (
        dict(more="acc_init=1"), "lane 0 comes from an accumulator that was never written",
    ),
    "accumulator_range": (
        dict(more=KEEP), "acc_base: accumulator 16 lies outside 0 to 15"
    ),
    "map_range": (dict(out_base=128), "out_base: map word 128 lies outside 0 to 127"),
    "twice": (
        dict(more="tile_rows=2 row_limit=2 out_rows=2 out_local_rows=2"),
        "out_base: map word 16 is written twice",
    ),
    "split_row_step": (
        dict(more="out_split=1 out_phase_step=1 out_row_step=3"),
        "instruction 2 (TAPS), out_row_step: must be even with out_split, is 3",
    ),
    "split_channel_step": (
        dict(more="out_split=1 out_phase_step=1 out_channel_step=1"),
        "instruction 2 (TAPS), out_channel_step: must be even with out_split, is 1",
    ),
    "split_phase_step": (
        dict(more="out_split=1 out_phase_step=2 acc_keep=1"),
        "instruction 2 (TAPS), out_phase_step: must be odd with out_split, is 2",
    ),
    "split_twice": (
        dict(
            taps="", before="FILL num_words=1 num_blocks=1",
            more="out_split=1 out_phase_step=1 tile_words=4 out_rows=1",
        ),
        "out_base: map word 17 is written twice",
    ),
    "split_half_of_other_stripes": (
        dict(
            before="FILL num_words=2 num_blocks=1 out_base=16 stripes_log2=1",
            more="out_split=1 out_phase_step=1",
        ),
        "instruction 4 (STORE), src_base: slice 0, byte 132 is a byte that was never written",
    ),
    "table_not_written": (
        dict(table="offset=0\n" * 4, taps="4:1"),
        "num_codes: channel 0: table entry 4 was never written",
    ),
    "table_too_long": (
        dict(table="offset=0\n" * 33), "num_entries: must be at most 32, is 33"
    ),
    "fill_range": (
        dict(before="FILL num_words=2 num_blocks=1 out_base=127"),
        "instruction 2 (FILL), out_base: map word 128 lies outside 0 to 127",
    ),
    "load_segment": (
        dict(before="LOAD segment=2 num_channels=1 num_rows=1 num_words=1 last_lanes=1"),
        "instruction 2 (LOAD), segment: must be INPUT or SCRATCH, is OUTPUT",
    ),
    "load_range": (
        dict(before="LOAD segment=1 num_channels=1 num_rows=1 num_words=1 last_lanes=1"),
        "dram_addr: word of INPUT 0 lies outside 0 to -1",
    ),
    "store_unwritten": (
        dict(before="STORE segment=2 num_channels=1 num_rows=1 num_words=1 src_base=9 src_rows=1"),
        "instruction 2 (STORE), src_base: slice 0, byte 72 is a byte that was never written",
    ),
    "store_rows": (
        dict(before="STORE segment=2 num_channels=1 num_rows=2 num_words=1 src_rows=1"),
        "num_rows: must be at most 1 stripes of 1 rows, is 2",
    ),
    "move_last": (
        dict(before="MOVE table_entries=16 num_channels=1 num_rows=1 num_words=1 out_base=20"),
        "table_entries: table entry 15 must have last set",
    ),
    "move_order": (
        dict(
            table="offset=0 last=1\n" * 16,
            before="MOVE table_entries=1 num_channels=1 num_rows=1 num_words=2 "
            "src_word_step=8 out_base=1 out_word_step=1",
        ),
        "instruction 2 (MOVE), src_base: byte 8 is a byte of a word that the same instruction "
        "writes before",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_page_forbids_is_refused(name):
    changes, message = REFUSED[name]
    with pytest.raises(GoldenError) as caught:
        _run(assemble(_conv(**changes)))
    assert message in str(caught.value)
    assert caught.value.instruction is not None


def test_the_unchanged_program_is_accepted():
    assert _run(assemble(_conv())).view(np.uint8).tolist() == [11] * 8  # (7*3 + 1) >> 1


def test_output_must_be_written_and_end_must_come():
    program = assemble(_conv())
    with pytest.raises(GoldenError, match="word 1 of OUTPUT was never written"):
        _run(program, output_words=2)
    with pytest.raises(GoldenError, match="the program of 8 words has no END instruction"):
        run_program(program.words[:8], [], 0, 0, "tiny")
    broken = program.words.copy()
    broken[8] = 99
    with pytest.raises(GoldenError, match="instruction 1: opcode 99 is not one of END, FILL"):
        run_program(broken, [], 1, 0, "tiny")


def test_lanes_that_reach_nothing_may_be_poison():
    """The vector runs over the end of what was written; the lanes there are replaced by fill."""
    words = _run(assemble(_conv(record="src_base=60", more="last_lanes=4 fill=9")))
    assert words.view(np.uint8).tolist() == [11] * 4 + [9] * 4


def test_weight_zero_does_not_read():
    words = _run(assemble(_conv(record="src_base=200", taps="0:0", bias=20)))
    assert words.view(np.uint8).tolist() == [10] * 8


def test_move_carries_poison_until_it_is_read():
    move = "MOVE table_entries=1 num_channels=1 num_rows=1 num_words=1 src_base=60 out_base=0"
    changes = dict(before=move, table="offset=0 last=1\n" * 16)
    with pytest.raises(GoldenError, match="lane 4 comes from a byte that was never written"):
        _run(assemble(_conv(**changes)))
    words = _run(assemble(_conv(**changes, more="last_lanes=4")))
    assert words.view(np.uint8).tolist() == [11] * 4 + [0] * 4


def test_scratch_must_be_written_before_it_is_loaded():
    load = "LOAD segment=3 num_channels=1 num_rows=1 num_words=1 last_lanes=8 out_local_rows=1"
    text = ".scratch 1\n" + _conv(before=load)
    with pytest.raises(GoldenError, match="word 0 of SCRATCH was never written"):
        _run(assemble(text))


def test_the_inputs_are_not_modified():
    program, inputs, output_words, scratch_words = random_program(3, "tiny")
    copies = program.copy(), inputs.copy()
    first = run_program(program, inputs, output_words, scratch_words, "tiny")
    second = run_program(program, inputs, output_words, scratch_words, "tiny")
    assert (first == second).all()
    assert (program == copies[0]).all() and (inputs == copies[1]).all()


def test_stream_words_must_be_exact():
    program = assemble(_conv()).words
    first = isa.INSTRUCTION_WORDS * 2
    fields = isa.decode(program[first : first + 8])[1]
    for change, message in ((1, "take 3 words, not 4"), (-1, "ends inside its list")):
        changed = program.copy()
        fields_changed = {**fields, "stream_words": fields["stream_words"] + change}
        changed[first : first + 8] = encoding.instruction(isa.Opcode.TAPS, **fields_changed)
        changed = np.concatenate([changed, np.zeros(1, np.uint64)])
        with pytest.raises(GoldenError, match=message):
            run_program(changed, [], 1, 0, "tiny")
