"""ReLU and clamp become the output limits of the operation in front of them.

Matches: a Clamp whose input can clamp its own result (everything but inputs and reshapes),
has no other reader and is no output. Does: narrows the limits of that operation and
removes the Clamp. Where the unclamped value is needed too, the Clamp stays.
"""

from __future__ import annotations

from dataclasses import replace

from ..floatgraph import Clamp, FloatGraph


def compose(
    first: tuple[float, float], second: tuple[float, float]
) -> tuple[float, float]:
    """The limits of clamping to ``first`` and then to ``second``."""
    lo, hi = second
    return min(max(first[0], lo), hi), max(min(first[1], hi), lo)


def fold_clamp(graph: FloatGraph) -> None:
    """Move Clamp nodes into their producers."""
    for node in list(graph.nodes.values()):
        if not isinstance(node.op, Clamp):
            continue
        producer = graph.nodes[node.inputs[0]]
        if not hasattr(producer.op, "clamp"):
            continue
        if graph.only_user(producer.name, graph.users()) is None:
            continue
        clamp = compose(producer.op.clamp, node.op.clamp)
        producer.op = replace(producer.op, clamp=clamp)
        graph.bypass(node.name)
