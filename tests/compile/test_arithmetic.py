"""add, sub and scalar or per-channel arithmetic (operators/arithmetic.py)."""

import pytest
import torch
from torch import nn

from rasna.errors import CompileError
from tests.compile.support import Net, Net2, check, compiled, sample, settle
from tests.messages import refuses


def _added_in_place(m, x):
    y = m.conv(x)
    y += x
    return y


def _seen_under_two_names(m, x):
    y = kept = m.conv(x)
    y += x
    return y + kept  # kept is the same tensor, so this is 2 * (conv(x) + x)


SUMS = {
    "a + b": lambda m, x: m.conv(x) + x,
    "a - b": lambda m, x: m.conv(x) - x,
    "x += y": _added_in_place,
    "x += y, two names": _seen_under_two_names,
    "add_": lambda m, x: m.conv(x).add_(x),
    "sub_": lambda m, x: m.conv(x).sub_(x, alpha=2),
    "torch.add": lambda m, x: torch.add(m.conv(x), x),
    "torch.add, alpha": lambda m, x: torch.add(m.conv(x), x, alpha=2),
    "torch.sub, alpha": lambda m, x: torch.sub(m.conv(x), other=x, alpha=0.3),
    "x.add": lambda m, x: m.conv(x).add(x, alpha=-3),
    "operand three times": lambda m, x: x + x + x,
    "itself": lambda m, x: x + x,
    "far apart": lambda m, x: x + 100 * m.conv(x),
    "very far apart": lambda m, x: x + 1e5 * m.conv(x),
    "broadcast": lambda m, x: m.conv(x) + x.mean((2, 3), keepdim=True),
    "broadcast first": lambda m, x: x.mean((2, 3), keepdim=True) - m.conv(x),
    "features": lambda m, x: m.conv(x).flatten(1) + x.flatten(1),
    "flattened map and features": lambda m, x: x.flatten(1) + m.fc(x.flatten(1)),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_tensors(name):
    model = settle(Net(SUMS[name], conv=nn.Conv2d(3, 3, 3, padding=1), fc=nn.Linear(75, 75)))
    check(model, sample(4, 3, 5, 5))


def test_sum_of_two_inputs_with_a_broadcast():
    model = Net2(lambda m, x, y: x - y).eval()
    check(model, sample(4, 3, 5, 6), sample(4, 3, 1, 1, seed=2))


AFFINES = {
    "x * 2 + 1": lambda m, x: x * 2 + 1,
    "1 - x": lambda m, x: 1 - x,
    "-x": lambda m, x: -x,
    "x / 255": lambda m, x: x / 255,
    "0.3 * x": lambda m, x: 0.3 * x,
    "x + 1000": lambda m, x: x + 1000,
    "x * 1e-6": lambda m, x: x * 1e-6,
    "x * 0": lambda m, x: x * 0 + 0.25,
    "(x - mean) / std": lambda m, x: (x - m.mean) / m.std,
    "mean of shape (C, 1, 1)": lambda m, x: x - m.mean.view(3, 1, 1),
    "mean - x": lambda m, x: m.mean - x,
    "buffer - alpha * x": lambda m, x: torch.sub(m.mean, x, alpha=2),
    "buffer + x": lambda m, x: m.mean + x,
    "x + alpha * buffer": lambda m, x: torch.add(x, m.mean, alpha=2),
    "rsub": lambda m, x: torch.rsub(x, 1, alpha=2),
    "in place": lambda m, x: x.mul(2).div_(3).neg_(),
    "new tensor": lambda m, x: x * torch.tensor([1.0, 2.0, -3.0]).view(1, 3, 1, 1),
    "parameter": lambda m, x: x * m.gamma,
}


@pytest.mark.parametrize("name", AFFINES)
def test_scalar_and_per_channel_arithmetic(name):
    model = Net(
        AFFINES[name], mean=sample(1, 3, 1, 1), std=sample(1, 3, 1, 1).abs() + 0.5,
        gamma=nn.Parameter(torch.tensor(0.7)),
    )  # fmt: skip
    graph = check(model.eval(), sample(4, 3, 5, 5))
    assert [type(op).__name__ for op in graph.ops] == ["Conv"]


def test_uint8_images_are_normalised_by_one_operation():
    model = Net(lambda m, x: (x / 255 - 0.5) / 0.25).eval()
    images = torch.randint(0, 256, (4, 3, 6, 6), generator=torch.Generator().manual_seed(0))
    graph = check(model, images.float(), least_db=40)
    assert len(graph.ops) == 1
    assert str(graph.tensors["x"].type) == "u8.0"


def test_scalar_arithmetic_behind_a_convolution_is_folded():
    model = settle(Net(lambda m, x: m.conv(x) * 2 - 1, conv=nn.Conv2d(3, 4, 3)))
    assert len(check(model, sample(4, 3, 5, 5)).ops) == 1


def test_scalar_arithmetic_on_features_of_a_map():
    check(Net(lambda m, x: 1 - torch.flatten(x, 1)).eval(), sample(4, 3, 5, 5))


def test_fraction_bits_of_operands_that_differ_by_more_than_8_are_brought_together():
    model = settle(Net(lambda m, x: x + 1e5 * m.conv(x), conv=nn.Conv2d(3, 3, 1)))
    graph = compiled(model, sample(4, 3, 5, 5))
    names = [op.name for op in graph.ops]
    assert names == ["conv", "x_coarse", "add"]
    coarse = graph.tensors["x_coarse"].type.frac
    assert coarse == graph.tensors["conv"].type.frac + 8


REFUSED = {
    "quotient": (
        lambda m, x: x / x,
        "truediv, test_arithmetic.py:N: division by a computed tensor is not supported; "
        "divide by constants only, or apply it to the input in PyTorch and compile what "
        "follows",
    ),
    "division by zero": (
        lambda m, x: x / 0,
        "truediv, test_arithmetic.py:N: division by zero is not supported; divide by a number "
        "that is not 0",
    ),
    "floor division": (
        lambda m, x: torch.div(x, 2, rounding_mode="floor"),
        "div, test_arithmetic.py:N: div with rounding_mode='floor' is not supported; divide "
        "without rounding, or apply it to the input in PyTorch and compile what follows",
    ),
    "constant of several channels": (
        lambda m, x: x[:, :1] + torch.ones(3, 1, 1),
        "add, test_arithmetic.py:N: a constant of shape (3, 1, 1) that repeats (batch, 1, 5, 5) "
        "is not supported; give both the same number of channels, and the constant no batch",
    ),
    "computed power": (
        lambda m, x: x**x,
        "pow_1, test_arithmetic.py:N: a power with a computed exponent is not supported; use a "
        "constant exponent, or apply it to the input in PyTorch and compile what follows",
    ),
    "power of a negative number": (
        lambda m, x: (-2.0) ** x,
        "pow_1, test_arithmetic.py:N: a power of -2 is not supported; the base of a power must be "
        "more than 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(function).eval(), sample(2, 3, 5, 5))
