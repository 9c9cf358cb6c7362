"""Scaling of a model input, as of bytes to mean 0, goes into the layer that reads it.

Matches: an Affine without a clamp, of arithmetic with constants, on an input of the model, with a
Conv or Linear as only reader; the Linear may be behind Reshapes if all constants are numbers. If
something is added, the Conv must not pad with zeros: padding is 0 behind the arithmetic, and would
not be 0 in front of it. Does: puts the steps in front of the layer's weights (``execute.py`` folds
them) and removes the Affine.
"""

from __future__ import annotations

from dataclasses import replace

from ...graph import Padding
from ..floatgraph import (
    UNBOUNDED,
    Affine,
    Arithmetic,
    Conv,
    FloatGraph,
    Input,
    Linear,
    Node,
    Reshape,
)


def fold_affine(graph: FloatGraph) -> None:
    """Move the steps of Affine nodes on inputs into their readers."""
    for node in list(graph.nodes.values()):
        if not isinstance(node.op, Affine) or node.op.clamp != UNBOUNDED:
            continue
        if not isinstance(graph.nodes[node.inputs[0]].op, Input):
            continue
        reader = _reader(graph, node)
        if reader is not None and _is_legal(node.op, reader.op):
            reader.op = replace(reader.op, before=node.op.steps)
            graph.bypass(node.name)


def _reader(graph: FloatGraph, node: Node) -> Node | None:
    """The Conv or Linear that alone reads the node, if every step may go there."""
    users = graph.users()
    if not all(isinstance(step, Arithmetic) for step in node.op.steps):
        return None
    name = graph.only_user(node.name, users)
    if name is not None and isinstance(graph.nodes[name].op, (Conv, Linear)):
        return graph.nodes[name]
    numbers = all(isinstance(step.operand, (int, float)) for step in node.op.steps)
    while name is not None and numbers and isinstance(graph.nodes[name].op, Reshape):
        name = graph.only_user(name, users)
    found = graph.nodes[name] if name is not None and numbers else None
    return found if found is not None and isinstance(found.op, Linear) else None


def _is_legal(affine: Affine, op: Conv | Linear) -> bool:
    scales = all(step.kind in ("mul", "div") for step in affine.steps)  # type: ignore[union-attr]
    if scales or isinstance(op, Linear) or op.padding_mode == "circular":
        return True
    return op.padding == Padding()
