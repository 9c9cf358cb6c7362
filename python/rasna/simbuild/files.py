"""Locks between processes and hashes of sources."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_RETRY_SECONDS = 0.1


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that one process at a time can have; the others wait.

    path : a file for the lock alone. It stays, and the lock ends with the process.
    """
    with open(path, "a+b") as file:
        _lock(file)
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        while True:
            try:
                file.seek(0)
                return msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(_RETRY_SECONDS)

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


def source_hash(paths: list[Path], text: str) -> str:
    """A hash over file contents and the options of the build."""
    digest = hashlib.sha256(text.encode())
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
