"""How many bits things have, and where a tuned model keeps that."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Settings:
    """ab, wb: bits of activations and weights (2 to 8); ib: bits of intermediates (12 to 24)."""

    ab: int = 8
    wb: int = 8
    ib: int = 17


def settings_of(model: torch.nn.Module) -> Settings:
    """The settings that ``rasna.tune`` left in ``model._rasna_tune``, or the defaults."""
    tuned = getattr(model, "_rasna_tune", None)
    return Settings() if tuned is None else Settings(tuned.ab, tuned.wb, tuned.ib)
