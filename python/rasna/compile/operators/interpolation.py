"""Bilinear and linear interpolation: convolutions with fixed weights.

What PyTorch computes is a matrix of rows and one of columns. Where every phase of an integer factor
has the same few taps at every pixel, all phases are channels of one depthwise convolution, and the
edges are replicated in front of it. Elsewhere every row, then every column, is a channel of its own
of a depthwise convolution over the whole height or width, whose weights are mostly zeros.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from .. import floatgraph as fg
from ..problems import Refusal
from .pixels import gather, pad_around
from .registry import Value
from .rows import as_row, as_sequence

MAX_CHANNELS = 8192  # of a convolution that makes every row or column
TOLERANCE = 1e-5


def linear(ctx, input: Value, arguments: dict) -> Value:
    """F.interpolate with mode bilinear of a map, linear of a sequence.

    arguments: size, scale_factor, align_corners and recompute_scale_factor, as given.
    """
    if len(input.shape) == 2:
        after = (1, ctx.real.shape[2])
        columns = _matrix(input.shape[1], after[1], arguments, 0)
        return as_sequence(ctx, _resample(ctx, as_row(ctx, input), [np.eye(1), columns]))
    matrices = [
        _matrix(n, m, arguments, axis)
        for axis, (n, m) in enumerate(zip(input.shape[1:], ctx.real.shape[2:], strict=True))
    ]
    return _resample(ctx, input, matrices)


def _matrix(before: int, after: int, arguments: dict, axis: int) -> np.ndarray:
    """(after, before): what PyTorch makes of every pixel of one row."""
    given = dict(arguments)
    for name in ("size", "scale_factor"):
        value = given[name]
        given[name] = value[axis] if isinstance(value, (tuple, list)) else value
    if given["size"] is not None:
        given["size"] = after
    unit = torch.eye(before, dtype=torch.float64).unsqueeze(0)
    return F.interpolate(unit, mode="linear", **given)[0].t().numpy()


def _resample(ctx, input: Value, matrices: list[np.ndarray]) -> Value:
    kernels = [_phases(m) for m in matrices]
    if kernels[0] is not None and kernels[1] is not None:
        return _by_phases(ctx, input, kernels[0], kernels[1], [len(m) for m in matrices])
    for axis in (1, 0):  # a column of a narrow map costs as much as a row: while there are few
        matrix = matrices[axis]
        if not np.array_equal(matrix, np.eye(*matrix.shape)):
            input = _by_matrix(ctx, input, axis, matrix)
    return input


def _phases(matrix: np.ndarray) -> np.ndarray | None:
    """(factor, 3): weights of the pixels before, at and behind, of every phase; None if they vary.

    The edges are replicated; the matrix may end before the last phases.
    """
    after, before = matrix.shape
    factor = -(-after // before)
    wide = np.zeros((factor * before, before + 2))
    wide[:after, 1:-1] = matrix
    middle = min(1, before - 1)
    kernel = np.array(
        [wide[middle * factor + phase, middle : middle + 3] for phase in range(factor)]
    )
    if before < 3:
        return np.ones((factor, 1)) * [0, 1, 0] if before == 1 else None
    for at, row in enumerate(matrix):
        pixel, phase = divmod(at, factor)
        made = np.zeros(before)
        for shift in range(3):
            made[min(max(pixel + shift - 1, 0), before - 1)] += kernel[phase, shift]
        if np.abs(made - row).max() > TOLERANCE:
            return None
    return kernel


def _by_phases(ctx, input: Value, rows: np.ndarray, columns: np.ndarray, after) -> Value:
    """A depthwise convolution with a channel per phase, whose results are interleaved."""
    channels, height, width = input.shape
    rows, top = _without_zeros(rows)
    columns, left = _without_zeros(columns)
    kernels = np.einsum("ai,bj->abij", rows, columns).reshape(-1, 1, *_sizes(rows, columns))
    edges = (top, rows.shape[1] - 1 - top, left, columns.shape[1] - 1 - left)
    if any(edges):
        input = pad_around(ctx, input, edges, "replicate")
    op = _convolution(np.tile(kernels, (channels, 1, 1, 1)), channels)
    phases = (len(rows), len(columns))
    count = channels * math.prod(phases)
    value = ctx.add(op, [input], (count, height, width), "_phases")
    shape = (channels, height * phases[0], width * phases[1])
    if phases != (1, 1):
        numbers = np.arange(count).reshape(channels, *phases)
        value = ctx.add(fg.Select(numbers), [value], shape, "_whole")
    return gather(ctx, value, {1: np.arange(after[0]), 2: np.arange(after[1])})


def _sizes(rows: np.ndarray, columns: np.ndarray) -> tuple[int, int]:
    return rows.shape[1], columns.shape[1]


def _without_zeros(kernel: np.ndarray) -> tuple[np.ndarray, int]:
    """The kernel without positions that no phase uses, and how many lie before the pixel."""
    used = np.flatnonzero(np.abs(kernel).max(axis=0) > 0)
    first, last = min(1, int(used[0])), max(1, int(used[-1]))
    return kernel[:, first : last + 1], 1 - first


def _by_matrix(ctx, input: Value, axis: int, matrix: np.ndarray) -> Value:
    """Every row (axis 0) or column of the result as a channel of its own, then interleaved."""
    channels = input.shape[0]
    after, before = matrix.shape
    if channels * after > MAX_CHANNELS:
        what = ("height", "width")[axis]
        raise Refusal(
            f"linear interpolation of the {what} of {channels} channels from {before} to {after} "
            f"is not supported, because its weights differ from pixel to pixel",
            "use an integer scale_factor with align_corners=False",
        )
    kernels = np.tile(matrix[:, None, :], (channels, 1, 1))  # (channels * after, 1, before)
    kernels = kernels[:, :, :, None] if axis == 0 else kernels[:, :, None, :]
    count = channels * after
    shape = [count, *input.shape[1:]]
    shape[axis + 1] = 1
    suffix = ("_rows", "_columns")[axis]
    value = ctx.add(_convolution(kernels, channels), [input], shape, suffix)
    repeats = (after, 1) if axis == 0 else (1, after)
    numbers = np.arange(count).reshape(channels, *repeats)
    shape = [channels, *input.shape[1:]]
    shape[axis + 1] = after
    return ctx.add(fg.Select(numbers), [value], shape, suffix + "_whole")


def _convolution(kernels: np.ndarray, groups: int) -> fg.Conv:
    weight = fg.Const(torch.from_numpy(np.ascontiguousarray(kernels)).float())
    return fg.Conv(weight, None, groups=groups, fixed=True)
