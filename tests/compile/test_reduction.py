"""mean, sum, amax, amin, max, min, stack, broadcasts, linear layers on rows, adaptive maxima."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rasna
from rasna.errors import CompileError
from tests.compile.support import Net, Net2, check, compiled, sample, settle
from tests.kinds.test_neighbours import through
from tests.messages import refuses, whole

REDUCTIONS = {
    f"{name} {dims}{' keepdim' if keep else ''}": (name, dims, keep)
    for name in ("mean", "sum", "amax", "amin")
    for dims in ((1,), (2,), (3,), (2, 3), (1, 2), (1, 3), (-1, -2), (1, -1))
    for keep in (False, True)
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_any_dimensions_of_a_map(name):
    function, dims, keep = REDUCTIONS[name]
    check(Net(lambda m, x: getattr(x, function)(dims, keepdim=keep)).eval(), sample(4, 3, 5, 6))


@pytest.mark.parametrize("name", ["mean", "sum", "amax", "amin"])
@pytest.mark.parametrize("dim", [1, 2])
def test_any_dimension_of_a_sequence(name, dim):
    check(Net(lambda m, x: getattr(torch, name)(x, dim)).eval(), sample(4, 6, 9))


@pytest.mark.parametrize("name", ["mean", "sum", "amax"])
def test_all_of_a_vector_and_of_a_map_with_keepdim(name):
    check(Net(lambda m, x: getattr(x, name)(1, keepdim=True)).eval(), sample(4, 9))
    check(Net(lambda m, x: getattr(x, name)((1, 2, 3), keepdim=True)).eval(), sample(4, 3, 5, 6))


def test_one_number_per_image_is_made_on_the_host():
    graph = check(Net(lambda m, x: x.mean((1, 2, 3))).eval(), sample(4, 3, 5, 6), least_db=20)
    assert [step.kind for step in graph.host_steps] == ["reshape"]


def test_a_layer_through_the_simulator():
    def forward(m, x):
        y = m.conv(x)
        return y.sum(1), y.amax(2), y.mean((1, 3)), y.amin((2, 3))

    through(settle(Net(forward, conv=nn.Conv2d(3, 4, 3))), sample(4, 3, 7, 8))


def test_max_along_a_dimension_has_values_and_indices():
    model = settle(Net(lambda m, x: torch.max(m.fc(x), 1), fc=nn.Linear(6, 5)))
    graph = compiled(model, sample(4, 6))
    assert [step.kind for step in graph.host_steps] == ["reshape", "argmax"]
    for function in (
        lambda m, x: x.max(2)[0], lambda m, x: torch.max(x, dim=2).values,
        lambda m, x: x.min(1, keepdim=True)[0], lambda m, x: torch.min(x, 2, True).values,
    ):  # fmt: skip
        graph = check(Net(function).eval(), sample(4, 3, 9))
        assert not graph.host_steps


def test_max_of_two_tensors():
    for function in (
        lambda m, x, y: torch.max(x, y), lambda m, x, y: x.min(y), lambda m, x, y: x.max(other=y)
    ):
        check(Net2(function).eval(), sample(4, 3, 5, 5), sample(4, 3, 5, 5, seed=2))


REFUSED = {
    "the batch": (
        lambda m, x: x.sum((0, 1)),
        "sum_1, test_reduction.py:N: sum over dimensions [0, 1] of (batch, 3, 5, 6) is not "
        "supported; reduce dimensions behind the batch of a map, a sequence or a vector",
    ),
    "max of all": (
        lambda m, x: x * x.max(),
        "max_1, test_reduction.py:N: max over all dimensions with the batch is not supported; give "
        "it a dimension behind the batch, as dim=1, or apply it to the input in PyTorch and "
        "compile what follows",
    ),
    "stack of rows": (
        lambda m, x: torch.stack([x, x], 3),
        "stack, test_reduction.py:N: stack of (batch, 3, 5, 6) along dimension 3 is not supported; "
        "stack along dimension 1 or 2, in front of or behind the channels",
    ),
    "a power mean": (
        lambda m, x: F.lp_pool2d(x, 2, 2),
        "lp_pool2d, test_reduction.py:N: lp_pool2d is not supported; it takes powers and roots; "
        "use nn.AvgPool2d or nn.MaxPool2d and train it again",
    ),
    "a large constant": (
        lambda m, x: m.big(x) + m.c,
        "add, test_reduction.py:N: arithmetic of (batch, 3, 60, 60) with a constant of shape "
        "(3, 60, 60) is not supported; use constants of at most 4096 numbers, or one value per "
        "channel, as (channels, 1, 1)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    model = Net(function, big=nn.Upsample((60, 60)), c=torch.randn(3, 60, 60)).eval()
    with pytest.raises(CompileError) as error:
        compiled(model, sample(2, 3, 5, 6))
    assert whole(str(error.value.problems[0])) == message


STACKS = {
    "maps": (lambda m, x: torch.stack([x, 2 * x], 1).flatten(1, 2), (3, 5, 6)),
    "behind the channels": (lambda m, x: torch.stack([x, -x], 2).flatten(1, 2), (3, 5, 6)),
    "vectors": (lambda m, x: torch.stack([x, -x, x + 1], 1), (6,)),
    "pairs of a vector": (lambda m, x: torch.stack([x, -x], -1), (6,)),
    "sequences": (lambda m, x: torch.stack([x, -x], 1).flatten(1, 2), (4, 7)),
}


@pytest.mark.parametrize("name", STACKS)
def test_stack(name):
    function, shape = STACKS[name]
    check(Net(function).eval(), sample(4, *shape))


BROADCASTS = {
    "a row": lambda x, y: x + y.mean(2, keepdim=True),
    "a column": lambda x, y: x - y.mean(3, keepdim=True),
    "one channel": lambda x, y: y.mean(1, keepdim=True) + x,
    "one number": lambda x, y: x - y.mean((1, 2, 3), keepdim=True),
    "both": lambda x, y: x.mean(2, keepdim=True) + y.mean(3, keepdim=True),
    "expand": lambda x, y: x.mean(2, keepdim=True).expand(-1, -1, 5, -1) + y,
    "expand_as": lambda x, y: y + x.mean((2, 3), keepdim=True).expand_as(y),
}


@pytest.mark.parametrize("name", BROADCASTS)
def test_broadcasts_of_computed_tensors(name):
    model = Net2(lambda m, x, y: BROADCASTS[name](x, y)).eval()
    check(model, sample(4, 3, 5, 6), sample(4, 3, 5, 6, seed=2))


def test_the_mean_of_a_dueling_network():
    model = settle(
        Net(lambda m, x: m.v(x) + (a := m.a(x)) - a.mean(1, keepdim=True), v=nn.Linear(6, 1),
            a=nn.Linear(6, 5))
    )  # fmt: skip
    through(model, sample(8, 6))


CONSTANTS = {
    "per column": ((6,), lambda x, c: x + c),
    "per row": ((5, 1), lambda x, c: x - c),
    "per pixel": ((5, 6), lambda x, c: c - x),
    "per element": ((3, 5, 6), lambda x, c: x + c),
    "with a batch of 1": ((1, 3, 5, 6), lambda x, c: torch.add(x, c, alpha=2)),
    "one per channel and row": ((3, 5, 1), lambda x, c: x + c),
    "factor per column": ((6,), lambda x, c: x * c),
    "factor per element": ((3, 5, 6), lambda x, c: c * x),
    "divisor per row": ((5, 1), lambda x, c: x / (c.abs() + 1)),
    "minimum per pixel": ((5, 6), lambda x, c: torch.minimum(x, c)),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_that_vary_along_the_pixels(name):
    shape, function = CONSTANTS[name]
    c = nn.Parameter(sample(*shape, seed=3))
    check(Net(lambda m, x: function(x, m.c), c=c).eval(), sample(4, 3, 5, 6))


def test_a_position_that_is_learned_through_the_simulator():
    model = settle(
        Net(lambda m, x: m.conv(x) + m.position, conv=nn.Conv2d(3, 4, 3),
            position=nn.Parameter(sample(1, 4, 4, 5, seed=4)))
    )  # fmt: skip
    through(model, sample(4, 3, 6, 7))


ROWS = {
    "map": (nn.Linear(6, 5), (3, 4, 6)),
    "sequence": (nn.Linear(7, 4), (5, 7)),
    "without bias": (nn.Linear(7, 1, bias=False), (5, 7)),
    "one token": (nn.Linear(7, 4), (1, 7)),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_linear_layer_on_the_last_dimension(name):
    layer, shape = ROWS[name]
    through(settle(nn.Sequential(layer, nn.ReLU())), sample(4, *shape))


def test_a_pruned_linear_layer_on_rows_stays_pruned():
    model = rasna.tune(settle(nn.Sequential(nn.Linear(8, 6))).train(), sp=0.5, strategy="all")
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    x = sample(4, 3, 8)
    for _ in range(3):
        optimiser.zero_grad()
        model(x).square().mean().backward()
        optimiser.step()
    graph = rasna.compile(model.eval(), x, channel_last=False, target="tiny")
    (row, *_) = [layer for layer in graph.layers if layer["operation"] == "Conv"]
    assert row["nonzeros"] <= row["weights"] // 2
    assert int((model[0].weight == 0).sum()) >= 24


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 9, (3, None), (2, 5), (11, 1)])
def test_adaptive_max_pooling_to_any_size(size):
    graph = check(nn.Sequential(nn.AdaptiveMaxPool2d(size)).eval(), sample(4, 3, 7, 8))
    want = nn.AdaptiveMaxPool2d(size)(torch.zeros(1, 3, 7, 8)).shape[1:]
    assert graph.outputs[0].shape == tuple(want)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 12])
def test_adaptive_max_pooling_of_a_sequence(size):
    check(nn.Sequential(nn.AdaptiveMaxPool1d(size)).eval(), sample(4, 3, 11))


# ---- normalisation, stochastic depth


def test_sequences_are_repeated_too():
    model = Net(lambda m, x: x + x.mean(1, keepdim=True) - x.mean(2, keepdim=True)).eval()
    check(model, sample(4, 3, 8))


def test_batch_normalisation_in_other_spellings():
    sync = nn.SyncBatchNorm(4)
    lazy = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d())
    lazy(sample(2, 3, 6, 6))
    for model in (nn.Sequential(nn.Conv2d(3, 4, 3), sync), lazy):
        through(settle(model), sample(4, 3, 6, 6))


NORMS = {
    "GroupNorm": nn.GroupNorm(1, 3), "LayerNorm": nn.LayerNorm(6),
    "InstanceNorm2d": nn.InstanceNorm2d(3), "LocalResponseNorm": nn.LocalResponseNorm(2),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_other_normalisations_say_what_to_train_instead(name):
    with refuses(
        CompileError,
        f"_0 (0): {name} is not supported; use nn.BatchNorm2d, whose running statistics are "
        f"constants, and train it again",
    ):
        compiled(nn.Sequential(NORMS[name]).eval(), sample(2, 3, 5, 6))


def stochastic_depth(input, p, mode, training=True):
    if not training or p == 0:
        return input
    keep = (torch.rand(len(input), 1, 1, 1) >= p).float()
    return input * keep / (1 - p)


torch.fx.wrap("stochastic_depth")


class StochasticDepth(nn.Module):
    """As torchvision.ops.StochasticDepth, whose function is a leaf of every trace."""

    def forward(self, x):
        return stochastic_depth(x, 0.5, "row", self.training)


def test_stochastic_depth_is_the_identity_in_eval_and_random_in_training():
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 1), StochasticDepth()))
    through(model, sample(4, 3, 5, 5))
    rasna.tune(model.train(), sp=0, strategy="all")
    with torch.no_grad():
        y = model(sample(64, 3, 5, 5)).flatten(1).abs().sum(1)
    assert 5 < int((y == 0).sum()) < 59


def test_stochastic_depth_that_is_random_in_eval_is_refused():
    model = Net(lambda m, x: stochastic_depth(x, 0.5, "row")).eval()
    with refuses(
        CompileError,
        "stochastic_depth, test_reduction.py:N: stochastic_depth with training=True is random in "
        "eval too and is not supported; pass training=self.training, or use "
        "torchvision.ops.StochasticDepth",
    ):
        compiled(model, sample(2, 3, 5, 5))

