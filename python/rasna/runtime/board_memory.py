"""Contiguous memory of a board, with explicit copies in both directions.

The processor's caches are not coherent with the accelerator's ports: what the processor wrote
must be flushed before a run, what the accelerator wrote must be invalidated before it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import isa
from ..errors import BoardMemoryError, RuntimeObjectError

_MEMINFO = "/proc/meminfo"
_WINDOW_BITS = 35  # the data segments must lie in one aligned window of 32 GiB


def available_bytes() -> tuple[int, int] | None:
    """(free, total) bytes of the kernel's pool of contiguous memory, None when not known."""
    try:
        with open(_MEMINFO) as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
        free, total = (int(lines[name].split()[0]) * 1024 for name in ("CmaFree", "CmaTotal"))
    except (OSError, KeyError, ValueError, IndexError):
        return None
    return free, total


class Buffer:
    """uint64 words that the accelerator can address.

    Parameters
    ----------
    allocate : ``pynq.allocate`` or a function like it
    num_words : may be 0: one word is allocated then
    what : what it holds, for messages

    Raises BoardMemoryError that says how many bytes are needed and how many there are.
    """

    def __init__(self, allocate: Callable[..., Any], num_words: int, what: str) -> None:
        count = max(1, int(num_words))
        try:
            self._array = allocate(shape=(count,), dtype=np.uint64)
        except Exception as error:  # pynq and XRT raise RuntimeError, MemoryError, OSError, ...
            raise BoardMemoryError(_exhausted(count * isa.WORD_BYTES, what, error)) from error
        self.words: np.ndarray = np.asarray(self._array)
        self.address = int(getattr(self._array, "device_address", 0) or 0)
        # pynq before 2.7 has flush and invalidate only
        array = self._array
        self._to_device = getattr(array, "sync_to_device", None) or array.flush
        self._from_device = getattr(array, "sync_from_device", None) or array.invalidate

    def sync_to_device(self) -> None:
        """Make what the processor wrote visible to the accelerator."""
        self._to_device()

    def sync_from_device(self) -> None:
        """Make what the accelerator wrote visible to the processor."""
        self._from_device()

    def write(self, words: np.ndarray) -> None:
        """Copy uint64 words to the beginning of the buffer and flush."""
        flat = words.reshape(-1)
        self.words[: flat.size] = flat
        self.sync_to_device()

    def free(self) -> None:
        """Give the memory back; may be called twice."""
        array, self._array = self._array, None
        if array is not None:
            self.words = np.empty(0, np.uint64)
            self._to_device = self._from_device = _freed
            array.freebuffer()


def _freed() -> None:
    raise RuntimeObjectError("internal error: a buffer is used after it was freed")


def _exhausted(num_bytes: int, what: str, error: Exception) -> str:
    known = available_bytes()
    there = (
        f"{known[0]:,} of {known[1]:,} bytes are free" if known
        else "how much is free is not known on this system"
    )
    return (
        f"{what}: {num_bytes:,} bytes of contiguous memory are needed, {there} ({error}); close "
        "other runtimes and notebooks, restart their kernels, use a smaller batch, or give the "
        "kernel more with cma=256M on its command line"
    )


def check_window(buffers: dict[str, Buffer]) -> None:
    """The accelerator addresses its data segments behind one base of 35 bits.

    Raises RuntimeObjectError when the buffers (input, output, scratch) do not lie close enough.
    """
    if len({b.address >> _WINDOW_BITS for b in buffers.values()}) > 1:
        places = ", ".join(f"{name} at {b.address:#x}" for name, b in buffers.items())
        raise RuntimeObjectError(
            f"the buffers must lie in one aligned window of 32 GiB, but there are {places}; "
            "restart the kernel, or limit contiguous memory to the lower 2 GiB with cma=256M@0-2G"
        )
