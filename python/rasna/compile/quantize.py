"""The number rules: which fixed-point type a tensor gets, and how scales become integers.

One deterministic function chooses the type of a stored tensor from its values
(:func:`choose_type`), one the scale of every row of weights
(:func:`choose_weight_scale`); ``rasna.tune`` calls the same ones. docs/numerics.md has the
rules with worked examples.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from ..graph import FixedPoint, Requant

FRAC_LIMIT = 120  # fraction bits lie in +-FRAC_LIMIT: float32 has no finer or larger values
CANDIDATES = 4  # scales that are compared: the largest without clipping and 3 finer ones
FULL_RANGE_CANDIDATES = 9  # scales of weights by the largest weight, in steps of 2**(1/4)
BLOCK = 1 << 15  # values compared at a time: in the cache, and so few that PyTorch takes one thread
MAX_BIAS = 2**30  # accumulators start below it; the sum of products has the rest of int32
MAX_ACC = 2**31 - 1
MAX_MULTIPLIER = 32767
MAX_SHIFT = 31
MAX_PRE_SHIFT = 31
MIN_SCALE_LOG2, MAX_SCALE_LOG2 = -40, 13  # of output LSB per accumulator LSB


# ---- types of stored tensors -------------------------------------------------------------


def choose_type(values: torch.Tensor, bits: int, nonnegative: bool) -> FixedPoint:
    """The fixed-point type of a tensor, from all its values.

    The scale is a power of two. Of the largest one that clips nothing and three finer
    ones, the one with the least squared error wins, the coarser at a tie. A tensor of
    zeros only gets a range of [0, 1) or [-1, 1).

    Parameters
    ----------
    values : float tensor of any shape, finite
    bits : 2 to 8
    nonnegative : True if the tensor can never be negative: it is unsigned then
    """
    signed = not nonnegative
    type = FixedPoint(bits, 0, signed)
    values = values.detach().reshape(-1).float()
    coarse = coarse_frac(values, type)
    if coarse is None:
        return FixedPoint(bits, bits - 1 if signed else bits, signed)
    errors = _squared_errors(values, coarse, type)
    best = min(range(CANDIDATES), key=lambda i: (errors[i], i))
    return FixedPoint(bits, _limit_frac(coarse + best), signed)


def _limit_frac(frac: int) -> int:
    return max(-FRAC_LIMIT, min(FRAC_LIMIT, frac))


def coarse_frac(values: torch.Tensor, type: FixedPoint) -> int | None:
    """The most fraction bits with which no value clips; None if all values are zero."""
    lo, hi = (float(v) for v in torch.aminmax(values))
    largest = max(hi / (type.hi + 0.5), lo / (type.lo - 0.5) if type.signed else 0.0)
    if largest < 2.0**-FRAC_LIMIT:
        return None
    # hi * 2**f < type.hi + 0.5: such a value still rounds to type.hi
    return math.ceil(-math.log2(largest)) - 1


def _squared_errors(values: torch.Tensor, coarse: int, type: FixedPoint) -> list[float]:
    """Squared error of quantising ``values`` with coarse, coarse + 1, … fraction bits."""
    errors = [0.0] * CANDIDATES
    for block in values.split(BLOCK):
        for i in range(CANDIDATES):
            scaled = block * 2.0 ** (coarse + i)  # exact, and so is the difference below
            error = (scaled + 0.5).floor_().clamp_(type.lo, type.hi).sub_(scaled)
            errors[i] += float(torch.dot(error, error))
    return [error * 4.0 ** -(coarse + i) for i, error in enumerate(errors)]


def weight_limit(bits: int) -> int:
    """Weights of ``bits`` bits lie in +- this: 127 for 8 bits."""
    return (1 << (bits - 1)) - 1


def choose_weight_scale(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """Integers per unit of every row (output channel) of weights, by least squared error.

    Candidates are four powers of two, from the largest that clips nothing on, and
    limit / largest weight * 2**(i/4) for i = 0 ... 8. At a tie a power of two wins, the
    smallest first: weights that it holds exactly stay exact.

    Parameters
    ----------
    weight : (OC, ...) float tensor on any device. Of a layer that BatchNorm or other
        per-channel arithmetic follows, the weight without it: the factor of a channel goes
        into its requantisation, so that it cannot change the integers.
    bits : 2 to 8

    Returns
    -------
    (OC,) float32 tensor of normal numbers. Rows of zeros get 2**FRAC_LIMIT.
    """
    rows = weight.detach().reshape(weight.shape[0], -1).float()
    limit = weight_limit(bits)
    largest = torch.linalg.vector_norm(rows, math.inf, dim=1).double()
    empty = largest < 2.0**-FRAC_LIMIT
    candidates = _weight_scales(torch.where(empty, 1.0, largest), limit)
    num_rows = max(1, BLOCK // rows.shape[1])
    blocks = zip(rows.split(num_rows), candidates.split(num_rows, 1), strict=True)
    best = torch.cat([_least_error(block, scales, limit) for block, scales in blocks])
    chosen = candidates.gather(0, best.unsqueeze(0)).squeeze(0)
    return torch.where(empty, 2.0**FRAC_LIMIT, chosen)


def _weight_scales(largest: torch.Tensor, limit: int) -> torch.Tensor:
    """(candidates, OC) float32, from the largest magnitudes (OC,) float64 of the rows."""
    device = largest.device
    coarse = torch.ceil(-torch.log2(largest / (limit + 0.5))) - 1
    powers = torch.exp2(coarse + torch.arange(CANDIDATES, device=device).unsqueeze(1))
    steps = torch.arange(FULL_RANGE_CANDIDATES, device=device).unsqueeze(1)
    full_range = limit / largest * torch.exp2(steps.double() / 4)
    scales = torch.cat([powers, full_range])
    return scales.clamp_(2.0**-FRAC_LIMIT, 2.0**FRAC_LIMIT).float()


def _least_error(rows: torch.Tensor, scales: torch.Tensor, limit: int) -> torch.Tensor:
    """For every row, the index of the scale with the least squared error: the first at a tie."""
    errors = []
    for scale in scales:
        scaled = rows * scale.unsqueeze(1)
        error = (scaled + 0.5).floor_().clamp_(-limit, limit).sub_(scaled)
        errors.append(error.square_().sum(1) * (scales[0] / scale).square_())
    return torch.stack(errors).argmin(0)


def quantize_weight(weight: torch.Tensor, scale: torch.Tensor, limit: int) -> torch.Tensor:
    """clamp(floor(weight * scale + 0.5)) within +-limit, in float32: training and compiler alike.

    scale: float32, integers per unit, broadcastable to the weight.
    """
    scaled = weight.float() * scale
    return scaled.add_(0.5).floor_().clamp_(-limit, limit)


# ---- integers ----------------------------------------------------------------------------


def round_half_up(values: np.ndarray) -> np.ndarray:
    """floor(v + 0.5) of a float64 array, as int64."""
    return np.floor(np.asarray(values, np.float64) + 0.5).astype(np.int64)


def requant_for(
    scale: np.ndarray, acc_bound: np.ndarray, lo: int, hi: int, ib: int
) -> Requant:
    """Requantisation parameters that multiply accumulators by ``scale``, per channel.

    The pre-shift r is the least with which saturation at ib bits changes nothing: either
    no accumulator reaches it, or only those do whose result is clamped to lo or hi
    anyway. So inputs beyond the samples saturate as they should. M has up to 15 bits and
    is 1 for powers of two where the shift allows it.

    Parameters
    ----------
    scale : (OC,) float64, output LSB per accumulator LSB. Beyond 2**13 every accumulator
        but 0 is clamped, and below 2**-40 every result is 0: such scales count as these.
    acc_bound : (OC,) int64, proven bound of |accumulator|
    lo, hi : clamp of the output
    ib : 12 to 24
    """
    scale = np.clip(np.asarray(scale, np.float64), 2.0**MIN_SCALE_LOG2, 2.0**MAX_SCALE_LOG2)
    half = 2.0 ** (ib - 1)
    bound = np.maximum(np.asarray(acc_bound, np.float64), 1)
    fits = np.ceil(np.log2((bound + 1) / half))  # (acc >> r) lies within ib bits
    reach = max(hi, -lo, 1)
    clamps = np.ceil(np.log2(reach / ((half - 1) * scale)))
    pre_shift = np.clip(np.minimum(fits, clamps), 0, MAX_PRE_SHIFT).astype(np.int64)
    multiplier, shift = _multiplier_shift(scale * np.exp2(pre_shift))
    return Requant(
        pre_shift.astype(np.int32), multiplier.astype(np.int32), shift.astype(np.int32), lo, hi, ib
    )


def _multiplier_shift(scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M and s with M * 2**-s nearest to ``scale``; even M are halved as far as s >= 1 allows."""
    mantissa, exponent = np.frexp(scale)  # scale = mantissa * 2**exponent, 0.5 <= mantissa < 1
    shift = 15 - exponent.astype(np.int64)
    lost = np.maximum(shift - MAX_SHIFT, 0)
    multiplier = round_half_up(np.ldexp(mantissa, 15 - lost))
    shift -= lost
    full = multiplier > MAX_MULTIPLIER
    multiplier, shift = np.where(full, multiplier >> 1, multiplier), shift - full
    while True:
        even = (multiplier % 2 == 0) & (shift > 1) & (multiplier > 0)
        if not even.any():
            return np.clip(multiplier, 1, MAX_MULTIPLIER), np.clip(shift, 1, MAX_SHIFT)
        multiplier, shift = np.where(even, multiplier >> 1, multiplier), shift - even


def clamp_limits(type: FixedPoint, clamp: tuple[float, float]) -> tuple[int, int]:
    """The clamp of real numbers in integers of ``type``, rounded half up, within its range."""
    lo, hi = (
        max(type.lo, min(type.hi, math.floor(bound * 2.0**type.frac + 0.5)))
        if math.isfinite(bound)
        else (type.lo if bound < 0 else type.hi)
        for bound in clamp
    )
    return lo, hi
