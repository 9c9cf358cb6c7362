"""Functions of one value (curves.py, operators/curves.py, fuse_curves.py, lower_pointwise.py)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile import curves
from rasna.compile.curves import Step
from rasna.compile.quantize import choose_type
from rasna.errors import CompileError
from rasna.graph import FixedPoint, Product, Sum
from tests.compile.support import Net, Net2, check, compiled, evaluate, sample, settle
from tests.messages import refuses
from tests.random_curves import CURVES, MODULES

LSB = FixedPoint(8, 4, True)


def signal_to_noise(model: nn.Module, x: torch.Tensor) -> float:
    """Decibels of the integers against the float model."""
    graph = compiled(model, x)
    with torch.no_grad():
        want = model(x)
    (got,) = evaluate(graph, x)
    noise = (torch.as_tensor(got).reshape(want.shape) - want).square().sum()
    return float(10 * torch.log10(want.square().sum() / noise))


def between_layers(function) -> nn.Module:
    children = {"act": function} if isinstance(function, nn.Module) else {}
    return settle(
        Net(
            lambda m, x: m.b((m.act if children else function)(m.bn(m.a(x)))),
            a=nn.Conv2d(3, 8, 3, padding=1), bn=nn.BatchNorm2d(8), b=nn.Conv2d(8, 8, 1), **children,
        )
    )  # fmt: skip


# Functions that jump, or leave little of their input, lose more by rounding in front of them.
# The large values of exp decide over its signal.
LOW = {
    "F.hardshrink": 15, "F.threshold": 15, "sign": 10, "F.tanhshrink": 20, "pow 3": 20, "exp": 20,
    "expm1": 20,
}  # fmt: skip


@pytest.mark.parametrize("name", CURVES)
def test_a_function_between_two_layers_keeps_its_signal(name):
    assert signal_to_noise(between_layers(CURVES[name]), sample(4, 3, 8, 8)) >= LOW.get(name, 25)


@pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
def test_a_module_is_its_function(kind):
    least = 15 if kind is nn.Hardshrink else 25
    least = 20 if kind is nn.Tanhshrink else least
    assert signal_to_noise(between_layers(kind()), sample(4, 3, 8, 8)) >= least


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.abs(), lambda x: torch.absolute(x), lambda x: abs(x), lambda x: x.square(),
        lambda x: x**2, lambda x: x.pow(2), lambda x: torch.pow(x, 2), lambda x: 2**x,
        lambda x: torch.reciprocal(x.abs() + 1), lambda x: 3 / (x.abs() + 1),
        lambda x: torch.special.expit(x), lambda x: x.arctan(), lambda x: torch.exp2(x),
        lambda x: F.silu(x, inplace=True), lambda x: x.sigmoid_(), lambda x: torch.tanh_(x),
    ],
)  # fmt: skip
def test_every_spelling_compiles(function):
    assert signal_to_noise(between_layers(function), sample(4, 3, 8, 8)) >= 20


# ---- the table


def test_the_table_is_the_function_rounded_half_up():
    front, back = FixedPoint(8, 3, True), FixedPoint(8, 6, True)
    table = curves.make_curve((Step("tanh"),), (-np.inf, np.inf), front, back).values
    for byte in range(256):
        x = (byte - 256 if byte > 127 else byte) / 8
        assert table[byte] == min(127, np.floor(np.tanh(x) * 64 + 0.5))


def test_unused_entries_and_infinite_values_saturate():
    front, back = FixedPoint(4, 0, False), FixedPoint(8, 0, False)
    reciprocal = (Step("reciprocal"), Step("affine", (100.0, 0.0)))
    table = curves.make_curve(reciprocal, (0.0, 90.0), front, back).values
    assert table[:3].tolist() == [90, 90, 50]
    assert set(table[15:]) == {7}  # of 4 bits, 15 is the largest


def test_what_is_no_number_counts_as_zero():
    front = FixedPoint(8, 4, True)
    table = curves.make_curve((Step("sqrt"),), (-np.inf, np.inf), front, LSB).values
    assert (table[128:] == 0).all() and table[16] == 16


@pytest.mark.parametrize("name, function", CURVES.items())
def test_both_sides_of_a_table_may_be_signed_or_not(name, function):
    for before in (lambda x: x, torch.relu):
        model = settle(
            Net(lambda m, x, f=before: function(f(m.a(x))), a=nn.Conv2d(3, 4, 1))
        )
        check(model, sample(4, 3, 5, 6), least_db=25)


# ---- the type in front


def loss(values, front, function) -> float:
    x = values.double()
    rounded = torch.floor(x * 2.0**front.frac + 0.5).clamp(front.lo, front.hi) / 2.0**front.frac
    return float((curves.apply(function, rounded) - curves.apply(function, x)).square().mean())


@pytest.mark.parametrize("scale", [0.3, 3.0, 12.0])
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "silu", "hardswish", "exp"])
def test_no_other_type_in_front_loses_less(name, scale):
    values = sample(4000) * (min(scale, 3.0) if name == "exp" else scale)
    function = (Step(name),)
    bounds = (-np.inf, np.inf)
    chosen = curves.choose_front(values, 8, False, function, bounds)
    losses = {f: loss(values, FixedPoint(8, f, True), function) for f in range(-4, 12)}
    assert losses[chosen.frac] == min(losses.values())
    assert loss(values, chosen, function) <= loss(values, choose_type(values, 8, False), function)


def test_where_a_function_is_flat_values_in_front_are_clipped():
    values = sample(4000) * 12  # up to 40 and more
    plain = choose_type(values, 8, False)
    chosen = curves.choose_front(values, 8, False, (Step("sigmoid"),), (-np.inf, np.inf))
    assert chosen.hi * 2.0**-chosen.frac < 10 < plain.hi * 2.0**-plain.frac
    sigmoid = (Step("sigmoid"),)
    assert loss(values, plain, sigmoid) > 3 * loss(values, chosen, sigmoid)


def test_a_tensor_of_zeros_has_a_type_in_front_too():
    chosen = curves.choose_front(torch.zeros(9), 8, True, (Step("exp"),), (-np.inf, np.inf))
    assert chosen == FixedPoint(8, 8, False)


# ---- where it goes


def operations(model, *samples) -> list[str]:
    def name(op):
        curve = getattr(getattr(op, "requant", None), "curve", None)
        return type(op).__name__ + (f" {curve.name}" if curve else "")

    return [name(op) for op in compiled(model, *samples).ops]


PLACES = {
    "conv": (lambda m, x: F.silu(m.bn(m.a(x))), ["Conv silu"]),
    "linear": (lambda m, x: torch.tanh(m.l(x.mean((2, 3)))), ["AvgPool", "Conv tanh"]),
    "sum": (lambda m, x: F.gelu(m.a(x) + x), ["Conv", "Sum gelu"]),
    "average": (lambda m, x: torch.exp(m.a(x).mean((2, 3))), ["Conv", "AvgPool exp"]),
    "maximum": (
        lambda m, x: torch.exp(F.max_pool2d(m.a(x), 2)), ["Conv", "MaxPool", "Sum exp"]
    ),
    "input": (lambda m, x: torch.sigmoid(x), ["Sum sigmoid"]),
    "product": (lambda m, x: F.silu(m.a(x) * x), ["Conv", "Product silu"]),
    "two readers": (
        lambda m, x: _pool_and_tanh(m.a(x)), ["Conv", "MaxPool", "Sum tanh", "Sum"]
    ),
    "a chain": (lambda m, x: torch.sqrt(torch.exp(torch.tanh(m.a(x))) * 2 + 1),
                ["Conv sqrt(exp(tanh))"]),
    "then a clamp": (lambda m, x: F.relu6(torch.tanh(m.a(x)) * 5), ["Conv tanh"]),
    "x*sigmoid(x)": (lambda m, x: _swish(m.a(x)), ["Conv x*sigmoid"]),
    "by hand": (lambda m, x: _hardswish(m.a(x)), ["Conv x*x"]),
    "square": (lambda m, x: _square(m.a(x)), ["Conv x*x"]),
}


def _pool_and_tanh(y):
    return F.max_pool2d(y, 3, 1, 1) + torch.tanh(y)


def _swish(y):
    return y * torch.sigmoid(y)


def _hardswish(y):
    return y * F.relu6(y + 3) / 6


def _square(y):
    return y * y


@pytest.mark.parametrize("name", PLACES)
def test_a_curve_goes_behind_what_is_in_front_of_it(name):
    forward, expected = PLACES[name]
    model = settle(
        Net(forward, a=nn.Conv2d(3, 3, 3, padding=1), bn=nn.BatchNorm2d(3), l=nn.Linear(3, 4))
    )
    x = sample(4, 3, 6, 6)
    check(model, x)
    assert operations(model, x) == expected


# ---- products


PRODUCTS = {
    "maps": (lambda m, x, y: m.a(x) * m.a(y), 25),
    "torch.mul": (lambda m, x, y: torch.mul(m.a(x), F.relu(y)), 25),
    "unsigned": (lambda m, x, y: F.relu(x) * F.relu(y), 25),
    "a gate": (lambda m, x, y: x * torch.sigmoid(m.g(y.mean((2, 3), keepdim=True))), 25),
    "a gate first": (lambda m, x, y: torch.sigmoid(y.mean((2, 3), keepdim=True)) * m.a(x), 25),
    "a row and a column": (
        lambda m, x, y: x.mean(2, keepdim=True) * y.mean(3, keepdim=True), 20
    ),
    "a gate for pixels": (lambda m, x, y: m.a(x) * torch.sigmoid(y[:, :1]), 25),
    "features": (lambda m, x, y: x.mean((2, 3)) * y.mean((2, 3)), 25),
    "clamped": (lambda m, x, y: F.relu6(m.a(x) * y), 25),
    "three": (lambda m, x, y: m.a(x) * y * x, 18),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_equal_the_float_model(name):
    forward, least = PRODUCTS[name]
    model = settle(Net2(forward, a=nn.Conv2d(3, 3, 3, padding=1), g=nn.Conv2d(3, 3, 1)))
    x, y = sample(4, 3, 7, 8), sample(4, 3, 7, 8, seed=2)
    graph = compiled(model, x, y)
    assert any(isinstance(op, Product) for op in graph.ops)
    with torch.no_grad():
        want = model(x, y)
    (got,) = evaluate(graph, x, y)
    noise = (torch.as_tensor(got).reshape(want.shape) - want).square().sum()
    assert float(10 * torch.log10(want.square().sum() / noise)) >= least


def test_the_shift_of_a_product_stays_within_the_machine():
    """Samples whose product is zero ask for more fraction bits than both operands have."""
    model = settle(Net2(lambda m, x, y: x * y))
    x = torch.zeros(2, 3, 4, 4)
    x[:, 0] = 200.0
    y = torch.zeros(2, 3, 4, 4)
    y[:, 1] = 100.0
    (op,) = compiled(model, x, y).ops
    assert isinstance(op, Product) and isinstance(op, Sum)
    assert op.requant.shift.tolist() == [1, 1, 1]


REFUSED = {
    "a quotient": (
        lambda m, x: x / torch.exp(x),
        "truediv, test_curves.py:N: division by a computed tensor is not supported; divide by "
        "constants only, or end the compiled model before it, until='exp', and apply it in PyTorch",
    ),
    "a computed exponent": (
        lambda m, x: x**x,
        "pow_1, test_curves.py:N: a power with a computed exponent is not supported; use a "
        "constant exponent, or apply it to the input in PyTorch and compile what follows",
    ),
    "matmul": (
        lambda m, x: torch.matmul(x, x),
        "matmul, test_curves.py:N: matmul is not supported; apply it to the input in PyTorch and "
        "compile what follows",
    ),
    "logarithms of negative numbers": (
        lambda m, x: torch.log(x),
        "log, test_curves.py:N: the samples give NaN or infinite values here; check the weights "
        "and the range of the samples",
    ),
    "rrelu that is random": (
        lambda m, x: F.rrelu(x, training=True),
        "rrelu, test_curves.py:N: rrelu with training=True is random in eval too and is not "
        "supported; pass training=self.training, or use nn.RReLU",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(function).eval(), sample(2, 3, 5, 5))
