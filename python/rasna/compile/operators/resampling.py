"""Nearest and linear interpolation, pixel shuffle and pixel unshuffle."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .. import floatgraph as fg
from ..problems import Refusal
from .interpolation import linear
from .pixels import gather
from .registry import Value, describe, register, register_module
from .rows import as_row, as_sequence


@register([F.interpolate, F.upsample])
def interpolate(
    ctx, input, size=None, scale_factor=None, mode="nearest", align_corners=None,
    recompute_scale_factor=None, antialias=False,
):  # fmt: skip
    """F.interpolate to any size: nearest pixels, or linear between them."""
    modes = ("nearest", "nearest-exact", "linear", "bilinear")
    if mode not in modes or antialias:
        smooth = " and antialias=True" if antialias else ""
        raise Refusal(
            f"interpolation with mode={mode!r}{smooth} is not supported",
            f"use mode={modes[3]!r} without antialias, or mode={modes[0]!r} and a convolution "
            f"behind it",
        )
    if len(input.shape) not in (2, 3):
        raise Refusal(
            f"interpolation of {describe(input.shape)} is not supported",
            "give it (batch, channels, height, width) or (batch, channels, length)",
        )
    if mode.endswith("linear"):
        given = dict(
            size=size, scale_factor=scale_factor, align_corners=align_corners,
            recompute_scale_factor=recompute_scale_factor,
        )  # fmt: skip
        return linear(ctx, input, given)
    before, after = input.shape[1:], tuple(ctx.real.shape[2:])
    ramp = torch.arange(float(math.prod(before))).reshape(1, 1, *before)
    picked = F.interpolate(
        ramp, size, scale_factor, mode, recompute_scale_factor=recompute_scale_factor
    )
    if not _repeats(before, after, picked):
        return _picked(ctx, input, picked[0, 0].long())
    if len(before) == 1:
        return as_sequence(ctx, _nearest(ctx, as_row(ctx, input), (1, *after)))
    return _nearest(ctx, input, after)


def _repeats(before, after, picked: torch.Tensor) -> bool:
    """Whether every pixel, or every n-th one, is repeated equally often.

    picked: what PyTorch makes of the numbers of the pixels. A scale_factor of 3.1 repeats some
    pixels four times.
    """
    if any(m % n and n % m for n, m in zip(before, after, strict=True)):
        return False
    places = [torch.arange(m) * n // m for n, m in zip(before, after, strict=True)]
    wanted = places[0] if len(before) == 1 else places[0][:, None] * before[1] + places[1]
    return torch.equal(picked.reshape(after), wanted.to(picked.dtype))


def _picked(ctx, input: Value, pixels: torch.Tensor) -> Value:
    """Any rows and columns. pixels: numbers of the pixels, as PyTorch picks them."""
    width = input.shape[-1]
    numbers = {len(input.shape) - 1: (pixels.reshape(-1, pixels.shape[-1])[0] % width).numpy()}
    if pixels.dim() == 2:
        numbers[1] = (pixels[:, 0] // width).numpy()
    return gather(ctx, input, numbers)


def _nearest(ctx, input: Value, size: tuple[int, int]) -> Value:
    """Every n-th pixel as max pooling of single pixels, then the repetition of pixels."""
    channels, before = input.shape[0], input.shape[1:]
    down = tuple(max(1, n // m) for n, m in zip(before, size, strict=True))
    up = tuple(max(1, m // n) for n, m in zip(before, size, strict=True))
    if down != (1, 1):
        shape = (channels, *(n // d for n, d in zip(before, down, strict=True)))
        pool = fg.MaxPool((1, 1), (down[0], down[1]), (0, 0), (1, 1), False)
        input = ctx.add(pool, [input], shape, "_down" if up != (1, 1) else "")
    if up == (1, 1):
        return input
    numbers = np.broadcast_to(np.arange(channels)[:, None, None], (channels, *up)).copy()
    return ctx.add(fg.Select(numbers), [input], (channels, *size))


@register_module(nn.Upsample, nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d)
def upsample_module(ctx, module, path, input):
    """nn.Upsample, nn.UpsamplingNearest2d and nn.UpsamplingBilinear2d."""
    return interpolate(
        ctx, input, module.size, module.scale_factor, module.mode, module.align_corners,
        recompute_scale_factor=module.recompute_scale_factor,
    )  # fmt: skip


@register([F.pixel_shuffle, torch.pixel_shuffle])
def pixel_shuffle(ctx, input, upscale_factor):
    """F.pixel_shuffle."""
    factor = int(upscale_factor)
    count, height, width = input.shape
    numbers = np.arange(count).reshape(-1, factor, factor)
    if factor == 1:
        return input
    return ctx.add(
        fg.Select(numbers), [input], (len(numbers), height * factor, width * factor)
    )


@register_module(nn.PixelShuffle)
def pixel_shuffle_module(ctx, module, path, input):
    """nn.PixelShuffle."""
    return pixel_shuffle(ctx, input, module.upscale_factor)


@register([F.pixel_unshuffle, torch.pixel_unshuffle])
def pixel_unshuffle(ctx, input, downscale_factor):
    """F.pixel_unshuffle."""
    factor = int(downscale_factor)
    count, height, width = input.shape
    if factor == 1:
        return input
    shape = (count * factor * factor, height // factor, width // factor)
    return ctx.add(fg.Unshuffle(factor), [input], shape)


@register_module(nn.PixelUnshuffle)
def pixel_unshuffle_module(ctx, module, path, input):
    """nn.PixelUnshuffle."""
    return pixel_unshuffle(ctx, input, module.downscale_factor)
