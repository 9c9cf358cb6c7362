"""Debug locations of LLVM IR text: metadata number -> file and line of the user's source."""

from __future__ import annotations

import re
from functools import lru_cache

from .clang import INCLUDE_DIR
from .errors import Location


class Metadata:
    """Reads locations on demand; a place inside the shim headers is reported where the shim was
    called.
    """

    def __init__(self, text: str):
        self.nodes = {int(n): body for n, body in re.findall(r"^!(\d+) = (.*)$", text, re.M)}
        self.location = lru_cache(None)(self.location)
        self.file = lru_cache(None)(self.file)

    @staticmethod
    def reference(body: str, key: str) -> int | None:
        match = re.search(rf"\b{key}: !(\d+)", body)
        return int(match.group(1)) if match else None

    def file(self, scope: int | None) -> str:
        """The file name of a scope."""
        body = self.nodes.get(scope, "") if scope is not None else ""
        if "!DIFile(" in body:
            return re.search(r'filename: "([^"]*)"', body).group(1)
        number = self.reference(body, "file")
        return self.file(number) if number is not None else "?"

    def location(self, number: int) -> Location | None:
        body = self.nodes.get(number, "")
        line = re.search(r"line: (\d+)", body)
        if not line:
            return None
        name = self.file(self.reference(body, "scope"))
        caller = self.reference(body, "inlinedAt")
        if caller is not None and name.startswith(str(INCLUDE_DIR)):
            return self.location(caller)
        return Location(name, int(line.group(1)))

    def loop(self, number: int) -> Location | None:
        """Where a loop statement begins."""
        for reference in re.findall(r"!(\d+)", self.nodes.get(number, "")):
            if int(reference) != number and "!DILocation(" in self.nodes.get(int(reference), ""):
                return self.location(int(reference))
        return None

    def subprogram(self, number: int) -> Location | None:
        body = self.nodes.get(number, "")
        line = re.search(r"line: (\d+)", body)
        return (
            Location(self.file(self.reference(body, "file")), int(line.group(1))) if line else None
        )
