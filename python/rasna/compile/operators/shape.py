"""flatten, view, reshape, squeeze: the same numbers under another shape, batch untouched."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import floatgraph as fg
from ..problems import Refusal
from .channels import pick_along
from .registry import BATCH, Value, describe, host_step, register, register_module

_FLATTEN = "use torch.flatten(x, 1)"


def _reshape(ctx, input: Value, what: str) -> Value:
    """A Reshape to the shape that PyTorch gave, which must keep the batch in front."""
    real = tuple(ctx.real.shape)
    if real[:1] != (ctx.batch,):
        raise Refusal(f"{what}, which mixes the batch with other dimensions", _FLATTEN)
    if real[1:] == input.shape:
        return input
    if ctx.is_host(input):
        return host_step(ctx, input, "reshape", real[1:], shape_=real[1:])
    return ctx.add(fg.Reshape(), [input], real[1:])


@register([torch.flatten], ["flatten"])
def flatten(ctx, input, start_dim=0, end_dim=-1):
    """torch.flatten behind the batch."""
    if start_dim % (len(input.shape) + 1) == 0:
        raise Refusal("flattening the batch dimension is not supported", _FLATTEN)
    return _reshape(ctx, input, "flatten")


@register_module(nn.Flatten)
def flatten_module(ctx, module, path, input):
    """nn.Flatten."""
    return flatten(ctx, input, module.start_dim, module.end_dim)


@register([torch.reshape], ["view", "reshape"])
def view(ctx, input, *shape: Any, **kwargs: Any):
    """view and reshape whose first dimension is x.size(0) or -1."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    shape = shape or tuple(kwargs.get("shape") or kwargs.get("size") or ())
    if not shape or not (shape[0] is BATCH or shape[0] == -1):
        first = shape[0] if shape else kwargs
        raise Refusal(
            f"a view with the fixed first dimension {first} is not supported",
            "use x.size(0) for it, or torch.flatten(x, 1)",
        )
    return _reshape(ctx, input, f"a view of {describe(input.shape)}")


@register([torch.squeeze], ["squeeze"])
def squeeze(ctx, input, dim=None):
    """squeeze of dimensions behind the batch; squeeze() never removes the batch here."""
    dims = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if any(d % (len(input.shape) + 1) == 0 for d in dims):
        raise Refusal("squeezing the batch dimension is not supported", _FLATTEN)
    return _reshape(ctx, input, "squeeze")


@register([torch.unsqueeze, torch.unflatten], ["unsqueeze", "unflatten"])
def unsqueeze(ctx, input, dim, sizes=None):
    """unsqueeze and unflatten behind the batch."""
    return _reshape(ctx, input, "a new dimension before the batch")


@register_module(nn.Unflatten)
def unflatten_module(ctx, module, path, input):
    """nn.Unflatten."""
    return _reshape(ctx, input, "unflatten")


@register([operator.getitem])
def getitem(ctx, input, index):
    """x.shape[1], x.size()[2:], x[:, :, None, None], x[:, some channels] and x[:, :, ::2, 1:]."""
    if isinstance(input, (tuple, list)):
        return input[index]
    items = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [i for i in items if i is None or i is Ellipsis or isinstance(i, int)]:
        at = next(n for n, i in enumerate(items) if i is Ellipsis)
        given = sum(i is not None for i in items) - 1
        items[at : at + 1] = [slice(None)] * (len(input.shape) + 1 - given)
    wanted = [i for i in items if i is not None]
    if wanted and not _is_all(wanted[0], ctx.batch):
        raise Refusal(
            f"indexing dimension 0 of {describe(input.shape)} is not supported",
            "the batch stays as it is; compute all of it",
        )
    _check_lists(ctx, wanted)
    for along, item in enumerate(wanted[1:]):
        size = input.shape[along]
        if not _is_all(item, size):
            input = pick_along(ctx, input, along, _numbers(ctx, item, size, along))
    return _reshape(ctx, input, "indexing")


def _check_lists(ctx, wanted: list) -> None:
    """Refuse what is no product of dimensions: lists that PyTorch pairs with each other."""
    lists = [i for i in wanted[1:] if not isinstance(i, (slice, int))]
    numbers = [i for i in wanted[1:] if isinstance(i, int)]
    if len(lists) > 1 or (lists and numbers):
        raise Refusal(
            "indexing with lists or numbers in two dimensions beside each other is not supported",
            "index them one after another, as x[:, numbers][:, :, 0]",
        )


def _is_all(item: Any, size: int) -> bool:
    """Whether a slice takes everything."""
    if not isinstance(item, slice):
        return False
    parts = (item.start, item.stop, item.step)
    if not all(part is None or isinstance(part, int) for part in parts):
        return False
    return range(size)[item] == range(size)


def _numbers(ctx, item: Any, count: int, along: int) -> np.ndarray:
    """The entries of a dimension that an index means: slice, number, list, constant tensor."""
    if isinstance(item, (fg.Param, fg.Const, fg.Derived)):
        item = ctx.tensor(item).numpy()
    if isinstance(item, slice):
        parts = (item.start, item.stop, item.step)
        if all(part is None or isinstance(part, int) for part in parts):
            return np.arange(count)[item]
    elif not isinstance(item, Value):
        found = np.arange(count)[np.asarray(item)]
        if found.ndim <= 1:
            return found
    what = "a computed tensor" if isinstance(item, Value) else item
    raise Refusal(
        f"indexing {'pixels' if along else 'channels'} with {what} is not supported",
        "use a constant slice, number or list",
    )


@register([], ["size"])
def size(ctx, input, dim=None):
    """x.size() and x.size(d)."""
    sizes = (BATCH, *input.shape)
    return sizes if dim is None else sizes[dim]


@register([], ["dim", "ndimension"])
def dim(ctx, input):
    """x.dim()."""
    return len(input.shape) + 1


@register([getattr])
def attribute(ctx, input, name, *default):
    """x.shape, x.ndim, x.dtype, x.device, x.data."""
    if isinstance(input, tuple) and name in ("values", "indices"):  # of torch.max along a dimension
        return input[("values", "indices").index(name)]
    if isinstance(input, Value) and name == "shape":
        return (BATCH, *input.shape)
    if isinstance(input, Value) and name == "data":
        return input
    if name in ("ndim", "dtype", "device", "is_cuda", "requires_grad", "is_quantized"):
        return ctx.real
    remedy = "keep it as a constant of the module"
    if name in ("T", "mT", "H", "mH"):
        remedy = "only channels can be moved; exchange height and width of the samples instead"
    raise Refusal(f"the attribute {name} of a tensor is not supported", remedy)
