"""The hardware's step functions against the golden model: equal on every bit.

RASNA_SEEDS=first:last runs other random programs than the default ones.
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from exact_object import COMPILERS, ROOT, build, run
from random_programs import random_program

from rasna import cycles, isa
from rasna.golden import run_program
from rasna.isa import Opcode

DEFAULT_SEEDS = {"tiny": range(120), "small": range(80), "pynq-z2": range(25)}

pytestmark = pytest.mark.skipif(not COMPILERS, reason="neither g++ nor clang++ is installed")


def seeds_of(target: str) -> range:
    text = os.environ.get("RASNA_SEEDS")
    return range(*map(int, text.split(":"))) if text else DEFAULT_SEEDS[target]


def repeat_command(seed: int) -> str:
    return f"repeat with RASNA_SEEDS={seed}:{seed + 1} pytest tests/hls/test_exact_run.py"


def first_difference(library, target: str, seeds: range) -> tuple[int | None, int]:
    """(first seed whose outputs differ or None, number of words that were compared)."""
    compared = 0
    for seed in seeds:
        program, inputs, output_words, scratch_words = random_program(seed, target)
        expected = run_program(program, inputs, output_words, scratch_words, target)
        result = run(library, program, inputs, output_words, scratch_words)
        compared += len(expected)
        if result.error != isa.Error.OK or not np.array_equal(result.output, expected):
            return seed, compared
    return None, compared


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Objects by target."""
    return {t: build(tmp_path_factory.mktemp(t), t, COMPILERS[0]) for t in ("tiny", "small")}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("target", DEFAULT_SEEDS)
def test_random_programs_equal_golden(tmp_path, target, compiler):
    library = build(tmp_path, target, compiler)
    seed, compared = first_difference(library, target, seeds_of(target))
    assert seed is None, f"{target}, {compiler}: seed {seed} differs; {repeat_command(seed)}"
    assert compared > 0


def test_no_undefined_behaviour_in_random_programs(tmp_path):
    flags = ("-fsanitize=undefined", "-fno-sanitize-recover=all", "-fno-wrapv")
    library = build(tmp_path, "tiny", COMPILERS[0], *flags)
    assert first_difference(library, "tiny", range(40))[0] is None


def test_an_unknown_opcode_ends_the_run_with_its_number(libraries):
    words = isa.encode(Opcode.FILL, num_words=1, num_blocks=1) + [0xEE] + [0] * 7
    result = run(libraries["tiny"], np.array(words, np.uint64), np.zeros(1, np.uint64), 1, 1)
    assert (result.error, result.last_instruction) == (isa.Error.BAD_OPCODE, 1)


@pytest.mark.parametrize("target", ["tiny", "small"])
@pytest.mark.parametrize("seed", range(40))
def test_the_tile_loop_runs_as_often_as_the_cycle_formula_says(libraries, target, seed):
    program, inputs, output_words, scratch_words = random_program(seed, target)
    result = run(libraries[target], program, inputs, output_words, scratch_words)
    # the loop sees that it is done one iteration after the last one that did something
    pipeline = cycles.INSTRUCTION_CYCLES + cycles.TILES_PIPELINE_CYCLES - 1
    for number, iterations in enumerate(result.iterations):
        opcode, fields = isa.decode(program[8 * number : 8 * number + 8])
        if opcode == Opcode.TAPS:
            first = fields["stream_addr"]
            stream = program[first : first + fields["stream_words"]]
            estimate = cycles.instruction_cycles(opcode, fields, target, stream)
            assert iterations == estimate - pipeline - (1 << fields["out_stripes_log2"])
        elif opcode == Opcode.MOVE:
            assert iterations == cycles.instruction_cycles(opcode, fields, target) - pipeline
        elif opcode == Opcode.FILL:
            assert iterations == cycles.fill_steps(fields) + 2
        elif opcode == Opcode.LOAD:
            words = fields["num_words"] * fields["num_channels"] * fields["num_rows"]
            assert iterations == words + 2
        else:
            assert iterations == 0


