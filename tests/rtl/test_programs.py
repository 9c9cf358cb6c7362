"""Every opcode on the RTL of `tiny`: the small programs and random ones, with and without stalls;
random ones on that of `small` too, which drains several words at a time.

RASNA_SEED=first and RASNA_COUNT=number choose other random programs.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from random_programs import random_program
from rtl_harness import BOARD_TARGET, STALLS, counters, run_case
from sim_harness import Context

from rasna import golden, isa
from rasna.assembler import assemble

PROGRAMS = sorted((Path(__file__).resolve().parents[1] / "programs").glob("*.rasm"))
FIRST_SEED = int(os.environ.get("RASNA_SEED", "0"))
NUM_SEEDS = int(os.environ.get("RASNA_COUNT", "60"))


@pytest.mark.parametrize("options", STALLS, ids=str)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_small_programs_give_the_expected_words(path, options, rtl):
    case = assemble(path.read_text())
    assert case.outputs.size > 0
    with Context(rtl(case.target), **options) as context:
        context.load(case.words, case.inputs.size, case.outputs.size, case.scratch_words)
        for _ in range(2):
            assert context.run(case.inputs).tolist() == case.outputs.tolist()


def test_the_small_programs_use_every_opcode_and_count_each_instruction(rtl):
    used = Counter()
    for path in PROGRAMS:
        case = assemble(path.read_text())
        with Context(rtl(case.target)) as context:
            context.load(case.words, case.inputs.size, case.outputs.size, case.scratch_words)
            context.run(case.inputs)
            cycles = counters(context)
        opcodes = [isa.Opcode(int(case.words[8 * n]) & 0xFF) for n in range(len(cycles))]
        assert opcodes[-1] == isa.Opcode.END and min(cycles) > 0
        used.update(opcodes)
    assert set(used) == set(isa.Opcode)


@pytest.mark.parametrize("target", ["tiny", "small"])
@pytest.mark.parametrize("options", STALLS[1:], ids=str)
def test_random_programs_give_the_bits_of_golden(options, target, rtl):
    used, library = Counter(), rtl(target)
    for seed in range(FIRST_SEED, FIRST_SEED + NUM_SEEDS):
        case = random_program(seed, target)
        expected = golden.run_program(*case, target)
        assert expected.size > 0
        stalls = {**options, "stall_seed": seed + 1} if "stall_seed" in options else options
        with Context(library, **stalls) as context:
            got = run_case(context, case, batch=2)
            number = len(counters(context))
        assert np.array_equal(got, np.tile(expected, 2)), (
            f"seed {seed} with {stalls}: repeat with "
            f"RASNA_SEED={seed} RASNA_COUNT=1 pytest {__file__}"
        )
        used.update(isa.Opcode(int(case[0][8 * n]) & 0xFF).name for n in range(number))
    print(f"\n{NUM_SEEDS} programs from seed {FIRST_SEED}, {options}: {dict(used)}")
    assert NUM_SEEDS < 10 or set(used) == set(isa.Opcode.__members__)


def test_a_program_leaves_nothing_behind_for_the_next(rtl):
    """A, B, A in one context: the first and the third results are equal."""
    a, b = random_program(1, "tiny"), random_program(2, "tiny")
    with Context(rtl("tiny"), stall_seed=5) as context:
        results = [run_case(context, case) for case in (a, b, a)]
    assert np.array_equal(results[0], results[2])


@pytest.mark.long
def test_random_programs_of_the_board_target_give_the_bits_of_golden(rtl):
    library = rtl(BOARD_TARGET)
    for seed in range(FIRST_SEED, FIRST_SEED + min(NUM_SEEDS, 10)):
        case = random_program(seed, BOARD_TARGET)
        expected = golden.run_program(*case, BOARD_TARGET)
        with Context(library, stall_seed=seed + 1) as context:
            assert np.array_equal(run_case(context, case), expected), f"seed {seed}"
