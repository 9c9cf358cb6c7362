"""How complaints are collected and worded (problems.py)."""

import pytest

from rasna.compile.floatgraph import Where
from rasna.compile.problems import SUPPORTED, Problems, remedy_for
from rasna.errors import CompileError


def test_one_problem_is_one_line_without_a_heading():
    problems = Problems()
    where = Where("conv2", "layer1.0.conv2", "net.py", 31)
    problems.add(where, "this is not supported", "use that")
    with pytest.raises(CompileError) as error:
        problems.raise_if_any()
    assert str(error.value) == (
        "conv2 (layer1.0.conv2), net.py:31: this is not supported; use that"
    )


def test_several_problems_have_a_heading_and_each_appears_once():
    problems = Problems()
    for what in ("a", "b", "a"):
        problems.add(Where("n"), what, "r")
    assert problems.text() == "the model cannot be compiled, 2 problems:\n  n: a; r\n  n: b; r"


def test_without_problems_nothing_happens():
    Problems().raise_if_any()


@pytest.mark.parametrize(
    "where, text",
    [
        (Where("relu"), "relu"),
        (Where("relu", "", "net.py", 3), "relu, net.py:3"),
        (Where("_0", "0"), "_0 (0)"),
    ],
)
def test_places(where, text):
    assert str(where) == text


def test_remedies_fit_the_operation():
    assert "PyTorch" in remedy_for("Softmax")
    assert remedy_for("GELU") == "use ReLU or ReLU6 and fine-tune"
    assert "padding argument" in remedy_for("ZeroPad2d")
    assert remedy_for("whatever") == SUPPORTED
