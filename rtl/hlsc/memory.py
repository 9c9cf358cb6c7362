"""On-chip memories: static arrays of the source, split into one memory per scalar field, and those
into banks.

An array of structs becomes one memory per scalar field of the struct; arrays inside of the struct
are further dimensions. Partitioned dimensions choose a bank, the others form the word address.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from .affine import unsigned_max
from .errors import HlsError, Location
from .layout import Layout, split_commas, split_type


@dataclass
class Cell:
    """Where a constant byte offset points: the field path, its dimensions and constant indices, its
    scalar.
    """

    path: tuple[int, ...]
    indices: list[int]
    bits: int
    rest: int  # byte offset inside of the scalar


@dataclass
class Partition:
    """What one array_partition pragma asks for."""

    kind: str
    factor: int
    location: Location


@dataclass(frozen=True)
class Access:
    """A resolved access of one memory: bank, and word address = constant + sum(coefficient *
    value).
    """

    memory: Memory
    bank: tuple[int, ...]
    constant: int
    terms: tuple

    @property
    def key(self):
        """What can conflict with this access: a bank, or one element of a register file (None: any
        element).
        """
        if self.memory.is_registers:
            return (self.memory.name, None if self.terms else self.constant)
        return (self.memory.name, self.bank)


@dataclass(eq=False)
class Memory:
    """One scalar field of one static array."""

    name: str
    dims: list[int]
    strides: list[int]
    bits: int
    byte_offset: int
    num_outer_dims: int
    array: StaticArray
    dynamic: set[int] = field(default_factory=set)
    owner: str | None = None
    banks: dict = field(default_factory=dict)

    def finish(self) -> None:
        """Fix the shape once all pragmas and accesses are known."""
        self.split = []
        for d in range(len(self.dims)):
            part = self.array.partitions.get(d)
            if d >= self.num_outer_dims and part is None and d not in self.dynamic:
                part = Partition("complete", 0, self.array.location)
            self.split.append(part)
        if self.array.partition_all:
            self.split = [Partition("complete", 0, self.array.location)] * len(self.dims)
        self.word_dims = [self._words(d) for d in range(len(self.dims))]
        self.depth = math.prod(self.word_dims)
        self.is_registers = self.depth == 1 and all(
            p is None or p.kind == "complete" for p in self.split
        )
        if self.is_registers:
            self.depth = math.prod(self.dims)
            self.word_dims = list(self.dims)
        self.addr_bits = max(1, (self.depth - 1).bit_length())

    def _words(self, d: int) -> int:
        part, num = self.split[d], self.dims[d]
        if part is None:
            return num
        if part.kind == "complete":
            return 1
        if part.factor & (part.factor - 1) or not 1 < part.factor <= num:
            raise HlsError(
                part.location,
                f"array_partition factor {part.factor} must be a power of two from 2 to {num}",
            )
        return -(-num // part.factor)

    def locate(self, indices: list[int], coefs: list[dict], loc: Location | None) -> Access:
        """The bank and word address of an access with constant indices and coefficients per
        dimension.
        """
        bank, constant, terms, stride = [], 0, {}, 1
        for d in reversed(range(len(self.dims))):
            index, coef = indices[d], {v: k for v, k in coefs[d].items() if k}
            part = None if self.is_registers else self.split[d]
            if part is not None:
                coordinate, index, coef = self._bank(d, part, index, coef, loc)
                bank.insert(0, coordinate)
            if part is None or part.kind != "complete":
                constant += index * stride
                for value, k in coef.items():
                    terms[value] = terms.get(value, 0) + k * stride
                stride *= self.word_dims[d]
        ordered = tuple(sorted(((v, k) for v, k in terms.items() if k), key=lambda t: t[0].name))
        access = Access(self, tuple(bank), constant, ordered)
        if not ordered and not 0 <= constant < self.depth:
            raise HlsError(
                loc, f"index {indices} is outside of array '{self.array.label}' {self.dims}"
            )
        self.banks.setdefault(access.bank, None)
        return access

    def _bank(self, d: int, part: Partition, index: int, coef: dict, loc):
        what = f"dimension {d + 1} of array '{self.array.label}' is partitioned ({part.kind})"
        if part.kind == "complete":
            if coef:
                raise HlsError(loc, f"{what}: index it by constants and unrolled variables only")
            if not 0 <= index < self.dims[d]:
                raise HlsError(
                    loc,
                    f"index {index} is outside of {what.split(' is ')[0]} ({self.dims[d]} "
                    "elements)",
                )
            return index, 0, {}
        if part.kind == "cyclic":
            if any(k % part.factor for k in coef.values()):
                raise HlsError(
                    loc, f"{what}: the bank (index modulo {part.factor}) must be a constant"
                )
            return (
                index % part.factor,
                index // part.factor,
                {v: k // part.factor for v, k in coef.items()},
            )
        words = self.word_dims[d]
        inside, reach = index % words, sum(k * unsigned_max(v) for v, k in coef.items())
        if any(k < 0 for k in coef.values()) or (coef and inside + reach >= words):
            raise HlsError(loc, f"{what}: the bank (index divided by {words}) must be a constant")
        return index // words, inside, coef

    def initial_words(self, bank: tuple[int, ...]) -> list[int] | None:
        """Initial contents of a bank in word order, None if all zero."""
        data = self.array.data
        if data is None:
            return None
        words = []
        for address in range(self.depth):
            indices, rest = [], address
            for d in reversed(range(len(self.dims))):
                indices.insert(0, rest % self.word_dims[d])
                rest //= self.word_dims[d]
            start = self.byte_offset + sum(
                i * s for i, s in zip(self._element(bank, indices), self.strides, strict=False)
            )
            raw = int.from_bytes(data[start : start + (self.bits + 7) // 8], "little")
            words.append(raw & ((1 << self.bits) - 1))
        return words if any(words) else None

    def _element(self, bank, indices) -> list[int]:
        coordinates, out = list(bank), []
        for d, index in enumerate(indices):
            part = None if self.is_registers else self.split[d]
            if part is None:
                out.append(index)
            elif part.kind == "complete":
                out.append(coordinates.pop(0))
            elif part.kind == "cyclic":
                out.append(min(index * part.factor + coordinates.pop(0), self.dims[d] - 1))
            else:
                out.append(min(coordinates.pop(0) * self.word_dims[d] + index, self.dims[d] - 1))
        return out


class StaticArray:
    """A static object of the source: its type, pragmas, contents, and one :class:`Memory` per
    scalar field.
    """

    def __init__(self, name: str, kind: str, type_text: str, init: str, layout: Layout):
        self.name, self.type_text, self.layout = name, type_text, layout
        self.label = demangle_local(name)
        self.is_rom = kind == "constant"
        self.location: Location | None = None
        self.partitions: dict[int, Partition] = {}
        self.partition_all = False
        self.memories: dict[tuple, Memory] = {}
        size = layout.measure(type_text)[0]
        self.data = (
            None
            if init == "zeroinitializer"
            else bytes(_initial_bytes(layout, type_text, init, size))
        )
        self.num_dims, rest = 0, type_text
        while match := re.fullmatch(r"\[(\d+) x (.*)\]", rest):
            self.num_dims, rest = self.num_dims + 1, match.group(2)

    def partition(self, kind: str, factor: int, dim: int, location: Location) -> None:
        """Record an array_partition pragma; ``dim`` counts from 1, 0 means all."""
        self.location = self.location or location
        if dim == 0:
            if kind != "complete":
                raise HlsError(location, "array_partition with dim=0 must be complete")
            self.partition_all = True
            return
        if not 1 <= dim <= self.num_dims:
            raise HlsError(
                location, f"array '{self.label}' has {self.num_dims} dimensions, not {dim}"
            )
        self.partitions[dim - 1] = Partition(kind, factor, location)

    def cell(self, offset: int) -> Cell | None:
        """What lies at a byte offset; None for padding."""
        kind, path, indices = self.type_text, [], []
        while True:
            if match := re.fullmatch(r"i(\d+)", kind):
                bits = int(match.group(1))
                return (
                    Cell(tuple(path), indices, bits, offset) if offset < (bits + 7) // 8 else None
                )
            if match := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
                kind = match.group(2)
                stride = self.layout.measure(kind)[0]
                indices.append(offset // stride)
                offset %= stride
                continue
            for number, (start, inner) in enumerate(self.layout.fields(kind)):
                if start <= offset < start + self.layout.measure(inner)[0]:
                    path.append(number)
                    kind, offset = inner, offset - start
                    break
            else:
                return None

    def memory(self, path: tuple[int, ...]) -> Memory:
        """The memory of one scalar field."""
        if path not in self.memories:
            self.memories[path] = self._make(path)
        return self.memories[path]

    def _make(self, path: tuple[int, ...]) -> Memory:
        kind, dims, strides, fields, base = self.type_text, [], [], list(path), 0
        while not re.fullmatch(r"i\d+", kind):
            if match := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
                kind = match.group(2)
                dims.append(int(match.group(1)))
                strides.append(self.layout.measure(kind)[0])
            else:
                start, kind = self.layout.fields(kind)[fields.pop(0)]
                base += start
        suffix = "".join(f"_{k}" for k in path)
        return Memory(self.label + suffix, dims, strides, int(kind[1:]), base, self.num_dims, self)

    def coefficients(self, memory: Memory, terms: dict, loc) -> list[dict]:
        """Byte coefficients of an address, taken apart per dimension."""
        out = [{} for _ in memory.dims]
        for value, coef in terms.items():
            sign, rest = (1, coef) if coef > 0 else (-1, -coef)
            for d, stride in enumerate(memory.strides):
                quotient, rest = divmod(rest, stride)
                if quotient:
                    out[d][value] = sign * quotient
            if rest:
                raise HlsError(
                    loc, f"access of array '{self.label}' is not aligned to its elements"
                )
        return out


def demangle_local(name: str) -> str:
    """``_ZZ4workvE3acc`` -> ``acc``; a plain global keeps its name."""
    match = re.match(r"_ZZ.*E(\d+)([A-Za-z_]\w*?)(?:_\d+)?$", name)
    if match:
        text = re.search(r"E(\d+)([A-Za-z_].*)$", name[name.rindex("E" + match.group(1)) :])
        return text.group(2)[: int(text.group(1))]
    match = re.match(r"_ZL?N?(?:\d+\w+?)*?(\d+)([A-Za-z_]\w*?)E?$", name)
    if match and len(match.group(2)) >= int(match.group(1)):
        return match.group(2)[: int(match.group(1))]
    return re.sub(r"\W", "_", name)


def _unescape(match) -> str:
    """``\\5C`` or a doubled backslash of an LLVM string."""
    return "\\" if match.group(1) == "\\" else chr(int(match.group(1), 16))


def _initial_bytes(layout: Layout, kind: str, text: str, size: int) -> bytearray:
    text = text.strip()
    if text in ("zeroinitializer", "undef", "poison"):
        return bytearray(size)
    if text.startswith('c"'):
        raw = re.sub(r"\\(\\|[0-9A-Fa-f]{2})", _unescape, text[2:-1]).encode("latin-1")
        if len(raw) != size:
            raise HlsError(
                None, f"internal: the initial value {text[:40]} is not {size} bytes long"
            )
        return bytearray(raw)
    if re.fullmatch(r"i(\d+)", kind):
        value = {"true": 1, "false": 0}.get(text)
        value = int(text) if value is None else value
        return bytearray((value & ((1 << 8 * size) - 1)).to_bytes(size, "little"))
    if not text.startswith(("[", "{", "<{")):
        raise HlsError(None, f"initial value '{text[:40]}' is not supported")
    out, position = bytearray(size), 0
    items = split_commas(text.strip("<>")[1:-1])
    if kind.startswith("["):
        inner = re.fullmatch(r"\[(\d+) x (.*)\]", kind).group(2)
        step = layout.measure(inner)[0]
        places = [(k * step, inner) for k in range(len(items))]
    else:
        places = layout.fields(kind)
    for (position, inner), item in zip(places, items, strict=False):
        num = layout.measure(inner)[0]
        out[position : position + num] = _initial_bytes(layout, inner, split_type(item)[1], num)
    return out
