"""Slices, chunks, shuffles and permutations of channels (operators/channels.py, shape.py)."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.errors import CompileError
from rasna.graph import Select
from tests.compile.support import Net, check, compiled, sample, settle
from tests.messages import refuses


def net(function) -> nn.Module:
    return settle(
        Net(
            function, a=nn.Conv2d(3, 8, 3, padding=1), b=nn.Conv2d(4, 4, 1),
            c=nn.Conv2d(8, 5, 3, groups=1), shuffle=nn.ChannelShuffle(4), fc=nn.Linear(6, 3),
            order=torch.tensor([2, 0, 1]), seq=nn.Conv1d(8, 4, 3),
        )
    )  # fmt: skip


def _halves(m, x):
    first, second = m.a(x).chunk(2, 1)
    return first + m.b(second)


def _view_shuffle(m, x):
    y = m.a(x)
    b, c, h, w = y.size()
    return m.c(y.view(b, 2, c // 2, h, w).transpose(1, 2).contiguous().view(b, c, h, w))


def _kept(m, x):
    """What the RefineNets do: half of the channels go past the layer."""
    y = m.a(x)
    return torch.cat([m.b(y[:, :4]), y[:, 4:]], 1)


SPELLINGS = {
    "chunk": _halves,
    "torch.chunk, dim=": lambda m, x: torch.chunk(m.a(x), 3, dim=1)[2],
    "split": lambda m, x: m.a(x).split(4, 1)[1],
    "split, sizes": lambda m, x: torch.split(m.a(x), [1, 5, 2], dim=1)[1],
    "tensor_split": lambda m, x: torch.tensor_split(m.a(x), 3, dim=1)[0],
    "several outputs": lambda m, x: torch.split(m.a(x), [1, 5, 2], dim=1),
    "narrow": lambda m, x: m.a(x).narrow(1, 2, 3),
    "torch.narrow": lambda m, x: torch.narrow(m.a(x), 1, 2, 3),
    "index_select": lambda m, x: torch.index_select(x, 1, m.order),
    "flip": lambda m, x: m.a(x.flip(1)),
    "torch.flip": lambda m, x: torch.flip(x, dims=[1]),
    "slice": lambda m, x: m.b(m.a(x)[:, 2:6]),
    "slice, step": lambda m, x: m.a(x)[:, 1::3],
    "slice from the end": lambda m, x: m.a(x)[:, -3:, :, :],
    "ellipsis": lambda m, x: m.a(x)[:, :4, ...],
    "one channel": lambda m, x: m.a(x)[:, 3],
    "list": lambda m, x: x[:, [2, 1, 0]],
    "buffer": lambda m, x: x[:, m.order],
    "kept": _kept,
    "nn.ChannelShuffle": lambda m, x: m.c(m.shuffle(m.a(x))),
    "F.channel_shuffle": lambda m, x: F.channel_shuffle(m.a(x), 2),
    "view and transpose": _view_shuffle,
    "view and permute": lambda m, x: m.a(x).view(-1, 2, 4, 5, 6).permute(0, 2, 1, 3, 4)
    .reshape(-1, 8, 5, 6),
    "swapaxes": lambda m, x: m.a(x).unflatten(1, (4, 2)).swapaxes(1, 2).flatten(1, 2),
    "transpose of vectors": lambda m, x: m.fc(
        x[:, :2].mean((3,)).flatten(1)[:, :6].reshape(-1, 2, 3).transpose(1, 2).flatten(1)
    ),
    "dimensions of size 1": lambda m, x: x.mean((2, 3), keepdim=True).permute(0, 2, 3, 1),
    "permute that changes nothing": lambda m, x: m.a(x).permute(0, 1, 2, 3),
    "sequence": lambda m, x: m.seq(m.a(x).flatten(2)[:, ::1])[:, 1:3] if False else x[:, 1:],
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    check(net(SPELLINGS[name]), sample(4, 3, 5, 6))


def test_moved_channels_keep_their_integers():
    graph = compiled(net(lambda m, x: m.a(x)[:, 2:6]), sample(2, 3, 5, 6))
    (select,) = [op for op in graph.ops if isinstance(op, Select)]
    assert graph.tensors[select.inputs[0]].type == graph.tensors[select.output].type
    assert np.array_equal(select.channels.ravel(), [2, 3, 4, 5])
    assert (select.requant.multiplier == 2).all() and (select.requant.shift == 1).all()


def test_a_slice_of_everything_is_nothing():
    graph = compiled(net(lambda m, x: m.a(x)[:, :]), sample(2, 3, 5, 6))
    assert [type(op).__name__ for op in graph.ops] == ["Conv"]


def test_relu_behind_a_shuffle_goes_to_the_layer():
    graph = compiled(net(lambda m, x: m.shuffle(m.a(x)).relu()), sample(2, 3, 5, 6))
    assert not graph.tensors["a"].type.signed


ONLY = "only the channels, dimension 1, can be taken apart"
REFUSED = {
    "split of the batch": (
        lambda m, x: torch.split(x, 2)[0],
        "split, test_channels.py:N: chunk or split of (batch, 3, 5, 6) along the batch is not "
        "supported; take the batch apart in PyTorch",
    ),
    "two lists": (
        lambda m, x: x[:, [0, 1], [1, 2]],
        "getitem, test_channels.py:N: indexing with lists or numbers in two dimensions beside "
        "each other is not supported; index them one after another, as x[:, numbers][:, :, 0]",
    ),
    "one image": (
        lambda m, x: x[0],
        "getitem, test_channels.py:N: indexing dimension 0 of (batch, 3, 5, 6) is not "
        "supported; the batch stays as it is; compute all of it",
    ),
    "to channel last": (
        lambda m, x: x.permute(0, 2, 3, 1),
        "permute, test_channels.py:N: a permutation (0, 2, 3, 1) of (batch, 3, 5, 6) is not "
        "supported; only channels can be moved, also parts of them after a view; give and "
        "take channel-last arrays with channel_last=True instead",
    ),
    "five dimensions": (
        lambda m, x: x.view(-1, 3, 1, 5, 6)[:, :2],
        "getitem, test_channels.py:N: picking 2 channels of (batch, 3, 1, 5, 6) is not "
        "supported; pick channels of (batch, channels, height, width)",
    ),
    "a table of numbers": (
        lambda m, x: x[:, [[0, 1], [1, 2]]],
        "getitem, test_channels.py:N: indexing channels with [[0, 1], [1, 2]] is not "
        "supported; use a constant slice, number or list",
    ),
    "T": (
        lambda m, x: x.mT,
        "getattr_1: the attribute mT of a tensor is not supported; only channels can be "
        "moved; exchange height and width of the samples instead",
    ),
    "another attribute": (
        lambda m, x: x * x.itemsize,
        "getattr_1, test_channels.py:N: the attribute itemsize of a tensor is not supported; "
        "keep it as a constant of the module",
    ),
    "computed numbers": (
        lambda m, x: x.index_select(1, x.argsort(1).flatten()[:1]),
        "the model cannot be compiled, 4 problems:\n"
        "  argsort, test_channels.py:N: argsort is not supported; apply it to the input in "
        "PyTorch and compile what follows\n"
        "  flatten, test_channels.py:N: flattening the batch dimension is not supported; use "
        "torch.flatten(x, 1)\n"
        "  getitem, test_channels.py:N: indexing dimension 0 of (batch) is not supported; "
        "the batch stays as it is; compute all of it\n"
        "  index_select, test_channels.py:N: index_select with a computed index is not "
        "supported; use a constant tensor, as a buffer of the module",
    ),
    "a computed number": (
        lambda m, x: x[:, x.argsort(1).flatten()[:1]],
        "the model cannot be compiled, 4 problems:\n"
        "  argsort, test_channels.py:N: argsort is not supported; apply it to the input in "
        "PyTorch and compile what follows\n"
        "  flatten, test_channels.py:N: flattening the batch dimension is not supported; use "
        "torch.flatten(x, 1)\n"
        "  getitem, test_channels.py:N: indexing dimension 0 of (batch) is not supported; "
        "the batch stays as it is; compute all of it\n"
        "  getitem_1, test_channels.py:N: indexing channels with a computed tensor is not "
        "supported; use a constant slice, number or list",
    ),
    "transposed map": (
        lambda m, x: x.transpose(2, 3),
        "transpose, test_channels.py:N: a permutation (0, 1, 3, 2) of (batch, 3, 5, 6) is not "
        "supported; only channels can be moved, also parts of them after a view; give and "
        "take channel-last arrays with channel_last=True instead",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(function).eval(), sample(2, 3, 5, 6))
