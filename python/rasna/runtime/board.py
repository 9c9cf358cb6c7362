"""The runtime for FPGA boards. Not run on hardware yet: only the way in exists."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from ..errors import NotOnBoardError
from .base import BaseRuntime

if TYPE_CHECKING:
    from ..program import Program


class Runtime(BaseRuntime):
    """A Program on a PYNQ board. **Not run on hardware yet**: making one raises an error.

    Parameters
    ----------
    program : Program
    path : path of a bitstream ``.bit`` with its ``.hwh`` beside it

    Raises
    ------
    NotOnBoardError, always: it says whether pynq is missing or the board runtime is.
    """

    def __init__(self, program: Program, path: str | os.PathLike[str]) -> None:
        super().__init__(program)
        path = os.fspath(path)
        advice = "a simulator (make sim-so, a path that ends in .so) runs the same bits anywhere"
        if not path.endswith(".bit"):
            raise NotOnBoardError(
                f"{path}: a runtime object is a shared library .so or a bitstream .bit; {advice}"
            )
        try:
            import pynq  # noqa: F401
        except ImportError as error:
            raise NotOnBoardError(
                f"{path}: a bitstream runs on a board with PYNQ, and the Python package pynq "
                f"cannot be imported here ({error}); {advice}"
            ) from error
        raise NotOnBoardError(
            f"{path}: running on a board is not supported by this version of rasna; {advice}"
        )

    def _run_words(self, words: np.ndarray) -> np.ndarray:
        raise NotOnBoardError("running on a board is not supported by this version of rasna")

    def close(self) -> None:
        """Nothing is held."""
