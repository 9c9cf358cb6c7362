"""Fake quantisation for training: values on the integer grid, gradients straight through.

Rounding is the hardware's: floor(x * scale + 0.5). The gradient is that of a clamp to
the range: one inside, zero outside.
"""

from __future__ import annotations

import torch

from ..compile.quantize import quantize_weight


class _PerTensor(torch.autograd.Function):
    """x: any float dtype; scale: integers per unit; lo, hi: integers."""

    @staticmethod
    def forward(ctx, x, scale, lo, hi):
        ctx.save_for_backward(x)
        ctx.range = lo / scale, hi / scale
        wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
        y = torch.add(wide.new_tensor(0.5), wide, alpha=scale)  # one pass over x
        return y.floor_().clamp_(lo, hi).mul_(1.0 / scale).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.ops.aten.hardtanh_backward(grad, x, *ctx.range), None, None, None


class _PerChannel(torch.autograd.Function):
    """weight: (OC, …); scale: (OC, 1, …) integers per unit, 0 makes the channel 0."""

    @staticmethod
    def forward(ctx, weight, scale, limit, keep):
        back = torch.where(scale > 0, 1.0 / scale, 0.0)
        inside = weight.float().abs() * scale <= limit
        ctx.save_for_backward(inside if keep is None else inside.logical_and_(keep))
        return quantize_weight(weight, scale, limit).mul_(back).to(weight.dtype)

    @staticmethod
    def backward(ctx, grad):
        (passes,) = ctx.saved_tensors
        return grad * passes, None, None, None


def fake_quantize(x: torch.Tensor, scale: float, lo: int, hi: int) -> torch.Tensor:
    """clamp(floor(x * scale + 0.5), lo, hi) / scale; ``lo`` and ``hi`` hold the ReLU too."""
    return _PerTensor.apply(x, scale, lo, hi)


def fake_quantize_weight(
    weight: torch.Tensor, scale: torch.Tensor, limit: int, keep: torch.Tensor | None = None
) -> torch.Tensor:
    """Weights of +-limit integers with one scale per output channel (broadcastable).

    keep: mask of the weights that exist; the others are zero already and get no gradient.
    """
    return _PerChannel.apply(weight, scale, limit, keep)
