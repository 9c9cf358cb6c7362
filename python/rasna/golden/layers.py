"""The layer form of the golden model: a quantised graph on whole tensors, in NumPy int64.

The same numbers as the tap form of :mod:`rasna.golden.machine`, computed without knowing
anything of the machine. docs/numerics.md is the text of this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import RasnaValueError
from ..graph import (
    AvgPool,
    Conv,
    FixedPoint,
    Gather,
    MaxPool,
    Product,
    QuantGraph,
    Requant,
    Select,
    Sum,
    Tensor,
)

_INT32 = np.iinfo(np.int32)
_NEVER = np.iinfo(np.int64).min  # loses every comparison in max pooling


def quantize(x: np.ndarray, type: FixedPoint) -> np.ndarray:
    """Real numbers to integers of a fixed-point type: floor(v * 2**frac + 0.5), saturated.

    The value is cast to float32 first; the rest is float64, so that ties are exact. The
    caller refuses NaN; infinities saturate.

    Parameters
    ----------
    x : array of any shape, real numbers

    Returns
    -------
    array of ``type.dtype``, same shape.
    """
    scaled = np.asarray(x, np.float32).astype(np.float64) * 2.0**type.frac
    return np.clip(np.floor(scaled + 0.5), type.lo, type.hi).astype(type.dtype)


def dequantize(q: np.ndarray, type: FixedPoint) -> np.ndarray:
    """Integers of a fixed-point type to real numbers, float32: exact for up to 24 bits."""
    return (np.asarray(q).astype(np.float64) * 2.0**-type.frac).astype(np.float32)


def evaluate(graph: QuantGraph, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Compute every tensor of a graph for one image.

    Parameters
    ----------
    graph : QuantGraph
    inputs : one integer array per ``graph.inputs``, (C, H, W) or the port's shape, with
        values of the tensor's type

    Returns
    -------
    dict by tensor name of int64 arrays (C, H, W), inputs included.

    Raises
    ------
    RasnaValueError for a wrong number, shape or value of inputs, an accumulator outside
    int32, or a result outside the type of its tensor (the operation is named).
    """
    if len(inputs) != len(graph.inputs):
        raise RasnaValueError(
            f"the graph has {len(graph.inputs)} inputs, {len(inputs)} arrays were given"
        )
    values: dict[str, np.ndarray] = {}
    for port, array in zip(graph.inputs, inputs, strict=True):
        values[port.tensor] = _checked_input(graph.tensors[port.tensor], port.name, array)
    for op in graph.ops:
        tensor = graph.tensors[op.output]
        result = _COMPUTE[type(op)](op, [values[name] for name in op.inputs], tensor)
        values[op.output] = _checked_result(op.name, tensor, result)
    return values


def _checked_input(tensor: Tensor, name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    if array.size != tensor.num_elems or array.dtype.kind not in "iu":
        raise RasnaValueError(
            f"input {name}: integers of shape {tensor.shape} are needed, "
            f"{array.dtype} of shape {array.shape} was given"
        )
    array = array.astype(np.int64).reshape(tensor.shape)
    if array.min() < tensor.type.lo or array.max() > tensor.type.hi:
        raise RasnaValueError(
            f"input {name}: values of type {tensor.type} are {tensor.type.lo} to "
            f"{tensor.type.hi}, {array.min()} to {array.max()} were given"
        )
    return array


def _checked_result(name: str, tensor: Tensor, result: np.ndarray) -> np.ndarray:
    if result.shape != tensor.shape:
        raise RasnaValueError(
            f"{name}: computes shape {result.shape}, but tensor {tensor.name} has {tensor.shape}"
        )
    if result.min() < tensor.type.lo or result.max() > tensor.type.hi:
        raise RasnaValueError(
            f"{name}: computes {result.min()} to {result.max()}, but tensor {tensor.name} of "
            f"type {tensor.type} holds {tensor.type.lo} to {tensor.type.hi}"
        )
    return result


def requantize(name: str, acc: np.ndarray, requant: Requant, index: np.ndarray) -> np.ndarray:
    """Rule of docs/numerics.md on int64 accumulators.

    index : integers that broadcast with ``acc``; entry of ``requant`` for each element.
    Raises RasnaValueError when an accumulator lies outside int32.
    """
    if acc.min() < _INT32.min or acc.max() > _INT32.max:
        raise RasnaValueError(
            f"{name}: accumulators from {acc.min()} to {acc.max()} do not fit int32"
        )
    pre_shift = np.asarray(requant.pre_shift).astype(np.int64)[index]
    multiplier = np.asarray(requant.multiplier).astype(np.int64)[index]
    shift = np.asarray(requant.shift).astype(np.int64)[index]
    limit = 1 << (requant.ib - 1)
    t = np.clip(acc >> pre_shift, -limit, limit - 1)
    return _round(t * multiplier, shift, requant)


def _round(product: np.ndarray, shift: np.ndarray, requant: Requant) -> np.ndarray:
    y = np.clip((product + (np.int64(1) << (shift - 1))) >> shift, requant.lo, requant.hi)
    return y if requant.curve is None else requant.curve.values.astype(np.int64)[y & 0xFF]


def _by_channel(num_channels: int) -> np.ndarray:
    return np.arange(num_channels)[:, None, None]


def _pad(x: np.ndarray, padding, fill: int, mode: str = "zeros") -> np.ndarray:
    """x: (C, H, W). Circular padding may wrap more than once."""
    widths = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right))
    if mode == "circular":
        return np.pad(x, widths, mode="wrap")
    if mode != "zeros":
        raise RasnaValueError(f"padding_mode must be zeros or circular, not {mode!r}")
    return np.pad(x, widths, constant_values=fill)


