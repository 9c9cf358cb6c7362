"""Integers of one operation each: convolutions, per-channel affines, sums, averages.

Everything here is NumPy over one operation; ``lower.py`` walks the graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..graph import FixedPoint, Requant
from .quantize import (
    MAX_ACC,
    MAX_BIAS,
    MIN_SCALE_LOG2,
    choose_weight_scale,
    clamp_limits,
    quantize_weight,
    requant_for,
    round_half_up,
    weight_limit,
)
from .settings import Settings

FIXED_BITS = 8  # of weights that are not learned
AFFINE_WEIGHT_LOG2 = 6  # a per-channel affine multiplies by +-64; the scale itself is in M
MAX_COEFFICIENT = 1024
MAX_FRAC_DIFFERENCE = 8  # of the operands of a sum


@dataclass
class Quantized:
    """weight: int8, empty for sums and averages; bias: int32 (OC,), empty for averages."""

    weight: np.ndarray
    bias: np.ndarray
    requant: Requant


_NOTHING = np.zeros(0, np.int8)


def max_magnitude(type: FixedPoint) -> int:
    """The largest |integer| of a type."""
    return max(type.hi, -type.lo)


def quantize_convolution(
    weight: np.ndarray, bias: np.ndarray, source: FixedPoint, output: FixedPoint,
    clamp: tuple[float, float], settings: Settings, factor: np.ndarray | None = None,
) -> Quantized:  # fmt: skip
    """Weights, bias and requantisation of y = factor * (weight . x) + bias per output channel.

    weight: float64 (OC, IC/groups, KH, KW); bias: float64 (OC,); factor: float64 (OC,), 1 by
    default; source, output: types of input and output. Weights get one scale per output
    channel (:func:`choose_weight_scale`), halved until bias and accumulator fit int32; the
    factor is in the requantisation, its sign in the weights.
    """
    rows = torch.from_numpy(weight.reshape(len(weight), -1))
    factor = np.ones(len(rows)) if factor is None else factor
    constant = ~rows.any(1).numpy() | (factor == 0)
    sign = np.where(constant, 0, np.sign(factor))[:, None]
    scale = choose_weight_scale(rows, settings.wb).numpy().astype(np.float64)
    # what an accumulator step stands for; 14 bits finer than the output are plenty for a bias
    step = 2.0**-source.frac * np.abs(factor) / scale
    step = np.where(constant, 2.0 ** -(output.frac + 14), step)
    needed = np.ceil(np.log2(np.maximum(np.abs(bias) / step, 1) / MAX_BIAS))
    halvings = np.maximum(needed, 0).astype(np.int64)
    while True:
        halved = torch.from_numpy(np.ldexp(scale, -halvings)).float()
        integers = quantize_weight(rows, halved.unsqueeze(1), weight_limit(settings.wb)).numpy()
        bias_integers = round_half_up(bias / np.ldexp(step, halvings))
        sums = (np.abs(integers) * np.abs(sign)).sum(axis=1, dtype=np.float64).astype(np.int64)
        bound = np.abs(bias_integers) + sums * max_magnitude(source)
        if (bound <= MAX_ACC).all():
            break
        halvings += bound > MAX_ACC
    lo, hi = clamp_limits(output, clamp)
    per_lsb = np.ldexp(step, halvings + output.frac)
    requant = requant_for(per_lsb, bound, lo, hi, settings.ib)
    integers = (integers * sign).astype(np.int8).reshape(weight.shape)
    return Quantized(integers, bias_integers.astype(np.int32), requant)


def quantize_affine(
    a: np.ndarray, b: np.ndarray, source: FixedPoint, output: FixedPoint,
    clamp: tuple[float, float], ib: int,
) -> Quantized:  # fmt: skip
    """a*x + b per channel as a depthwise 1x1 convolution.

    The weight is +-64 and the scale |a| is in the 15-bit multiplier, so that scales keep
    their precision. Channels in which a*x is negligible beside b become constants.
    a, b: float64 (C,). weight: (C, 1, 1, 1).
    """
    lo, hi = clamp_limits(output, clamp)
    scale = np.abs(a) * 2.0 ** (output.frac - source.frac - AFFINE_WEIGHT_LOG2)
    safe = np.where(scale > 0, scale, 1.0)
    bias = b * 2.0**output.frac / safe
    constant = (scale < 2.0**MIN_SCALE_LOG2) | (np.abs(bias) > MAX_BIAS)
    saturated = np.clip(b * 2.0**output.frac, -(2.0**20), 2.0**20)  # beyond any 8-bit clamp
    bias = round_half_up(np.where(constant, saturated * 256, bias))
    scale = np.where(constant, 1 / 256, scale)
    weight = np.where(constant, 0, np.where(a < 0, -1, 1) << AFFINE_WEIGHT_LOG2)
    bound = np.abs(bias) + np.abs(weight) * max_magnitude(source)
    requant = requant_for(scale, bound, lo, hi, ib)
    weight = weight.astype(np.int8).reshape(-1, 1, 1, 1)
    return Quantized(weight, bias.astype(np.int32), requant)


def quantize_average(
    num_pixels: np.ndarray, divisors: np.ndarray, source: FixedPoint, output: FixedPoint,
    clamp: tuple[float, float], ib: int,
) -> Quantized:  # fmt: skip
    """Requantisation of average pooling: one entry per distinct window.

    num_pixels, divisors: (entries,) pixels that a window adds, what it is divided by.
    Raises OverflowError when a sum does not fit int32.
    """
    bound = num_pixels.astype(np.int64) * max_magnitude(source)
    if (bound > MAX_ACC).any():
        raise OverflowError("the sum of a pooling window does not fit 32 bits")
    lo, hi = clamp_limits(output, clamp)
    scale = 2.0 ** (output.frac - source.frac) / divisors
    return Quantized(_NOTHING, _NOTHING, requant_for(scale, bound, lo, hi, ib))


# ---- sums --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """One operand of a sum. ``frac``: what its tensor must have; ``coefficient``: integer."""

    frac: int
    coefficient: int


def split_coefficient(value: float) -> tuple[int, int]:
    """(a, e) with value = a * 2**-e: exact and a odd where 7 bits do, else 64 <= |a| <= 127."""
    if value == 0:
        return 0, 0
    mantissa, exponent = math.frexp(abs(value))
    a, e = math.floor(mantissa * 128 + 0.5), 7 - exponent
    while a % 2 == 0:
        a, e = a // 2, e - 1
    return (a if value > 0 else -a), e


def plan_sum(fracs: list[int], coefficients: list[float]) -> tuple[int, list[Term]]:
    """Accumulator fraction bits of a sum, and for each operand its fraction bits and integer.

    Operands whose terms differ by at most 8 fraction bits are added exactly. Of two that
    differ more, the finer one is requantised to the coarser's fraction bits + 8 first: its
    Term has a smaller ``frac`` than the operand.
    """
    parts = [split_coefficient(c) for c in coefficients]
    grains = [f + e for f, (_, e) in zip(fracs, parts, strict=True)]
    used = [i for i, (a, _) in enumerate(parts) if a] or [0]
    room = [
        min(MAX_FRAC_DIFFERENCE, int(math.log2(MAX_COEFFICIENT / max(abs(a), 1))))
        for a, _ in parts
    ]
    acc_frac = min(max(grains[i] for i in used), min(grains[i] + room[i] for i in used))
    terms = []
    for frac, (a, e), grain in zip(fracs, parts, grains, strict=True):
        if grain <= acc_frac or a == 0:
            terms.append(Term(frac, a << (acc_frac - grain) if a else 0))
        elif grain - acc_frac > -MIN_SCALE_LOG2:
            terms.append(Term(frac, 0))  # smaller than any rounding
        else:
            terms.append(Term(acc_frac - e, a))
    return acc_frac, terms


def quantize_sum(
    acc_frac: int, terms: list[Term], sources: list[FixedPoint], channels: int,
    output: FixedPoint, clamp: tuple[float, float], ib: int,
) -> Quantized:  # fmt: skip
    """Requantisation of a planned sum; bias is zero. sources: types of the operands."""
    lo, hi = clamp_limits(output, clamp)
    bound = sum(
        abs(term.coefficient) * max_magnitude(type)
        for term, type in zip(terms, sources, strict=True)
    )
    scale = np.full(channels, 2.0 ** (output.frac - acc_frac))
    requant = requant_for(scale, np.full(channels, bound), lo, hi, ib)
    return Quantized(_NOTHING, np.zeros(channels, np.int32), requant)
