"""What the front end understands: one handler per operation, by family.

A handler is called as PyTorch's own function would be, with a ``context.Context`` in
front, and with every tensor replaced by what is known of it: a ``Value`` for a computed
one, a reference for a parameter or constant. It adds nodes to the float graph, or raises
``problems.Refusal``.
"""

from . import (  # noqa: F401
    activation,
    arithmetic,
    channels,
    convolution,
    curves,
    elementwise,
    heads,
    joining,
    pixels,
    pooling,
    reduction,
    resampling,
    shape,
    transposed,
)
from .registry import BATCH, TAKES_CONSTANTS, Record, Value, find_handler

__all__ = ["BATCH", "TAKES_CONSTANTS", "Record", "Value", "find_handler"]
