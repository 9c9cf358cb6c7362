"""Planted faults must be found by the last check (check_quant.py)."""

import copy
from dataclasses import replace

import pytest
import torch.nn.functional as F
from torch import nn

from rasna.compile.check_quant import check_quant
from tests.compile.support import Net, compiled, sample, settle
from tests.messages import refuses


@pytest.fixture(scope="module")
def good():
    def forward(m, x):
        y = m.conv(x)
        return F.max_pool2d(y + x, 2).mean((2, 3))

    model = settle(Net(forward, conv=nn.Conv2d(3, 3, 3, padding=1)))
    graph = compiled(model, sample(2, 3, 6, 6))
    assert [type(op).__name__ for op in graph.ops] == ["Conv", "Sum", "MaxPool", "AvgPool"]
    return graph


def swap(graph):
    graph.ops[0], graph.ops[1] = graph.ops[1], graph.ops[0]


def retype(graph):
    name = graph.ops[2].output
    tensor = graph.tensors[name]
    graph.tensors[name] = replace(tensor, type=replace(tensor.type, frac=9))


def huge_bias(graph):
    graph.ops[0].bias[1] = 2**31 - 1


FAULTS = {
    "order": (
        swap,
        "add, test_check_quant.py:N: reads conv before they are written; this is a fault of "
        "the compiler, please report the model",
    ),
    "pre_shift": (
        lambda g: g.ops[0].requant.pre_shift.fill(32),
        "conv (conv), test_check_quant.py:N: pre_shift is 32 to 32, 0 to 31 is allowed; this "
        "is a fault of the compiler, please report the model",
    ),
    "multiplier": (
        lambda g: g.ops[0].requant.multiplier.fill(0),
        "conv (conv), test_check_quant.py:N: multiplier is 0 to 0, 1 to 32767 is allowed; "
        "this is a fault of the compiler, please report the model",
    ),
    "shift": (
        lambda g: g.ops[1].requant.shift.fill(0),
        "add, test_check_quant.py:N: shift is 0 to 0, 1 to 31 is allowed; this is a fault of "
        "the compiler, please report the model",
    ),
    "clamp": (
        lambda g: setattr(g.ops[3].requant, "hi", 999),
        "mean, test_check_quant.py:N: the clamp -128 to 999 does not fit the type s8.5; this "
        "is a fault of the compiler, please report the model",
    ),
    "accumulator": (
        huge_bias,
        "conv (conv), test_check_quant.py:N: accumulators may reach 2147614463; this is a "
        "fault of the compiler, please report the model",
    ),
    "coefficient": (
        lambda g: g.ops[1].coefficients.__setitem__(0, 1025),
        "add, test_check_quant.py:N: a coefficient of [1025, 1] is larger than 1024; this is "
        "a fault of the compiler, please report the model",
    ),
    "type of the pooling": (
        retype,
        "max_pool2d, test_check_quant.py:N: max pooling changes the type; this is a fault of "
        "the compiler, please report the model",
    ),
    "window": (
        lambda g: g.ops[3].rows.__setitem__(0, (0, 2**30)),
        "mean, test_check_quant.py:N: accumulators may reach 412316860416; this is a fault of "
        "the compiler, please report the model",
    ),
    "output": (lambda g: g.ops.pop(), "output mean: tensor mean is never written"),
}


def test_the_graph_without_a_fault_passes(good):
    assert check_quant(good) is good


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(good, name):
    change, message = FAULTS[name]
    graph = copy.deepcopy(good)
    change(graph)
    with refuses(RuntimeError, message):
        check_quant(graph)
