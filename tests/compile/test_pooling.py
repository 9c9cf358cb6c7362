"""Max pooling, average pooling and mean (operators/pooling.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.errors import CompileError
from rasna.graph import AvgPool
from tests.compile.support import Net, check, compiled, needs_traced_sizes_in_functions, sample
from tests.messages import refuses

MAX_POOLS = {
    "overlapping, padded": nn.MaxPool2d(3, 2, padding=1),
    "ceil mode": nn.MaxPool2d(2, 2, ceil_mode=True),
    "ceil mode, padded": nn.MaxPool2d(3, 2, padding=1, ceil_mode=True),
    "a kernel of one": nn.MaxPool2d(1, 2),
    "stride one": nn.MaxPool2d(3, 1),
    "dilated": nn.MaxPool2d(2, dilation=2),
    "not square": nn.MaxPool2d((3, 1), (1, 2), padding=(1, 0)),
    "dilated, padded, ceil": nn.MaxPool2d(3, 2, padding=1, dilation=2, ceil_mode=True),
}


@pytest.mark.parametrize("size", [(7, 7), (8, 5)])
@pytest.mark.parametrize("name", MAX_POOLS)
def test_max_pooling_is_exact_and_keeps_the_type(name, size):
    x = sample(4, 3, *size)
    graph = check(MAX_POOLS[name].eval(), x)
    (op,) = graph.ops
    assert graph.tensors[op.output].type == graph.tensors[op.inputs[0]].type


def test_ceil_mode_on_a_map_smaller_than_the_window_reach():
    check(nn.MaxPool2d(2, 2, ceil_mode=True).eval(), sample(4, 3, 3, 2))
    check(nn.MaxPool2d(3, 3, padding=1, ceil_mode=True).eval(), sample(4, 3, 2, 2))


AVERAGES = {
    "adaptive to 1": lambda m, x: F.adaptive_avg_pool2d(x, 1),
    "adaptive to 7": lambda m, x: F.adaptive_avg_pool2d(x, output_size=7),
    "adaptive, one None": lambda m, x: F.adaptive_avg_pool2d(x, (None, 1)),
    "adaptive, larger than the input": lambda m, x: F.adaptive_avg_pool2d(x, (15, 20)),
    "mean (2, 3)": lambda m, x: x.mean((2, 3)),
    "mean, keepdim": lambda m, x: torch.mean(x, dim=[-1, -2], keepdim=True),
    "mean of rows": lambda m, x: x.mean(3),
    "mean of columns": lambda m, x: x.mean(-2, keepdim=True),
    "avg_pool2d of everything": lambda m, x: F.avg_pool2d(x, x.size()[2:]),
    "avg_pool2d": lambda m, x: F.avg_pool2d(x, 3, stride=2),
    "avg_pool2d, padded": lambda m, x: F.avg_pool2d(x, 3, 2, padding=1),
    "padding not counted": lambda m, x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "ceil mode": lambda m, x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "ceil mode, padding not counted": lambda m, x: F.avg_pool2d(
        x, (2, 3), 2, (1, 0), ceil_mode=True, count_include_pad=False
    ),
    "divisor": lambda m, x: F.avg_pool2d(x, 2, divisor_override=3),
}  # fmt: skip


@pytest.mark.parametrize("name", AVERAGES)
def test_averages(name):
    if name == "avg_pool2d of everything":
        needs_traced_sizes_in_functions()
    graph = check(Net(AVERAGES[name]).eval(), sample(4, 3, 12, 11) + 1)
    assert [type(op) for op in graph.ops] == [AvgPool]


@pytest.mark.parametrize(
    "layer",
    [
        nn.AdaptiveAvgPool2d(1),
        nn.AdaptiveAvgPool2d((7, None)),
        nn.AvgPool2d(2, padding=1),
        nn.AdaptiveMaxPool2d((4, 1)),
    ],
)
def test_pooling_modules(layer):
    check(layer.eval(), sample(4, 3, 12, 11) + 1)


def test_mean_over_width_then_height_is_one_average():
    graph = check(Net(lambda m, x: x.mean(3).mean(2)).eval(), sample(4, 3, 12, 11) + 1)
    (op,) = graph.ops
    assert op.rows == [(0, 12)] and op.columns == [(0, 11)]


def test_adaptive_windows_of_different_sizes_have_their_own_multipliers():
    graph = compiled(nn.AdaptiveAvgPool2d((5, 1)).eval(), sample(4, 3, 12, 1) + 1)
    (op,) = graph.ops
    sizes = [limit - first for first, limit in op.rows]
    assert sizes == [3, 3, 4, 3, 3]
    index = op.requant_index[:, 0].tolist()
    assert index == [0, 0, 1, 0, 0] and len(op.requant.multiplier) == 2


def test_a_relu_behind_max_pooling_is_done_before_it():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.ReLU()).eval()
    graph = check(model, sample(4, 3, 8, 8))
    assert graph.tensors["_0"].type.signed is False
    assert len(graph.ops) == 2


def test_a_relu_behind_max_pooling_of_an_input_becomes_limits_of_the_pooling():
    graph = check(nn.Sequential(nn.MaxPool2d(2), nn.ReLU6()).eval(), sample(4, 3, 8, 8) * 4)
    (op,) = graph.ops
    assert op.lo == 0 and op.hi == 6 * 2 ** graph.tensors["_0"].type.frac


REFUSED = {
    "indices": (
        lambda m, x: F.max_pool2d(x, 2, return_indices=True)[0],
        "max_pool2d_with_indices, test_pooling.py:N: max pooling with return_indices=True is "
        "not supported; drop the indices",
    ),
    "mean of the batch": (
        lambda m, x: x.mean(0, keepdim=True),
        "mean, test_pooling.py:N: mean over dimensions [0] of (batch, 3, 6, 6) is not "
        "supported; reduce dimensions behind the batch of a map, a sequence or a vector",
    ),
    "mean of everything": (
        lambda m, x: x.mean(),
        "mean, test_pooling.py:N: mean over dimensions [0, 1, 2, 3] of (batch, 3, 6, 6) is "
        "not supported; reduce dimensions behind the batch of a map, a sequence or a vector",
    ),
    "maximum of a sequence": (
        lambda m, x: F.max_pool2d(x.flatten(2), 2),
        "max_pool2d, test_pooling.py:N: max pooling of (batch, 3, 36) is not supported; give it "
        "(batch, channels, height, width)",
    ),
    "average of a sequence": (
        lambda m, x: F.avg_pool2d(x.flatten(2), 2),
        "avg_pool2d, test_pooling.py:N: average pooling of (batch, 3, 36) is not supported; give "
        "it (batch, channels, height, width)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(function).eval(), sample(2, 3, 6, 6))


def test_a_window_of_too_many_pixels_is_refused():
    x = torch.rand(1, 1, 2902, 2902)
    with refuses(
        CompileError,
        "mean, test_pooling.py:N: the sum of a pooling window does not fit 32 bits; make the map "
        "smaller first, as with nn.AvgPool2d(2)",
    ):
        compiled(Net(lambda m, x: x.mean((2, 3))).eval(), x)
    compiled(Net(lambda m, x: F.avg_pool2d(x, 2).mean((2, 3))).eval(), x)
