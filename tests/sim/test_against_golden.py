"""The objects against the golden model, on random legal programs: every bit must be equal."""

from __future__ import annotations

import os

import numpy as np
import pytest
from random_programs import random_program
from sim_harness import Context, bodies
from small_programs import taps_program

from rasna import golden

FIRST_SEED = int(os.environ.get("RASNA_SEED", "1000"))
NUM_SEEDS = {"tiny": 120, "small": 60, "pynq-z2": 30, "kv260": 15}


def check_seed(seed: int, target: str, contexts: list[Context]) -> None:
    program, inputs, output_words, scratch_words = random_program(seed, target)
    expected = golden.run_program(program, inputs, output_words, scratch_words, target)
    assert expected.size > 0
    for number, context in enumerate(contexts):
        context.load(program, inputs.size, output_words, scratch_words)
        got = context.run(np.concatenate([inputs, inputs]), batch=2)
        assert np.array_equal(got, np.concatenate([expected, expected])), (
            f"context {number} differs; repeat with RASNA_SEED={seed} pytest {__file__} -x"
        )


@pytest.mark.parametrize("target", sorted(NUM_SEEDS))
def test_random_programs_give_the_bits_of_golden(target, fast, exact):
    library = fast(target)
    contexts = [Context(library, body=body) for body in bodies(library)]
    contexts += [Context(library, cache_bytes=0), Context(exact(target))]
    for seed in range(FIRST_SEED, FIRST_SEED + NUM_SEEDS[target]):
        check_seed(seed, target, contexts)


@pytest.mark.parametrize("kind", ["fast", "exact"])
def test_one_flipped_weight_bit_is_seen(kind, request):
    """The comparison above can fail."""
    library = request.getfixturevalue(kind)("tiny")
    inputs = np.random.default_rng(3).integers(0, 2**64, 4, np.uint64)
    program = taps_program()
    expected = golden.run_program(program, inputs, 2, 0, "tiny")
    with Context(library) as context:
        context.load(program, 4, 2)
        assert np.array_equal(context.run(inputs), expected)
        program[-1] ^= np.uint64(2)  # the only word of the tap list
        context.load(program, 4, 2)
        assert not np.array_equal(context.run(inputs), expected)


def test_a_program_leaves_nothing_behind_for_the_next(fast):
    """A, B, A: the first and the third results are equal."""
    a, b = random_program(1, "tiny"), random_program(2, "tiny")
    with Context(fast("tiny")) as context:
        results = []
        for program, inputs, output_words, scratch_words in (a, b, a):
            context.load(program, inputs.size, output_words, scratch_words)
            results.append(context.run(inputs))
    assert np.array_equal(results[0], results[2])
