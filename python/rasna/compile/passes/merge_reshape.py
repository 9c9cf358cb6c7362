"""Reshapes keep the order of the elements, so only the last of a chain matters.

Matches: a Reshape of a Reshape; a Reshape to the shape that its input has already.
Does: reads the input of the first; removes the second kind.
"""

from __future__ import annotations

from ..floatgraph import FloatGraph, Reshape


def merge_reshape(graph: FloatGraph) -> None:
    """Shorten chains of Reshape nodes."""
    for node in list(graph.nodes.values()):
        if not isinstance(node.op, Reshape):
            continue
        source = graph.nodes[node.inputs[0]]
        if isinstance(source.op, Reshape):
            source = graph.nodes[source.inputs[0]]
            node.inputs = [source.name]
        if source.shape == node.shape:
            graph.bypass(node.name)
