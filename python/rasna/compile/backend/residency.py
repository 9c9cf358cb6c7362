"""Tensors that stay in the map memory between operations.

An operation may write its result straight in the geometry that the next reader wants;
then neither a STORE nor a LOAD is needed. Here is who could read what, and the search
for the geometry that costs least. What does not fit goes through host memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from rasna.graph import AnyOp, AvgPool, Conv, Gather, MaxPool, Select, Sum, Tensor
from rasna.targets import Target

from .geometry import Geometry, Region, ceil_div, plain_slot
from .plan import Limits, Planner
from .window import Window, conv_window, pool_window


@dataclass
class Resident:
    """A tensor in the map memory: its region and the allocation that holds it."""

    region: Region
    block: int


def window_of(op: AnyOp, tensors: dict[str, Tensor]) -> Window | None:
    """The window view of a convolution or max pooling, None for other operations."""
    if isinstance(op, Conv):
        return conv_window(op, tensors[op.inputs[0]], tensors[op.output])
    if isinstance(op, MaxPool):
        return pool_window(op, tensors[op.inputs[0]], tensors[op.output])
    return None


def sum_geometry(shape: tuple[int, int, int], target: Target) -> Geometry:
    """The geometry for an element-wise operation that holds all rows at once."""
    _, height, width = shape
    stripes = min(target.slices, 1 << (height - 1).bit_length())
    rows = ceil_div(height, stripes)
    return Geometry(plain_slot(width), stripes, rows, 0, rows, height, 0)


def can_read(op: AnyOp, window: Window | None, g: Geometry, tensor: Tensor, out: Tensor) -> bool:
    """Whether an operation can read a tensor that lies in geometry ``g``."""
    if window is not None:
        return window.can_read(g)
    if g.slot.split:
        return False
    if isinstance(op, AvgPool):
        return g.stripes == 1
    if isinstance(op, Gather):
        return False  # its rows are taken apart on the way from host memory
    if isinstance(op, Select):
        return True
    return tensor.shape == out.shape


def wanted_geometries(
    op: AnyOp, window: Window | None, tensor: Tensor, target: Target,
    others: list[Geometry],
) -> list[Geometry]:
    """Geometries of ``tensor`` that ``op`` could read as they are.

    others: geometries of the operation's inputs that are resident already; an
    element-wise operation needs all its operands in the same one.
    """
    if isinstance(op, Sum):
        return others[:1] or [sum_geometry(tensor.shape, target)]
    if isinstance(op, Gather):
        return []
    if isinstance(op, Select):
        return [sum_geometry(tensor.shape, target)]
    if isinstance(op, AvgPool):
        _, height, width = tensor.shape
        return [Geometry(plain_slot(width), 1, height, 0, height, height, 0)]
    return window_geometries(window, target)


def window_geometries(window: Window, target: Target, split: bool = False) -> list[Geometry]:
    """Geometries of the source of a window operation: plain rows, or both phases of a stride."""
    wanted, stripes, height = [], 1, window.out.shape[1]
    while stripes <= target.slices and stripes < 2 * height:
        g = window.resident_geometry(stripes, ceil_div(height, stripes), split)
        wraps = stripes == 1 or not g.circular_rows or g.wraps_by_itself
        if wraps and stripes * g.rows >= g.height:
            wanted.append(g)
        stripes *= 2
    return wanted


def split_geometries(windows: list[Window | None], target: Target) -> list[Geometry]:
    """Split geometries in which all readers of a tensor can read it as it is, without repeats.

    windows: of the readers. There is none unless all have a horizontal stride of 2.
    """
    if not all(w is not None and w.reads_split for w in windows):
        return []
    wanted = dict.fromkeys(g for w in windows for g in window_geometries(w, target, True))
    return [g for g in wanted if all(w.can_read(g) for w in windows)]


def halo_cycles(g: Geometry, channels: int) -> int:
    """Estimated cycles to fill or wrap the halo of a region that an operation writes."""
    slot = g.slot
    rows = channels * g.local_rows
    if slot.circular:
        return rows * 3
    gaps = rows * slot.gap_words
    return gaps + channels * (g.local_rows - g.rows) * slot.num_words


def reading_cycles(window: Window | None, target: Target, budget: int, g: Geometry | None):
    """Estimated cycles of a window operation that reads ``g`` (None: host memory), or None."""
    plan = Planner(window, target, Limits(budget, g)).best()
    return None if plan is None else plan.cycles
