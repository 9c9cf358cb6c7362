"""Conv2d, Conv1d, Linear and BatchNorm, as modules and functions."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ...graph import Padding
from .. import floatgraph as fg
from ..problems import Refusal
from .pixels import pad_around
from .registry import Value, describe, pair, register, register_module, single
from .rows import as_row, as_sequence


def _constant(what: str, ref) -> None:
    if isinstance(ref, Value):
        raise Refusal(
            f"{what} with a computed weight is not supported",
            "make the weight a parameter or buffer of a module",
        )


def _padding(padding, kernel: tuple[int, int], dilation: tuple[int, int]) -> Padding:
    """Explicit padding; "same" puts the odd pixel at the bottom and right, as PyTorch does."""
    if padding == "valid":
        return Padding()
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        top, left = total[0] // 2, total[1] // 2
        return Padding(top, total[0] - top, left, total[1] - left)
    height, width = pair(padding)
    return Padding(height, height, width, width)


def _output(num_pixels: int, pad: int, kernel: int, stride: int, dilation: int) -> int:
    return (num_pixels + pad - dilation * (kernel - 1) - 1) // stride + 1


def _convolution(
    ctx, input: Value, weight, bias, stride, padding, dilation, groups, padding_mode
) -> Value:
    """A convolution of a map; of a sequence as one row, whose arguments come in pairs too."""
    _constant("a convolution", weight)
    _constant("a convolution", bias)
    shape = ctx.tensor(weight).shape
    kernel = (1, shape[2]) if len(shape) == 3 else (shape[2], shape[3])
    pad = _padding(padding, kernel, dilation)
    if padding_mode in ("reflect", "replicate"):
        edges = (pad.top, pad.bottom, pad.left, pad.right)
        input, pad, padding_mode = pad_around(ctx, input, edges, padding_mode), Padding(), "zeros"
    height = _output(input.shape[1], pad.top + pad.bottom, kernel[0], stride[0], dilation[0])
    width = _output(input.shape[2], pad.left + pad.right, kernel[1], stride[1], dilation[1])
    op = fg.Conv(weight, bias, stride, dilation, groups, pad, padding_mode)
    return ctx.add(op, [input], (shape[0], height, width))


@register([F.conv2d, torch.conv2d])
def conv2d(
    ctx, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, padding_mode="zeros"
):
    """F.conv2d, with the padding_mode of nn.Conv2d."""
    if len(input.shape) != 3:
        raise Refusal(
            f"a convolution of {describe(input.shape)} is not supported",
            "give it (batch, channels, height, width)",
        )
    return _convolution(
        ctx, input, weight, bias, pair(stride), padding, pair(dilation), groups, padding_mode
    )


@register([F.conv1d, torch.conv1d])
def conv1d(
    ctx, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, padding_mode="zeros"
):
    """F.conv1d, with the padding_mode of nn.Conv1d: a convolution of one row."""
    if len(input.shape) != 2:
        raise Refusal(
            f"a 1-d convolution of {describe(input.shape)} is not supported",
            "give it (batch, channels, length)",
        )
    if not isinstance(padding, str):
        padding = (0, single(padding))
    row = _convolution(
        ctx, as_row(ctx, input), weight, bias, (1, single(stride)), padding,
        (1, single(dilation)), groups, padding_mode,
    )  # fmt: skip
    return as_sequence(ctx, row)


@register_module(nn.Conv2d)
def conv2d_module(ctx, module, path, input):
    """nn.Conv2d."""
    return conv2d(ctx, input, *_arguments(module, path, nn.Conv2d))


@register_module(nn.Conv1d)
def conv1d_module(ctx, module, path, input):
    """nn.Conv1d."""
    return conv1d(ctx, input, *_arguments(module, path, nn.Conv1d))


def _arguments(module, path: str, kind: type) -> tuple:
    if type(module)._conv_forward is not kind._conv_forward:  # type: ignore[attr-defined]
        raise Refusal(
            f"{type(module).__name__} with a _conv_forward of its own is not supported",
            "write it in forward",
        )
    bias = None if module.bias is None else fg.Param(f"{path}.bias")
    return (
        fg.Param(f"{path}.weight"), bias, module.stride, module.padding, module.dilation,
        module.groups, module.padding_mode,
    )  # fmt: skip


@register([F.linear])
def linear(ctx, input, weight, bias=None):
    """F.linear."""
    _constant("a linear layer", weight)
    _constant("a linear layer", bias)
    shape = ctx.tensor(weight).shape
    if len(shape) != 2:
        raise Refusal("a linear layer with one output row is not supported", "use nn.Linear(n, 1)")
    if len(input.shape) > 1:
        return _linear_of_rows(ctx, input, weight, bias, shape[0])
    return ctx.add(fg.Linear(weight, bias), [input], (shape[0],))


def _tiled(tensor: torch.Tensor, count: int, *shape: int) -> torch.Tensor:
    """A weight or bias once for every channel of a map."""
    return tensor.repeat(count, *[1] * (tensor.dim() - 1)).reshape(-1, *shape)


def _linear_of_rows(ctx, input: Value, weight, bias, outputs: int) -> Value:
    """A linear layer on the last dimension: a convolution as wide as a row, for each channel.

    Its outputs are channels first; they become the pixels of a row.
    """
    channels, width = input.shape[0], input.shape[-1]
    if len(input.shape) > 3:
        raise Refusal(
            f"a linear layer on {describe(input.shape)} is not supported",
            "give it a map, a sequence or a vector",
        )
    source = input if len(input.shape) == 3 else as_row(ctx, input)
    op = fg.Conv(
        fg.Derived(_tiled, (weight, channels, 1, 1, width)),
        None if bias is None else fg.Derived(_tiled, (bias, channels)), groups=channels,
    )  # fmt: skip
    height = source.shape[1]
    made = ctx.add(op, [source], (channels * outputs, height, 1))
    numbers = np.arange(channels * outputs).reshape(channels, 1, outputs)
    rows = ctx.add(fg.Select(numbers), [made], (channels, height, outputs), "_rows")
    return rows if len(input.shape) == 3 else as_sequence(ctx, rows)


@register_module(nn.Linear)
def linear_module(ctx, module, path, input):
    """nn.Linear."""
    bias = None if module.bias is None else fg.Param(f"{path}.bias")
    return linear(ctx, input, fg.Param(f"{path}.weight"), bias)


@register([F.batch_norm])
def batch_norm(
    ctx, input, running_mean, running_var, weight=None, bias=None, training=False,
    momentum=0.1, eps=1e-5, path="",
):  # fmt: skip
    """F.batch_norm with running statistics."""
    if running_mean is None or running_var is None or (training and not ctx.training):
        raise Refusal(
            "batch normalisation with the statistics of the batch is not supported",
            "train with track_running_stats=True",
        )
    for ref in (running_mean, running_var, weight, bias):
        _constant("batch normalisation", ref)
    if len(input.shape) > 3:
        raise Refusal(
            f"batch normalisation of {describe(input.shape)} is not supported",
            "apply it to (batch, channels, height, width), (batch, channels, length) "
            "or (batch, features)",
        )
    step = fg.BatchNorm(running_mean, running_var, weight, bias, eps, path)
    return ctx.add(fg.Affine((step,)), [input], input.shape)


@register_module(nn.BatchNorm2d, nn.BatchNorm1d, nn.SyncBatchNorm)
def batch_norm_module(ctx, module, path, input):
    """nn.BatchNorm2d, nn.BatchNorm1d (on feature vectors and sequences) and nn.SyncBatchNorm."""
    refs = [
        None if getattr(module, name) is None else fg.Param(f"{path}.{name}")
        for name in ("running_mean", "running_var", "weight", "bias")
    ]
    return batch_norm(ctx, input, *refs, eps=module.eps, path=path)
