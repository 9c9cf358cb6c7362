"""Functions of one value: how they are written down, computed, and turned into a table.

A function is a tuple of :class:`Step`, applied one after another, so that chains of functions
are one function. Training evaluates it with torch; the table of the hardware is made from
it once, in float64, and stored in the program: nothing else ever computes the function again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..graph import Curve, FixedPoint
from .quantize import CANDIDATES, FRAC_LIMIT, clamp_limits, coarse_frac

FRONT_CANDIDATES = 2 * CANDIDATES  # a function that saturates allows much clipping in front
MAX_VALUES = 1 << 16  # of a tensor that take part in the choice of a type in front
ENTRIES = 256


@dataclass(frozen=True)
class Step:
    """One function by the name that users know; args: its constants, or functions of x."""

    name: str
    args: tuple[Any, ...] = ()


Function = tuple[Step, ...]

_FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "abs": torch.abs,
    "acos": torch.acos,
    "affine": lambda x, a, b: a * x + b,
    "asin": torch.asin,
    "asinh": torch.asinh,
    "atan": torch.atan,
    "celu": lambda x, alpha: F.celu(x, alpha),
    "clamp": lambda x, lo, hi: torch.clamp(x, lo, hi),
    "cos": torch.cos,
    "cosh": torch.cosh,
    "elu": lambda x, alpha: F.elu(x, alpha),
    "erf": torch.erf,
    "erfc": torch.erfc,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "gelu": lambda x, approximate: F.gelu(x, approximate=approximate),
    "hardshrink": lambda x, lambd: F.hardshrink(x, lambd),
    "hardswish": F.hardswish,
    "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "pow": lambda x, exponent: torch.pow(x, exponent),
    "product": lambda x, first, second: apply(first, x) * apply(second, x),
    "reciprocal": torch.reciprocal,
    "rsqrt": torch.rsqrt,
    "selu": F.selu,
    "sigmoid": torch.sigmoid,
    "sign": torch.sign,
    "silu": F.silu,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "softplus": lambda x, beta, threshold: F.softplus(x, beta, threshold),
    "softshrink": lambda x, lambd: F.softshrink(x, lambd),
    "softsign": F.softsign,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "sum": lambda x, a, first, b, second: a * apply(first, x) + b * apply(second, x),
    "tan": torch.tan,
    "tanh": torch.tanh,
    "tanhshrink": F.tanhshrink,
    "threshold": lambda x, threshold, value: F.threshold(x, threshold, value),
}
NAMES = frozenset(_FUNCTIONS)
_PLAIN = frozenset({"affine", "clamp", "leaky_relu", "product", "sum"})  # of no name to a user


def apply(function: Function, x: torch.Tensor) -> torch.Tensor:
    """The function of every element, in the dtype of x; differentiable."""
    for step in function:
        x = _FUNCTIONS[step.name](x, *step.args)
    return x


def describe(function: Function) -> str:
    """Names of the functions in a user's words, as ``tanh(softplus)``."""
    text = ""
    for step in function:
        inner = [describe(arg) for arg in step.args if isinstance(arg, tuple)]
        name = {"product": "*", "sum": "+"}.get(step.name, "").join(t or "x" for t in inner)
        name = name or ("" if step.name in _PLAIN else step.name)
        if name:
            text = f"{name}({text})" if text else name
    return text


def is_curved(function: Function) -> bool:
    """Whether more than straight pieces take part, so that a table is needed."""
    return any(
        step.name not in ("affine", "clamp", "leaky_relu", "sum")
        or any(is_curved(arg) for arg in step.args if isinstance(arg, tuple))
        for step in function
    )


def is_nonnegative(function: Function, nonnegative_input: bool) -> bool:
    """Whether the function is never negative, judged at 0 and at 800 values up to +-10**6."""
    magnitudes = torch.logspace(-6, 6, 400, dtype=torch.float64)
    x = torch.cat([torch.zeros(1, dtype=torch.float64), magnitudes])
    y = apply(function, x if nonnegative_input else torch.cat([x, -magnitudes]))
    return not bool((y < 0).any())  # what is not a number becomes 0


def _levels(front: FixedPoint) -> np.ndarray:
    """float64 (256,): the value that a byte has in front of the table; unused ones are clipped."""
    byte = np.arange(ENTRIES)
    integers = np.where(byte >= ENTRIES // 2, byte - ENTRIES, byte) if front.signed else byte
    return np.clip(integers, front.lo, front.hi) * 2.0**-front.frac


def _at(function: Function, values: np.ndarray | torch.Tensor) -> torch.Tensor:
    x = torch.as_tensor(values, dtype=torch.float64)
    with torch.no_grad():
        return torch.nan_to_num(apply(function, x), nan=0.0, posinf=math.inf, neginf=-math.inf)


def make_curve(
    function: Function, clamp: tuple[float, float], front: FixedPoint, output: FixedPoint
) -> Curve:
    """The table of a function: entry i = quantise(function(value of byte i)), in float64.

    front, output: types in front of the table and behind it. Infinite values saturate, and what
    is not a number (as the root of a negative one) counts as 0.
    """
    lo, hi = clamp_limits(output, clamp)
    scaled = _at(function, _levels(front)).numpy() * 2.0**output.frac
    values = np.clip(np.floor(scaled + 0.5), lo, hi)
    return Curve(describe(function) or "curve", values.astype(np.int16))


def choose_front(
    values: torch.Tensor, bits: int, nonnegative: bool, function: Function,
    clamp: tuple[float, float],
) -> FixedPoint:  # fmt: skip
    """The type in front of a table, by the samples: the least squared error behind it.

    Candidates are the largest power of two that clips nothing and seven finer ones: where a
    function is flat, clipped values cost nothing. At a tie the coarser wins.

    Parameters
    ----------
    values : float tensor of any shape, finite; what the function is applied to
    bits : 2 to 8
    nonnegative : True if the values can never be negative
    function, clamp : of the table
    """
    signed = not nonnegative
    empty = FixedPoint(bits, 0, signed)
    flat = values.detach().reshape(-1).float()
    coarse = coarse_frac(flat, empty)
    if coarse is None:
        return FixedPoint(bits, bits - 1 if signed else bits, signed)
    stride = max(1, flat.numel() // MAX_VALUES) | 1  # odd: visits every column of a map
    x = flat[::stride].double()
    limits = _finite_range(_at(function, x), clamp)
    exact = _at(function, x).clamp_(*limits)
    best, least = empty, math.inf
    for frac in range(coarse, coarse + FRONT_CANDIDATES):
        front = FixedPoint(bits, max(-FRAC_LIMIT, min(FRAC_LIMIT, frac)), signed)
        table = _at(function, _levels(front)).clamp_(*limits)
        integers = torch.floor(x * 2.0**front.frac + 0.5).clamp_(front.lo, front.hi).long()
        error = float((table[integers & (ENTRIES - 1)] - exact).square_().sum())
        if error < least:
            best, least = front, error
    return best


def _finite_range(y: torch.Tensor, clamp: tuple[float, float]) -> tuple[float, float]:
    """What the samples' finite results span, within the clamp: infinite ones must not decide."""
    y = y[torch.isfinite(y)].clamp(*clamp)
    return (float(y.min()), float(y.max())) if y.numel() else (0.0, 0.0)
