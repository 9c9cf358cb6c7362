"""Sequences (batch, C, L) as maps of one row, for the operations that work on maps."""

from __future__ import annotations

from .. import floatgraph as fg
from .registry import Value


def as_row(ctx, input: Value) -> Value:
    """(C, L) as the map (C, 1, L)."""
    shape = (input.shape[0], 1, input.shape[1])
    node = ctx.graph.nodes[input.name]
    if isinstance(node.op, fg.Reshape) and ctx.graph.nodes[node.inputs[0]].shape == shape:
        return ctx.value(node.inputs[0])
    return ctx.add(fg.Reshape(), [input], shape, "_row")


def as_sequence(ctx, row: Value) -> Value:
    """The map (C, 1, L) as (C, L)."""
    return ctx.add(fg.Reshape(), [row], (row.shape[0], row.shape[2]), "_sequence")
