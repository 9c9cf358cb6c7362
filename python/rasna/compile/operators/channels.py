"""Slices, chunks, flips; shuffles and permutations of channels: the same numbers elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from .. import floatgraph as fg
from ..problems import Refusal
from .pixels import check_rank, dimension_of, gather
from .registry import Value, describe, host_step, register, register_module
from .rows import as_row, as_sequence


def pick(ctx, input: Value, channels: Sequence[int] | np.ndarray, suffix: str = "") -> Value:
    """These channels of a map, sequence or vector, in this order."""
    numbers = np.array(channels, np.int64).reshape(-1, 1, 1)
    if len(input.shape) > 3 or not len(numbers):
        raise Refusal(
            f"picking {len(numbers)} channels of {describe(input.shape)} is not supported",
            "pick channels of (batch, channels, height, width)",
        )
    if np.array_equal(numbers.ravel(), np.arange(input.shape[0])):
        return input
    shape = (len(numbers), *input.shape[1:])
    if ctx.is_host(input):
        channels = tuple(int(n) for n in numbers.ravel())
        return host_step(ctx, input, "take", shape, suffix=suffix, channels_=channels)
    return ctx.add(fg.Select(numbers), [input], shape, suffix)


def broadcast(ctx, input: Value, shape: tuple[int, ...], suffix: str = "_repeated") -> Value:
    """Pixels and channels repeated where ``input`` has one of them; of equal rank, at most 3."""
    if input.shape == shape:
        return input
    if len(shape) == 2:
        row = broadcast(ctx, as_row(ctx, input), (shape[0], 1, shape[1]), suffix)
        return as_sequence(ctx, row)
    factors = [n // m for m, n in zip(input.shape, shape, strict=True)]
    rows, columns = [1, 1, *factors[1:]][-2:]
    numbers = np.arange(shape[0]) if factors[0] == 1 else np.zeros(shape[0], np.int64)
    picked = np.broadcast_to(numbers[:, None, None], (shape[0], rows, columns)).copy()
    return ctx.add(fg.Select(picked), [input], shape, suffix)


@register([], ["expand", "expand_as"])
def expand(ctx, input, *sizes):
    """Tensor.expand of dimensions of size 1 behind the batch."""
    shape = ctx.real_shape()
    if len(shape) != len(input.shape) or len(shape) > 3 or ctx.real.shape[0] != ctx.batch:
        raise Refusal(
            f"expand from {describe(input.shape)} to another number of dimensions is not supported",
            "use unsqueeze first, and repeat dimensions of size 1 behind the batch only",
        )
    return broadcast(ctx, input, shape, "")


def pick_along(ctx, input: Value, dimension: int, numbers: Sequence[int] | np.ndarray) -> Value:
    """These entries of a dimension behind the batch: channels, rows, columns or steps."""
    if dimension == 0:
        return pick(ctx, input, numbers)
    check_rank(input, "a part")
    return gather(ctx, input, {dimension: np.array(numbers, np.int64).reshape(-1)})


@register(
    [torch.chunk, torch.split, torch.tensor_split], ["chunk", "split", "tensor_split"]
)
def chunk(ctx, input, *args, dim=0, **kwargs):
    """chunk, split and tensor_split; the sizes are those that PyTorch gave."""
    along = dimension_of(input, args[1] if len(args) > 1 else dim, "chunk or split")
    parts, first = [], 0
    for real in ctx.real:
        limit = first + real.shape[along + 1]
        parts.append(pick_along(ctx, input, along, np.arange(first, limit)))
        first = limit
    return tuple(parts)


@register([torch.narrow], ["narrow"])
def narrow(ctx, input, dim, start, length):
    """torch.narrow with constant numbers."""
    along = dimension_of(input, dim, "narrow")
    first = int(start) % input.shape[along]
    return pick_along(ctx, input, along, np.arange(first, first + int(length)))


@register([torch.index_select], ["index_select"])
def index_select(ctx, input, dim, index):
    """torch.index_select with constant numbers."""
    along = dimension_of(input, dim, "index_select")
    if isinstance(index, Value):
        raise Refusal(
            "index_select with a computed index is not supported",
            "use a constant tensor, as a buffer of the module",
        )
    return pick_along(ctx, input, along, ctx.tensor(index).numpy() % input.shape[along])


@register([torch.flip], ["flip"])
def flip(ctx, input, *dims, **kwargs):
    """torch.flip of channels, as from BGR to RGB, of rows and of columns."""
    given = dims or (kwargs["dims"],)
    for dim in given[0] if isinstance(given[0], (tuple, list)) else given:
        along = dimension_of(input, dim, "flip")
        input = pick_along(ctx, input, along, np.arange(input.shape[along])[::-1])
    return input


@register([torch.channel_shuffle, torch.native_channel_shuffle])
def channel_shuffle(ctx, input, groups):
    """F.channel_shuffle."""
    channels = np.arange(input.shape[0]).reshape(int(groups), -1).T
    return pick(ctx, input, channels.ravel())


@register_module(nn.ChannelShuffle)
def channel_shuffle_module(ctx, module, path, input):
    """nn.ChannelShuffle."""
    return channel_shuffle(ctx, input, module.groups)


# ---- permutations of dimensions -----------------------------------------------------------


@register([torch.permute], ["permute"])
def permute(ctx, input, *dims):
    """torch.permute that moves parts of the channels, as in a shuffle by view and permute."""
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    return _permute(ctx, input, [int(d) % (len(input.shape) + 1) for d in order])


@register(
    [torch.transpose, torch.swapaxes, torch.swapdims], ["transpose", "swapaxes", "swapdims"]
)
def transpose(ctx, input, dim0, dim1):
    """torch.transpose, as in a shuffle by view and transpose."""
    order = list(range(len(input.shape) + 1))
    a, b = int(dim0), int(dim1)
    order[a], order[b] = order[b], order[a]
    return _permute(ctx, input, order)


def _permute(ctx, input: Value, order: list[int]) -> Value:
    shape = tuple(ctx.real.shape[1:])
    moved = [d for d in order if d == 0 or input.shape[d - 1] > 1]
    if order[0] == 0 and moved == sorted(moved):  # only dimensions of size 1 change places
        return input if shape == input.shape else ctx.add(fg.Reshape(), [input], shape)
    base: Value | None = input if order[0] == 0 else None
    while base is not None:
        channels = _moved_channels(input.shape, base.shape, [d - 1 for d in order[1:]])
        if channels is not None and len(base.shape) <= 3:
            picked = pick(ctx, base, channels, "_channels")
            return ctx.add(fg.Reshape(), [picked], shape) if picked.shape != shape else picked
        node = ctx.graph.nodes[base.name]
        base = ctx.value(node.inputs[0]) if isinstance(node.op, fg.Reshape) else None
    raise Refusal(
        f"a permutation {tuple(order)} of {describe(input.shape)} is not supported",
        "only channels can be moved, also parts of them after a view; give and take "
        "channel-last arrays with channel_last=True instead",
    )


def _moved_channels(
    shape: tuple[int, ...], base: tuple[int, ...], order: list[int]
) -> np.ndarray | None:
    """Channels of a map of shape ``base``, seen as ``shape`` and permuted; None if pixels move."""
    lead = len(shape) - (len(base) - 1)
    if lead < 1 or shape[lead:] != base[1:] or order[lead:] != list(range(lead, len(shape))):
        return None
    return np.arange(base[0]).reshape(shape[:lead]).transpose(order[:lead]).ravel()
