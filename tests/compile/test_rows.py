"""Conv1d and what belongs to it: sequences as maps of one row (operators/rows.py and others)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile.backend import build_program
from rasna.errors import CompileError
from tests.compile.support import Net, check, compiled, sample, settle
from tests.messages import refuses

SPELLINGS = {
    "nn.Conv1d": lambda m, x: m.conv(x),
    "strided, dilated": lambda m, x: m.strided(x),
    "grouped": lambda m, x: m.grouped(m.conv(x)),
    "circular": lambda m, x: m.circular(x),
    "same": lambda m, x: m.same(x),
    "F.conv1d": lambda m, x: F.conv1d(x, m.conv.weight, padding=1, stride=(2,)),
    "BatchNorm1d": lambda m, x: m.bn(m.conv(x)).relu(),
    "BatchNorm1d alone": lambda m, x: m.bn(m.conv(x).relu()),
    "MaxPool1d": lambda m, x: m.maximum(m.conv(x)),
    "F.max_pool1d": lambda m, x: F.max_pool1d(x, 3, stride=1, padding=1),
    "ceil_mode": lambda m, x: F.max_pool1d(x, 4, ceil_mode=True),
    "AvgPool1d": lambda m, x: m.average(m.conv(x)),
    "F.avg_pool1d": lambda m, x: F.avg_pool1d(x, 3, 2, 1, True, False),
    "AdaptiveAvgPool1d": lambda m, x: m.adaptive(m.conv(x)),
    "F.adaptive_avg_pool1d": lambda m, x: F.adaptive_avg_pool1d(x, 1),
    "AdaptiveMaxPool1d": lambda m, x: m.adaptive_max(x),
    "mean": lambda m, x: m.fc(m.conv(x).relu().mean(-1)),
    "mean of the input": lambda m, x: x.mean(2, keepdim=True),
    "flatten": lambda m, x: m.flat(m.conv(x).flatten(1)),
    "residual": lambda m, x: m.same(x) + x,
    "broadcast": lambda m, x: m.same(x) + x.mean(2, keepdim=True),
    "arithmetic": lambda m, x: m.conv(x * 2 - m.offset),
    "cat": lambda m, x: torch.cat([m.same(x), x], 1),
    "slice": lambda m, x: m.conv(x)[:, 1:4],
    "Upsample": lambda m, x: m.up(m.conv(x)),
    "nearest": lambda m, x: F.interpolate(x, size=60),
    "leaky": lambda m, x: F.leaky_relu(m.bn(m.conv(x)), 0.1),
    "dropout": lambda m, x: F.dropout1d(m.conv(x), training=m.training),
    "squeezed map": lambda m, x: m.conv(x.unsqueeze(2).squeeze(2)),
    "a map of one row": lambda m, x: m.map(x[:, :, None]).squeeze(2),
    "a map as a sequence": lambda m, x: m.conv(m.pixel(x.view(-1, 3, 4, 5)).flatten(2)),
    "as one channel": lambda m, x: m.map1(x.unsqueeze(1)),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    model = settle(
        Net(
            SPELLINGS[name], conv=nn.Conv1d(3, 6, 3), strided=nn.Conv1d(3, 6, 3, 2, 2, 2),
            grouped=nn.Conv1d(6, 6, 3, groups=6, bias=False),
            same=nn.Conv1d(3, 3, 4, padding="same"),
            circular=nn.Conv1d(3, 6, 5, padding=2, padding_mode="circular"), bn=nn.BatchNorm1d(6),
            maximum=nn.MaxPool1d(2), average=nn.AvgPool1d(3, 2, 1), fc=nn.Linear(6, 4),
            adaptive=nn.AdaptiveAvgPool1d(7), adaptive_max=nn.AdaptiveMaxPool1d(5),
            flat=nn.Linear(6 * 18, 4), up=nn.Upsample(scale_factor=2), map=nn.Conv2d(3, 4, (1, 3)),
            map1=nn.Conv2d(1, 4, (2, 3)), pixel=nn.Conv2d(3, 3, 1), offset=torch.randn(3, 1),
        )
    )  # fmt: skip
    check(model, sample(4, 3, 20))


def test_batch_norm_is_folded_and_relu_too():
    model = settle(nn.Sequential(nn.Conv1d(3, 6, 3), nn.BatchNorm1d(6), nn.ReLU()))
    graph = compiled(model, sample(4, 3, 20))
    assert [op.name for op in graph.ops] == ["_0"]
    assert graph.tensors["_0"].shape == (6, 1, 18)
    assert graph.outputs[0].shape == (6, 18) and graph.inputs[0].shape == (3, 20)


def test_a_program_of_sequences_describes_them():
    model = settle(nn.Sequential(nn.Conv1d(3, 6, 3)))
    program = build_program(compiled(model, sample(4, 3, 20)), "tiny")
    (source,), (result,) = program.inputs, program.outputs
    assert (source.shape, source.layout) == ((3, 20), "CL")
    assert source.array_shape(True) == (20, 3) and source.array_shape(False) == (3, 20)
    assert result.array_shape(True) == (18, 6)


REFUSED = {
    "of a vector": (
        lambda m, x: m.conv(x.flatten(1)),
        "conv (conv), test_rows.py:N: a 1-d convolution of (batch, 60) is not supported; give "
        "it (batch, channels, length)",
    ),
    "average of a vector": (
        lambda m, x: F.avg_pool1d(x.flatten(1), 2),
        "avg_pool1d, test_rows.py:N: 1-d average pooling of (batch, 60) is not supported; "
        "give it (batch, channels, length)",
    ),
    "indices": (
        lambda m, x: F.max_pool1d(x, 2, return_indices=True)[0],
        "max_pool1d_with_indices, test_rows.py:N: max pooling with return_indices=True is not "
        "supported; drop the indices",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    model = settle(
        Net(
            function, conv=nn.Conv1d(2 if name == "of a vector" else 3, 4, 1), fc=nn.Linear(20, 2),
        )
    )  # fmt: skip
    with refuses(CompileError, message):
        compiled(model, sample(2, 3, 20))
