"""Pads in front of a convolution, and crops and steps behind it, are part of the convolution.

Matches: a Gather that pads a map with zeros, or around the edges, and that Convs without such
padding of their own read; a Gather that crops the result of a Conv without other readers, or
takes every n-th row or column of it. Does: changes padding and stride of the Conv, and removes
the Gather. A crop that would need negative padding stays, as does one behind a BatchNorm, whose
statistics in training are those of the whole map.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...graph import Padding
from ..floatgraph import UNBOUNDED, BatchNorm, Conv, FloatGraph, Gather, Node


def fold_gather(graph: FloatGraph) -> None:
    """Move Gather nodes into the Conv nodes beside them."""
    for node in list(graph.nodes.values()):
        if not isinstance(node.op, Gather) or node.op.clamp != UNBOUNDED:
            continue
        source = graph.nodes[node.inputs[0]]
        if not np.array_equal(node.op.channels, np.arange(source.shape[0])):
            continue
        if not _fold_pad(graph, node, source):
            _fold_crop(graph, node, source)


def _fold_pad(graph: FloatGraph, node: Node, source: Node) -> bool:
    """Put a pad into every reader; all of them must be convolutions that can take it."""
    padding = _zero_padding(node.op, source) if node.op.fill == 0 else None
    mode = "zeros"
    if padding is None:
        padding, mode = _circular_padding(node.op, source), "circular"
    readers = [graph.nodes[name] for name in graph.users()[node.name]]
    if padding is None or node.name in graph.outputs or not readers:
        return False
    if not all(isinstance(r.op, Conv) and _takes(r.op, mode) for r in readers):
        return False
    for reader in readers:
        reader.op = replace(
            reader.op, padding=_added(reader.op.padding, padding), padding_mode=mode
        )
    graph.bypass(node.name)
    return True


def _takes(op: Conv, mode: str) -> bool:
    return op.padding == Padding() or mode == op.padding_mode == "zeros"


def _added(a: Padding, b: Padding) -> Padding:
    return Padding(a.top + b.top, a.bottom + b.bottom, a.left + b.left, a.right + b.right)


def _zero_padding(op: Gather, source: Node) -> Padding | None:
    """What a Gather adds around the whole map; None if it does anything else."""
    edges: list[int] = []
    for numbers, size in zip((op.rows, op.columns), source.shape[1:], strict=True):
        inside = np.flatnonzero(numbers >= 0)
        if not np.array_equal(numbers[inside], np.arange(size)) or inside[-1] - inside[0] >= size:
            return None
        edges += [int(inside[0]), len(numbers) - 1 - int(inside[-1])]
    return Padding(*edges)


def _circular_padding(op: Gather, source: Node) -> Padding | None:
    """What a Gather wraps around the whole map, at most once; None if it does anything else."""
    edges: list[int] = []
    for numbers, size in zip((op.rows, op.columns), source.shape[1:], strict=True):
        before = int(-numbers[0] % size)
        after = len(numbers) - size - before
        if not 0 <= after <= size:
            return None
        if not np.array_equal(numbers, np.arange(-before, size + after) % size):
            return None
        edges += [before, after]
    return Padding(*edges)


def _fold_crop(graph: FloatGraph, node: Node, source: Node) -> None:
    """Compute only what a crop leaves."""
    op = source.op
    if not isinstance(op, Conv) or graph.only_user(source.name, graph.users()) != node.name:
        return
    if any(isinstance(step, BatchNorm) for step in op.steps):
        return
    kernel = _kernel(graph, node, source)
    found = [_cropped(node, source, axis, size) for axis, size in enumerate(kernel)]
    if found[0] is None or found[1] is None:
        return
    (top, bottom, down), (left, right, across) = found
    source.op = replace(op, padding=Padding(top, bottom, left, right), stride=(down, across))
    source.shape = node.shape
    graph.bypass(node.name)


def _kernel(graph: FloatGraph, node: Node, source: Node) -> list[tuple[int, int]]:
    """Pixels of the input, and pixels beyond which windows of the Conv reach, by axis.

    They follow from the shapes up to what the stride leaves over, which is then never read.
    """
    op, before = source.op, graph.nodes[source.inputs[0]].shape[1:]
    pad = op.padding
    sides = ((pad.top, pad.bottom), (pad.left, pad.right))
    return [
        (size, size + sum(side) - (count - 1) * stride)
        for size, side, count, stride in zip(
            before, sides, source.shape[1:], op.stride, strict=True
        )
    ]


def _cropped(
    node: Node, source: Node, axis: int, sizes: tuple[int, int]
) -> tuple[int, int, int] | None:
    """Padding before and behind, and the stride, with which a Conv gives the cropped result."""
    op, (size, reach) = source.op, sizes
    numbers = (node.op.rows, node.op.columns)[axis]
    steps = {int(n) for n in np.diff(numbers)} or {1}
    step = steps.pop()
    if steps or step < 1 or numbers[0] < 0:
        return None
    pad = op.padding
    before = (pad.top, pad.left)[axis] - int(numbers[0]) * op.stride[axis]
    stride = op.stride[axis] * step
    after = (len(numbers) - 1) * stride + reach - size - before
    return (before, after, stride) if before >= 0 and after >= 0 else None
