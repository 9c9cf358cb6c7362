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
    "by 1.5": lambda m, x: F.interpolate(m.a(x), scale_factor=1.5),
    "by 3.1, not all pixels alike": lambda m, x: F.interpolate(x, scale_factor=3.1),
    "half, exact": lambda m, x: F.interpolate(x, scale_factor=0.5, mode="nearest-exact"),
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


REFUSED = {
    "bicubic": (
        lambda m, x: F.interpolate(x, scale_factor=2, mode="bicubic"),
        "interpolate, test_resampling.py:N: interpolation with mode='bicubic' is not supported; "
        "use mode='bilinear' without antialias, or mode='nearest' and a convolution behind it",
    ),
    "antialias": (
        lambda m, x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True),
        "interpolate, test_resampling.py:N: interpolation with mode='bilinear' and "
        "antialias=True is not supported; use mode='bilinear' without antialias, or "
        "mode='nearest' and a convolution behind it",
    ),
    "weights that differ from pixel to pixel": (
        lambda m, x: F.interpolate(x, (3000, 8), mode="bilinear", align_corners=True),
        "interpolate, test_resampling.py:N: linear interpolation of the height of 3 channels "
        "from 6 to 3000 is not supported, because its weights differ from pixel to pixel; use an "
        "integer scale_factor with align_corners=False",
    ),
    "five dimensions": (
        lambda m, x: F.interpolate(x.view(-1, 3, 1, 6, 8), scale_factor=2),
        "interpolate, test_resampling.py:N: interpolation of (batch, 3, 1, 6, 8) is not "
        "supported; give it (batch, channels, height, width) or (batch, channels, length)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    with refuses(CompileError, message):
        compiled(Net(function).eval(), sample(2, 3, 6, 8))


def test_upsampling_is_what_torch_computes_for_every_integer():
    x = torch.arange(48.0).reshape(1, 1, 6, 8)
    check(Net(lambda m, x: F.interpolate(x, scale_factor=(3, 2))).eval(), x, least_db=99)
