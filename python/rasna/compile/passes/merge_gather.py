"""Pads, crops, steps and flips one after another are one.

Matches: a Gather without a clamp whose only reader is another one; where both fill something in,
with the same value. Does: composes their numbers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..floatgraph import UNBOUNDED, FloatGraph, Gather


def merge_gather(graph: FloatGraph) -> None:
    """Shorten chains of Gather nodes."""
    for node in list(graph.nodes.values()):
        if not isinstance(node.op, Gather):
            continue
        source = graph.nodes[node.inputs[0]]
        if not isinstance(source.op, Gather) or source.op.clamp != UNBOUNDED:
            continue
        if graph.only_user(source.name, graph.users()) is None or not _agree(source.op, node.op):
            continue
        op = source.op if _fills(source.op) else node.op
        node.op = replace(
            node.op, fill=op.fill, channels=_composed(source.op.channels, node.op.channels),
            rows=_composed(source.op.rows, node.op.rows),
            columns=_composed(source.op.columns, node.op.columns),
        )  # fmt: skip
        graph.bypass(source.name)


def _fills(op: Gather) -> bool:
    return any(n.min() < 0 for n in (op.channels, op.rows, op.columns))


def _agree(first: Gather, second: Gather) -> bool:
    return first.fill == second.fill or not (_fills(first) and _fills(second))


def _composed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.where(second < 0, -1, first[second])
