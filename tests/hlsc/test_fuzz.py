"""The short form of the random program test; ``fuzz.py`` is the long one."""

from __future__ import annotations

import os

import hlsc_fuzz as fuzz

SEED = int(os.environ.get("HLSC_FUZZ_SEED", "1"))
COUNT = int(os.environ.get("HLSC_FUZZ_COUNT", "40"))


def test_random_programs_equal_gcc(tmp_path):
    assert fuzz.run(SEED, COUNT, tmp_path, chains=8) == []


# A switch over one bit, whose cases LLVM calls true and false; pointers that are chosen in several
# steps; pointers with indices of different types.
ONCE_REFUSED_OR_WRONG = [200078, 100046, 100784]


def test_programs_that_once_failed(tmp_path):
    assert fuzz.check(ONCE_REFUSED_OR_WRONG, tmp_path, tmp_path / "runtime") == ""


def test_a_failing_program_is_reported_with_the_command_that_repeats_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(fuzz, "check", lambda seeds, *_: "MISMATCH" if 6 in seeds else "")
    (tmp_path / "p9").mkdir()
    assert fuzz.run(5, 4, tmp_path) == [(6, "MISMATCH")]
    assert "repeat: python tests/hlsc/fuzz.py --count 1 --seed 6" in capsys.readouterr().out
