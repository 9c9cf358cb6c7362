"""add, sub, mul, div, neg between tensors, constants and scalars."""

from __future__ import annotations

import operator
from typing import Any

import torch

from .. import floatgraph as fg
from ..problems import OUTSIDE, Refusal
from .channels import broadcast, pick
from .curves import add_curve
from .registry import Value, describe, host_step, register

MAX_PIXELS = 4096  # numbers of a constant that varies along the pixels


def _full_shape(ctx, x: Value, constant: Any) -> tuple[int, ...] | None:
    """The shape of a constant against that of x, without the batch; None where it is no tensor."""
    if not isinstance(constant, (fg.Param, fg.Const, fg.Derived)):
        return None
    shape = tuple(ctx.tensor(constant).shape)
    full = (1,) * (len(x.shape) + 1 - len(shape)) + shape
    fits = len(full) == len(x.shape) + 1 and full[0] == 1
    if not fits or any(n not in (1, m) for n, m in zip(full[1:], x.shape, strict=True)):
        raise Refusal(
            f"a constant of shape {shape} that repeats {describe(x.shape)} is not supported",
            "give both the same number of channels, and the constant no batch",
        )
    return full[1:]


def _operand(ctx, x: Value, constant: Any) -> float | fg.Ref:
    """A scalar or a reference that varies along the channels of x only."""
    full = _full_shape(ctx, x, constant)
    return ctx.number(constant) if full is None else constant


def _varies(ctx, x: Value, constant: Any) -> bool:
    """Whether a constant varies along the pixels."""
    full = _full_shape(ctx, x, constant)
    return full is not None and any(n > 1 for n in full[1:])


def _flat(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """One number per element of a map."""
    return tensor.expand(1, *shape).reshape(-1)


def _constant_map(ctx, x: Value, constant: Any) -> Value:
    """A constant as a computed tensor: the bias of a layer without weights."""
    full = _full_shape(ctx, x, constant)
    assert full is not None
    one = pick(ctx, x, [0], "_any")
    if len(x.shape) == 2:
        one = ctx.add(fg.Reshape(), [one], (1, 1, x.shape[1]), "_any")
    pool = fg.AvgPool(((0, 1),), ((0, 1),), (1.0,), (1.0,))
    one = ctx.add(pool, [one], (1, 1, 1), "_any")
    one = ctx.add(fg.Reshape(), [one], (1,), "_any")
    count = torch.Size(full).numel()
    bias = fg.Derived(torch.Tensor.reshape, (constant, (-1,)))
    layer = fg.Linear(fg.Const(torch.zeros(count, 1)), bias)
    flat = ctx.add(layer, [one], (count,), "_constant")
    return ctx.add(fg.Reshape(), [flat], full, "_constant")


def _per_pixel(ctx, x: Value, kind: str, constant: Any) -> Value:
    """Arithmetic with a constant that varies along the pixels."""
    full = _full_shape(ctx, x, constant)
    assert full is not None
    factor = kind in ("mul", "div")
    count = torch.Size(x.shape if factor else full).numel()
    if count > MAX_PIXELS or ctx.is_host(x) or len(x.shape) > 3:
        raise Refusal(
            f"arithmetic of {describe(x.shape)} with a constant of shape "
            f"{tuple(ctx.tensor(constant).shape)} is not supported",
            f"use constants of at most {MAX_PIXELS} numbers, "
            + ("maps of as many pixels, " if factor else "")
            + "or one value per channel, as (channels, 1, 1)",
        )
    if factor:
        flat = ctx.add(fg.Reshape(), [x], (count,), "_flat")
        step = fg.Arithmetic(kind, fg.Derived(_flat, (constant, x.shape)))
        made = ctx.add(fg.Affine((step,)), [flat], (count,))
        return ctx.add(fg.Reshape(), [made], x.shape)
    made = _constant_map(ctx, x, constant)
    if kind == "rsub":
        return _sum(ctx, made, x, -1.0)
    return _sum(ctx, x, made, 1.0 if kind == "add" else -1.0)


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
    for number, (kind, value) in enumerate(steps):
        if _varies(ctx, x, value):
            x = _affine(ctx, x, *steps[:number]) if number else x
            x = _per_pixel(ctx, x, kind, value)
            return _affine(ctx, x, *steps[number + 1 :]) if steps[number + 1 :] else x
    if ctx.is_host(x) and (result := _host_affine(ctx, x, steps)) is not None:
        return result
    made = tuple(fg.Arithmetic(kind, _operand(ctx, x, value)) for kind, value in steps)
    return ctx.add(fg.Affine(made), [x], x.shape)


def _sum(ctx, a: Value, b: Value, coefficient: float) -> Value:
    """a + coefficient * b; dimensions of size 1 are repeated, those of (C, 1, 1) for nothing."""
    one, two, shape = _same_shape(ctx, a, b, "adding")
    return ctx.add(fg.Sum((1.0, coefficient)), [one, two], shape)


def _same_shape(ctx, a: Value, b: Value, doing: str) -> tuple[Value, Value, tuple[int, ...]]:
    """Both as an operation takes them, and the shape of its result; (C, 1, 1) is left as it is."""
    if len(a.shape) != len(b.shape) or (a.shape != b.shape and len(a.shape) > 3):
        raise Refusal(
            f"{doing} {describe(a.shape)} and {describe(b.shape)} is not supported",
            "give both the same number of dimensions, as unsqueeze does",
        )
    shape = tuple(torch.broadcast_shapes(a.shape, b.shape))
    single = (shape[0], *[1] * (len(shape) - 1))
    one, two = (v if v.shape == single else broadcast(ctx, v, shape) for v in (a, b))
    return one, two, shape


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
    """input * other, of two computed tensors or with a constant."""
    if isinstance(input, Value) and isinstance(other, Value):
        one, two, shape = _same_shape(ctx, input, other, "multiplying")
        return ctx.add(fg.Product(), [one, two], shape)
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
