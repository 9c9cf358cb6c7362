"""Leaky ReLU, PReLU, Hardsigmoid (operators/activation.py, lower_moves.py)."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile.lower_moves import leaky_coefficients
from rasna.compile.problems import Refusal
from rasna.errors import CompileError
from rasna.golden import evaluate
from tests.compile.support import Net, check, compiled, sample, settle
from tests.messages import refuses

SPELLINGS = {
    "F.leaky_relu": lambda m, x: F.leaky_relu(m.conv(x)),
    "slope": lambda m, x: F.leaky_relu(m.conv(x), negative_slope=0.2),
    "in place": lambda m, x: F.leaky_relu_(m.conv(x), 0.1),
    "slope 0": lambda m, x: F.leaky_relu(m.conv(x), 0),
    "slope 1": lambda m, x: F.leaky_relu(m.conv(x), 1),
    "negative slope": lambda m, x: F.leaky_relu(m.conv(x), -0.5),
    "slope 3": lambda m, x: F.leaky_relu(m.conv(x), 3),
    "nn.LeakyReLU": lambda m, x: m.leaky(m.conv(x)),
    "nn.PReLU": lambda m, x: m.one(m.conv(x)),
    "nn.PReLU, channels": lambda m, x: m.many(m.conv(x)),
    "F.prelu": lambda m, x: F.prelu(m.conv(x), m.many.weight),
    "torch.prelu": lambda m, x: torch.prelu(x, m.one.weight),
    "method": lambda m, x: m.conv(x).prelu(m.one.weight),
    "then clamp": lambda m, x: m.leaky(m.conv(x)).clamp(max=1),
    "of what is never negative": lambda m, x: m.leaky(m.conv(x).relu()),
    "of a vector": lambda m, x: m.leaky(m.conv(x).flatten(1)),
    "of an input": lambda m, x: m.conv(m.leaky(x)),
    "nn.Hardsigmoid": lambda m, x: m.hard(m.conv(x) * 3),
    "F.hardsigmoid": lambda m, x: F.hardsigmoid(x * 2),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    model = settle(
        Net(
            SPELLINGS[name], conv=nn.Conv2d(3, 4, 3), leaky=nn.LeakyReLU(0.05), one=nn.PReLU(),
            many=nn.PReLU(4), hard=nn.Hardsigmoid(),
        )
    )  # fmt: skip
    with torch.no_grad():
        model.many.weight.copy_(torch.tensor([0.25, -0.5, 2.0, 0.0]))
    check(model, sample(4, 3, 6, 7))


def test_the_integers_of_a_leaky_relu():
    """k*x + m*max(x, 0) with k = round(1024 * slope): exact for x >= 0."""
    x = torch.arange(-128.0, 128).reshape(1, 1, 16, 16)
    graph = compiled(Net(lambda m, x: F.leaky_relu(x, 0.3)).eval(), x)
    numbers = np.arange(-128, 128).reshape(1, 16, 16)
    values = evaluate(graph, [numbers])
    k = 307  # 0.3 * 1024 = 307.2
    positive, result = graph.ops
    assert result.coefficients == [k, 1024 - k]
    frac = graph.tensors[result.output].type.frac
    assert frac == 0
    want = np.where(numbers >= 0, numbers, (k * numbers + 512) >> 10)
    assert np.array_equal(values[result.output], want)
    assert np.array_equal(values[positive.output], np.maximum(numbers, 0))


@pytest.mark.parametrize(
    "slope, wanted",
    [(0.01, (10, 1014, 10)), (0.5, (512, 512, 10)), (1.5, (768, -256, 9)), (-1.0, (-512, 1024, 9)),
     (1000.0, (1000, -999, 0))],
)  # fmt: skip
def test_slopes_have_ten_bits(slope, wanted):
    assert leaky_coefficients(slope) == wanted
    k, m, e = wanted
    assert k + m == 2**e and abs(k / 2**e - slope) <= 2.0 ** -(e + 1)


def test_slopes_beyond_the_coefficients_are_refused():
    with pytest.raises(Refusal) as refusal:
        leaky_coefficients(2000.0)
    assert refusal.value.what == "a leaky ReLU with the slope 2000 is not supported"
    assert refusal.value.remedy == "use a slope within +-1023"


def test_hardsigmoid_goes_into_the_layer():
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Hardsigmoid()))
    graph = compiled(model, sample(4, 3, 6, 7))
    assert len(graph.ops) == 1 and not graph.tensors[graph.outputs[0].tensor].type.signed


REFUSED = {
    "slopes of another number": (
        lambda m, x: F.prelu(x, x.flatten(1)),
        "prelu, test_activation.py:N: PyTorch cannot compute this for inputs of the shapes "
        "(2, 3, 5, 6), (2, 90) (Mismatch of parameter numbers and input channel size. Found "
        "parameter numbers = 180 and channel size = 3.); check the samples and channel_last",
    ),
    "a computed slope": (
        lambda m, x: F.prelu(x, x.mean((2, 3))[:1, :].flatten()),
        "the model cannot be compiled, 3 problems:\n"
        "  getitem, test_activation.py:N: indexing dimension 0 of (batch, 3) is not "
        "supported; the batch stays as it is; compute all of it\n"
        "  flatten, test_activation.py:N: flattening the batch dimension is not supported; "
        "use torch.flatten(x, 1)\n"
        "  prelu, test_activation.py:N: PReLU with a computed slope is not supported; use "
        "nn.PReLU",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(function).eval(), sample(2, 3, 5, 6))
