"""Max pooling, average pooling in all their spellings; 1-d forms as one row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .. import floatgraph as fg
from ..problems import Refusal
from .registry import Value, describe, pair, register, register_module, single
from .rows import as_row, as_sequence


def _check_map(what: str, input: Value) -> None:
    if len(input.shape) != 3:
        raise Refusal(
            f"{what} of {describe(input.shape)} is not supported",
            "give it (batch, channels, height, width)",
        )


def _check_sequence(what: str, input: Value) -> None:
    if len(input.shape) != 2:
        raise Refusal(
            f"1-d {what} of {describe(input.shape)} is not supported",
            "give it (batch, channels, length)",
        )


@register([F.max_pool2d, torch.max_pool2d, F.max_pool2d_with_indices])
def max_pool2d(
    ctx, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
    return_indices=False,
):  # fmt: skip
    """F.max_pool2d without indices."""
    _check_map("max pooling", input)
    _check_no_indices(ctx, return_indices)
    kernel = pair(kernel_size)
    stride = pair(stride) if stride not in (None, [], ()) else kernel
    op = fg.MaxPool(kernel, stride, pair(padding), pair(dilation), bool(ceil_mode))
    return ctx.add(op, [input], tuple(ctx.real.shape[1:]))


@register([F.max_pool1d, torch.max_pool1d, F.max_pool1d_with_indices])
def max_pool1d(
    ctx, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
    return_indices=False,
):  # fmt: skip
    """F.max_pool1d without indices."""
    _check_sequence("max pooling", input)
    _check_no_indices(ctx, return_indices)
    kernel = single(kernel_size)
    stride = single(stride) if stride not in (None, [], ()) else kernel
    op = fg.MaxPool(
        (1, kernel), (1, stride), (0, single(padding)), (1, single(dilation)), bool(ceil_mode)
    )
    shape = (input.shape[0], 1, ctx.real.shape[2])
    return as_sequence(ctx, ctx.add(op, [as_row(ctx, input)], shape))


def _check_no_indices(ctx, return_indices) -> None:
    if return_indices or not isinstance(ctx.real, torch.Tensor):
        raise Refusal("max pooling with return_indices=True is not supported", "drop the indices")


@register_module(nn.MaxPool1d)
def max_pool1d_module(ctx, module, path, input):
    """nn.MaxPool1d."""
    return max_pool1d(
        ctx, input, module.kernel_size, module.stride, module.padding, module.dilation,
        module.ceil_mode, module.return_indices,
    )  # fmt: skip


@register_module(nn.MaxPool2d)
def max_pool2d_module(ctx, module, path, input):
    """nn.MaxPool2d."""
    return max_pool2d(
        ctx, input, module.kernel_size, module.stride, module.padding, module.dilation,
        module.ceil_mode, module.return_indices,
    )  # fmt: skip


@register([F.adaptive_max_pool2d, F.adaptive_max_pool2d_with_indices])
def adaptive_max_pool2d(ctx, input, output_size, return_indices=False):
    """F.adaptive_max_pool2d, any output size."""
    _check_map("max pooling", input)
    _check_no_indices(ctx, return_indices)
    size = _output_size(output_size, input)
    return _adaptive_max(ctx, input, size)


@register([F.adaptive_max_pool1d, F.adaptive_max_pool1d_with_indices])
def adaptive_max_pool1d(ctx, input, output_size, return_indices=False):
    """F.adaptive_max_pool1d, any output size."""
    _check_sequence("max pooling", input)
    _check_no_indices(ctx, return_indices)
    return as_sequence(ctx, _adaptive_max(ctx, as_row(ctx, input), (1, single(output_size))))


def _adaptive_max(ctx, input: Value, size: tuple[int, int]) -> Value:
    """Max pooling whose windows may have two sizes: a larger one is the union of two smaller ones.

    So first all windows of the smaller size, then the first and the last one within every window,
    picked by averages of single pixels, then the larger one of these two.
    """
    channels, before = input.shape[0], input.shape[1:]
    if not any(n % m for n, m in zip(before, size, strict=True)):
        kernel = (before[0] // size[0], before[1] // size[1])
        op = fg.MaxPool(kernel, kernel, (0, 0), (1, 1), False)
        return ctx.add(op, [input], (channels, *size))
    windows = [_adaptive_windows(n, m) for n, m in zip(before, size, strict=True)]
    kernel = tuple(min(b - a for a, b in w) for w in windows)
    op = fg.MaxPool(kernel, (1, 1), (0, 0), (1, 1), False)
    shape = (channels, *(n - k + 1 for n, k in zip(before, kernel, strict=True)))
    small = input if kernel == (1, 1) else ctx.add(op, [input], shape, "_windows")
    places = [
        [p for a, b in w for p in ((a, a + 1), (b - k, b - k + 1))]
        for w, k in zip(windows, kernel, strict=True)
    ]
    pairs = _average(ctx, small, places[0], places[1])
    last = fg.MaxPool((2, 2), (2, 2), (0, 0), (1, 1), False)
    return ctx.add(last, [pairs], (channels, *size))


@register_module(nn.AdaptiveMaxPool1d)
def adaptive_max_pool1d_module(ctx, module, path, input):
    """nn.AdaptiveMaxPool1d."""
    return adaptive_max_pool1d(ctx, input, module.output_size, module.return_indices)


@register_module(nn.AdaptiveMaxPool2d)
def adaptive_max_pool2d_module(ctx, module, path, input):
    """nn.AdaptiveMaxPool2d."""
    return adaptive_max_pool2d(ctx, input, module.output_size, module.return_indices)


def _output_size(output_size, input: Value) -> tuple[int, int]:
    if isinstance(output_size, int) or output_size is None:
        output_size = (output_size, output_size)
    if len(output_size) == 1:
        output_size = (*output_size, *output_size)
    height, width = output_size
    return (
        input.shape[1] if height is None else int(height),
        input.shape[2] if width is None else int(width),
    )


def _average(ctx, input: Value, rows, columns, row_divisors=None, column_divisors=None) -> Value:
    """An AvgPool node; without divisors every window is divided by its number of pixels."""
    op = fg.AvgPool(
        tuple(rows),
        tuple(columns),
        tuple(row_divisors or [float(limit - first) for first, limit in rows]),
        tuple(column_divisors or [float(limit - first) for first, limit in columns]),
    )
    return ctx.add(op, [input], (input.shape[0], len(rows), len(columns)))


def _adaptive_windows(num_pixels: int, num_windows: int) -> list[tuple[int, int]]:
    """Window i covers floor(i*n/m) to ceil((i+1)*n/m), as PyTorch's adaptive pooling does."""
    return [
        (i * num_pixels // num_windows, -(-(i + 1) * num_pixels // num_windows))
        for i in range(num_windows)
    ]


@register([F.adaptive_avg_pool2d])
def adaptive_avg_pool2d(ctx, input, output_size):
    """F.adaptive_avg_pool2d, any output size."""
    _check_map("average pooling", input)
    height, width = _output_size(output_size, input)
    rows = _adaptive_windows(input.shape[1], height)
    return _average(ctx, input, rows, _adaptive_windows(input.shape[2], width))


@register([F.adaptive_avg_pool1d])
def adaptive_avg_pool1d(ctx, input, output_size):
    """F.adaptive_avg_pool1d, any output size."""
    _check_sequence("average pooling", input)
    columns = _adaptive_windows(input.shape[1], single(output_size))
    return as_sequence(ctx, _average(ctx, as_row(ctx, input), [(0, 1)], columns))


@register_module(nn.AdaptiveAvgPool1d)
def adaptive_avg_pool1d_module(ctx, module, path, input):
    """nn.AdaptiveAvgPool1d."""
    return adaptive_avg_pool1d(ctx, input, module.output_size)


@register_module(nn.AdaptiveAvgPool2d)
def adaptive_avg_pool2d_module(ctx, module, path, input):
    """nn.AdaptiveAvgPool2d."""
    return adaptive_avg_pool2d(ctx, input, module.output_size)


def _windows(count, num_pixels, kernel, stride, pad, include_pad):
    """Real pixels and divisor of each window of one axis, clipped as PyTorch clips them."""
    windows, divisors = [], []
    for index in range(count):
        first = index * stride - pad
        limit = min(first + kernel, num_pixels + pad)
        real = (max(first, 0), min(limit, num_pixels))
        windows.append(real)
        divisors.append(float(limit - first if include_pad else real[1] - real[0]))
    return windows, divisors


@register([F.avg_pool2d])
def avg_pool2d(
    ctx, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
):  # fmt: skip
    """F.avg_pool2d."""
    _check_map("average pooling", input)
    kernel = pair(kernel_size)
    stride = pair(stride) if stride not in (None, [], ()) else kernel
    pad, size = pair(padding), ctx.real.shape[2:]
    rows, row_divisors = _windows(
        size[0], input.shape[1], kernel[0], stride[0], pad[0], count_include_pad
    )
    columns, column_divisors = _windows(
        size[1], input.shape[2], kernel[1], stride[1], pad[1], count_include_pad
    )
    if divisor_override is not None:
        row_divisors = [float(ctx.number(divisor_override))] * len(rows)
        column_divisors = [1.0] * len(columns)
    return _average(ctx, input, rows, columns, row_divisors, column_divisors)


@register_module(nn.AvgPool2d)
def avg_pool2d_module(ctx, module, path, input):
    """nn.AvgPool2d."""
    return avg_pool2d(
        ctx, input, module.kernel_size, module.stride, module.padding, module.ceil_mode,
        module.count_include_pad, module.divisor_override,
    )  # fmt: skip


@register([F.avg_pool1d])
def avg_pool1d(
    ctx, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
):
    """F.avg_pool1d."""
    _check_sequence("average pooling", input)
    kernel = single(kernel_size)
    stride = single(stride) if stride not in (None, [], ()) else kernel
    columns, divisors = _windows(
        ctx.real.shape[2], input.shape[1], kernel, stride, single(padding), count_include_pad
    )
    row = _average(ctx, as_row(ctx, input), [(0, 1)], columns, [1.0], divisors)
    return as_sequence(ctx, row)


@register_module(nn.AvgPool1d)
def avg_pool1d_module(ctx, module, path, input):
    """nn.AvgPool1d."""
    return avg_pool1d(
        ctx, input, module.kernel_size, module.stride, module.padding, module.ceil_mode,
        module.count_include_pad,
    )  # fmt: skip


def average(ctx, source: Value, axes: set[int], mean: bool) -> Value:
    """Mean or sum over the height (2) and the width (3) of a map."""
    rows, columns = (
        [(0, n)] if axis in axes else [(i, i + 1) for i in range(n)]
        for axis, n in zip((2, 3), source.shape[1:], strict=True)
    )
    if mean:
        return _average(ctx, source, rows, columns)
    return _average(ctx, source, rows, columns, [1.0] * len(rows), [1.0] * len(columns))


def mean_of_map(ctx, input: Value, dim) -> Value | None:
    """Mean over H, W or both, or the length, as one average; None for other dimensions."""
    source, axes = map_behind(ctx, input)
    rank = len(axes) + 1
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    reduced = {axes[d % rank - 1] if d % rank else -1 for d in dims}
    if source is None or not reduced <= {1, 2}:
        return None
    previous = ctx.graph.nodes[source.name].op
    if isinstance(previous, fg.AvgPool) and _is_mean(previous, reduced):
        source, reduced = ctx.value(ctx.graph.nodes[source.name].inputs[0]), {1, 2}
    result = average(ctx, source, {axis + 1 for axis in reduced}, mean=True)
    shape = tuple(ctx.real.shape[1:])
    return result if result.shape == shape else ctx.add(fg.Reshape(), [result], shape)


def map_behind(ctx, input: Value) -> tuple[Value | None, list[int]]:
    """The (C, H, W) value behind ``input``, and which of its axes each axis of ``input`` is."""
    if len(input.shape) == 3:
        return input, [0, 1, 2]
    node = ctx.graph.nodes[input.name]
    if len(input.shape) == 2 and isinstance(node.op, fg.Reshape):
        source = ctx.value(node.inputs[0])
        for axes in ([0, 1], [0, 2]):
            rest = ({0, 1, 2} - set(axes)).pop()
            if len(source.shape) == 3 and source.shape[rest] == 1:
                if tuple(source.shape[a] for a in axes) == input.shape:
                    return source, axes
    if len(input.shape) == 2:
        return as_row(ctx, input), [0, 2]
    return None, list(range(len(input.shape)))


def _is_mean(op: fg.AvgPool, reduced: set[int]) -> bool:
    """Whether ``op`` is the full mean over the one axis that is not in ``reduced``."""
    if reduced not in ({1}, {2}):
        return False
    full, single = (op.columns, op.rows) if reduced == {1} else (op.rows, op.columns)
    return (
        len(full) == 1
        and full[0][0] == 0
        and all(window == (i, i + 1) for i, window in enumerate(single))
        and op.row_divisors == tuple(float(b - a) for a, b in op.rows)
        and op.column_divisors == tuple(float(b - a) for a, b in op.columns)
    )
