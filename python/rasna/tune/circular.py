"""Circular padding in place of any other (``chpad``), where it wraps at most once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ..warn import warn_user

_KEY = "_rasna_padding_mode"  # in a layer's __dict__: the mode that it had before tune
_CONVOLUTIONS = (nn.Conv2d, nn.Conv1d)


def make_circular(model: nn.Module) -> None:
    """Set the padding mode of every convolution of the model to circular, remembering its own."""
    for layer in model.modules():
        if isinstance(layer, _CONVOLUTIONS):
            layer.__dict__.setdefault(_KEY, layer.padding_mode)
            layer.padding_mode = "circular"


def restore(model: nn.Module) -> None:
    """Undo :func:`make_circular`."""
    for layer in model.modules():
        if _KEY in layer.__dict__:
            layer.padding_mode = layer.__dict__.pop(_KEY)


def wraps_more_than_once(layer: nn.Conv2d | nn.Conv1d, x: torch.Tensor) -> bool:
    """PyTorch refuses circular padding that is larger than the map."""
    pads = layer._reversed_padding_repeated_twice  # left, right, and of a map top and bottom
    return any(pad > x.shape[-1 - i // 2] for i, pad in enumerate(pads))


def keep_mode_where_it_wraps(model: nn.Module, run: Callable[[], Any]) -> list[str]:
    """Give their own mode back to the layers whose circular padding would wrap more than once.

    run: executes the plain model once. Warns once with all names, and returns them.
    """
    found: list[str] = []

    def check(name: str, layer: nn.Conv2d | nn.Conv1d, args: tuple) -> None:
        if layer.padding_mode == "circular" and wraps_more_than_once(layer, args[0]):
            if layer.__dict__.get(_KEY, "circular") != "circular":
                layer.padding_mode = layer.__dict__[_KEY]
                found.append(f"{name} ({layer.padding_mode}, map {tuple(args[0].shape[2:])})")

    hooks = [
        layer.register_forward_pre_hook(lambda m, args, name=name: check(name, m, args))
        for name, layer in model.named_modules()
        if isinstance(layer, _CONVOLUTIONS)
    ]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    if found:
        warn_user(
            f"tune: circular padding would wrap more than once in {', '.join(found)}; "
            f"these layers keep their padding mode"
        )
    return found


class _CircularPad(torch.autograd.Function):
    """F.pad(mode="circular") with a backward of two copies; autograd's own is 4 times slower."""

    @staticmethod
    def forward(ctx, x, edges):
        ctx.edges, ctx.size = edges, x.shape[2:]
        return F.pad(x, edges, mode="circular")

    @staticmethod
    def backward(ctx, grad):
        (left, right, top, bottom), (height, width) = ctx.edges, ctx.size
        rows = grad[:, :, top : top + height].clone()
        rows[:, :, height - top :] += grad[:, :, :top]
        rows[:, :, :bottom] += grad[:, :, top + height :]
        result = rows[:, :, :, left : left + width].clone()
        result[:, :, :, width - left :] += rows[:, :, :, :left]
        result[:, :, :, :right] += rows[:, :, :, left + width :]
        return result, None


def circular_pad(x: torch.Tensor, edges: tuple[int, int, int, int]) -> torch.Tensor:
    """x: (N, C, H, W); edges: left, right, top, bottom pixels, at most the size of the map."""
    return _CircularPad.apply(x, edges) if any(edges) else x
