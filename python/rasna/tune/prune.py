"""Magnitude masks on the weights of single layers.

A mask lives in the layer's ``__dict__`` (no buffer: ``state_dict`` and EMA copies see the
plain model). The weight's own data is kept zero where the mask is: when the mask is made, in every
forward of the tuned model, after every ``torch.optim`` step, before a ``state_dict`` and after
``load_state_dict``, which makes a new mask from what was loaded.
"""

from __future__ import annotations

import math
import weakref
from typing import cast

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

_KEY = "_rasna_mask"


class Mask:
    """Which weights of one layer are kept. keep: bool, the weight's shape."""

    def __init__(self, sp: float, keep: torch.Tensor) -> None:
        self.sp = sp
        self.keep = keep

    def on(self, device: torch.device) -> torch.Tensor:
        if self.keep.device != device:
            self.keep = self.keep.to(device)
        return self.keep


@torch.no_grad()
def magnitude_mask(weight: torch.Tensor, sp: float) -> torch.Tensor:
    """True for the weights to keep: all but the round(sp * n) smallest of the n in the layer.

    Existing zeros go first, equal magnitudes in order of position. At least one stays.
    """
    count = min(math.floor(sp * weight.numel() + 0.5), weight.numel() - 1)
    order = weight.detach().float().abs().flatten().argsort(stable=True)
    keep = torch.ones(weight.numel(), dtype=torch.bool, device=weight.device)
    keep[order[:count]] = False
    return keep.view(weight.shape)


def mask_of(layer: nn.Module) -> Mask | None:
    return layer.__dict__.get(_KEY)


def weight_of(layer: nn.Module) -> torch.Tensor:
    return cast("torch.Tensor", layer.weight)


def apply_mask(layer: nn.Module) -> None:
    """Zero the pruned weights of a layer, in place; nothing to do without a mask.

    Through ``.data``: two forwards before one backward must not see a changed version.
    """
    mask = mask_of(layer)
    if mask is not None:
        weight = weight_of(layer).data
        weight.masked_fill_(~mask.on(weight.device), 0)


def prune(layer: nn.Module, sp: float) -> None:
    """Give a layer with a ``weight`` a new mask of sparsity ``sp``, and zero its weights."""
    if mask_of(layer) is None:
        layer.register_state_dict_pre_hook(_before_state_dict)
        layer.register_load_state_dict_post_hook(_after_load)
    layer.__dict__[_KEY] = Mask(sp, magnitude_mask(weight_of(layer), sp))
    watch(layer)
    apply_mask(layer)


def unprune(layer: nn.Module) -> None:
    """Let all weights of a layer change again; they keep their values."""
    if layer.__dict__.pop(_KEY, None) is not None:
        for hooks in (layer._state_dict_pre_hooks, layer._load_state_dict_post_hooks):
            for key in [
                k for k, hook in hooks.items() if hook in (_before_state_dict, _after_load)
            ]:
                del hooks[key]


def _before_state_dict(layer: nn.Module, prefix: str, keep_vars: bool) -> None:
    apply_mask(layer)


def _after_load(layer: nn.Module, incompatible_keys) -> None:
    mask = mask_of(layer)
    if mask is not None:
        prune(layer, mask.sp)


# ---- after a step of any optimiser of torch.optim ------------------------------------------
# Momentum from before the pruning, or noise, would move a pruned weight although its gradient
# is zero.

_watched: weakref.WeakSet[nn.Module] = weakref.WeakSet()
_hook: list = []


def watch(layer: nn.Module) -> None:
    """Mask a layer after every optimiser step; for layers with a mask (copies too)."""
    if layer not in _watched:
        _watched.add(layer)
        if not _hook:
            _hook.append(register_optimizer_step_post_hook(_after_step))


def _after_step(optimizer, args, kwargs) -> None:
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for layer in list(_watched):
        if id(layer.weight) in stepped:
            apply_mask(layer)
