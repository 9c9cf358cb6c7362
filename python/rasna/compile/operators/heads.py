"""Softmax, argmax and the like at the end of a model: steps behind the accelerator, on the host.

A handler adds an ``fg.Host`` node. Only other host steps and the outputs may read it: where an
operation of the accelerator does, capture refuses the node by name (``Context.on_host_read``).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .. import floatgraph as fg
from ..problems import OUTSIDE, Refusal
from .registry import Value, describe, host_step, register, register_module


def _axis(input: Value, dim: Any, what: str) -> int:
    """A dimension counted from 0, the batch, which it must not be."""
    axis = int(dim) % (len(input.shape) + 1)
    if axis == 0:
        raise Refusal(
            f"{what} over the batch is not supported",
            "give it a dimension behind the batch, as dim=1",
        )
    return axis


def _check_dtype(dtype: Any, what: str) -> None:
    if dtype not in (None, torch.float32):
        raise Refusal(f"{what} with dtype={dtype} is not supported", "leave dtype out")


def _implicit_dim(input: Value) -> int:
    """What PyTorch takes where dim is not given."""
    return 0 if len(input.shape) + 1 in (1, 3) else 1


def _softmax(ctx, kind: str, input: Value, dim, dtype, suffix: str = "") -> Value:
    _check_dtype(dtype, kind)
    dim = _implicit_dim(input) if dim is None else dim
    return host_step(ctx, input, kind, suffix=suffix, axis=_axis(input, dim, kind))


@register([F.softmax, torch.softmax], ["softmax"])
def softmax(ctx, input, dim=None, _stacklevel=3, dtype=None):
    """torch.softmax."""
    return _softmax(ctx, "softmax", input, dim, dtype)


@register([F.log_softmax, torch.log_softmax], ["log_softmax"])
def log_softmax(ctx, input, dim=None, _stacklevel=3, dtype=None):
    """torch.log_softmax."""
    return _softmax(ctx, "log_softmax", input, dim, dtype)


@register([F.softmin])
def softmin(ctx, input, dim=None, _stacklevel=3, dtype=None):
    """F.softmin: softmax of -x."""
    negative = host_step(ctx, input, "scale", suffix="_negative", factor=-1.0, offset=0.0)
    return _softmax(ctx, "softmax", negative, dim, dtype)


@register_module(nn.Softmax)
def softmax_module(ctx, module, path, input):
    """nn.Softmax."""
    return softmax(ctx, input, module.dim)


@register_module(nn.Softmax2d)
def softmax_2d_module(ctx, module, path, input):
    """nn.Softmax2d: over the channels."""
    return softmax(ctx, input, 1)


@register_module(nn.LogSoftmax)
def log_softmax_module(ctx, module, path, input):
    """nn.LogSoftmax."""
    return log_softmax(ctx, input, module.dim)


@register_module(nn.Softmin)
def softmin_module(ctx, module, path, input):
    """nn.Softmin."""
    return softmin(ctx, input, module.dim)


def _index(ctx, kind: str, input: Value, dim, keepdim) -> Value:
    if dim is None:
        raise Refusal(
            f"{kind} over all dimensions with the batch is not supported",
            "give it a dimension behind the batch, as dim=1",
        )
    axis = _axis(input, dim, kind)
    shape = list(input.shape)
    shape[axis - 1 : axis] = [1] if keepdim else []
    op = fg.Host(
        kind, (("axis", axis), ("keepdim", bool(keepdim))), torch.int64,
        _has_channels(ctx, input) and (bool(keepdim) or axis > 1),
    )  # fmt: skip
    return ctx.add(op, [input], shape)


def _has_channels(ctx, input: Value) -> bool:
    return getattr(ctx.graph.nodes[input.name].op, "channels", True) is not False


@register([torch.argmax], ["argmax"])
def argmax(ctx, input, dim=None, keepdim=False):
    """torch.argmax along one dimension; the first of equal values."""
    return _index(ctx, "argmax", input, dim, keepdim)


@register([torch.argmin], ["argmin"])
def argmin(ctx, input, dim=None, keepdim=False):
    """torch.argmin along one dimension; the first of equal values."""
    return _index(ctx, "argmin", input, dim, keepdim)


@register([F.normalize])
def normalize(ctx, input, p=2.0, dim=1, eps=1e-12):
    """F.normalize to the Euclidean length 1, as embeddings are."""
    if p != 2:
        raise Refusal(f"normalize with p={p} is not supported", f"use p=2, or {OUTSIDE}")
    if isinstance(dim, (tuple, list)):
        raise Refusal(
            f"normalize of {describe(input.shape)} over the dimensions {tuple(dim)} is not "
            f"supported", "flatten it and give it one dimension",
        )  # fmt: skip
    axis = _axis(input, dim, "normalize")
    return host_step(ctx, input, "normalize", axis=axis, eps=float(eps))
