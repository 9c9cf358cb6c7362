"""cat, concat, concatenate, hstack, vstack: tensors one behind the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .. import floatgraph as fg
from ..problems import Refusal
from .channels import pick
from .registry import Value, describe, register
from .rows import as_row, as_sequence


@register([torch.cat, torch.concat, torch.concatenate], constants=True)
def cat(ctx, tensors, dim: Any = 0, *, axis: Any = None):
    """torch.cat along the channels, the height, the width or the length."""
    items = list(tensors)
    if not all(isinstance(item, Value) for item in items):
        raise Refusal(
            "cat with a parameter or constant is not supported",
            "join computed tensors only, or add the constant behind a 1x1 convolution",
        )
    rank = len(items[0].shape) + 1
    along = (dim if axis is None else axis) % rank
    if along == 0 or rank > 4:
        shapes = ", ".join(describe(item.shape) for item in items)
        what = f"dimension {along}" + (" (the batch)" if along == 0 else "")
        raise Refusal(
            f"cat of {shapes} along {what} is not supported",
            "join maps, sequences or vectors along a dimension behind the batch",
        )
    if len(items) == 1:
        return items[0]
    if along == 1:
        count = sum(item.shape[0] for item in items)
        return ctx.add(fg.Concat(), items, (count, *items[0].shape[1:]))
    return _join_pixels(ctx, items, along)


def _join_pixels(ctx, items: list[Value], along: int) -> Value:
    """Maps one below or beside the other; sequences one behind the other as rows."""
    if len(items[0].shape) == 2:
        return as_sequence(ctx, _join_pixels(ctx, [as_row(ctx, i) for i in items], 3))
    shape = list(items[0].shape)
    shape[along - 1] = sum(item.shape[along - 1] for item in items)
    return ctx.add(fg.Concat(along), items, shape)


@register([torch.hstack], constants=True)
def hstack(ctx, tensors):
    """torch.hstack, which is cat along dimension 1."""
    return cat(ctx, tensors, 1)


@register([torch.stack], constants=True)
def stack(ctx, tensors, dim: Any = 0):
    """torch.stack in front of or behind the channels: a cat, its channels in another order."""
    items = list(tensors)
    if not all(isinstance(item, Value) for item in items):
        raise Refusal(
            "stack with a parameter or constant is not supported", "stack computed tensors only"
        )
    shape, count = items[0].shape, len(items)
    along = int(dim) % (len(shape) + 2)
    if along not in (1, 2) or len(shape) > 3:
        raise Refusal(
            f"stack of {describe(shape)} along dimension {along} is not supported",
            "stack along dimension 1 or 2, in front of or behind the channels",
        )
    joined = cat(ctx, items, 1)
    if along == 2:
        order = np.arange(count * shape[0]).reshape(count, shape[0]).T
        joined = pick(ctx, joined, order.ravel())
    return ctx.add(fg.Reshape(), [joined], ctx.real_shape())
