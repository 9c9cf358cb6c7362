"""A clamp behind max pooling or data movement is moved before it, where the layer there can do it.

relu(max_pool(conv(x))) equals max_pool(relu(conv(x))), and in the second form the stored
result of the convolution is unsigned: one bit more for the same range.

Matches: a Clamp behind a chain of MaxPool, Select, Unshuffle and Reshape nodes without other
readers, in front of which is a Conv, Linear, Affine, Sum, AvgPool, Concat, Leaky, Curve or
Product without other readers. Does: puts the Clamp right behind the latter. A chain that starts
at an input or at a value with several readers stays as it is.
"""

from __future__ import annotations

from ..floatgraph import (
    UNBOUNDED,
    Affine,
    AvgPool,
    Clamp,
    Concat,
    Conv,
    Curve,
    FloatGraph,
    Leaky,
    Linear,
    MaxPool,
    Node,
    Product,
    Reshape,
    Select,
    Sum,
    Unshuffle,
)

_ABSORB = (Conv, Linear, Affine, Sum, AvgPool, Concat, Leaky, Curve, Product)


def hoist_clamp(graph: FloatGraph) -> None:
    """Move Clamp nodes up to the operation that can absorb them."""
    for node in list(graph.nodes.values()):
        if isinstance(node.op, Clamp):
            producer = _producer(graph, node)
            if producer is not None and producer.name != node.inputs[0]:
                _move(graph, node, producer)


def _producer(graph: FloatGraph, clamp: Node) -> Node | None:
    """The operation at the start of the chain in front of ``clamp``, if it can absorb it."""
    users = graph.users()
    current = graph.nodes[clamp.inputs[0]]
    while graph.only_user(current.name, users) is not None:
        if isinstance(current.op, _ABSORB):
            return current
        moves = isinstance(current.op, Reshape) or (
            isinstance(current.op, (MaxPool, Select, Unshuffle)) and current.op.clamp == UNBOUNDED
        )
        if not moves:
            return None
        current = graph.nodes[current.inputs[0]]
    return None


def _move(graph: FloatGraph, clamp: Node, producer: Node) -> None:
    graph.bypass(clamp.name)
    reader = graph.users()[producer.name][0]
    graph.nodes[reader].inputs = [clamp.name]
    moved = Node(clamp.name, clamp.op, [producer.name], producer.shape, clamp.where)
    nodes = {}
    for name, node in graph.nodes.items():  # keep execution order
        nodes[name] = node
        if name == producer.name:
            nodes[moved.name] = moved
    graph.nodes = nodes
