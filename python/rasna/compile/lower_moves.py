"""Integers of what moves channels and pixels: cat, slices, shuffles, pads; and of Leaky ReLU.

Functions of the lowering in ``lower.py``, one per operation of the float graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import graph as qg
from ..graph import FixedPoint, Requant, Tensor
from . import floatgraph as fg
from .execute import fetch_number
from .problems import Refusal
from .quantize import clamp_limits, requant_for
from .weights import MAX_COEFFICIENT, max_magnitude


def quantize_copies(
    sources: list[FixedPoint], output: FixedPoint, clamp: tuple[float, float], ib: int
) -> Requant:
    """Requantisation from each of the ``sources`` to ``output``; of equal types the identity."""
    lo, hi = clamp_limits(output, clamp)
    scale = np.array([2.0 ** (output.frac - type.frac) for type in sources])
    bound = np.array([max_magnitude(type) for type in sources])
    return requant_for(scale, bound, lo, hi, ib)


def concat(lowering: Any, node: fg.Node) -> None:
    """Features of maps of equal size are joined as maps: flatten needs no operation then."""
    if node.op.axis > 1:
        _join_pixels(lowering, node)
        return
    sources = [lowering._stored(name) for name in node.inputs]
    if len(node.shape) != 1 or len({s.shape[1:] for s in sources}) > 1:
        sources = [lowering._as_logical(name) for name in node.inputs]
    count = sum(s.shape[0] for s in sources)
    channels = np.arange(count).reshape(-1, 1, 1)
    type = lowering.types[node.name]
    _append(lowering, node, sources, channels, type)


def select(lowering: Any, node: fg.Node) -> None:
    """Channels, and pixels of several channels, in other places; the type stays."""
    source = lowering._as_logical(node.inputs[0])
    _append(lowering, node, [source], node.op.channels, source.type)


def _append(
    lowering: Any, node: fg.Node, sources: list[Tensor], channels: np.ndarray, type: FixedPoint
) -> None:
    count, rows, columns = channels.shape
    _, height, width = sources[0].shape
    lowering._tensor(node, (count, height * rows, width * columns), type)
    requant = quantize_copies(
        [s.type for s in sources], type, node.op.clamp, lowering.settings.ib
    )
    lowering.quant.ops.append(
        qg.Select(
            node.name, [s.name for s in sources], node.name, str(node.where),
            channels=channels.astype(np.int64), requant=requant,
        )  # fmt: skip
    )


def gather(lowering: Any, node: fg.Node) -> None:
    """Pixels in other places; the type stays, and must hold the value that is filled in."""
    op, source = node.op, lowering._as_logical(node.inputs[0])
    fill = int(np.floor(op.fill * 2.0**source.type.frac + 0.5))
    if not source.type.lo <= fill <= source.type.hi:
        lo, hi = (limit * 2.0**-source.type.frac for limit in (source.type.lo, source.type.hi))
        raise Refusal(
            f"a pad with {op.fill:g} of values that are stored in {lo:g} to {hi:g} is not "
            f"supported",
            "pad with a value in the range of the samples, 0 at best",
        )
    append_gather(
        lowering, node, [source], (op.channels, op.rows, op.columns), fill=fill
    )


def _join_pixels(lowering: Any, node: fg.Node) -> None:
    """Maps one below or beside the other, all in the type of the result."""
    type = lowering.types[node.name]
    sources = [lowering._as_logical(name) for name in node.inputs]
    sources = [
        s if s.type == type else lowering._retyped(s, type, node, "_joined") for s in sources
    ]
    numbers = tuple(np.arange(n) for n in node.shape)
    append_gather(lowering, node, sources, numbers, axis=node.op.axis - 1)


def append_gather(
    lowering: Any, node: fg.Node, sources: list[Tensor], numbers: tuple, axis: int = 1,
    fill: int = 0,
) -> None:
    """A Gather that makes the tensor of ``node``. numbers: of channels, rows and columns."""
    channels, rows, columns = (np.asarray(n, np.int64) for n in numbers)
    type = sources[0].type
    lowering._tensor(node, (len(channels), len(rows), len(columns)), type)
    lo, hi = clamp_limits(type, node.op.clamp)
    lowering.quant.ops.append(
        qg.Gather(
            node.name, [s.name for s in sources], node.name, str(node.where), channels=channels,
            rows=rows, columns=columns, axis=axis, fill=min(max(fill, lo), hi), lo=lo, hi=hi,
        )  # fmt: skip
    )


def unflatten(lowering: Any, source: Tensor, shape: tuple[int, int, int], node: fg.Node) -> Tensor:
    """Features as a map: every feature becomes one pixel."""
    key = ("map", source.name, shape)
    if key not in lowering.made:
        name = lowering._extra_name(f"{source.name}_map")
        lowering.quant.tensors[name] = Tensor(name, shape, source.type)
        requant = quantize_copies([source.type], source.type, fg.UNBOUNDED, lowering.settings.ib)
        lowering.quant.ops.append(
            qg.Select(
                name, [source.name], name, str(node.where),
                channels=np.arange(source.num_elems).reshape(shape), requant=requant,
            )  # fmt: skip
        )
        lowering.made[key] = name
    return lowering.quant.tensors[lowering.made[key]]


def unshuffle(lowering: Any, node: fg.Node) -> None:
    """A depthwise convolution whose kernels are single ones: every output is one pixel."""
    source, factor = lowering._as_logical(node.inputs[0]), node.op.factor
    channels = source.shape[0]
    kernels = np.eye(factor * factor, dtype=np.int8).reshape(-1, 1, factor, factor)
    count = channels * factor * factor
    requant = quantize_copies(
        [source.type] * count, source.type, node.op.clamp, lowering.settings.ib
    )
    lowering._tensor(node, node.shape, source.type)
    lowering.quant.ops.append(
        qg.Conv(
            node.name, [source.name], node.name, str(node.where),
            weight=np.tile(kernels, (channels, 1, 1, 1)), bias=np.zeros(count, np.int32),
            requant=requant, stride=(factor, factor), groups=channels,
        )  # fmt: skip
    )


def leaky_coefficients(slope: float) -> tuple[int, int, int]:
    """(k, m, e): slope = k * 2**-e, and k*x + m*max(x, 0) is exactly x * 2**e for x >= 0."""
    for e in range(10, -1, -1):
        k = int(np.floor(slope * 2**e + 0.5))
        if max(abs(k), abs(2**e - k)) <= MAX_COEFFICIENT:
            return k, 2**e - k, e
    raise Refusal(
        f"a leaky ReLU with the slope {slope:g} is not supported",
        f"use a slope within +-{MAX_COEFFICIENT - 1}",
    )


def leaky(lowering: Any, node: fg.Node) -> None:
    """k*x + m*max(x, 0): the sum of a tensor and its positive part, which is stored."""
    source = lowering._stored(node.inputs[0])
    if not source.type.signed:
        lowering._append_sum(node, [source], [1.0], node.op.clamp)
        return
    k, m, e = leaky_coefficients(fetch_number(lowering.root, node.op.slope))
    type, ib, channels = lowering.types[node.name], lowering.settings.ib, source.shape[0]
    positive = _positive(lowering, node, source)
    lo, hi = clamp_limits(type, node.op.clamp)
    scale = np.full(channels, 2.0 ** (type.frac - source.type.frac - e))
    bound = np.full(channels, (abs(k) + abs(m)) * max_magnitude(source.type))
    lowering._tensor(node, source.shape, type)
    lowering.quant.ops.append(
        qg.Sum(
            node.name, [source.name, positive], node.name, str(node.where), coefficients=[k, m],
            bias=np.zeros(channels, np.int32), requant=requant_for(scale, bound, lo, hi, ib),
        )  # fmt: skip
    )


def _positive(lowering: Any, node: fg.Node, source: Tensor) -> str:
    """The tensor max(x, 0) in the type of x."""
    key = ("positive", source.name)
    if key not in lowering.made:
        name = lowering._extra_name(f"{source.name}_positive")
        lowering.quant.tensors[name] = Tensor(name, source.shape, source.type)
        requant = quantize_copies(
            [source.type] * source.shape[0], source.type, (0.0, np.inf), lowering.settings.ib
        )
        lowering.quant.ops.append(
            qg.Sum(
                name, [source.name], name, str(node.where), coefficients=[1],
                bias=np.zeros(source.shape[0], np.int32), requant=requant,
            )  # fmt: skip
        )
        lowering.made[key] = name
    return lowering.made[key]
