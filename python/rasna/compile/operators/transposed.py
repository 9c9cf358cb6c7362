"""ConvTranspose2d and ConvTranspose1d, as modules and functions."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .. import floatgraph as fg
from ..problems import Refusal
from .registry import Value, describe, pair, register, register_module, single
from .rows import as_row, as_sequence


def _transposed(ctx, input: Value, rank: int, weight, bias, op: dict[str, Any]) -> Value:
    """The operation on a map; on a sequence as one row, whose arguments are numbers."""
    if isinstance(weight, Value) or isinstance(bias, Value):
        raise Refusal(
            "a transposed convolution with a computed weight is not supported",
            "make the weight a parameter or buffer of a module",
        )
    if len(input.shape) != rank:
        wanted = "(batch, channels, length)" if rank == 2 else "(batch, channels, height, width)"
        raise Refusal(
            f"a transposed convolution of {describe(input.shape)} is not supported",
            f"give it {wanted}",
        )
    shape = tuple(ctx.real.shape[1:])
    if rank == 2:
        neutral = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}
        op = {
            name: (neutral[name], single(value)) if name in neutral else value
            for name, value in op.items()
        }
        made = fg.ConvTranspose(weight, bias, **op)
        row = ctx.add(made, [as_row(ctx, input)], (shape[0], 1, shape[1]))
        return as_sequence(ctx, row)
    op = {name: value if name == "groups" else pair(value) for name, value in op.items()}
    return ctx.add(fg.ConvTranspose(weight, bias, **op), [input], shape)


@register([F.conv_transpose2d, torch.conv_transpose2d])
def conv_transpose2d(
    ctx, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """F.conv_transpose2d."""
    op = dict(
        stride=stride, padding=padding, output_padding=output_padding, groups=groups,
        dilation=dilation,
    )  # fmt: skip
    return _transposed(ctx, input, 3, weight, bias, op)


@register([F.conv_transpose1d, torch.conv_transpose1d])
def conv_transpose1d(
    ctx, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """F.conv_transpose1d: the transposed convolution of one row."""
    op = dict(
        stride=stride, padding=padding, output_padding=output_padding, groups=groups,
        dilation=dilation,
    )  # fmt: skip
    return _transposed(ctx, input, 2, weight, bias, op)


@register_module(nn.ConvTranspose2d)
def conv_transpose2d_module(ctx, module, path, input, output_size=None):
    """nn.ConvTranspose2d."""
    return conv_transpose2d(ctx, input, *_arguments(ctx, module, path, input))


@register_module(nn.ConvTranspose1d)
def conv_transpose1d_module(ctx, module, path, input, output_size=None):
    """nn.ConvTranspose1d."""
    return conv_transpose1d(ctx, input, *_arguments(ctx, module, path, input))


def _arguments(ctx, module, path: str, input: Value) -> tuple:
    """Arguments of the function; output_padding is what PyTorch made of ``output_size``."""
    bias = None if module.bias is None else fg.Param(f"{path}.bias")
    sizes = zip(
        ctx.real.shape[2:], input.shape[1:], module.stride, module.padding, module.dilation,
        module.kernel_size, strict=True,
    )  # fmt: skip
    extra = tuple(
        out - ((n - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1)
        for out, n, stride, pad, dilation, kernel in sizes
    )
    return (
        fg.Param(f"{path}.weight"), bias, module.stride, module.padding, extra, module.groups,
        module.dilation,
    )  # fmt: skip
