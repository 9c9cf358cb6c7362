"""Which tensors are unsigned, and which have types of their own (calibrate.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile.calibrate import choose_types, nonnegative_nodes
from tests.compile.support import Net, sample, settle, simplified

CASES = {
    "relu": (lambda m, x: F.relu(m.conv(x)), True, True),
    "convolution": (lambda m, x: m.conv(x), True, False),
    "clamp below zero": (lambda m, x: m.conv(x).clamp(-0.1, 1), True, False),
    "average of a relu": (lambda m, x: F.relu(m.conv(x)).mean((2, 3)), False, True),
    "max of a relu": (lambda m, x: F.max_pool2d(F.relu(m.conv(x)), 2), False, True),
    "flattened relu": (lambda m, x: F.relu(m.conv(x)).flatten(1), False, True),
    "sum of relus": (lambda m, x: F.relu(m.conv(x)) + F.relu(m.two(x)), False, True),
    "difference of relus": (lambda m, x: F.relu(m.conv(x)) - F.relu(m.two(x)), False, False),
    "scaled input": (lambda m, x: x / 255, True, True),
    "scaled signed input": (lambda m, x: x / 255, False, False),
    "shifted input": (lambda m, x: x - 0.5, True, False),
    "pooled input": (lambda m, x: F.max_pool2d(x, 2), True, True),
    "clamped from above": (lambda m, x: x.clamp(max=1), True, True),
    "clamped to a negative number": (lambda m, x: x.clamp(max=-1), True, False),
}


@pytest.mark.parametrize("name", CASES)
def test_what_can_never_be_negative(name):
    function, inputs, expected = CASES[name]
    model = settle(Net(function, conv=nn.Conv2d(3, 4, 3), two=nn.Conv2d(3, 4, 3)))
    graph = simplified(model, sample(2, 3, 6, 6))
    assert nonnegative_nodes(graph, model, [inputs])[graph.outputs[0]] is expected


def test_pooling_and_reshape_have_the_type_of_their_input():
    model = settle(Net(lambda m, x: F.max_pool2d(m.conv(x), 2).flatten(1), conv=nn.Conv2d(3, 4, 3)))
    x = sample(2, 3, 6, 6)
    graph = simplified(model, x)
    types, outputs = choose_types(graph, model, [x], 8)
    assert types["max_pool2d"] == types["flatten"] == types["conv"] != types["x"]
    with torch.no_grad():
        assert torch.allclose(outputs[0], model(x), atol=1e-6)


@pytest.mark.parametrize("bits", range(2, 9))
def test_types_have_the_bits_that_were_asked_for(bits):
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()))
    x = sample(2, 3, 6, 6)
    types, _ = choose_types(simplified(model, x), model, [x], bits)
    assert {t.bits for t in types.values()} == {bits}
