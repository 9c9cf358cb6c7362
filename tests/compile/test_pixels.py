"""Pads, crops, steps, flips and rolls (operators/pixels.py, passes/fold_gather.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile import floatgraph as fg
from rasna.errors import CompileError
from rasna.graph import Conv, Gather, Padding
from rasna.targets import TARGETS
from tests.backend.graph_check import compare
from tests.compile.support import Net, check, compiled, integers, sample, settle, simplified
from tests.messages import refuses


def net(function, **children) -> nn.Module:
    return settle(
        Net(function, a=nn.Conv2d(3, 4, 3, padding=1), b=nn.Conv2d(4, 3, 3), **children)
    )


PADS = {
    "zeros": lambda x: F.pad(x, (1, 2, 3, 0)),
    "zeros by name": lambda x: F.pad(x, (1, 1), mode="constant", value=0),
    "a constant": lambda x: F.pad(x, (2, 1, 0, 1), value=0.5),
    "negative": lambda x: F.pad(x, (-1, -2, -3, 0)),
    "negative and positive": lambda x: F.pad(x, (-1, 2, 3, -2)),
    "channels": lambda x: F.pad(x, (0, 0, 0, 0, 2, 1)),
    "channels, as option A of ResNet": lambda x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 1, 1)),
    "reflect": lambda x: F.pad(x, (3, 2, 1, 0), mode="reflect"),
    "replicate": lambda x: F.pad(x, (9, 2, 1, 0), mode="replicate"),
    "circular": lambda x: F.pad(x, (1, 2, 3, 0), mode="circular"),
    "negative reflect": lambda x: F.pad(x, (-1, 2, 1, 1), mode="reflect"),
    "of a pad": lambda x: F.pad(F.pad(x, (1, 1, 1, 1), mode="reflect"), (0, 2)),
    "nothing": lambda x: F.pad(x, (0, 0)),
    "of a vector": lambda x: F.pad(x.mean((2, 3)), (1, 2)),
    "of a sequence": lambda x: F.pad(x.mean(2), (1, 2), mode="reflect"),
    "in front of ReLU": lambda x: F.pad(x, (1, 1, 1, 1), value=-0.5).relu(),
}
PARTS = {
    "steps": lambda x: x[:, :, ::2, 1:],
    "ends": lambda x: x[..., 1:-1, -4:-1],
    "one row": lambda x: x[:, :, 2],
    "one pixel": lambda x: x[:, 0, 1, -1:],
    "a list": lambda x: x[:, :, [0, 4, 2]],
    "rows and channels": lambda x: x[:, 1:, 1:],
    "chunk": lambda x: x.chunk(2, 2)[1] + x.chunk(2, 2)[0],
    "split": lambda x: torch.split(x, [2, 6], 3)[1],
    "tensor_split": lambda x: x.tensor_split(3, 2)[2],
    "narrow": lambda x: x.narrow(3, 2, 4),
    "index_select": lambda x: x.index_select(2, torch.tensor([5, 0, 0])),
    "flip": lambda x: x.flip(2, 3),
    "torch.flip": lambda x: torch.flip(x, (1, 3)),
    "roll": lambda x: x.roll((1, -3), (2, 3)),
    "roll of channels": lambda x: torch.roll(x, 1, 1),
    "of a sequence": lambda x: x.mean(2)[:, :, 1:-1:3],
    "flipped features": lambda x: x.mean((2, 3)).flip(1),
}


@pytest.mark.parametrize("name", PADS)
def test_pads(name):
    check(net(lambda m, x: PADS[name](m.a(x))), sample(4, 3, 6, 8))


@pytest.mark.parametrize("name", PARTS)
def test_parts(name):
    check(net(lambda m, x: PARTS[name](m.a(x))), sample(4, 3, 6, 8))


@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
@pytest.mark.parametrize("name", ["a constant", "channels", "reflect", "of a pad"])
def test_the_program_computes_the_integers(name, target):
    x = sample(1, 3, 6, 8)
    graph = compiled(Net(lambda m, x: PADS[name](x)).eval(), x)
    compare(graph, [integers(graph, x)], TARGETS[target])


MODULES = [
    nn.ZeroPad2d((1, 2, 0, 3)), nn.ConstantPad2d(1, 0.5), nn.ReflectionPad2d(2),
    nn.ReplicationPad2d((3, 1, 2, 0)), nn.CircularPad2d(1), nn.ZeroPad2d((-1, 0, 1, -2)),
]  # fmt: skip
ROWS = [
    nn.ZeroPad1d((1, 2)), nn.ConstantPad1d(1, -0.5), nn.ReflectionPad1d(2),
    nn.ReplicationPad1d((3, 1)), nn.CircularPad1d(1),
]  # fmt: skip


@pytest.mark.parametrize("pad", MODULES, ids=str)
@pytest.mark.parametrize("behind", [nn.Identity(), nn.Conv2d(3, 4, 3)])
def test_padding_modules(pad, behind):
    check(settle(nn.Sequential(nn.BatchNorm2d(3), pad, behind)), sample(4, 3, 6, 8))


@pytest.mark.parametrize("pad", ROWS, ids=str)
@pytest.mark.parametrize("behind", [nn.Identity(), nn.Conv1d(3, 4, 3)])
def test_padding_modules_of_sequences(pad, behind):
    check(settle(nn.Sequential(nn.BatchNorm1d(3), pad, behind)), sample(4, 3, 8))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("padding", [1, (2, 3), "same"])
def test_convolutions_that_pad_by_other_pixels(mode, padding):
    conv = nn.Conv2d(3, 4, (3, 4), padding=padding, padding_mode=mode)
    graph = check(settle(nn.Sequential(conv)), sample(4, 3, 6, 8))
    assert [type(op) for op in graph.ops] == [Gather, Conv]
    row = nn.Conv1d(3, 4, 3, padding=2, padding_mode=mode)
    check(settle(nn.Sequential(row)), sample(4, 3, 8))


# ---- what becomes part of a convolution


def folded(function, size=(6, 8), **children) -> fg.Node:
    """The only operation of a model behind its input."""
    model = net(function, **children)
    check(model, sample(4, 3, *size))
    _, node = simplified(model, sample(2, 3, *size)).nodes.values()
    return node


def test_zeros_in_front_of_a_convolution_are_its_padding():
    node = folded(lambda m, x: m.a(F.pad(x, (0, 1, 2, 0))))
    assert (node.op.padding, node.op.padding_mode) == (Padding(3, 1, 1, 2), "zeros")


def test_circular_padding_in_front_of_a_convolution_is_its_own():
    node = folded(lambda m, x: m.c(F.pad(x, (2, 1, 0, 3), mode="circular")), c=nn.Conv2d(3, 4, 3))
    assert (node.op.padding, node.op.padding_mode) == (Padding(0, 3, 2, 1), "circular")


def test_a_crop_behind_a_convolution_is_less_padding():
    node = folded(lambda m, x: m.c(x)[:, :, 1:-2, :-1], c=nn.Conv2d(3, 4, 3, padding=2))
    assert node.op.padding == Padding(1, 0, 2, 1)
    assert node.shape == (4, 5, 9)


def test_steps_behind_a_convolution_are_its_stride():
    node = folded(lambda m, x: m.c(x)[:, :, 1::2, ::3], c=nn.Conv2d(3, 4, 3, 1, 1))
    assert (node.op.stride, node.op.padding) == ((2, 3), Padding(0, 1, 1, 0))


def test_the_chomp_of_a_causal_convolution_costs_nothing():
    model = settle(Net(lambda m, x: m.c(x)[:, :, :-4].relu(), c=nn.Conv1d(3, 4, 3, 1, 4, 2)))
    graph = check(model, sample(4, 3, 20))
    (conv,) = graph.ops
    assert (conv.padding, conv.requant.lo) == (Padding(0, 0, 4, 0), 0)


KEPT = {
    "a constant that is not 0": lambda m, x: m.b(F.pad(x, (1, 1), value=0.5)),
    "zeros in front of circular padding": lambda m, x: m.c(F.pad(x, (1, 1))),
    "a reader that is no convolution": lambda m, x: (
        m.b(y := F.pad(x, (1, 1))) + y[:, :3, 1:-1, 1:-1]
    ),
    "a map that is needed whole": lambda m, x: (
        (y := m.b(x))[:, :, 1:].mean((2, 3)) + y.mean((2, 3))
    ),
    "more than the padding": lambda m, x: m.b(x)[:, :, 1:],
    "flipped": lambda m, x: m.b(x).flip(3),
    "behind a BatchNorm": lambda m, x: m.n(m.d(x))[:, :, 1:],
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_the_same_stays(name):
    model = settle(
        Net(
            KEPT[name], b=nn.Conv2d(4, 3, 3), n=nn.BatchNorm2d(3), d=nn.Conv2d(4, 3, 3, padding=1),
            c=nn.Conv2d(4, 3, 3, padding=1, padding_mode="circular"),
        )
    )  # fmt: skip
    check(model, sample(4, 4, 6, 8))
    ops = [type(n.op) for n in simplified(model, sample(2, 4, 6, 8)).nodes.values()]
    assert fg.Gather in ops


def test_moves_one_after_another_are_one():
    def forward(m, x):
        return F.pad(x[:, :, ::2].flip(2), (1, 1, 0, 0), mode="reflect")[..., 1:]

    graph = check(Net(forward).eval(), sample(4, 3, 6, 8))
    (gather,) = graph.ops
    assert gather.rows.tolist() == [4, 2, 0]
    assert gather.columns.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 6]


# ---- what is refused

REFUSED = {
    "minus infinity": (
        lambda x: F.max_pool2d(F.pad(x, (1, 1), value=float("-inf")), 2),
        "pad, test_pixels.py:N: a pad with -inf is not supported; use the padding argument of "
        "the pooling behind it, where padding never wins",
    ),
    "beyond the range": (
        lambda x: F.pad(x.relu(), (1, 1), value=-1.0),
        "pad, test_pixels.py:N: a pad with -1 of values that are stored in 0 to 3.98438 is not "
        "supported; pad with a value in the range of the samples, 0 at best",
    ),
    "the batch": (
        lambda x: F.pad(x, (0, 0, 0, 0, 0, 0, 1, 0))[:2],
        "pad, test_pixels.py:N: padding the batch is not supported; pad the dimensions behind it",
    ),
    "five dimensions": (
        lambda x: F.pad(x[:, :, None], (1, 1)),
        "pad, test_pixels.py:N: a pad of (batch, 3, 1, 6, 8) is not supported; give it (batch, "
        "channels, height, width) or (batch, channels, length)",
    ),
    "roll of everything": (
        lambda x: x.roll(1),
        "roll, test_pixels.py:N: roll of all elements is not supported; give it the dimensions, "
        "dims=…",
    ),
    "roll of the batch": (
        lambda x: x.roll(1, 0),
        "roll, test_pixels.py:N: roll of (batch, 3, 6, 8) along the batch is not supported; take "
        "the batch apart in PyTorch",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(lambda m, x: function(x)).eval(), sample(2, 3, 6, 8))
