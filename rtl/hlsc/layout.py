"""Types of LLVM IR text: sizes, alignments, and the scalar leaves of a type with their byte
offsets.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .errors import HlsError


def split_commas(text: str) -> list[str]:
    """Split at commas that are outside of brackets and quotes."""
    out, depth, quoted, start = [], 0, False, 0
    for index, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "[{<(":
            depth += 1
        elif char in "]}>)":
            depth -= 1
        elif char == "," and depth == 0:
            out.append(text[start:index].strip())
            start = index + 1
    tail = text[start:].strip()
    return [*out, tail] if tail else out


def split_type(text: str) -> tuple[str, str]:
    """``"[4 x i8] %x"`` -> ``("[4 x i8]", "%x")``."""
    depth, quoted = 0, False
    for index, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "[{<(":
            depth += 1
        elif char in "]}>)":
            depth -= 1
        elif char == " " and depth == 0:
            return text[:index], text[index + 1 :].strip()
    return text, ""


class Layout:
    """Sizes of the named struct types of one module."""

    def __init__(self, ir_text: str):
        self.structs = {
            name: body
            for name, body in re.findall(
                r'^(%(?:"[^"\n]+"|[\w.:$-]+)) = type (<?\{.*\}>?)$', ir_text, re.M
            )
        }
        self.measure = lru_cache(None)(self.measure)
        self.fields = lru_cache(None)(self.fields)
        self.leaves = lru_cache(None)(self.leaves)

    def measure(self, type_text: str) -> tuple[int, int]:
        """(bytes, alignment) of a type."""
        if match := re.fullmatch(r"i(\d+)", type_text):
            num_bytes, align = (int(match.group(1)) + 7) // 8, 1
            while align < num_bytes and align < 16:
                align *= 2
            return -(-num_bytes // align) * align, align
        if type_text == "ptr":
            return 8, 8
        if match := re.fullmatch(r"\[(\d+) x (.*)\]", type_text):
            num_bytes, align = self.measure(match.group(2))
            return int(match.group(1)) * num_bytes, align
        if type_text in ("float", "double", "half", "x86_fp80"):
            raise HlsError(None, "floating point is not supported; use integers")
        total, largest = 0, 1
        for offset, field in self.fields(type_text):
            num_bytes, align = self.measure(field)
            total, largest = (
                offset + num_bytes,
                max(largest, 1 if self.is_packed(type_text) else align),
            )
        return -(-total // largest) * largest, largest

    def body(self, type_text: str) -> str:
        """The braces of a struct type."""
        text = self.structs.get(type_text, type_text)
        if not text.startswith(("{", "<{")):
            raise HlsError(None, f"type {type_text} is not supported")
        return text

    def is_packed(self, type_text: str) -> bool:
        return self.body(type_text).startswith("<")

    def fields(self, type_text: str) -> list[tuple[int, str]]:
        """(byte offset, type) of each field of a struct."""
        text, offset, out = self.body(type_text), 0, []
        packed = text.startswith("<")
        inner = text.strip("<>")[1:-1]
        for field in split_commas(inner):
            num_bytes, align = self.measure(field)
            offset = offset if packed else -(-offset // align) * align
            out.append((offset, field))
            offset += num_bytes
        return out

    def leaves(self, type_text: str) -> list[tuple[int, int]]:
        """(byte offset, bits) of every scalar in a type, in memory order."""
        if match := re.fullmatch(r"i(\d+)", type_text):
            return [(0, int(match.group(1)))]
        if match := re.fullmatch(r"\[(\d+) x (.*)\]", type_text):
            step = self.measure(match.group(2))[0]
            inner = self.leaves(match.group(2))
            return [(k * step + o, b) for k in range(int(match.group(1))) for o, b in inner]
        if type_text in ("ptr", "float", "double"):
            raise HlsError(None, f"type {type_text} cannot be stored or sent")
        return [(o + p, b) for o, field in self.fields(type_text) for p, b in self.leaves(field)]
