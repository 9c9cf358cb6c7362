"""The one exception of the compiler: a message for the author of the C++ source, with its place."""

from __future__ import annotations

from typing import NamedTuple


class Location(NamedTuple):
    """A place in the C++ source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class HlsError(Exception):
    """The source is outside of the accepted subset. ``str()`` gives ``file:line: message``."""

    def __init__(self, location: Location | str | None, message: str):
        self.location = location
        self.message = message
        super().__init__(f"{location}: {message}" if location else message)
