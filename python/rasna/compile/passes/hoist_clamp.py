"""A clamp behind max pooling or data movement is moved before it, where the layer there can do it.

relu(max_pool(conv(x))) equals max_pool(relu(conv(x))), and in the second form the stored
result of the convolution is unsigned: one bit more for the same range.

Matches: a Clamp behind a chain of MaxPool, Select, Gather, Unshuffle and Reshape nodes without
other readers, in front of which is an operation with limits of its own (``_ABSORB``) without other
readers. Does: puts the Clamp right behind the latter. A chain that starts at an input or at a
value with several readers stays as it is, and so does a Clamp that changes what a Gather fills in.
"""

from __future__ import annotations

from ..floatgraph import (
    UNBOUNDED,
    Affine,
    AvgPool,
    Clamp,
    Concat,
    Conv,
    ConvTranspose,
    Curve,
    FloatGraph,
    Gather,
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

_ABSORB = (
    Conv, ConvTranspose, Linear, Affine, Sum, AvgPool, Concat, Leaky, Curve, Product,
)  # fmt: skip


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
        if not _moves(current.op, clamp.op):
            return None
        current = graph.nodes[current.inputs[0]]
    return None


def _moves(op, clamp: Clamp) -> bool:
    """Whether ``clamp`` may stand in front of ``op`` as well as behind it."""
    if isinstance(op, Reshape):
        return True
    if isinstance(op, Gather) and not clamp.clamp[0] <= op.fill <= clamp.clamp[1]:
        return False
    return isinstance(op, (MaxPool, Select, Gather, Unshuffle)) and op.clamp == UNBOUNDED


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
