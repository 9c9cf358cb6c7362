"""The back end: a quantised graph in, a Program for one target out."""

from .build import Image, build_image

__all__ = ["Image", "build_image", "build_program"]


def build_program(graph, target, *, channel_last=True):
    """Lower a QuantGraph for a target and wrap the image in a Program."""
    raise NotImplementedError
