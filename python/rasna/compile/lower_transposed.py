"""A transposed convolution as a convolution per phase of its output, interleaved by a Select.

With stride s, output pixel s*u + phase is a sum of input pixels u + shift, whose weights and shifts
depend on the phase only. So all phases of a channel are channels of one convolution of stride 1.
Weights that a phase does not have are zeros, and zeros are in no list of taps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import graph as qg
from ..graph import Padding, Requant, Tensor
from . import floatgraph as fg
from .execute import layer_parameters
from .lower_moves import append_gather, quantize_copies
from .weights import Quantized, quantize_convolution


@dataclass(frozen=True)
class Axis:
    """One direction. source[phase, position]: number of the weight there, -1 for none.

    size: pixels of every phase; before, behind: padding.
    """

    source: np.ndarray
    size: int
    before: int
    behind: int

    @property
    def stride(self) -> int:
        return len(self.source)


def phases_of(
    num_pixels: int, out: int, kernel: int, stride: int, padding: int, dilation: int
) -> Axis:
    """The convolution of stride 1 whose interleaved phases begin with the ``out`` pixels."""
    taps = [
        (phase, (phase + padding - j * dilation) // stride, j)
        for phase in range(stride)
        for j in range(kernel)
        if (phase + padding - j * dilation) % stride == 0
    ]
    before = -min(0, *(shift for _, shift, _ in taps))
    size = -(-out // stride)
    length = before + 1 + max(0, *(shift for _, shift, _ in taps))
    length = max(length, num_pixels + before - size + 1)  # padding is never negative
    source = np.full((stride, length), -1, np.int64)
    for phase, shift, j in taps:
        source[phase, before + shift] = j
    return Axis(source, size, before, size - num_pixels - before + length - 1)


def lower(lowering: Any, node: fg.Node) -> None:
    """Append the convolution, and what interleaves and crops its phases."""
    op, source = node.op, lowering._as_logical(node.inputs[0])
    weight, factor, bias = (p.numpy() for p in layer_parameters(lowering.root, op))
    type = lowering.types[node.name]
    made = quantize_convolution(
        weight, bias, source.type, type, op.clamp, lowering.settings, factor
    )
    rows, columns = (
        phases_of(*sizes)
        for sizes in zip(
            source.shape[1:], node.shape[1:], weight.shape[2:], op.stride, op.padding,
            op.dilation, strict=True,
        )
    )
    steps = _steps(lowering, node, rows, columns, type)
    _append_conv(lowering, node, source.name, steps[0], made, rows, columns)
    _append_rest(lowering, node, steps, rows, columns)


def _steps(lowering: Any, node: fg.Node, rows: Axis, columns: Axis, type) -> list[Tensor]:
    """The tensors that are made one after another, but the last: phases, interleaved."""
    count = node.shape[0]
    shapes = [(count * rows.stride * columns.stride, rows.size, columns.size)]
    if (rows.stride, columns.stride) != (1, 1):
        shapes.append((count, rows.size * rows.stride, columns.size * columns.stride))
    steps = []
    for shape, suffix in zip(shapes, ("_phases", "_whole"), strict=False):
        if shape == node.shape:
            lowering._tensor(node, shape, type)
            steps.append(lowering.quant.tensors[node.name])
            break
        name = lowering._extra_name(f"{node.name}{suffix}")
        lowering.quant.tensors[name] = Tensor(name, shape, type)
        steps.append(lowering.quant.tensors[name])
    return steps


def _append_conv(
    lowering: Any, node: fg.Node, source: str, out: Tensor, made: Quantized, rows: Axis,
    columns: Axis,
) -> None:
    repeats = rows.stride * columns.stride
    fields = {
        name: np.repeat(getattr(made.requant, name), repeats)
        for name in ("pre_shift", "multiplier", "shift")
    }
    phased = Quantized(
        phase_weights(made.weight, rows, columns), np.repeat(made.bias, repeats),
        replace(made.requant, **fields),
    )
    lowering._append_conv(
        out.name, source, out.name, str(node.where), phased, groups=node.op.groups,
        padding=Padding(rows.before, rows.behind, columns.before, columns.behind),
    )


def phase_weights(weight: np.ndarray, rows: Axis, columns: Axis) -> np.ndarray:
    """(OC, IC/groups, KH, KW) as (OC * row phases * column phases, IC/groups, rows, columns)."""
    oc, per_group = weight.shape[:2]
    padded = np.pad(weight, ((0, 0), (0, 0), (0, 1), (0, 1)))  # number -1 is a zero
    picked = padded[:, :, rows.source[:, :, None, None], columns.source]
    picked = picked.transpose(0, 2, 4, 1, 3, 5)  # (OC, row phase, column phase, IC, row, column)
    return np.ascontiguousarray(picked).reshape(
        oc * rows.stride * columns.stride, per_group, rows.source.shape[1],
        columns.source.shape[1],
    )


def _append_rest(
    lowering: Any, node: fg.Node, steps: list[Tensor], rows: Axis, columns: Axis
) -> None:
    """Interleave the phases; what is too much at the end is cropped."""
    type = steps[0].type
    if len(steps) > 1:
        channels = np.arange(steps[0].shape[0]).reshape(-1, rows.stride, columns.stride)
        requant: Requant = quantize_copies([type], type, fg.UNBOUNDED, lowering.settings.ib)
        lowering.quant.ops.append(
            qg.Select(
                steps[1].name, [steps[0].name], steps[1].name, str(node.where),
                channels=channels, requant=requant,
            )  # fmt: skip
        )
    if steps[-1].name != node.name:
        numbers = tuple(np.arange(n) for n in node.shape)
        append_gather(lowering, node, [steps[-1]], numbers)
