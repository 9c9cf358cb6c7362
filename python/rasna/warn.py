"""Warnings that point at the user's line, however deep in Rasna and PyTorch they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_OWN = str(Path(__file__).parent)


def warn_user(message: str) -> None:
    """``warnings.warn`` a UserWarning at the first caller outside of Rasna and PyTorch."""
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    inside = (_OWN, str(Path(torch).parent)) if torch else (_OWN,)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
