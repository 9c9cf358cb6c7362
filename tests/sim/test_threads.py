"""Contexts are independent: threads run different programs on one object at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from random_programs import random_program
from sim_harness import Context

from rasna import golden

NUM_THREADS, NUM_ROUNDS = 8, 30


@pytest.mark.parametrize("kind", ["fast", "exact"])
def test_two_programs_in_eight_threads(kind, request):
    library = request.getfixturevalue(kind)("tiny")
    programs = [random_program(seed, "tiny") for seed in (11, 12)]
    expected = [golden.run_program(*program, "tiny") for program in programs]
    assert not np.array_equal(*[e[: min(map(len, expected))] for e in expected])

    def work(thread: int) -> int:
        first, inputs, output_words, scratch_words = programs[thread % 2]
        equal = 0
        with Context(library) as context:
            for _ in range(NUM_ROUNDS):
                context.load(first, inputs.size, output_words, scratch_words)
                equal += np.array_equal(context.run(inputs), expected[thread % 2])
        return equal

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        assert list(pool.map(work, range(NUM_THREADS))) == [NUM_ROUNDS] * NUM_THREADS


def test_two_contexts_of_one_thread_do_not_disturb_each_other(fast):
    library = fast("tiny")
    programs = [random_program(seed, "tiny") for seed in (11, 12)]
    with Context(library) as a, Context(library) as b:
        for context, (words, inputs, output_words, scratch_words) in zip(
            (a, b), programs, strict=True
        ):
            context.load(words, inputs.size, output_words, scratch_words)
        for context, program in ((a, programs[0]), (b, programs[1]), (a, programs[0])):
            assert np.array_equal(context.run(program[1]), golden.run_program(*program, "tiny"))