def _windows(x: np.ndarray, kernel, stride, dilation, out_hw) -> np.ndarray:
    """View (C, KH, KW, OH, OW) of x (C, H, W); all windows must lie inside."""
    (kh, kw), (sh, sw), (dh, dw), (oh, ow) = kernel, stride, dilation, out_hw
    sc, sy, sx = x.strides
    return np.lib.stride_tricks.as_strided(
        x, (x.shape[0], kh, kw, oh, ow), (sc, sy * dh, sx * dw, sy * sh, sx * sw),
        writeable=False,
    )


def _conv(op: Conv, inputs: list[np.ndarray], tensor: Tensor) -> np.ndarray:
    weight = np.asarray(op.weight)
    num_out, per_group, kh, kw = weight.shape
    x = _pad(inputs[0], op.padding, 0, op.padding_mode)
    if x.shape[0] != per_group * op.groups or num_out % op.groups:
        raise RasnaValueError(
            f"{op.name}: weight {weight.shape} with {op.groups} groups does not fit "
            f"{x.shape[0]} input channels"
        )
    out_hw = tuple(
        (x.shape[1 + i] - op.dilation[i] * (weight.shape[2 + i] - 1) - 1) // op.stride[i] + 1
        for i in range(2)
    )
    if min(out_hw) < 1:
        raise RasnaValueError(f"{op.name}: the kernel is larger than the padded input")
    # float64 sums of products of integers below 2**53 are exact, and BLAS is fast
    columns = _windows(x.astype(np.float64), (kh, kw), op.stride, op.dilation, out_hw)
    columns = columns.reshape(op.groups, per_group * kh * kw, -1)
    rows = weight.astype(np.float64).reshape(op.groups, num_out // op.groups, -1)
    acc = np.matmul(rows, columns).astype(np.int64).reshape(num_out, *out_hw)
    acc += np.asarray(op.bias).astype(np.int64)[:, None, None]
    return requantize(op.name, acc, op.requant, _by_channel(num_out))


def _sum(op: Sum, inputs: list[np.ndarray], tensor: Tensor) -> np.ndarray:
    if len(op.coefficients) != len(inputs):
        raise RasnaValueError(
            f"{op.name}: {len(inputs)} inputs need as many coefficients, "
            f"{len(op.coefficients)} were given"
        )
    _check_operands(op, inputs, tensor)
    acc = np.zeros(tensor.shape, np.int64)
    for coefficient, x in zip(op.coefficients, inputs, strict=True):
        acc += coefficient * x
    acc += np.asarray(op.bias).astype(np.int64)[:, None, None]
    return requantize(op.name, acc, op.requant, _by_channel(tensor.shape[0]))


def _check_operands(op: Sum, inputs: list[np.ndarray], tensor: Tensor) -> None:
    for x in inputs:
        if x.shape not in (tensor.shape, (tensor.shape[0], 1, 1)):
            raise RasnaValueError(
                f"{op.name}: an input of shape {x.shape} does not fit {tensor.shape}"
            )


def _product(op: Product, inputs: list[np.ndarray], tensor: Tensor) -> np.ndarray:
    if len(inputs) != 2:
        raise RasnaValueError(f"{op.name}: a product has 2 inputs, {len(inputs)} were given")
    _check_operands(op, inputs, tensor)
    shift = np.asarray(op.requant.shift).astype(np.int64)[_by_channel(tensor.shape[0])]
    return _round(np.broadcast_to(inputs[0] * inputs[1], tensor.shape), shift, op.requant)


def _max_pool(op: MaxPool, inputs: list[np.ndarray], tensor: Tensor) -> np.ndarray:
    x = _pad(inputs[0], op.padding, _NEVER)
    reach = [  # rows and columns that the last window needs
        (op.out_hw[i] - 1) * op.stride[i] + op.dilation[i] * (op.kernel[i] - 1) + 1
        for i in range(2)
    ]
    beyond = [max(0, reach[i] - x.shape[1 + i]) for i in range(2)]
    x = np.pad(x, ((0, 0), (0, beyond[0]), (0, beyond[1])), constant_values=_NEVER)
    best = _windows(x, op.kernel, op.stride, op.dilation, op.out_hw).max(axis=(1, 2))
    if (best == _NEVER).any():
        raise RasnaValueError(f"{op.name}: a pooling window holds no pixel of the input")
    return np.clip(best, op.lo, op.hi)


def _avg_pool(op: AvgPool, inputs: list[np.ndarray], tensor: Tensor) -> np.ndarray:
    x = inputs[0]
    # running sums with a zero in front: the sum of a window is four look-ups
    total = np.pad(x.cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))
    rows, columns = np.array(op.rows, np.int64), np.array(op.columns, np.int64)
    for edges, limit in ((rows, x.shape[1]), (columns, x.shape[2])):
        if (edges[:, 0] < 0).any() or (edges[:, 0] >= edges[:, 1]).any() or (
            edges[:, 1] > limit
        ).any():
            raise RasnaValueError(f"{op.name}: windows {edges.tolist()} do not fit 0 to {limit}")
    top, bottom = total[:, rows[:, 0]], total[:, rows[:, 1]]
    left, right = columns[:, 0], columns[:, 1]
    acc = bottom[:, :, right] - bottom[:, :, left] - top[:, :, right] + top[:, :, left]
    return requantize(op.name, acc, op.requant, np.asarray(op.requant_index)[None])


