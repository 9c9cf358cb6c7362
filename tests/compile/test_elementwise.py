"""ReLU and its relatives, Dropout, Identity (operators/elementwise.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.errors import CompileError
from tests.compile.support import Net, Net2, check, compiled, sample, settle
from tests.messages import refuses


def _inplace(function):
    def forward(m, x):
        y = m.conv(x)
        function(y)
        return y

    return forward


FORMS = {
    "F.relu": lambda m, x: F.relu(m.conv(x)),
    "F.relu inplace": lambda m, x: F.relu(m.conv(x), inplace=True),
    "F.relu_": _inplace(F.relu_),
    "torch.relu": lambda m, x: torch.relu(m.conv(x)),
    "torch.relu_": _inplace(torch.relu_),
    "x.relu": lambda m, x: m.conv(x).relu(),
    "x.relu_": _inplace(lambda y: y.relu_()),
    "nn.ReLU": lambda m, x: m.relu(m.conv(x)),
    "nn.ReLU inplace": _inplace(nn.ReLU(inplace=True)),
    "F.relu6": lambda m, x: F.relu6(m.conv(x)),
    "nn.ReLU6": lambda m, x: m.relu6(m.conv(x)),
    "nn.Hardtanh": lambda m, x: m.hardtanh(m.conv(x)),
    "F.hardtanh": lambda m, x: F.hardtanh(m.conv(x), -0.5, max_val=1.5),
    "torch.clamp": lambda m, x: torch.clamp(m.conv(x), min=0, max=1),
    "torch.clip": lambda m, x: torch.clip(m.conv(x), -1, None),
    "x.clamp": lambda m, x: m.conv(x).clamp(0.25, 2),
    "x.clamp_": _inplace(lambda y: y.clamp_(max=0.5)),
    "x.clamp_min": lambda m, x: m.conv(x).clamp_min(0),
    "x.clamp_max": lambda m, x: m.conv(x).clamp_max(0.5),
    "min above max": lambda m, x: m.conv(x).clamp(1.0, 0.5),
    "clamp twice": lambda m, x: F.relu(m.conv(x)).clamp(max=1),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_spelling_of_relu_and_clamp_becomes_limits_of_the_convolution(name):
    model = settle(
        Net(FORMS[name], conv=nn.Conv2d(3, 4, 3), relu=nn.ReLU(), relu6=nn.ReLU6(),
            hardtanh=nn.Hardtanh(-1, 1))
    )  # fmt: skip
    graph = check(model, sample(4, 3, 7, 7))
    assert [type(op).__name__ for op in graph.ops] == ["Conv"]


def test_after_relu_the_type_is_unsigned_and_otherwise_signed():
    conv = nn.Conv2d(3, 4, 3)
    relu = compiled(settle(nn.Sequential(conv, nn.ReLU())), sample(4, 3, 7, 7))
    plain = compiled(settle(nn.Sequential(conv)), sample(4, 3, 7, 7))
    assert relu.tensors["_0"].type.signed is False
    assert plain.tensors["_0"].type.signed is True


def test_a_value_that_is_needed_before_the_relu_too_keeps_its_relu_apart():
    def forward(m, x):
        y = m.conv(x)
        return F.relu(y), y

    graph = check(settle(Net(forward, conv=nn.Conv2d(3, 4, 3))), sample(4, 3, 7, 7))
    assert [type(op).__name__ for op in graph.ops] == ["Conv", "Sum"]


def test_relu_of_an_input():
    check(Net(lambda m, x: torch.relu(x)).eval(), sample(4, 3, 5, 5))


def test_dropout_and_identity_vanish():
    layers = [nn.Conv2d(3, 4, 3), nn.Dropout(), nn.Identity(), nn.Dropout2d(), nn.AlphaDropout()]
    graph = check(settle(nn.Sequential(*layers)), sample(4, 3, 7, 7))
    assert len(graph.ops) == 1

    def forward(m, x):
        return F.dropout(m.conv(x), training=m.training).contiguous().clone().detach().float()

    assert len(check(settle(Net(forward, conv=layers[0])), sample(4, 3, 7, 7)).ops) == 1


def test_functional_dropout_that_is_always_active_is_refused():
    model = Net(lambda m, x: F.dropout(x)).eval()
    with refuses(
        CompileError,
        "dropout, test_elementwise.py:N: dropout with training=True is random in eval too and is "
        "not supported; pass training=self.training, or use nn.Dropout",
    ):
        compiled(model, sample(2, 3, 5, 5))


BOUNDS = {
    "minimum": lambda m, x: torch.minimum(F.relu(x), m.alpha),
    "minimum, constant first": lambda m, x: torch.minimum(m.alpha, F.relu(x)),
    "method": lambda m, x: F.relu(x).minimum(m.alpha),
    "fmin": lambda m, x: torch.fmin(F.relu(x), m.alpha),
    "clamp": lambda m, x: torch.clamp(x, torch.zeros(1), m.alpha),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_that_is_a_parameter_costs_nothing(name):
    """The clipping of PACT: one convolution with other limits."""
    model = Net(
        lambda m, x: BOUNDS[name](m, m.conv(x)), conv=nn.Conv2d(3, 4, 1),
        alpha=nn.Parameter(torch.tensor([0.75])),
    )  # fmt: skip
    graph = check(settle(model), sample(4, 3, 5, 5))
    (op,) = graph.ops
    type = graph.tensors[op.output].type
    assert (op.requant.lo, op.requant.hi) == (0, min(type.hi, int(0.75 * 2**type.frac)))


def test_a_maximum_with_one_element_is_a_clamp():
    model = Net(lambda m, x: torch.maximum(x, m.low), low=torch.tensor(-0.5)).eval()
    (op,) = check(model, sample(4, 3, 5, 5)).ops
    assert len(op.inputs) == 1


PER_CHANNEL = {
    "clamp": lambda m, x: torch.clamp(x, -m.alpha, m.alpha),
    "clamp_min": lambda m, x: x.clamp_min(-m.alpha),
    "minimum": lambda m, x: torch.minimum(x, m.alpha),
    "maximum": lambda m, x: torch.maximum(-m.alpha, x),
}


@pytest.mark.parametrize("name", PER_CHANNEL)
def test_bounds_of_every_channel(name):
    alpha = torch.tensor([0.25, 0.5, 1.0]).view(3, 1, 1)
    check(Net(PER_CHANNEL[name], alpha=alpha).eval(), sample(4, 3, 5, 5))


COMPUTED = {
    "maximum": lambda m, x, y: torch.maximum(x, y),
    "minimum": lambda m, x, y: x.minimum(y),
    "of one map": lambda m, x, y: torch.maximum(x, y.mean((2, 3), keepdim=True)),
    "clamp": lambda m, x, y: torch.clamp(x, y, y.relu() + 0.5),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_bounds_that_are_computed(name):
    check(Net2(COMPUTED[name]).eval(), sample(4, 3, 5, 5), sample(4, 3, 5, 5, seed=2))


def test_a_bound_of_one_element_is_a_number():
    check(Net(lambda m, x: x.clamp(min=torch.zeros(1, 1))).eval(), sample(4, 3, 5, 5))


def test_an_argument_out_is_refused():
    model = Net(lambda m, x: torch.add(x, 1, out=x)).eval()
    with refuses(
        CompileError,
        "add, test_elementwise.py:N: add with out= is not supported; assign its result instead",
    ):
        compiled(model, sample(2, 3, 5, 5))


def test_conversion_by_to_is_refused():
    model = Net(lambda m, x: x.to(torch.float64)).eval()
    with refuses(
        CompileError,
        "to, test_elementwise.py:N: a conversion to torch.float64 is not supported; leave it out: "
        "the compiler chooses the types of all tensors",
    ):
        compiled(model, sample(2, 3, 5, 5))


def test_conversion_to_another_dtype_is_refused():
    model = Net(lambda m, x: x.double()).eval()
    with refuses(
        CompileError,
        "double, test_elementwise.py:N: double is not supported; leave it out: the compiler "
        "chooses the types of all tensors",
    ):
        compiled(model, sample(2, 3, 5, 5))
