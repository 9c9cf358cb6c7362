"""Transposed convolutions (operators/transposed.py, lower_transposed.py)."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile.lower_transposed import phases_of
from rasna.errors import CompileError
from rasna.graph import Conv, Select
from rasna.targets import TARGETS
from tests.backend.graph_check import compare
from tests.compile.support import Net, Net2, check, compiled, integers, sample, settle
from tests.messages import refuses

LAYERS = {
    "2, 2": dict(kernel_size=2, stride=2),
    "4, 2, 1": dict(kernel_size=4, stride=2, padding=1),
    "output_padding": dict(kernel_size=3, stride=2, padding=1, output_padding=1),
    "a crop at the end": dict(kernel_size=3, stride=2),
    "kernel smaller than stride": dict(kernel_size=1, stride=3),
    "stride 1": dict(kernel_size=3, padding=1),
    "padding larger than the kernel": dict(kernel_size=3, padding=3, stride=2),
    "dilation": dict(kernel_size=3, stride=3, dilation=2, padding=3, output_padding=1),
    "not square": dict(kernel_size=(3, 2), stride=(1, 2), padding=(2, 0), bias=False),
    "groups": dict(kernel_size=3, stride=2, groups=2),
    "depthwise": dict(kernel_size=4, stride=2, padding=1, groups=4),
}


@pytest.mark.parametrize("name", LAYERS)
def test_attributes(name):
    layer = nn.ConvTranspose2d(4, 8, **LAYERS[name])
    check(settle(nn.Sequential(layer)), sample(4, 4, 6, 7))


@pytest.mark.parametrize("name", ["4, 2, 1", "a crop at the end", "groups", "dilation"])
@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
def test_the_program_computes_the_integers(name, target):
    x = sample(1, 4, 6, 7)
    graph = compiled(settle(nn.ConvTranspose2d(4, 8, **LAYERS[name])), x)
    compare(graph, [integers(graph, x)], TARGETS[target])


SPELLINGS = {
    "functional": lambda m, x: F.conv_transpose2d(x, m.w, m.b, 2, 1),
    "torch.conv_transpose2d": lambda m, x: torch.conv_transpose2d(x, m.w, stride=(2, 1)),
    "of a sequence": lambda m, x: m.row(x.mean(2)),
    "F.conv_transpose1d": lambda m, x: F.conv_transpose1d(x.mean(2), m.v, None, 3, 1, 1),
    "output_size": lambda m, x: m.layer(x, output_size=(12, 16)),
    "BatchNorm and ReLU": lambda m, x: m.norm(m.layer(x)).relu(),
    "BatchNorm of a sequence": lambda m, x: m.norm1(m.row(x.mean(2))).relu(),
    "twice": lambda m, x: m.layer(F.relu(m.layer(x))),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    model = Net(
        SPELLINGS[name], w=nn.Parameter(sample(3, 4, 3, 3) / 5), b=nn.Parameter(sample(4)),
        v=nn.Parameter(sample(3, 2, 4) / 3), row=nn.ConvTranspose1d(3, 3, 4, 2, 1),
        layer=nn.ConvTranspose2d(3, 3, 3, 2, 1), norm=nn.BatchNorm2d(3), norm1=nn.BatchNorm1d(3),
    )  # fmt: skip
    check(settle(model), sample(4, 3, 6, 8))


def test_a_batch_norm_and_a_relu_are_part_of_the_convolution():
    model = nn.Sequential(nn.ConvTranspose2d(3, 4, 4, 2, 1), nn.BatchNorm2d(4), nn.ReLU())
    graph = compiled(settle(model), sample(2, 3, 6, 8))
    conv, select = graph.ops
    assert (type(conv), type(select)) == (Conv, Select)
    assert conv.weight.shape == (16, 3, 3, 3)
    assert conv.requant.lo == 0
    assert np.count_nonzero(conv.weight.reshape(4, 4, -1), axis=2).max() == 3 * 4


def test_every_phase_has_the_scale_of_its_channel():
    graph = compiled(settle(nn.ConvTranspose2d(3, 4, 4, 2, 1)), sample(2, 3, 6, 8))
    multiplier = graph.ops[0].requant.multiplier.reshape(4, 4)
    assert (multiplier == multiplier[:, :1]).all()


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel, dilation", [(1, 1), (3, 1), (4, 2)])
@pytest.mark.parametrize("padding", [0, 1, 3])
def test_phases_are_the_transposed_convolution_of_pytorch(stride, kernel, dilation, padding):
    x, weight = sample(1, 1, 7), sample(1, 1, kernel)
    extra = min(1, max(stride, dilation) - 1)
    want = F.conv_transpose1d(x, weight, None, stride, padding, extra, 1, dilation)
    axis = phases_of(7, want.shape[2], kernel, stride, padding, dilation)
    assert axis.before >= 0 and axis.behind >= 0
    taps = torch.cat([weight[0, 0], torch.zeros(1)])[torch.from_numpy(axis.source)]
    made = F.conv1d(F.pad(x, (axis.before, axis.behind)), taps.unsqueeze(1))
    assert made.shape == (1, stride, axis.size)
    whole = made.transpose(1, 2).reshape(1, 1, -1)[:, :, : want.shape[2]]
    assert torch.allclose(whole, want, atol=1e-5)


def test_a_computed_weight_is_refused():
    model = Net2(lambda m, x, y: F.conv_transpose2d(x, y)).eval()
    with refuses(
        CompileError,
        "conv_transpose2d, test_transposed.py:N: a transposed convolution with a computed weight "
        "is not supported; make the weight a parameter or buffer of a module",
    ):
        compiled(model, sample(2, 2, 5, 5), sample(2, 2, 3, 3))
