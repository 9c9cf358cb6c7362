"""Rewriting of float graphs: small passes in a fixed order, a legality check after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..floatgraph import FloatGraph
from .check import check
from .dead_code import remove_dead_code
from .dropout import drop_dropout
from .fold_affine import fold_affine
from .fold_clamp import fold_clamp
from .fold_gather import fold_gather
from .fuse_curves import fuse_curves
from .hoist_clamp import hoist_clamp
from .merge_affine import merge_affine
from .merge_gather import merge_gather
from .merge_reshape import merge_reshape
from .sink_reshape import sink_reshape

Pass = Callable[[FloatGraph], None]

PASSES: tuple[Pass, ...] = (
    drop_dropout,
    merge_reshape,
    remove_dead_code,
    sink_reshape,
    merge_reshape,
    merge_affine,
    fuse_curves,
    merge_gather,
    hoist_clamp,
    fold_clamp,
    fold_gather,
    fold_affine,
)


def simplify(graph: FloatGraph, passes: Sequence[Pass] = PASSES) -> FloatGraph:
    """Run the passes on ``graph`` in place and return it.

    Raises RuntimeError, which names the pass, when one leaves an illegal graph.
    """
    check(graph, "capture")
    for rewrite in passes:
        rewrite(graph)
        check(graph, rewrite.__name__)
    return graph


__all__ = [
    "PASSES", "Pass", "check", "drop_dropout", "fold_affine", "fold_clamp", "fold_gather",
    "fuse_curves", "hoist_clamp", "merge_affine", "merge_gather", "merge_reshape",
    "remove_dead_code", "simplify", "sink_reshape",
]  # fmt: skip