MUTANTS = [
    ("requantize.h", "((shift - 1) & 31)", "(shift & 31)"),
    ("requantize.h", "clamp_hi : !negative", "clamp_hi : negative"),
    ("requantize.h", "t_fits ? t_bits", "t_fits || true ? t_bits"),
    ("map_memory.h", "byte = address & 3", "byte = address & 1"),
    ("map_memory.h", "straight >= (int32_t)d.height", "straight > (int32_t)d.height"),
    ("map_memory.h", "both && odd ? other", "both && !odd ? other"),
    ("map_memory.h", "write.half[1] = !split || upper", "write.half[1] = true"),
    ("map_memory.h", "address & 1 ? parts >> 32", "address & 2 ? parts >> 32"),
    ("tap_list.h", "const bool wraps = wrapped >= 0", "const bool wraps = wrapped > 0"),
    ("slice.h", "(entry.lane_mask >> lane)", "(entry.lane_mask >> (lane & 6))"),
    ("slice.h", "takes ? product : acc", "takes ? acc : product"),
    ("slice.h", "product ^ 0x8000", "product"),
    ("drain.h", "nine != 0 && total < 0", "total < 0"),
    ("drain.h", "row >= (int32_t)f.row_first", "row > (int32_t)f.row_first"),
    ("loader.h", "shared ? 0 : loader.round & 1", "shared ? 1 : loader.round & 1"),
    ("progress.h", "job.lone_word = of_words && (f.num_words & 1) != 0", "job.lone_word = false"),
    ("progress.h", "job.lone_row = of_blocks && (f.num_blocks & 1) != 0", "job.lone_row = false"),
    ("progress.h", "of_words ? (uint16_t)1 : f.block_step", "(uint16_t)1"),
    ("drain.h", "out.upper = (drain.x & 1) != 0", "out.upper = false"),
    ("tiles.h", "out.upper = (at.tile.word & 1) != 0", "out.upper = false"),
    ("tiles.h", "last_lanes : WORD_BYTES", "last_lanes : (int)job.last_lanes"),
]
# What only machines that drain several words at a time have.
WIDE_MUTANTS = [
    ("drain.h", "(k << turns_log2) | turn", "k | turn"),
    ("drain.h", "== turn;", ">= turn;"),
    ("drain.h", "drain.copy + 1 : drain.slice", "drain.copy : drain.slice"),
    ("drain.h", "k >> steps.together_log2 == 0 &&", "k == 0 &&"),
    ("drain.h", "(int32_t)k * steps.part_rows;", "(int32_t)(k & 1) * steps.part_rows;"),
    ("tiles.h", "(uint32_t)k * job.drain.part_words", "(uint32_t)(k & 2) * job.drain.part_words"),
    ("tiles.h", "(uint8_t)k};", "(uint8_t)(k & 1)};"),
    ("slice.h", "is_odd = which & 1", "is_odd = which & 2"),
    ("map_memory.h", "return stripe << copies_log2", "return stripe << 0 * copies_log2"),
]


@pytest.mark.parametrize(
    ("target", "header", "right", "wrong"),
    [("tiny", *mutant) for mutant in MUTANTS] + [("small", *mutant) for mutant in WIDE_MUTANTS],
)
def test_the_comparison_sees_a_planted_fault(tmp_path, target, header, right, wrong):
    folder = tmp_path / "hls"
    shutil.copytree(ROOT / "hls", folder)
    text = (folder / header).read_text()
    assert text.count(right) >= 1, f"{header} has no {right!r}; choose another mutant"
    (folder / header).write_text(text.replace(right, wrong, 1))
    library = build(tmp_path, target, COMPILERS[0], "-O1", hls=folder)
    assert first_difference(library, target, range(240))[0] is not None
