"""BatchNorm and other per-channel arithmetic go into the layer in front of them.

Matches: an Affine whose input is a Conv, ConvTranspose, Linear or Affine without a clamp, which
has no other reader and is no output. Does: appends the steps to that layer (``execute.py`` folds
them into its weights) and removes the Affine. A BatchNorm behind a ReLU, or behind a layer
with a second reader, stays: it becomes a 1x1 depthwise convolution.
"""

from __future__ import annotations

from dataclasses import replace

from ..floatgraph import UNBOUNDED, Affine, Conv, ConvTranspose, FloatGraph, Linear


def merge_affine(graph: FloatGraph) -> None:
    """Move the steps of Affine nodes into their producers."""
    for node in list(graph.nodes.values()):
        if not isinstance(node.op, Affine):
            continue
        producer = graph.nodes[node.inputs[0]]
        mergeable = isinstance(producer.op, (Conv, ConvTranspose, Linear, Affine))
        if not mergeable or producer.op.clamp != UNBOUNDED:
            continue
        if graph.only_user(producer.name, graph.users()) is None:
            continue
        steps = producer.op.steps + node.op.steps
        producer.op = replace(producer.op, steps=steps, clamp=node.op.clamp)
        graph.bypass(node.name)
