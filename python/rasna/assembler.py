"""Programs as text, and a builder that lays out instructions and their streams.

The text form, one item per line, ``;`` starts a comment, numbers as in Python::

    .target tiny                 ; directives describe a test case and are optional
    .scratch 4                   ; words of the SCRATCH segment
    .input 0x0807060504030201    ; words of the INPUT segment, may be repeated
    .output 0x1010101010101010   ; expected words of the OUTPUT segment, may be repeated

    FILL fill=0 num_words=24 num_blocks=1
    TABLE stream=offsets
    TAPS encoding=1 table_entries=16 num_channels=1 ... stream=conv1
    END

    table offsets                ; a stream of TABLE: one entry per line
      offset=0 is_signed=1       ; lane_mask is 0xff unless given
      offset=1 is_signed=1
    curve silu                   ; a stream of CURVE: bytes 0 to 255
      0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7
    channels conv1               ; a stream of TAPS: a record, then its list
      bias=-5 src_base=8 multiplier=1 shift=1 out_channel=0
        taps 0:17 3:-4           ; position:weight
        taps 40:1

Fields that are not written are 0. ``stream=`` sets stream_addr and the field of the length, a
list sets num_codes and list_words. A record without a ``taps`` line has an empty list, or
takes part in the shared one when the instruction says list_shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import isa
from .encoding import (
    channel_record,
    codes_per_word,
    decode_list,
    encode_list,
    instruction,
    unpack_arrays,
)
from .errors import RasnaValueError

_STREAM_FIELDS = ("stream_addr", *(f for f in isa.STREAMS.values() if isinstance(f, str)))
_SECTIONS = {
    isa.Opcode.TABLE: "table", isa.Opcode.TAPS: "channels", isa.Opcode.CURVE: "curve"
}


class ProgramBuilder:
    """Collects instructions and streams; :meth:`words` gives the PROGRAM segment.

    Layout: the instructions, END included, then the streams in the order of their first use.
    Equal streams are stored once.
    """

    def __init__(self) -> None:
        self._instructions: list[tuple[isa.Opcode, dict[str, int], int | None]] = []
        self._streams: list[np.ndarray] = []
        self._known: dict[bytes, int] = {}

    @property
    def num_instructions(self) -> int:
        """Instructions so far, without END."""
        return len(self._instructions)

    def add(
        self, opcode: isa.Opcode, stream: np.ndarray | None = None, **fields: int
    ) -> int:
        """Append an instruction and return its number.

        stream : uint64 (N,), for TABLE the entries, for TAPS the records and lists;
            for CURVE its words; stream_addr and the field of the length are set from it.
        """
        index = None
        if stream is not None:
            stream = np.ascontiguousarray(stream, np.uint64)
            index = self._known.setdefault(stream.tobytes(), len(self._streams))
            if index == len(self._streams):
                self._streams.append(stream)
            length = isa.STREAMS[opcode]
            if isinstance(length, str):
                fields = {**fields, length: stream.size}
            elif stream.size != length:
                raise RasnaValueError(
                    f"{opcode.name}: its stream has {length} words, {stream.size} were given"
                )
        isa.encode(opcode, **fields)  # refuses bad fields here, where the caller is
        self._instructions.append((opcode, fields, index))
        return len(self._instructions) - 1

    def words(self) -> np.ndarray:
        """The program, uint64 (N,); END is appended."""
        sizes = [s.size for s in self._streams]
        first = (len(self._instructions) + 1) * isa.INSTRUCTION_WORDS
        address = first + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        parts = []
        for opcode, fields, index in self._instructions:
            if index is not None:
                fields = {**fields, "stream_addr": int(address[index])}
            parts.append(instruction(opcode, **fields))
        parts.append(instruction(isa.Opcode.END))
        return np.concatenate(parts + self._streams)


@dataclass
class Assembly:
    """An assembled text: the program and, from the directives, a test case."""

    words: np.ndarray
    target: str = ""
    inputs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    outputs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    scratch_words: int = 0


def assemble(text: str) -> Assembly:
    """Translate the text form. Raises RasnaValueError that names the line."""
    parser = _Parser()
    for number, line in enumerate(text.splitlines(), 1):
        tokens = line.split(";")[0].split()
        if not tokens:
            continue
        try:
            parser.line(tokens)
        except (ValueError, KeyError) as error:
            raise RasnaValueError(f"line {number}: {line.strip()!r}: {error}") from None
    return parser.finish()


class _Parser:
    def __init__(self) -> None:
        self.case: dict[str, list[int]] = {"input": [], "output": []}
        self.target, self.scratch = "", 0
        self.instructions: list[tuple[isa.Opcode, dict[str, int], str | None]] = []
        self.tables: dict[str, list[dict[str, int]]] = {}
        self.curves: dict[str, list[int]] = {}
        self.channels: dict[str, list[dict]] = {}
        self.section: tuple[str, str] | None = None

    def line(self, tokens: list[str]) -> None:
        head = tokens[0]
        if head.startswith("."):
            self._directive(head[1:], tokens[1:])
        elif head in isa.Opcode.__members__:
            values, stream = _assignments(tokens[1:])
            self.instructions.append((isa.Opcode[head], values, stream))
        elif head in ("table", "channels", "curve") and len(tokens) == 2:
            self.section = (head, tokens[1])
            self._sections(head)[tokens[1]] = []
        elif self.section is None:
            raise ValueError(f"{head!r} is neither an opcode nor a directive nor a section")
        elif self.section[0] == "table":
            self.tables[self.section[1]].append(_assignments(tokens)[0])
        elif self.section[0] == "curve":
            self.curves[self.section[1]] += [int(token, 0) for token in tokens]
        elif head == "taps":
            self._taps(tokens[1:], self.channels[self.section[1]])
        else:
            self.channels[self.section[1]].append({"record": _assignments(tokens)[0], "taps": []})

    def _sections(self, kind: str) -> dict[str, list]:
        sections: dict[str, dict[str, list]] = {
            "table": self.tables, "channels": self.channels, "curve": self.curves
        }
        return sections[kind]

    def _directive(self, name: str, values: list[str]) -> None:
        if name == "target" and len(values) == 1:
            self.target = values[0]
        elif name == "scratch" and len(values) == 1:
            self.scratch = int(values[0], 0)
        elif name in self.case:
            self.case[name] += [int(v, 0) for v in values]
        else:
            raise ValueError("the directives are .target, .scratch, .input and .output")

    def _taps(self, pairs: list[str], channels: list[dict]) -> None:
        if not channels:
            raise ValueError("a record must come before its taps")
        for pair in pairs:
            position, _, weight = pair.partition(":")
            channels[-1]["taps"].append((int(position, 0), int(weight, 0)))

    def finish(self) -> Assembly:
        builder = ProgramBuilder()
        for opcode, values, name in self.instructions:
            if opcode is isa.Opcode.END:
                continue
            stream = None if name is None else self._stream(opcode, values, name)
            builder.add(opcode, stream, **values)
        return Assembly(
            builder.words(), self.target, np.array(self.case["input"], np.uint64),
            np.array(self.case["output"], np.uint64), self.scratch,
        )

    def _stream(self, opcode: isa.Opcode, values: dict[str, int], name: str) -> np.ndarray:
        known = self._sections(_SECTIONS.get(opcode, "channels"))
        if name not in known:
            raise RasnaValueError(f"{opcode.name} stream={name}: there is no such section")
        if opcode is isa.Opcode.TABLE:
            return _table_stream(known[name])
        if opcode is isa.Opcode.CURVE:
            return _curve_stream(name, known[name])
        return _channel_stream(
            known[name], values.get("encoding", 0), bool(values.get("list_shared", 0))
        )


def _assignments(tokens: list[str]) -> tuple[dict[str, int], str | None]:
    """name=number tokens; ``stream=name`` apart."""
    values: dict[str, int] = {}
    stream = None
    for token in tokens:
        name, equals, value = token.partition("=")
        if not equals:
            raise ValueError(f"{token!r} is not of the form name=value")
        if name == "stream":
            stream = value
        else:
            values[name] = int(value, 0)
    return values, stream


def _table_stream(entries: list[dict[str, int]]) -> np.ndarray:
    rows = [isa.pack(isa.TABLE_ENTRY, 1, "table entry", **{"lane_mask": 0xFF, **e})
            for e in entries]
    return np.array(rows, np.uint64).ravel()


def _curve_stream(name: str, values: list[int]) -> np.ndarray:
    if len(values) != isa.CURVE_ENTRIES or not 0 <= min(values) <= max(values) <= 255:
        raise RasnaValueError(
            f"curve {name}: {isa.CURVE_ENTRIES} bytes of 0 to 255 are needed, "
            f"{len(values)} numbers were given"
        )
    return np.array(values, np.uint8).view("<u8").astype(np.uint64)


def _channel_stream(channels: list[dict], encoding: int, shared: bool) -> np.ndarray:
    parts, shared_codes = [], 0
    for n, channel in enumerate(channels):
        positions = [p for p, _ in channel["taps"]]
        weights = [w for _, w in channel["taps"]]
        words, num_codes = encode_list(np.array(weights, np.int8), positions, encoding)
        if shared and n:
            num_codes = shared_codes
        shared_codes = num_codes
        record = {"num_codes": num_codes, "list_words": words.size, **channel["record"]}
        parts += [channel_record(**record), words]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def disassemble(words: np.ndarray) -> str:
    """The text form of a program; ``assemble`` gives the same words back.

    words : uint64 (N,), a program laid out by :class:`ProgramBuilder`

    Raises ValueError when an instruction cannot be decoded or END is missing.
    """
    words = np.asarray(words, np.uint64)
    lines: list[str] = []
    sections: dict[tuple[int, int, str], list[str]] = {}
    for at in range(0, words.size - isa.INSTRUCTION_WORDS + 1, isa.INSTRUCTION_WORDS):
        opcode, fields = isa.decode(words[at : at + isa.INSTRUCTION_WORDS])
        hidden: tuple[str, ...] = ()
        text = opcode.name
        if isa.has_stream(opcode):
            name = _section(words, opcode, fields, sections)
            hidden = _STREAM_FIELDS
            text += f" stream={name}"
        lines.append(text + _nonzero(fields, hidden))
        if opcode is isa.Opcode.END:
            return "\n".join(lines + [""] + [x for s in sections.values() for x in s]) + "\n"
    raise RasnaValueError(f"the program of {words.size} words has no END instruction")


def _nonzero(fields: dict[str, int], hidden: tuple[str, ...] = ()) -> str:
    return "".join(f" {k}={v}" for k, v in fields.items() if v and k not in hidden)


def _section(words, opcode, fields, sections) -> str:
    length = isa.stream_length(opcode, fields)
    address = fields["stream_addr"]
    if address + length > words.size:
        raise RasnaValueError(f"{opcode.name}: its stream leaves the program")
    kind = _SECTIONS[opcode]
    how = f" {fields['encoding']} {fields['list_shared']}" if kind == "channels" else ""
    key = (address, length, kind + how)
    name = f"{kind}_{address}"
    if key not in sections:
        stream = words[address : address + length]
        if kind == "channels":
            body = _channel_text(stream, fields)
        else:
            body = _table_text(stream) if kind == "table" else _curve_text(stream)
        sections[key] = [f"{kind} {name}", *body]
    return name


def _curve_text(stream: np.ndarray) -> list[str]:
    values = np.ascontiguousarray(stream, "<u8").view(np.uint8).tolist()
    return ["  " + " ".join(map(str, values[i : i + 16])) for i in range(0, len(values), 16)]


def _table_text(stream: np.ndarray) -> list[str]:
    columns = unpack_arrays(isa.TABLE_ENTRY, stream[:, None])
    lines = []
    for i in range(stream.size):
        entry = {name: int(column[i]) for name, column in columns.items()}
        mask = entry.pop("lane_mask")
        text = f"  offset={entry.pop('offset')}" + _nonzero(entry)
        lines.append(text + ("" if mask == 0xFF else f" lane_mask={mask:#x}"))
    return lines


def _channel_text(stream: np.ndarray, fields: dict[str, int]) -> list[str]:
    lines, at, n = [], 0, 0
    while at < stream.size:
        head = stream[at : at + isa.CHANNEL_RECORD_WORDS]
        record = isa.unpack(isa.CHANNEL_RECORD, head)
        at += isa.CHANNEL_RECORD_WORDS
        lines.append("  bias=" + str(record["bias"]) + _nonzero(
            record, ("bias", "num_codes", "list_words")))
        length = record["list_words"]
        if not (n and fields["list_shared"]):
            if length != -(-record["num_codes"] // codes_per_word(fields["encoding"])):
                raise RasnaValueError(f"channel {n}: num_codes and list_words do not agree")
            weight, position = decode_list(
                stream[at : at + length], record["num_codes"], fields["encoding"]
            )
            pairs = [f"{p}:{w}" for p, w in zip(position, weight, strict=True)]
            lines += ["    taps " + " ".join(pairs[i : i + 12]) for i in range(0, len(pairs), 12)]
        at += length
        n += 1
    return lines


__all__ = ["Assembly", "ProgramBuilder", "assemble", "disassemble"]
