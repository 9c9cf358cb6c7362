"""How complaints are collected and worded (problems.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile.floatgraph import Where
from rasna.compile.pipeline import quantize_model
from rasna.compile.problems import AT_INPUT, OUTSIDE, Problems, ended_before, remedy_for
from rasna.compile.settings import Settings
from rasna.errors import CompileError
from tests.compile.support import Net, check, compiled, sample, settle
from tests.messages import refuses


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
    assert remedy_for("Softmax") == "end the compiled model before it and apply it in PyTorch"
    assert remedy_for("Half").startswith("leave it out")
    assert remedy_for("relu_") == remedy_for("relu")
    assert remedy_for("whatever") == OUTSIDE


@pytest.mark.parametrize(
    "until, text",
    [
        (None, "multiply by constants only, or end the compiled model before it and apply it in "
         "PyTorch"),
        ([], "multiply by constants only, or apply it to the input in PyTorch and compile what "
         "follows"),
        (["layer1.0"], "multiply by constants only, or end the compiled model before it, "
         "until='layer1.0', and apply it in PyTorch"),
        (["a", "b"], "multiply by constants only, or end the compiled model before it, "
         "until=['a', 'b'], and apply it in PyTorch"),
    ],
)  # fmt: skip
def test_a_remedy_names_where_the_model_has_to_end(until, text):
    assert ended_before(f"multiply by constants only, or {OUTSIDE}", until) == text
    assert ended_before("use that", until) == "use that" and AT_INPUT not in OUTSIDE


# ---- remedies that are other words for the same numbers, and where they come from


SAME = {
    "select": (lambda x, y: x.select(1, 2), lambda x, y: x[:, 2]),
    "unbind": (lambda x, y: x.unbind(1)[0], lambda x, y: x[:, 0]),
    "repeat": (lambda x, y: x.repeat(1, 2, 1, 1), lambda x, y: torch.cat([x, x], 1)),
    "tile": (
        lambda x, y: torch.tile(x.mean((2, 3), keepdim=True), (1, 1, 5, 6)),
        lambda x, y: F.interpolate(x.mean((2, 3), keepdim=True), size=(5, 6)),
    ),
    "repeat_interleave": (
        lambda x, y: x.repeat_interleave(2, 2).repeat_interleave(2, 3),
        lambda x, y: F.interpolate(x, scale_factor=2),
    ),
    "double": (lambda x, y: x.double().mul(0.5).float(), lambda x, y: x.mul(0.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_a_remedy_in_other_words_compiles_and_gives_the_same(name):
    refused, applied = SAME[name]
    x, y = sample(4, 4, 5, 6), sample(4, 4, 5, 6, seed=2)
    assert torch.allclose(refused(x, y), applied(x, y), atol=1e-6)
    models = [Net(lambda m, x, f=f: f(x, x)).eval() for f in (refused, applied)]
    samples = (x,)
    with pytest.raises(CompileError) as error:
        compiled(models[0], *samples)
    first = error.value.problems[0]
    assert (first.reason, first.remedy) == (f"{name} is not supported", remedy_for(name))
    check(models[1], *samples)


class Block(nn.Module):
    """Layers around a running sum, and a quotient behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
        self.b = nn.Conv2d(4, 4, 1)

    def forward(self, x):
        y = self.a(x)
        z = self.b(y)
        return y / torch.cumsum(z, 1)


def test_the_place_where_to_end_a_model_compiles():
    model, x = settle(Block()), sample(4, 3, 6, 6)
    with refuses(
        CompileError,
        "the model cannot be compiled, 2 problems:\n"
        "  cumsum, test_problems.py:N: cumsum is not supported; end the compiled model before "
        "it, until='b', and apply it in PyTorch\n"
        "  truediv, test_problems.py:N: division by a computed tensor is not supported; divide by "
        "constants only, or end the compiled model before it and apply it in PyTorch",
    ):
        compiled(model, x)
    assert quantize_model(model, [x], Settings(), "b").quant_graph.ops


def test_several_results_may_be_needed_before_it():
    def forward(m, x):
        y = m.a(x)
        return y.relu() / m.b(y)

    model = settle(Net(forward, a=nn.Conv2d(3, 4, 3), b=nn.Conv2d(4, 4, 1)))
    x = sample(4, 3, 6, 6)
    with refuses(
        CompileError,
        "truediv, test_problems.py:N: division by a computed tensor is not supported; divide by "
        "constants only, or end the compiled model before it, until=['relu', 'b'], and apply it "
        "in PyTorch",
    ):
        compiled(model, x)
    assert len(quantize_model(model, [x], Settings(), ["relu", "b"]).quant_graph.outputs) == 2


def test_what_reads_the_input_is_applied_to_the_input():
    model = settle(Net(lambda m, x: m.conv(torch.cumsum(x, 1)), conv=nn.Conv2d(3, 4, 1)))
    x = sample(4, 3, 6, 6)
    with refuses(
        CompileError,
        "cumsum, test_problems.py:N: cumsum is not supported; apply it to the input in PyTorch and "
        "compile what follows",
    ):
        compiled(model, x)
    check(model.conv, torch.cumsum(x, 1))
