"""Runs a graph through the back end and compares a runtime's words with the layer form."""

from __future__ import annotations

import numpy as np

from rasna.compile.backend.build import build_image
from rasna.golden import evaluate, run_program
from rasna.isa import Segment


def pack_words(array: np.ndarray) -> np.ndarray:
    """(C, H, W) integers to canonical words: rows of 8-byte words, the rest zero."""
    c, h, w = array.shape
    padded = np.zeros((c, h, -(-w // 8) * 8), np.uint8)
    padded[:, :, :w] = array.astype(np.int64) & 0xFF
    return padded.reshape(-1).view(np.uint64)


def compare(graph, arrays, target, run=run_program):
    """Build the graph and run it; raises AssertionError that names the first wrong output."""
    image = build_image(graph, target)
    expected = evaluate(graph, arrays)
    inputs = np.concatenate([pack_words(np.asarray(a)) for a in arrays])
    result = run(
        image.words, inputs, image.segment_words[Segment.OUTPUT],
        image.segment_words[Segment.SCRATCH], target,
    )
    for port, at in zip(graph.outputs, image.outputs, strict=True):
        want = pack_words(expected[port.tensor])
        pixels = pack_words(np.full_like(expected[port.tensor], 0xFF))  # others are junk
        got = result[at : at + len(want)] & pixels
        assert np.array_equal(got, want), f"output {port.name} differs"
    return image
