"""The board runtime says honestly that it is not there yet."""

import sys
import types

import pytest

import rasna
from tests.program.samples import conv_sample

ADVICE = "a simulator (make sim-so, a path that ends in .so) runs the same bits anywhere"


def refusal(path: str) -> str:
    with pytest.raises(rasna.NotOnBoardError) as caught:
        conv_sample().program.to_runtime(path)
    return str(caught.value)


def test_without_pynq_the_error_says_what_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynq", None)
    assert refusal("rasna-pynq-z2.bit").startswith(
        "rasna-pynq-z2.bit: a bitstream runs on a board with PYNQ, and the Python package pynq "
        "cannot be imported here ("
    )
    assert refusal("a.bit").endswith(ADVICE)


def test_with_pynq_the_error_says_that_boards_are_not_supported(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynq", types.ModuleType("pynq"))
    assert refusal("a.bit") == (
        f"a.bit: running on a board is not supported by this version of rasna; {ADVICE}"
    )


def test_other_paths_are_no_runtime_objects():
    assert refusal("model.onnx") == (
        "model.onnx: a runtime object is a shared library .so or a bitstream .bit; " + ADVICE
    )


def test_the_docs_say_that_it_was_not_run_on_hardware():
    assert "Not run on hardware yet" in rasna.Runtime.__doc__
