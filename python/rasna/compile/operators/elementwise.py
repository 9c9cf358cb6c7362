"""ReLU and its relatives, Dropout, Identity, and calls that leave a tensor as it is."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .. import floatgraph as fg
from ..problems import Refusal
from .arithmetic import add, sub
from .registry import BY_NAME, Value, register, register_module


@register([torch.clamp, torch.clip, torch.clamp_], ["clamp", "clip", "clamp_", "clip_"])
def clamp(ctx, input, min=None, max=None):
    """torch.clamp; where min > max everything becomes max. Bounds may be tensors."""
    if not (_is_number(ctx, min) and _is_number(ctx, max)):
        if min is not None:
            input = maximum(ctx, input, min)
        return input if max is None else minimum(ctx, input, max)
    hi = math.inf if max is None else ctx.number(max)
    lo = -math.inf if min is None else ctx.number(min)
    return ctx.add(fg.Clamp((lo if lo < hi else hi, hi)), [input], input.shape)


def _is_number(ctx, bound) -> bool:
    """Whether a bound is a number, a constant of one element, or missing."""
    if isinstance(bound, Value):
        return False
    return bound is None or isinstance(bound, (int, float)) or ctx.tensor(bound).numel() == 1


@register(
    [torch.maximum, torch.fmax], ["maximum", "fmax"], constants=True
)
def maximum(ctx, input, other):
    """torch.maximum of a tensor and a constant, or of two tensors, as y + max(x - y, 0)."""
    return _limited(ctx, input, other, (0.0, math.inf))


@register(
    [torch.minimum, torch.fmin], ["minimum", "fmin"], constants=True
)
def minimum(ctx, input, other):
    """torch.minimum of a tensor and a constant, or of two tensors, as y + min(x - y, 0)."""
    return _limited(ctx, input, other, (-math.inf, 0.0))


def _limited(ctx, input, other, limits: tuple[float, float]) -> Value:
    x, bound = (input, other) if isinstance(input, Value) else (other, input)
    if _is_number(ctx, bound):
        lo, hi = (ctx.number(bound) + limit for limit in limits)
        return ctx.add(fg.Clamp((lo, hi)), [x], x.shape)
    difference = sub(ctx, x, bound)
    beyond = ctx.add(fg.Clamp(limits), [difference], difference.shape, "_beyond")
    return add(ctx, beyond, bound)


@register([torch.clamp_min, torch.clamp_min_], ["clamp_min", "clamp_min_"])
def clamp_min(ctx, input, min):
    """torch.clamp_min."""
    return clamp(ctx, input, min, None)


@register([torch.clamp_max, torch.clamp_max_], ["clamp_max", "clamp_max_"])
def clamp_max(ctx, input, max):
    """torch.clamp_max."""
    return clamp(ctx, input, None, max)


@register([F.relu, F.relu_, torch.relu, torch.relu_], ["relu", "relu_"])
def relu(ctx, input, inplace=False):
    """ReLU."""
    return clamp(ctx, input, 0.0, None)


@register([F.relu6])
def relu6(ctx, input, inplace=False):
    """ReLU6."""
    return clamp(ctx, input, 0.0, 6.0)


@register([F.hardtanh, F.hardtanh_])
def hardtanh(ctx, input, min_val=-1.0, max_val=1.0, inplace=False):
    """Hardtanh."""
    return clamp(ctx, input, min_val, max_val)


@register_module(nn.ReLU)
def relu_module(ctx, module, path, input):
    """nn.ReLU."""
    return relu(ctx, input)


@register_module(nn.Hardtanh, nn.ReLU6)
def hardtanh_module(ctx, module, path, input):
    """nn.Hardtanh and nn.ReLU6, which derives from it."""
    return clamp(ctx, input, module.min_val, module.max_val)


@register([F.dropout, F.dropout1d, F.dropout2d, F.alpha_dropout, F.feature_alpha_dropout])
def dropout(ctx, input, p=0.5, training=True, inplace=False):
    """Dropout: nothing happens in eval."""
    if training and not ctx.training and p > 0:
        raise Refusal(
            "dropout with training=True is random in eval too and is not supported",
            "pass training=self.training, or use nn.Dropout",
        )
    return ctx.add(fg.Dropout(p), [input], input.shape)


@register_module(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.AlphaDropout, nn.FeatureAlphaDropout)
def dropout_module(ctx, module, path, input):
    """nn.Dropout and its relatives."""
    return ctx.add(fg.Dropout(module.p, path), [input], input.shape)


def stochastic_depth(ctx, input, p, mode, training=True):
    """torchvision.ops.stochastic_depth: nothing happens in eval, its module runs in training."""
    if training and not ctx.training and p > 0:
        raise Refusal(
            "stochastic_depth with training=True is random in eval too and is not supported",
            "pass training=self.training, or use torchvision.ops.StochasticDepth",
        )
    path = ctx.where.path
    inside = type(ctx.root.get_submodule(path)).__name__ == "StochasticDepth"
    if training and p > 0 and not inside:
        raise Refusal(
            "stochastic_depth as a function is not supported in training",
            "use the module torchvision.ops.StochasticDepth",
        )
    return ctx.add(fg.Dropout(p, path if inside else ""), [input], input.shape) if inside else input


BY_NAME["stochastic_depth"] = stochastic_depth


@register(
    [torch.clone, torch.detach, torch.Tensor.contiguous],
    ["contiguous", "clone", "detach", "float", "cpu", "to", "type", "type_as"],
)
def unchanged(ctx, input, *args, **kwargs):
    """Calls that give the same float32 values."""
    if ctx.real.dtype != torch.float32:
        raise Refusal(
            f"a conversion to {ctx.real.dtype} is not supported",
            "leave it out: the compiler chooses the types of all tensors",
        )
    return input


@register_module(nn.Identity)
def identity_module(ctx, module, path, input):
    """nn.Identity."""
    return input
