"""Reshapes are moved behind element-wise operations, which then meet the layer in front.

A Conv1d is a Conv between two Reshapes; the BatchNorm1d behind it can be folded only if it
follows the Conv itself.

Matches: a Clamp, Curve, Leaky or Dropout, or an Affine with the same channels, behind a Reshape
without other readers. Does: swaps the two.
"""

from __future__ import annotations

from ..floatgraph import Affine, Clamp, Curve, Dropout, FloatGraph, Leaky, Node, Reshape


def sink_reshape(graph: FloatGraph) -> None:
    """Swap Reshape nodes with element-wise readers."""
    for node in list(graph.nodes.values()):
        if not isinstance(node.op, (Affine, Clamp, Curve, Leaky, Dropout)):
            continue
        reshape = graph.nodes[node.inputs[0]]
        if not isinstance(reshape.op, Reshape):
            continue
        if graph.only_user(reshape.name, graph.users()) is None:
            continue
        source = graph.nodes[reshape.inputs[0]]
        if isinstance(node.op, Affine) and source.shape[0] != node.shape[0]:
            continue
        _swap(graph, reshape, node, source)


def _swap(graph: FloatGraph, reshape: Node, node: Node, source: Node) -> None:
    for other in graph.nodes.values():
        other.inputs = [reshape.name if i == node.name else i for i in other.inputs]
    graph.outputs = [reshape.name if o == node.name else o for o in graph.outputs]
    behind = Node(reshape.name, reshape.op, [node.name], node.shape, node.where)
    node.inputs, node.shape = [source.name], source.shape
    nodes = {}
    for name, item in graph.nodes.items():  # keep execution order
        if name != reshape.name:
            nodes[name] = item
        if name == node.name:
            nodes[behind.name] = behind
    graph.nodes = nodes
