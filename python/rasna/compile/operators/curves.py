"""Functions of one value that become a table: SiLU, tanh, exp and the like."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .. import floatgraph as fg
from ..curves import Step
from ..execute import HOST
from ..problems import OUTSIDE, Refusal
from .registry import Value, host_step, register, register_module


def add_curve(ctx, input: Value, name: str, *args: Any) -> Value:
    """Append a curve, behind a host step another of the kind; args: the constants of its step."""
    if ctx.is_host(input) and name in HOST and not args:
        return host_step(ctx, input, name)
    return ctx.add(fg.Curve((Step(name, args),)), [input], input.shape)


def _register(name: str, functions: Iterable[Callable], *modules: type) -> None:
    """Handlers of a function without constants: as function, method and module."""

    def function(ctx, input, inplace=False, *, out=None):
        return add_curve(ctx, input, name)

    def module(ctx, module, path, input):
        return add_curve(ctx, input, name)

    methods = [m for m in (name, f"{name}_") if hasattr(torch.Tensor, m)]
    register(functions, methods)(function)
    register_module(*modules)(module)


def _torch(*names: str) -> list[Callable]:
    """These functions of torch and of torch.special, as far as they exist."""
    places = [torch, torch.special, F, torch._C._nn]
    found = [getattr(place, name, None) for place in places for name in names]
    return [f for f in found if f is not None]


_MODULES: dict[str, tuple[type, ...]] = {
    "hardswish": (nn.Hardswish,), "logsigmoid": (nn.LogSigmoid,), "mish": (nn.Mish,),
    "selu": (nn.SELU,), "sigmoid": (nn.Sigmoid,), "silu": (nn.SiLU,),
    "softsign": (nn.Softsign,), "tanh": (nn.Tanh,), "tanhshrink": (nn.Tanhshrink,),
}  # fmt: skip
_ALIASES = {
    "abs": ("absolute",), "acos": ("arccos",), "asin": ("arcsin",), "asinh": ("arcsinh",),
    "atan": ("arctan",), "sigmoid": ("expit",),
}  # fmt: skip

for _name in (
    "abs", "acos", "asin", "asinh", "atan", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
    "hardswish", "log", "log10", "log1p", "log2", "logsigmoid", "mish", "reciprocal", "rsqrt",
    "selu", "sigmoid", "sign", "silu", "sin", "sinh", "softsign", "sqrt", "square", "tan", "tanh",
    "tanhshrink",
):  # fmt: skip
    _register(_name, _torch(_name, f"{_name}_", *_ALIASES.get(_name, ())), *_MODULES.get(_name, ()))
for _name, _aliases in _ALIASES.items():
    for _alias in (spelling for alias in _aliases for spelling in (alias, f"{alias}_")):
        if hasattr(torch.Tensor, _alias):
            register([], [_alias])(
                lambda ctx, input, *, out=None, _known=_name: add_curve(ctx, input, _known)
            )
register([operator.abs])(lambda ctx, input: add_curve(ctx, input, "abs"))


@register([F.gelu])
def gelu(ctx, input, approximate="none"):
    """F.gelu, exact and by tanh."""
    return add_curve(ctx, input, "gelu", str(approximate))


@register_module(nn.GELU)
def gelu_module(ctx, module, path, input):
    """nn.GELU."""
    return gelu(ctx, input, module.approximate)


@register([F.elu, F.elu_])
def elu(ctx, input, alpha=1.0, inplace=False):
    """F.elu."""
    return add_curve(ctx, input, "elu", ctx.number(alpha))


@register([F.celu, torch.celu, torch.celu_])
def celu(ctx, input, alpha=1.0, inplace=False):
    """F.celu."""
    return add_curve(ctx, input, "celu", ctx.number(alpha))


@register_module(nn.ELU, nn.CELU)
def elu_module(ctx, module, path, input):
    """nn.ELU and nn.CELU."""
    return (celu if isinstance(module, nn.CELU) else elu)(ctx, input, module.alpha)


@register([F.softplus])
def softplus(ctx, input, beta=1.0, threshold=20.0):
    """F.softplus."""
    return add_curve(ctx, input, "softplus", ctx.number(beta), ctx.number(threshold))


@register_module(nn.Softplus)
def softplus_module(ctx, module, path, input):
    """nn.Softplus."""
    return softplus(ctx, input, module.beta, module.threshold)


@register([F.softshrink])
def softshrink(ctx, input, lambd=0.5):
    """F.softshrink."""
    return add_curve(ctx, input, "softshrink", ctx.number(lambd))


@register([F.hardshrink, torch.hardshrink], ["hardshrink"])
def hardshrink(ctx, input, lambd=0.5):
    """F.hardshrink."""
    return add_curve(ctx, input, "hardshrink", ctx.number(lambd))


@register_module(nn.Softshrink, nn.Hardshrink)
def shrink_module(ctx, module, path, input):
    """nn.Softshrink and nn.Hardshrink."""
    shrink = softshrink if isinstance(module, nn.Softshrink) else hardshrink
    return shrink(ctx, input, module.lambd)


@register([F.threshold, F.threshold_, torch.threshold])
def threshold(ctx, input, threshold, value, inplace=False):
    """F.threshold: x where it is larger than the threshold, else the value."""
    return add_curve(ctx, input, "threshold", ctx.number(threshold), ctx.number(value))


@register_module(nn.Threshold)
def threshold_module(ctx, module, path, input):
    """nn.Threshold."""
    return threshold(ctx, input, module.threshold, module.value)


@register([F.rrelu, torch.rrelu, F.rrelu_, torch.rrelu_])
def rrelu(ctx, input, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    """F.rrelu in eval: the slope is the middle of its bounds."""
    if training and not ctx.training:
        raise Refusal(
            "rrelu with training=True is random in eval too and is not supported",
            "pass training=self.training, or use nn.RReLU",
        )
    slope = (ctx.number(lower) + ctx.number(upper)) / 2
    return ctx.add(fg.Leaky(slope), [input], input.shape)


@register_module(nn.RReLU)
def rrelu_module(ctx, module, path, input):
    """nn.RReLU."""
    return rrelu(ctx, input, module.lower, module.upper)


@register(
    [operator.pow, operator.ipow, torch.pow, torch.float_power],
    ["pow", "pow_", "float_power", "__pow__", "__rpow__", "__ipow__"],
    constants=True,
)
def power(ctx, input, exponent, *, out=None):
    """x ** number and number ** x."""
    if isinstance(input, Value) and isinstance(exponent, Value):
        raise Refusal(
            "a power with a computed exponent is not supported",
            f"use a constant exponent, or {OUTSIDE}",
        )
    if ctx.real.dtype == torch.float64:
        raise Refusal("a power in float64 is not supported", "use x ** number, in float32")
    if isinstance(input, Value):
        return add_curve(ctx, input, "pow", ctx.number(exponent))
    base = ctx.number(input)
    if base <= 0:
        raise Refusal(
            f"a power of {base:g} is not supported", "the base of a power must be more than 0"
        )
    steps = (Step("affine", (math.log(base), 0.0)), Step("exp"))
    return ctx.add(fg.Curve(steps), [exponent], exponent.shape)
