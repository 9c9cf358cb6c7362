"""Nearest upsampling, pixel shuffle and unshuffle (operators/resampling.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.errors import CompileError
from tests.compile.support import Net, check, compiled, sample, settle
from tests.messages import refuses


def net(function, **children) -> nn.Module:
    return settle(
        Net(function, a=nn.Conv2d(3, 8, 3, padding=1), b=nn.Conv2d(8, 4, 3), **children)
    )


SPELLINGS = {
    "scale_factor": lambda m, x: m.b(F.interpolate(m.a(x), scale_factor=2)),
    "a float": lambda m, x: F.interpolate(m.a(x), scale_factor=3.0, mode="nearest"),
    "a pair": lambda m, x: F.interpolate(m.a(x), scale_factor=(1, 4)),
    "size": lambda m, x: F.interpolate(m.a(x), size=(12, 8)),
    "one size": lambda m, x: F.interpolate(m.a(x)[:, :, None, :, :].flatten(2, 3), (6, 40)),
    "size of another": lambda m, x: F.interpolate(F.max_pool2d(x, 2), x.shape[2:]) + x,
    "nearest-exact": lambda m, x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "half": lambda m, x: F.interpolate(m.a(x), scale_factor=0.5),
    "half and double": lambda m, x: F.interpolate(m.a(x), (3, 16)),
    "nothing": lambda m, x: F.interpolate(m.a(x), scale_factor=1),
    "nn.Upsample": lambda m, x: m.up(m.a(x)),
    "nn.UpsamplingNearest2d": lambda m, x: m.near(m.a(x)),
    "recompute": lambda m, x: F.interpolate(x, scale_factor=2, recompute_scale_factor=True),
    "of one pixel": lambda m, x: F.interpolate(x.mean((2, 3), keepdim=True), (6, 8)) - x,
    "in front of ReLU": lambda m, x: F.interpolate(m.a(x), scale_factor=2).relu(),
    "F.pixel_shuffle": lambda m, x: F.pixel_shuffle(m.a(x), 2),
    "nn.PixelShuffle": lambda m, x: m.shuffle(m.a(x)),
    "F.pixel_unshuffle": lambda m, x: F.pixel_unshuffle(x, 2),
    "nn.PixelUnshuffle": lambda m, x: m.unshuffle(m.a(x)).relu(),
    "there and back": lambda m, x: F.pixel_shuffle(F.pixel_unshuffle(x, 2), 2) + x,
    "factor 1": lambda m, x: F.pixel_shuffle(F.pixel_unshuffle(m.a(x), 1), 1),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    model = net(
        SPELLINGS[name], up=nn.Upsample(scale_factor=2), near=nn.UpsamplingNearest2d(size=(18, 8)),
        shuffle=nn.PixelShuffle(2), unshuffle=nn.PixelUnshuffle(2),
    )  # fmt: skip
    check(model, sample(4, 3, 6, 8))


def test_upsampling_keeps_the_integers():
    graph = compiled(net(lambda m, x: F.interpolate(m.a(x), scale_factor=2)), sample(2, 3, 6, 8))
    conv, select = graph.ops
    assert graph.tensors[conv.output].type == graph.tensors[select.output].type
    assert select.channels.shape == (8, 2, 2)


MULTIPLE = "use an integer scale_factor, or a size that is a multiple of the input's"
REFUSED = {
    "bilinear": (
        lambda m, x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "interpolate, test_resampling.py:N: interpolation with mode='bilinear' is not "
        "supported, because it mixes pixels; use mode='nearest' with an integer scale_factor, "
        "and a convolution behind it",
    ),
    "1.5": (
        lambda m, x: F.interpolate(x, scale_factor=1.5),
        "interpolate, test_resampling.py:N: interpolation from (6, 8) to (9, 12) is not "
        "supported; use an integer scale_factor, or a size that is a multiple of the input's",
    ),
    "3.1": (  # 18 x 24, but pixels are not repeated equally often
        lambda m, x: F.interpolate(x, scale_factor=3.1),
        "interpolate, test_resampling.py:N: interpolation from (6, 8) to (18, 24) is not "
        "supported; use an integer scale_factor, or a size that is a multiple of the input's",
    ),
    "five dimensions": (
        lambda m, x: F.interpolate(x.view(-1, 3, 1, 6, 8), scale_factor=2),
        "interpolate, test_resampling.py:N: interpolation of (batch, 3, 1, 6, 8) is not "
        "supported; give it (batch, channels, height, width) or (batch, channels, length)",
    ),
    "half, exact": (
        lambda m, x: F.interpolate(x, scale_factor=0.5, mode="nearest-exact"),
        "interpolate, test_resampling.py:N: interpolation from (6, 8) to (3, 4) is not "
        "supported; use an integer scale_factor, or a size that is a multiple of the input's",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(function).eval(), sample(2, 3, 6, 8))


def test_transposed_convolutions_are_refused():
    with refuses(
        CompileError,
        "_0 (0): ConvTranspose2d is not supported; use nn.Upsample(scale_factor=2) and a "
        "convolution in its place and train it again, or apply it to the input in PyTorch "
        "and compile what follows",
    ):
        compiled(nn.Sequential(nn.ConvTranspose2d(3, 3, 2)).eval(), sample(2, 3, 6, 8))


def test_upsampling_is_what_torch_computes_for_every_integer():
    x = torch.arange(48.0).reshape(1, 1, 6, 8)
    check(Net(lambda m, x: F.interpolate(x, scale_factor=(3, 2))).eval(), x, least_db=99)
