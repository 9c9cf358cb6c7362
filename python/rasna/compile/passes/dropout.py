"""Dropout is the identity in eval.

Matches: every Dropout node. Does: removes it; its readers read its input.
"""

from __future__ import annotations

from ..floatgraph import Dropout, FloatGraph


def drop_dropout(graph: FloatGraph) -> None:
    """Remove all Dropout nodes."""
    for name in [n.name for n in graph.nodes.values() if isinstance(n.op, Dropout)]:
        graph.bypass(name)
