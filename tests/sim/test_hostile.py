"""Mutated programs on objects that check every memory access (tests/sim/fuzz.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import build_sim
import pytest
from build_objects import path_of

FUZZ = Path(__file__).parent / "fuzz.py"
FIRST_SEED = int(os.environ.get("RASNA_SEED", "50000"))
NUM_SEEDS = int(os.environ.get("RASNA_FUZZ_SEEDS", "60"))


def sanitizer_libraries() -> str:
    """Libraries to preload, since the python that loads the object has no sanitizer."""
    compiler, _ = build_sim.find_compiler(os.environ.get("CXX"))
    found = [
        subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True,
                       check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so", "libstdc++.so")
    ]
    if not all(os.path.isabs(path) for path in found):
        pytest.skip("the sanitizer libraries of the compiler are not installed")
    return " ".join(found)


def fuzz(path: Path, target: str, first_seed: int, num_seeds: int, **environment: str):
    return subprocess.run(
        [sys.executable, str(FUZZ), str(path), target, str(first_seed), str(num_seeds)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=600, check=False,
    )


@pytest.mark.parametrize("kind, body", [("fast", "plain"), ("fast", ""), ("exact", "")])
def test_mutated_programs_end_in_an_error_or_a_run(kind, body):
    path = path_of("tiny", exact=kind == "exact", sanitize=True)
    environment = {
        "LD_PRELOAD": sanitizer_libraries(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    if body:
        environment["RASNA_BODY"] = body
    done = fuzz(path, "tiny", FIRST_SEED, NUM_SEEDS, **environment)
    output = done.stdout.splitlines()
    assert done.returncode == 0, (output[-1:], done.stderr[-4000:])
    counts = re.fullmatch(r"(\d+) accepted, (\d+) refused", output[-1])
    accepted, refused = map(int, counts.groups())
    # Both sides of the validator were reached, or the test has tested nothing.
    assert accepted > NUM_SEEDS and refused > NUM_SEEDS
