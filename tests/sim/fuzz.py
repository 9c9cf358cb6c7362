"""Feeds mutated programs to an object: each must end in an error or in a run, never in a crash.

    python tests/sim/fuzz.py OBJECT TARGET FIRST_SEED NUM_SEEDS

Canary words around the output buffer must stay as they are. With an object built by
`scripts/build_sim.py --sanitize` every access outside a buffer ends the process; the last line of
the output then names the seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
for _folder in (_HERE.parents[1] / "python", _HERE.parent / "programs", _HERE):
    sys.path.insert(0, str(_folder))

import ctypes

import numpy as np
from random_programs import random_program
from sim_harness import Context, SimError, open_library

from rasna import isa

CANARY, NUM_CANARIES = np.uint64(0xC0FFEE), 16
NUM_MUTATIONS = 25  # of one valid program


def instruction_fields(words: np.ndarray) -> list[tuple[int, isa.Field]]:
    """(first word, field) of all fields of all instructions."""
    found = []
    for at in range(0, words.size - 7, isa.INSTRUCTION_WORDS):
        number = int(words[at]) & 0xFF
        if number > max(isa.Opcode) or number == isa.Opcode.END:
            break
        found += [(at, field) for field in isa.INSTRUCTIONS[isa.Opcode(number)][1]]
    return found


def set_field(words: np.ndarray, at: int, field: isa.Field, value: int) -> None:
    mask = (1 << field.bits) - 1
    word = int(words[at + field.word])
    word = word & ~(mask << field.bit) | (value & mask) << field.bit
    words[at + field.word] = np.uint64(word)


def mutate(rng: np.random.Generator, words: np.ndarray) -> np.ndarray:
    """A copy with one or two small or wild changes."""
    words = words.copy()
    for _ in range(int(rng.integers(1, 3))):
        kind, fields = int(rng.integers(6)), instruction_fields(words)
        if kind <= 2 and fields:  # a field of an instruction: a neighbour, an extreme, anything
            at, field = fields[int(rng.integers(len(fields)))]
            old = int(words[at + field.word]) >> field.bit
            value = (old + int(rng.choice([-1, 1, 8])), int(rng.choice([0, field.lo, field.hi])),
                     int(rng.integers(1 << min(field.bits, 62))))[kind]
            set_field(words, at, field, value)
        elif kind == 3:  # a bit anywhere, streams included
            words[int(rng.integers(words.size))] ^= np.uint64(1) << np.uint64(rng.integers(64))
        elif kind == 4:
            words[int(rng.integers(words.size))] = rng.integers(0, 2**64, dtype=np.uint64)
        else:
            words = words[: int(rng.integers(1, words.size + 1))].copy()
    return words


def run_one(context: Context, rng, program, input_words: int, output_words: int,
            scratch_words: int) -> bool:
    """Load and run; True when it was accepted."""
    if rng.integers(4) == 0:
        input_words = max(0, input_words - int(rng.integers(1, 4)))
    if rng.integers(4) == 0:
        output_words = max(0, output_words - int(rng.integers(1, 4)))
    try:
        context.load(program, input_words, output_words, scratch_words)
    except SimError as error:
        assert error.code and error.text, "an error without code or text"
        return False
    pointer = ctypes.POINTER(ctypes.c_uint64)
    inputs = rng.integers(0, 2**64, input_words, np.uint64)
    outputs = np.full(output_words + 2 * NUM_CANARIES, CANARY, np.uint64)
    context.check(context.library.rasna_run(
        context.handle, inputs.ctypes.data_as(pointer),
        ctypes.cast(ctypes.c_void_p(outputs.ctypes.data + 8 * NUM_CANARIES), pointer), 1,
    ))
    edges = np.concatenate([outputs[:NUM_CANARIES], outputs[-NUM_CANARIES:]])
    assert (edges == CANARY).all(), "words around the output were overwritten"
    return True


def main(path: str, target: str, first_seed: str, num_seeds: str) -> None:
    library = open_library(Path(path))
    accepted = refused = 0
    for seed in range(int(first_seed), int(first_seed) + int(num_seeds)):
        print(f"seed {seed}: repeat with python tests/sim/fuzz.py {path} {target} {seed} 1",
              flush=True)
        program, inputs, output_words, scratch_words = random_program(seed, target)
        rng = np.random.default_rng(seed)
        with Context(library, step_limit=200_000) as context:
            for _ in range(NUM_MUTATIONS):
                if run_one(context, rng, mutate(rng, program), inputs.size, output_words,
                           scratch_words):
                    accepted += 1
                else:
                    refused += 1
    print(f"{accepted} accepted, {refused} refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
