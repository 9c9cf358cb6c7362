"""Pads, crops, steps, flips and rolls of maps and sequences: pixels in other places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .. import floatgraph as fg
from ..problems import Refusal
from .registry import Value, describe, register, register_module
from .rows import as_row, as_sequence

_NUMPY_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
BLANK = -1


def gather(
    ctx, input: Value, numbers: dict[int, np.ndarray], fill: float = 0.0, suffix: str = ""
) -> Value:
    """Pixels in other places. numbers: by dimension behind the batch, -1 where ``fill`` is.

    input: a map or a sequence, or a vector whose only dimension is moved.
    """
    rank = len(input.shape)
    if rank == 1:
        column = ctx.add(fg.Reshape(), [input], (input.shape[0], 1, 1), "_column")
        moved = gather(ctx, column, numbers, fill, suffix)
        return ctx.add(fg.Reshape(), [moved], moved.shape[:1], "_vector")
    if rank == 2:
        row = as_row(ctx, input)
        shifted = {d + (d > 0): n for d, n in numbers.items()}
        moved = gather(ctx, row, shifted, fill, suffix)
        return input if moved == row else as_sequence(ctx, moved)
    every = [np.asarray(numbers.get(d, np.arange(n))) for d, n in enumerate(input.shape)]
    if all(np.array_equal(a, np.arange(n)) for a, n in zip(every, input.shape, strict=True)):
        return input
    op = fg.Gather(*[n.astype(np.int64) for n in every], fill)
    return ctx.add(op, [input], [len(n) for n in every], suffix)


def padded(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """Numbers of ``size`` pixels with others around them; negative padding takes pixels away."""
    numbers = np.arange(size)[max(0, -before) : size - max(0, -after)]
    if mode == "constant":
        widths = (max(0, before), max(0, after))
        return np.pad(numbers, widths, constant_values=BLANK)
    return np.pad(numbers, (max(0, before), max(0, after)), mode=_NUMPY_MODES[mode])  # type: ignore[call-overload]


def check_rank(input: Value, what: str) -> None:
    """Refuse more dimensions than a map has."""
    if len(input.shape) > 3:
        raise Refusal(
            f"{what} of {describe(input.shape)} is not supported",
            "give it (batch, channels, height, width) or (batch, channels, length)",
        )


@register([F.pad])
def pad(ctx, input, pad, mode="constant", value=None):
    """F.pad with constant numbers, of the last dimensions first, in every mode."""
    check_rank(input, "a pad")
    edges = [int(n) for n in pad]
    fill = 0.0 if value is None or mode != "constant" else ctx.number(value)
    if not np.isfinite(fill):
        raise Refusal(
            f"a pad with {fill} is not supported",
            "use the padding argument of the pooling behind it, where padding never wins",
        )
    rank = len(input.shape)
    numbers = {}
    for i in range(len(edges) // 2):
        dimension, (before, after) = rank - 1 - i, edges[2 * i : 2 * i + 2]
        if dimension < 0:
            if (before, after) != (0, 0):
                raise Refusal("padding the batch is not supported", "pad the dimensions behind it")
            continue
        numbers[dimension] = padded(input.shape[dimension], before, after, mode)
    return gather(ctx, input, numbers, fill)


@register_module(
    nn.ZeroPad1d, nn.ZeroPad2d, nn.ConstantPad1d, nn.ConstantPad2d, nn.ReflectionPad1d,
    nn.ReflectionPad2d, nn.ReplicationPad1d, nn.ReplicationPad2d, nn.CircularPad1d,
    nn.CircularPad2d,
)  # fmt: skip
def pad_module(ctx, module, path, input):
    """The padding modules of maps and sequences."""
    kinds = {"Refl": "reflect", "Repl": "replicate", "Circ": "circular"}
    bases = [base.__name__ for base in type(module).__mro__]
    mode = next((kinds[name[:4]] for name in bases if name[:4] in kinds), "constant")
    return pad(ctx, input, module.padding, mode, getattr(module, "value", None))


def pad_around(ctx, input: Value, edges: Sequence[int], mode: str) -> Value:
    """A map with (top, bottom, left, right) pixels around it."""
    top, bottom, left, right = edges
    _, height, width = input.shape
    numbers = {1: padded(height, top, bottom, mode), 2: padded(width, left, right, mode)}
    return gather(ctx, input, numbers, suffix="_padded")


@register([torch.roll], ["roll"])
def roll(ctx, input, shifts, dims=None):
    """torch.roll along given dimensions behind the batch."""
    check_rank(input, "roll")
    if dims is None or dims == ():
        raise Refusal("roll of all elements is not supported", "give it the dimensions, dims=…")
    amounts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    numbers: dict[int, np.ndarray] = {}
    for shift, dim in zip(amounts, (dims,) if isinstance(dims, int) else dims, strict=True):
        d = dimension_of(input, dim, "roll")
        numbers[d] = np.roll(numbers.get(d, np.arange(input.shape[d])), int(shift))
    return gather(ctx, input, numbers)


def dimension_of(input: Value, dim: Any, what: str) -> int:
    """The dimension behind the batch that PyTorch calls ``dim``; refuses the batch."""
    along = int(dim) % (len(input.shape) + 1)
    if along == 0:
        raise Refusal(
            f"{what} of {describe(input.shape)} along the batch is not supported",
            "take the batch apart in PyTorch",
        )
    return along - 1
