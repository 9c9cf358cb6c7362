"""add, sub, mul, div, neg between tensors, constants and scalars."""

from __future__ import annotations

import operator
from typing import Any

import torch

from .. import floatgraph as fg
from ..problems import OUTSIDE, Refusal
from .curves import add_curve
from .registry import Value, describe, host_step, register


def _operand(ctx, x: Value, constant: Any) -> float | fg.Ref:
    """A scalar or a reference that varies along the channels of x only."""
    if not isinstance(constant, (fg.Param, fg.Const, fg.Derived)):
        return ctx.number(constant)
    shape = tuple(ctx.tensor(constant).shape)
    rank = len(x.shape) + 1
    full = (1,) * (rank - len(shape)) + shape
    if all(n == 1 for n in full):
        return constant
    if len(full) != rank or any(n != 1 for i, n in enumerate(full) if i != 1):
        raise Refusal(
            f"arithmetic of {describe(x.shape)} with a constant of shape {shape} is not supported",
            "constants must be scalars or vary along the channels only, "
            "as (channels, 1, 1) does",
        )
    if full[1] != x.shape[0]:
        raise Refusal(
            f"a constant of shape {shape} that repeats {describe(x.shape)} is not supported",
            "give both the same number of channels",
        )
    return constant


def _host_affine(ctx, x: Value, steps: tuple[tuple[str, Any], ...]) -> Value | None:
    """Arithmetic with numbers behind a host step; None where it is with something else."""
    made = [step for step in steps if isinstance(step[1], (int, float))]
    if len(made) < len(steps) or ctx.graph.nodes[x.name].op.dtype != torch.float32:
        return None
    factor, offset = 1.0, 0.0
    for kind, value in made:
        scale, shift = {
            "add": (1.0, value), "sub": (1.0, -value), "rsub": (-1.0, value), "mul": (value, 0.0),
            "div": (1.0 / value if kind == "div" else 1.0, 0.0),
        }[kind]  # fmt: skip
        factor, offset = factor * scale, offset * scale + shift
    return host_step(ctx, x, "scale", factor=float(factor), offset=float(offset))


def _affine(ctx, x: Value, *steps: tuple[str, Any]) -> Value:
    if ctx.is_host(x) and (result := _host_affine(ctx, x, steps)) is not None:
        return result
    made = tuple(fg.Arithmetic(kind, _operand(ctx, x, value)) for kind, value in steps)
    return ctx.add(fg.Affine(made), [x], x.shape)


def _sum(ctx, a: Value, b: Value, coefficient: float) -> Value:
    """a + coefficient * b, where one may be (C, 1, 1)."""
    shape = _common_shape(a, b, "adding")
    return ctx.add(fg.Sum((1.0, coefficient)), [a, b], shape)


def _common_shape(a: Value, b: Value, doing: str) -> tuple[int, ...]:
    """The shape of both, or that of one where the other is (C, 1, 1)."""
    if a.shape == b.shape:
        return a.shape
    small, large = sorted((a.shape, b.shape), key=lambda s: torch.Size(s).numel())
    if len(large) not in (2, 3) or small != (large[0], *[1] * (len(large) - 1)):
        raise Refusal(
            f"{doing} {describe(a.shape)} and {describe(b.shape)} is not supported",
            "both need the same shape, or one (batch, channels, 1, 1)",
        )
    return large


def _scaled(constant: Any, factor: float) -> Any:
    if factor == 1:
        return constant
    if isinstance(constant, (int, float)):
        return constant * factor
    return fg.Derived(operator.mul, (constant, factor))


@register(
    [operator.add, operator.iadd, torch.add], ["add", "add_", "__add__", "__radd__", "__iadd__"],
    constants=True,
)
def add(ctx, input, other, *, alpha=1, out=None):
    """input + alpha * other."""
    alpha = ctx.number(alpha)
    if isinstance(input, Value) and isinstance(other, Value):
        return _sum(ctx, input, other, alpha)
    if isinstance(input, Value):
        return _affine(ctx, input, ("add", _scaled(other, alpha)))
    return _affine(ctx, other, ("mul", alpha), ("add", input))


@register(
    [operator.sub, operator.isub, torch.sub, torch.subtract],
    ["sub", "sub_", "subtract", "__sub__", "__isub__"],
    constants=True,
)
def sub(ctx, input, other, *, alpha=1, out=None):
    """input - alpha * other."""
    alpha = ctx.number(alpha)
    if isinstance(input, Value) and isinstance(other, Value):
        return _sum(ctx, input, other, -alpha)
    if isinstance(input, Value):
        return _affine(ctx, input, ("sub", _scaled(other, alpha)))
    return _affine(ctx, other, ("mul", alpha), ("rsub", input))


@register([torch.rsub], ["__rsub__"], constants=True)
def rsub(ctx, input, other, *, alpha=1):
    """other - alpha * input."""
    return sub(ctx, other, input, alpha=alpha)


@register(
    [operator.mul, operator.imul, torch.mul, torch.multiply],
    ["mul", "mul_", "multiply", "__mul__", "__rmul__", "__imul__"],
    constants=True,
)
def mul(ctx, input, other, *, out=None):
    """input * other; two computed tensors of one shape, or one with a value per channel."""
    if isinstance(input, Value) and isinstance(other, Value):
        shape = _common_shape(input, other, "multiplying")
        return ctx.add(fg.Product(), [input, other], shape)
    x, constant = (input, other) if isinstance(input, Value) else (other, input)
    return _affine(ctx, x, ("mul", constant))


@register(
    [operator.truediv, operator.itruediv, torch.div, torch.true_divide, torch.divide],
    ["div", "div_", "divide", "true_divide", "__truediv__", "__rtruediv__", "__itruediv__"],
    constants=True,
)
def div(ctx, input, other, *, rounding_mode=None, out=None):
    """input / other with a constant divisor."""
    if rounding_mode is not None:
        raise Refusal(
            f"div with rounding_mode={rounding_mode!r} is not supported",
            f"divide without rounding, or {OUTSIDE}",
        )
    if isinstance(other, Value) and not isinstance(input, Value):
        return _affine(ctx, add_curve(ctx, other, "reciprocal"), ("mul", input))
    if isinstance(other, Value):
        raise Refusal(
            "division by a computed tensor is not supported",
            f"divide by constants only, or {OUTSIDE}",
        )
    values = ctx.tensor(other) if not isinstance(other, (int, float)) else torch.tensor(other)
    if bool((values == 0).any()):
        raise Refusal("division by zero is not supported", "divide by a number that is not 0")
    return _affine(ctx, input, ("div", other))


@register([operator.neg, torch.neg, torch.negative], ["neg", "neg_", "negative", "__neg__"])
def neg(ctx, input, *, out=None):
    """-input."""
    return _affine(ctx, input, ("mul", -1.0))


@register([operator.pos, torch.positive], ["positive"])
def pos(ctx, input):
    """+input."""
    return input
