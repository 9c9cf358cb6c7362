"""mean, sum, amax, amin, max and min over any dimensions but the batch.

Height and width by pooling, channels by a 1x1 convolution of equal weights or, for a maximum, by
pooling of the channels seen as rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .. import floatgraph as fg
from ..problems import OUTSIDE, Refusal
from .elementwise import maximum, minimum
from .heads import argmax, argmin
from .pooling import average, map_behind, mean_of_map
from .registry import Value, describe, host_step, register


def _axes(ctx, input: Value, dim: Any, what: str) -> tuple[int, ...]:
    """The dimensions, counted from 1 behind the batch, sorted."""
    rank = len(input.shape) + 1
    dims = [dim] if isinstance(dim, int) else list(dim) if dim else list(range(rank))
    axes = tuple(sorted({int(d) % rank for d in dims}))
    if 0 in axes or rank > 4:
        raise Refusal(
            f"{what} over dimensions {list(axes)} of {describe(input.shape)} is not supported",
            "reduce dimensions behind the batch of a map, a sequence or a vector",
        )
    return axes


def _as_map(ctx, input: Value) -> Value:
    """A map of one row or one pixel of what has fewer dimensions."""
    if len(input.shape) == 3:
        return input
    shape = (input.shape[0], 1, *input.shape[1:], *[1] * (2 - len(input.shape)))
    return ctx.add(fg.Reshape(), [input], shape, "_map")


def _finish(ctx, result: Value) -> Value:
    shape = ctx.real_shape()
    if not shape:  # one number per image has no tensor of its own: a step on the host
        return host_step(ctx, result, "reshape", (), shape_=())
    return result if result.shape == shape else ctx.add(fg.Reshape(), [result], shape)


def _channels(ctx, source: Value, mean: bool) -> Value:
    """Sum or mean over the channels of a map."""
    count = source.shape[0]
    weight = torch.full((1, count, 1, 1), 1.0 / count if mean else 1.0)
    op = fg.Conv(fg.Const(weight), None)
    return ctx.add(op, [source], (1, *source.shape[1:]), "_channels")


def _total(ctx, input: Value, dim, mean: bool) -> Value:
    axes = _axes(ctx, input, dim, "mean" if mean else "sum")
    source = _as_map(ctx, input)
    pixels = {axis for axis in axes if axis > 1}
    if len(input.shape) == 2 and pixels:
        pixels = {3}
    if pixels:
        source = average(ctx, source, pixels, mean)
    if 1 in axes:
        source = _channels(ctx, source, mean)
    return _finish(ctx, source)


@register([torch.mean], ["mean"])
def mean(ctx, input, dim=None, keepdim=False, *, dtype=None, out=None):
    """torch.mean; ``x.mean(3).mean(2)`` becomes one average."""
    found = mean_of_map(ctx, input, dim)
    return found if found is not None else _total(ctx, input, dim, mean=True)


@register([torch.sum], ["sum"])
def sum(ctx, input, dim=None, keepdim=False, *, dtype=None, out=None):
    """torch.sum."""
    return _total(ctx, input, dim, mean=False)


@register([torch.amax], ["amax"])
def amax(ctx, input, dim=(), keepdim=False, *, out=None):
    """torch.amax."""
    return _largest(ctx, input, dim, "amax")


def _largest(ctx, input: Value, dim, what: str) -> Value:
    axes = _axes(ctx, input, dim, what)
    source, _ = map_behind(ctx, input)
    source = _as_map(ctx, input if source is None or len(input.shape) == 2 else source)
    pixels = {axis for axis in axes if axis > 1}
    if len(input.shape) == 2 and pixels:
        pixels = {3}
    if pixels:
        channels, height, width = source.shape
        kernel = (height if 2 in pixels else 1, width if 3 in pixels else 1)
        source = _max_pool(
            ctx, source, kernel, (channels, height // kernel[0], width // kernel[1])
        )
    if 1 in axes and source.shape[0] > 1:
        channels, height, width = source.shape
        numbers = np.arange(channels).reshape(1, channels, 1)
        rows = ctx.add(fg.Select(numbers), [source], (1, height * channels, width), "_rows")
        source = _max_pool(ctx, rows, (channels, 1), (1, height, width))
    return _finish(ctx, source)


def _max_pool(ctx, source: Value, kernel, shape) -> Value:
    op = fg.MaxPool(kernel, kernel, (0, 0), (1, 1), False)
    return ctx.add(op, [source], shape)


@register([torch.amin], ["amin"])
def amin(ctx, input, dim=(), keepdim=False, *, out=None):
    """torch.amin: -amax(-x)."""
    negative = ctx.add(fg.Affine((fg.Arithmetic("mul", -1.0),)), [input], input.shape, "_negative")
    largest = _largest(ctx, negative, dim, "amin")
    return ctx.add(fg.Affine((fg.Arithmetic("mul", -1.0),)), [largest], largest.shape)


def _extreme(ctx, input, dim, keepdim, what: str):
    """(values, indices) of torch.max along one dimension; the indices are found on the host."""
    if not isinstance(dim, int):
        raise Refusal(
            f"{what} over all dimensions with the batch is not supported",
            f"give it a dimension behind the batch, as dim=1, or {OUTSIDE}",
        )
    ctx.real = ctx.real[0]
    values = (amax if what == "max" else amin)(ctx, input, dim, keepdim)
    return values, (argmax if what == "max" else argmin)(ctx, input, dim, keepdim)


@register([torch.max], ["max"], constants=True)
def max(ctx, input, dim=None, keepdim=False, *, other=None):
    """torch.max along a dimension, or of two tensors."""
    second = other if other is not None else dim
    if second is not None and not isinstance(second, int):
        return maximum(ctx, input, second)
    return _extreme(ctx, input, dim, keepdim, "max")


@register([torch.min], ["min"], constants=True)
def min(ctx, input, dim=None, keepdim=False, *, other=None):
    """torch.min along a dimension, or of two tensors."""
    second = other if other is not None else dim
    if second is not None and not isinstance(second, int):
        return minimum(ctx, input, second)
    return _extreme(ctx, input, dim, keepdim, "min")
