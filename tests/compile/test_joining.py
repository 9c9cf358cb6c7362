"""cat along the channels (operators/joining.py, lower_moves.py)."""

import numpy as np
import pytest
import torch
from torch import nn

from rasna.compile.pipeline import quantize_model
from rasna.compile.settings import Settings
from rasna.errors import CompileError
from rasna.graph import Select
from tests.compile.support import Net, Net2, check, compiled, sample, settle
from tests.messages import refuses


def net(function, *, small: float = 1.0) -> nn.Module:
    """With two convolutions of 3 channels to 5 and 7; the second one's results are ``small``."""
    model = Net(
        function, a=nn.Conv2d(3, 5, 3, padding=1), b=nn.Conv2d(3, 7, 1), c=nn.Conv2d(12, 4, 1),
        fc=nn.Linear(12 * 20, 6), bn=nn.BatchNorm2d(12), pool=nn.MaxPool2d(2),
    )  # fmt: skip
    settle(model)
    with torch.no_grad():
        model.b.weight.mul_(small)
        model.b.bias.mul_(small)
    return model


SPELLINGS = {
    "list": lambda m, x: torch.cat([m.a(x), m.b(x)], 1),
    "tuple, dim=": lambda m, x: torch.cat((m.a(x), m.b(x)), dim=1),
    "negative": lambda m, x: torch.cat([m.a(x), m.b(x)], -3),
    "tensors=": lambda m, x: torch.cat(tensors=[m.a(x), m.b(x)], dim=1),
    "concat": lambda m, x: torch.concat([m.a(x), m.b(x)], 1),
    "concatenate, axis=": lambda m, x: torch.concatenate([m.a(x), m.b(x)], axis=1),
    "hstack": lambda m, x: torch.hstack([m.a(x), m.b(x)]),
    "of inputs": lambda m, x: torch.cat([x, m.a(x), x], 1),
    "the same twice": lambda m, x: (lambda y: torch.cat([y, y], 1))(m.a(x)),
    "four": lambda m, x: torch.cat([m.a(x), x, m.b(x), m.a(x).relu()], 1),
    "nested": lambda m, x: torch.cat([torch.cat([m.a(x), x], 1), m.b(x)], 1),
    "of one": lambda m, x: torch.cat([m.a(x)], 1),
    "then a layer": lambda m, x: m.c(torch.cat([m.a(x).relu(), m.b(x)], 1)),
    "then ReLU": lambda m, x: torch.cat([m.a(x), m.b(x)], 1).relu(),
    "then BatchNorm": lambda m, x: m.bn(torch.cat([m.a(x), m.b(x)], 1)),
    "behind pooling": lambda m, x: torch.cat([m.pool(m.a(x)), m.pool(m.b(x))], 1),
    "vectors": lambda m, x: torch.cat([m.a(x).mean((2, 3)), m.b(x).mean((2, 3))], -1),
    "flattened maps": lambda m, x: m.fc(torch.cat([m.a(x).flatten(1), m.b(x).flatten(1)], 1)),
    "one pixel": lambda m, x: torch.cat(
        [m.a(x).mean((2, 3), keepdim=True), m.b(x).mean((2, 3), keepdim=True)], 1
    ),
    "height": lambda m, x: torch.cat([m.a(x), m.a(x.relu()), m.a(x)], 2),
    "width, of different scale": lambda m, x: torch.cat([m.a(x), 9 * m.a(x)], 3),
    "width of inputs, then ReLU": lambda m, x: torch.cat([x, x[..., 1:]], -1).relu(),
    "length": lambda m, x: torch.cat([m.a(x).flatten(2), m.a(x).mean(2)], 2),
    "a vector and a map": lambda m, x: torch.cat([x.mean((2, 3)), m.a(x).flatten(1)], 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    check(net(SPELLINGS[name]), sample(4, 3, 4, 5))


def test_operands_of_different_scale_are_requantised_once():
    model = net(lambda m, x: torch.cat([m.a(x), m.b(x), x], 1), small=0.01)
    graph = check(model, sample(4, 3, 4, 5))
    (join,) = [op for op in graph.ops if isinstance(op, Select)]
    types = [graph.tensors[name].type for name in join.inputs]
    assert types[0] == types[1] == graph.tensors[join.output].type  # only the cat reads them
    assert types[2] == graph.tensors[graph.inputs[0].tensor].type
    one, other, _ = (
        join.requant.multiplier / 2.0 ** (join.requant.shift + join.requant.pre_shift)
    )
    assert one == other == 1


def test_an_operand_that_others_read_keeps_its_type():
    def both(m, x):
        y = m.b(x)
        return torch.cat([m.a(x), y], 1), y

    graph = check(net(both, small=0.01), sample(4, 3, 4, 5))
    (join,) = [op for op in graph.ops if isinstance(op, Select)]
    fracs = [graph.tensors[name].type.frac for name in join.inputs]
    assert fracs[1] - fracs[0] >= 5
    assert graph.tensors[join.output].type.frac == fracs[0]
    pre, m, s = (getattr(join.requant, f)[1] for f in ("pre_shift", "multiplier", "shift"))
    assert m * 2.0 ** -float(pre + s) == 2.0 ** (fracs[0] - fracs[1])


def test_two_inputs_and_an_output_that_is_a_cat_of_them():
    model = Net2(lambda m, x, y: torch.cat([x, y], 1)).eval()
    check(model, sample(4, 3, 4, 5), 10 * sample(4, 2, 4, 5, seed=2))


def test_unsigned_operands_give_an_unsigned_result():
    graph = compiled(net(lambda m, x: torch.cat([m.a(x).relu(), m.b(x).relu()], 1)),
                     sample(4, 3, 4, 5))  # fmt: skip
    assert not graph.tensors[graph.outputs[0].tensor].type.signed


def test_flattened_maps_of_equal_size_are_joined_as_maps():
    graph = compiled(net(SPELLINGS["flattened maps"]), sample(4, 3, 4, 5))
    assert [type(op).__name__ for op in graph.ops] == ["Conv", "Conv", "Select", "Conv"]
    assert graph.ops[2].channels.shape == (12, 1, 1)


REFUSED = {
    "batch": (
        lambda m, x: torch.cat([x, x]),
        "cat, test_joining.py:N: cat of (batch, 3, 4, 5), (batch, 3, 4, 5) along dimension 0 "
        "(the batch) is not supported; join maps, sequences or vectors along a dimension behind "
        "the batch",
    ),
    "a constant": (
        lambda m, x: torch.cat([x, torch.ones(2, 1, 4, 5)], 1),
        "cat, test_joining.py:N: cat with a parameter or constant is not supported; join "
        "computed tensors only, or add the constant behind a 1x1 convolution",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(function).eval(), sample(2, 3, 4, 5))


def test_integers_are_rounded_by_the_rules():
    """u8.8 and u8.4 to u8.4: the first is divided by 16, ties up."""
    model = Net2(lambda m, x, y: torch.cat([x, y], 1)).eval()
    x = torch.arange(256.0).reshape(1, 1, 16, 16) / 256
    y = torch.arange(256.0).reshape(1, 1, 16, 16) / 16
    graph = quantize_model(model, [x, y], Settings()).quant_graph
    from rasna.golden import evaluate

    numbers = np.arange(256).reshape(1, 16, 16)
    got = evaluate(graph, [numbers, numbers])[graph.outputs[0].tensor]
    assert [str(t.type) for t in graph.tensors.values()] == ["u8.8", "u8.4", "u8.4"]
    assert np.array_equal(got[0], (numbers[0] + 8) >> 4)
    assert np.array_equal(got[1], numbers[0])
