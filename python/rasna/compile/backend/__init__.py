"""The back end: a quantised graph in, a Program for one target out.

geometry → plan → lowering by operation → emitter → image. Pure NumPy: it imports no torch.
"""

from __future__ import annotations

from rasna.graph import QuantGraph
from rasna.isa import Segment
from rasna.program import Program
from rasna.targets import Target, get_target

from .build import Image, build_image

__all__ = ["Image", "build_image", "build_program"]


def build_program(
    graph: QuantGraph, target: Target | str, *, channel_last: bool = True,
    selfcheck_seed: int | None = 0,
) -> Program:
    """Lower a quantised graph for a target.

    channel_last: how the samples were given, kept for information. selfcheck_seed: None leaves
    out the self-check (its expected output takes a run of the golden layer form).

    Raises
    ------
    CompileError when a layer cannot fit the target, with the numbers.
    """
    target = get_target(target)
    image = build_image(graph, target)
    return Program.from_graph(
        graph, target, image.words, image.segment_words[Segment.SCRATCH], image.layers,
        channel_last, selfcheck_seed,
    )
