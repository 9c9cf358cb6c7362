"""Functions of one value, and products of two tensors, for the random models."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

# Where a function is not defined for all numbers, its argument is made one that it is defined for.
CURVES: dict[str, Callable] = {
    "F.silu": F.silu, "F.hardswish": F.hardswish, "F.gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "F.elu": lambda x: F.elu(x, 0.7), "F.selu": F.selu, "F.celu": lambda x: F.celu(x, 2.0),
    "F.softplus": lambda x: F.softplus(x, 2.0), "F.mish": F.mish, "F.logsigmoid": F.logsigmoid,
    "F.softsign": F.softsign, "F.tanhshrink": F.tanhshrink,
    "F.softshrink": lambda x: F.softshrink(x, 0.2),
    "F.hardshrink": lambda x: F.hardshrink(x, 0.3),
    "F.threshold": lambda x: F.threshold(x, 0.1, -0.5), "F.rrelu": F.rrelu,
    "torch.sigmoid": torch.sigmoid, "x.sigmoid": lambda x: x.sigmoid(), "torch.tanh": torch.tanh,
    "x.tanh": lambda x: x.tanh(), "exp": lambda x: torch.exp(x.clamp(max=4)),
    "expm1": lambda x: torch.expm1(x.clamp_max(3)), "abs": torch.abs, "square": torch.square,
    "pow 3": lambda x: x.clamp(-8, 8) ** 3, "pow 0.5": lambda x: x.abs() ** 0.5,
    "sqrt": lambda x: torch.sqrt(x.abs()), "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.1),
    "reciprocal": lambda x: 1 / (x.abs() + 0.5), "log": lambda x: torch.log(x.abs() + 0.1),
    "log1p": lambda x: torch.log1p(x.abs()), "sin": torch.sin, "cos": torch.cos,
    "erf": torch.erf, "atan": torch.atan, "sign": torch.sign,
    "x*sigmoid(x)": lambda x: x * torch.sigmoid(x), "x*x": lambda x: x * x,
    "quick gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "x*relu6(x+3)/6": lambda x: x * F.relu6(x + 3) / 6,
}  # fmt: skip
MODULES: tuple[type[nn.Module], ...] = (
    nn.SiLU, nn.Hardswish, nn.GELU, nn.ELU, nn.SELU, nn.CELU, nn.Softplus, nn.Mish, nn.LogSigmoid,
    nn.Softsign, nn.Tanhshrink, nn.Softshrink, nn.Hardshrink, nn.Sigmoid, nn.Tanh, nn.RReLU,
)  # fmt: skip


def curve(b, x: int) -> int:
    """A function of every element, as a function or as a module."""
    if b.chance(0.4):
        module = b.rng.choice(MODULES)()
        b.tags.add(f"curve.nn.{type(module).__name__}")
        return b.layer(module, x, b.shapes[x])
    name = b.rng.choice(list(CURVES))
    b.tags.add(f"curve.{name}")
    return b.add(CURVES[name], (x,), b.shapes[x])


def product(b, x: int) -> int:
    """A map times another of its shape, or times a value per channel."""
    shape = b.shapes[x]
    others = [i for i, s in enumerate(b.shapes) if s == shape and i != x]
    if len(shape) == 3 and (not others or b.chance(0.5)):
        return gate(b, x)
    if not others:
        return curve(b, x)
    b.tags.add("product.map")
    function = b.rng.choice([torch.mul, lambda u, v: u * v])
    return b.add(function, (x, b.rng.choice(others)), shape)


def gate(b, x: int) -> int:
    """Squeeze and excitation."""
    b.tags.add("product.gate")
    channels = b.shapes[x][0]
    y = b.layer(nn.AdaptiveAvgPool2d(1), x)
    y = b.layer(nn.Conv2d(channels, channels, 1), y)
    y = b.layer(b.rng.choice([nn.Sigmoid, nn.Hardsigmoid, nn.Tanh])(), y)
    return b.add(lambda u, v: u * v, (x, y), b.shapes[x])
