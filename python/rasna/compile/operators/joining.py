"""cat, concat, concatenate, hstack: tensors one behind the other along their channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .. import floatgraph as fg
from ..problems import Refusal
from .channels import pick
from .registry import Value, describe, register

_AXES = {0: "the batch", 2: "the height", 3: "the width"}


@register([torch.cat, torch.concat, torch.concatenate], constants=True)
def cat(ctx, tensors, dim: Any = 0, *, axis: Any = None):
    """torch.cat along dimension 1: channels of maps or sequences, features of vectors."""
    items = list(tensors)
    if not all(isinstance(item, Value) for item in items):
        raise Refusal(
            "cat with a parameter or constant is not supported",
            "join computed tensors only, or add the constant behind a 1x1 convolution",
        )
    rank = len(items[0].shape) + 1
    along = (dim if axis is None else axis) % rank
    if along != 1 or rank > 4:
        name = "the length" if rank == 3 and along == 2 else _AXES.get(along, "others")
        shapes = ", ".join(describe(item.shape) for item in items)
        raise Refusal(
            f"cat of {shapes} along dimension {along} ({name}) is not supported",
            "join along the channels, dimension 1",
        )
    if len(items) == 1:
        return items[0]
    count = sum(item.shape[0] for item in items)
    return ctx.add(fg.Concat(), items, (count, *items[0].shape[1:]))


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
