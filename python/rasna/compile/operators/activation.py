"""Leaky ReLU, PReLU, Hardsigmoid: curves of two or three straight pieces."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .. import floatgraph as fg
from ..problems import Refusal
from .registry import Value, register, register_module


def _leaky(ctx, input: Value, slope) -> Value:
    if slope == 0:
        return ctx.add(fg.Clamp((0.0, math.inf)), [input], input.shape)
    return ctx.add(fg.Leaky(slope), [input], input.shape)


@register([F.leaky_relu, F.leaky_relu_])
def leaky_relu(ctx, input, negative_slope=0.01, inplace=False):
    """F.leaky_relu with a constant slope."""
    return _leaky(ctx, input, ctx.number(negative_slope))


@register_module(nn.LeakyReLU)
def leaky_relu_module(ctx, module, path, input):
    """nn.LeakyReLU."""
    return _leaky(ctx, input, float(module.negative_slope))


@register([torch.prelu], ["prelu"])
def prelu(ctx, input, weight):
    """torch.prelu with one slope, or one per channel: max(x, 0) + slope * min(x, 0)."""
    if isinstance(weight, Value):
        raise Refusal("PReLU with a computed slope is not supported", "use nn.PReLU")
    if ctx.tensor(weight).numel() == 1:
        return ctx.add(fg.Leaky(weight), [input], input.shape)
    positive = ctx.add(fg.Clamp((0.0, math.inf)), [input], input.shape, "_positive")
    negative = ctx.add(fg.Clamp((-math.inf, 0.0)), [input], input.shape, "_negative")
    step = fg.Arithmetic("mul", weight)
    sloped = ctx.add(fg.Affine((step,)), [negative], input.shape, "_sloped")
    return ctx.add(fg.Sum((1.0, 1.0)), [positive, sloped], input.shape)


@register_module(nn.PReLU)
def prelu_module(ctx, module, path, input):
    """nn.PReLU."""
    return prelu(ctx, input, fg.Param(f"{path}.weight"))


@register([F.hardsigmoid])
def hardsigmoid(ctx, input, inplace=False):
    """F.hardsigmoid: x/6 + 1/2, clamped to 0 ... 1."""
    steps = (fg.Arithmetic("mul", 1 / 6), fg.Arithmetic("add", 0.5))
    line = ctx.add(fg.Affine(steps), [input], input.shape)
    return ctx.add(fg.Clamp((0.0, 1.0)), [line], input.shape, "_clamp")


@register_module(nn.Hardsigmoid)
def hardsigmoid_module(ctx, module, path, input):
    """nn.Hardsigmoid."""
    return hardsigmoid(ctx, input)
