"""What no output needs is not computed.

Matches: nodes from which no path leads to an output. Does: removes them, except inputs,
which are part of the model's interface.
"""

from __future__ import annotations

from ..floatgraph import FloatGraph


def remove_dead_code(graph: FloatGraph) -> None:
    """Remove nodes that contribute to no output."""
    needed = {*graph.outputs, *graph.inputs}
    for node in reversed(list(graph.nodes.values())):
        if node.name in needed:
            needed.update(node.inputs)
    for name in [name for name in graph.nodes if name not in needed]:
        del graph.nodes[name]