def _select(op: Select, inputs: list[np.ndarray], tensor: Tensor) -> np.ndarray:
    channels = np.asarray(op.channels)
    sizes = {x.shape[1:] for x in inputs}
    number = np.repeat(np.arange(len(inputs)), [len(x) for x in inputs])
    if len(sizes) != 1 or channels.ndim != 3:
        raise RasnaValueError(f"{op.name}: inputs of different sizes {sorted(sizes)}")
    if channels.min() < 0 or channels.max() >= len(number):
        raise RasnaValueError(
            f"{op.name}: channels {channels.min()} to {channels.max()} of {len(number)}"
        )
    if (number[channels] != number[channels[:, :, :1]]).any():
        raise RasnaValueError(f"{op.name}: one row mixes channels of several inputs")
    x = requantize(op.name, np.concatenate(inputs), op.requant, number[:, None, None])
    (num_out, rows, columns), (height, width) = channels.shape, sizes.pop()
    x = x[channels].transpose(0, 3, 1, 4, 2)  # (OC, H, RH, W, RW)
    return x.reshape(num_out, height * rows, width * columns)


def _gather(op: Gather, inputs: list[np.ndarray], tensor: Tensor) -> np.ndarray:
    other = 3 - op.axis
    if len({(len(x), x.shape[other]) for x in inputs}) != 1:
        raise RasnaValueError(
            f"{op.name}: inputs of the shapes {[x.shape for x in inputs]} cannot be joined "
            f"along dimension {op.axis}"
        )
    x = np.concatenate(inputs, axis=op.axis)
    numbers = [np.asarray(n) for n in (op.channels, op.rows, op.columns)]
    for what, size, n in zip(("channels", "rows", "columns"), x.shape, numbers, strict=True):
        if n.min() < -1 or n.max() >= size:
            raise RasnaValueError(f"{op.name}: {what} {n.min()} to {n.max()} of {size}")
    channel, row, column = (n < 0 for n in numbers)
    blank = channel[:, None, None] | row[:, None] | column
    return np.clip(np.where(blank, op.fill, x[np.ix_(*numbers)]), op.lo, op.hi)


_COMPUTE: dict[type, Any] = {
    Conv: _conv,
    Sum: _sum,
    Product: _product,
    MaxPool: _max_pool,
    AvgPool: _avg_pool,
    Select: _select,
    Gather: _gather,
}
