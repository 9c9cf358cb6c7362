"""The manifest of a ``.rasna`` file: a Program as JSON values, and back, checked."""

from __future__ import annotations

import dataclasses
import re
from math import prod
from typing import Any

import numpy as np

from ..errors import RasnaFileError
from ..graph import FixedPoint
from ..structure import RECORDS, Structure, is_field, is_name
from .host import read_steps, steps_to_json
from .ports import PortInfo
from .program import Program

FORMAT_VERSION = 2

MAX_SEGMENT_WORDS = 1 << 27  # 1 GiB; one image needs far less
_MAX_NESTING = 32
_LAYER_TEXTS = ("name", "operation", "mapping", "output")
_LAYER_COUNTS = (
    "weights", "nonzeros", "macs", "cycles", "bytes", "first_instruction", "num_instructions",
    "checksum",
)


def program_to_manifest(program: Program) -> dict[str, Any]:
    """All of a Program but its arrays, as values that JSON can hold."""
    return {
        "format": "rasna",
        "format_version": FORMAT_VERSION,
        "isa_version": program.isa_version,
        "compiler_version": program.compiler_version,
        "target": program.target,
        "config_hash": program.config_hash,
        "input_words": program.input_words,
        "output_words": program.output_words,
        "scratch_words": program.scratch_words,
        "inputs": [_port_to_json(port) for port in program.inputs],
        "outputs": [_port_to_json(port) for port in program.outputs],
        "host_steps": steps_to_json(program.host_steps),
        "results": program.results,
        "structure": _structure_to_json(program.structure),
        "channel_last": program.channel_last,
        "layers": [{k: _plain(v) for k, v in layer.items()} for layer in program.layers],
        "selfcheck_seed": program.selfcheck_seed,
    }


def _port_to_json(port: PortInfo) -> dict[str, Any]:
    return {
        "name": port.name, "shape": list(port.shape), "tensor_shape": list(port.tensor_shape),
        "layout": port.layout, "dtype": port.dtype.name, "type": dataclasses.asdict(port.type),
        "word_offset": port.word_offset,
    }


def _plain(value: Any) -> Any:
    """NumPy scalars and tuples as plain Python values."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def program_from_manifest(
    manifest: dict[str, Any], arrays: dict[str, np.ndarray], source: str
) -> Program:
    """Check every value and build the Program. Raises RasnaFileError that names the value."""
    read = Reader(manifest, source, "manifest")
    words = {
        name: read.integer(name, 0, MAX_SEGMENT_WORDS)
        for name in ("input_words", "output_words", "scratch_words")
    }
    inputs = _read_ports(read, "inputs", words["input_words"])
    outputs = _read_ports(read, "outputs", words["output_words"])
    config_hash = read.text("config_hash")
    if not re.fullmatch("[0-9a-f]{16}", config_hash):
        raise read.error("config_hash", "16 hexadecimal digits")
    expected = arrays.get("expected.bin")
    if expected is not None and expected.size != words["output_words"]:
        raise read.error("output_words", f"{expected.size}, the size of expected.bin")
    host_steps, results = read_steps(read, outputs)
    return Program(
        target=read.text("target"), config_hash=config_hash, words=arrays["program.bin"],
        inputs=inputs, outputs=outputs,
        host_steps=host_steps, results=results,
        structure=_StructureReader(read, len(results)).parse(manifest.get("structure")),
        channel_last=read.flag("channel_last"), layers=_read_layers(read),
        selfcheck_seed=read.integer("selfcheck_seed", 0, (1 << 63) - 1),
        selfcheck_expected=expected,
        isa_version=read.integer("isa_version", 0, 1 << 31),
        compiler_version=read.text("compiler_version"), **words,
    )


class Reader:
    """Typed access to the values of a JSON object."""

    def __init__(self, values: Any, source: str, where: str) -> None:
        self.source, self.where = source, where
        if not isinstance(values, dict):
            raise RasnaFileError(f"{source}: {where} must be a table of names and values")
        self.values = values

    def error(self, name: str, needed: str) -> RasnaFileError:
        text = repr(self.values[name]) if name in self.values else ""
        text = text if len(text) <= 60 else text[:57] + "..."
        given = f"is {text}" if text else "it is missing"
        return RasnaFileError(f"{self.source}: {self.where}: {name} must be {needed}, {given}")

    def integer(self, name: str, lo: int, hi: int) -> int:
        value = self.values.get(name)
        if type(value) is not int or not lo <= value <= hi:
            raise self.error(name, f"an integer from {lo} to {hi}")
        return value

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str) or len(value) > 10_000:
            raise self.error(name, "a text")
        return value

    def flag(self, name: str) -> bool:
        if not isinstance(self.values.get(name), bool):
            raise self.error(name, "true or false")
        return self.values[name]

    def items(self, name: str, limit: int) -> list:
        value = self.values.get(name)
        if not isinstance(value, list) or len(value) > limit:
            raise self.error(name, f"a list of at most {limit} entries")
        return value

    def shape(self, name: str) -> tuple[int, ...]:
        value = self.items(name, 8)
        if not value or not all(type(n) is int and 0 < n <= MAX_SEGMENT_WORDS for n in value):
            raise self.error(name, "a list of 1 to 8 positive integers")
        return tuple(value)


def _read_ports(read: Reader, kind: str, segment_words: int) -> list[PortInfo]:
    """Ports that follow one another and fill their segment exactly."""
    ports, at = [], 0
    for index, values in enumerate(read.items(kind, 4096)):
        port = _read_port(Reader(values, read.source, f"manifest: {kind}[{index}]"), at)
        ports.append(port)
        at += port.num_words
    if not ports:
        raise read.error(kind, "a list that is not empty")
    if at != segment_words:
        name = {"inputs": "input_words", "outputs": "output_words"}[kind]
        raise read.error(name, f"{at}, the words of all {kind}")
    return ports


def _read_port(read: Reader, offset: int) -> PortInfo:
    shape, tensor_shape = read.shape("shape"), read.shape("tensor_shape")
    if len(tensor_shape) != 3 or prod(shape) != prod(tensor_shape):
        raise read.error("tensor_shape", f"three sizes with as many elements as {list(shape)}")
    kind = Reader(read.values.get("type"), read.source, read.where + ".type")
    type_ = FixedPoint(
        kind.integer("bits", 2, 8), kind.integer("frac", -1000, 1000), kind.flag("signed")
    )
    if read.text("dtype") != type_.dtype.name:
        raise read.error("dtype", f"{type_.dtype.name} as its type says")
    port = PortInfo(
        read.text("name"), shape, tensor_shape, type_,  # type: ignore[arg-type]
        read.integer("word_offset", offset, offset),
    )
    if read.text("layout") != port.layout:
        raise read.error("layout", port.layout)
    return port


def _structure_to_json(node: Structure) -> Any:
    """Dicts become lists of pairs: JSON would turn keys into texts and lose their order."""
    if not isinstance(node, dict):
        return None if node is None else int(node)
    ((kind, parts),) = node.items()
    if kind in RECORDS:
        name, fields = parts
        return {kind: [name, _pairs_to_json(fields)]}
    if kind == "dict":
        return {kind: _pairs_to_json(parts)}
    return {kind: [_structure_to_json(child) for child in parts]}


def _pairs_to_json(parts: dict[str, Structure]) -> list[list]:
    return [[key, _structure_to_json(child)] for key, child in parts.items()]


class _StructureReader:
    """The structure of the outputs, checked."""

    def __init__(self, read: Reader, num_outputs: int) -> None:
        self.read, self.num_outputs = read, num_outputs

    def _error(self) -> RasnaFileError:
        return self.read.error(
            "structure",
            f"tuples, lists, dicts and records of numbers below {self.num_outputs} and of null",
        )

    def parse(self, node: Any, depth: int = 0) -> Structure:
        if depth > _MAX_NESTING:
            raise self.read.error("structure", f"nested at most {_MAX_NESTING} deep")
        if node is None and depth:
            return None
        if type(node) is int and 0 <= node < self.num_outputs:
            return node
        if not isinstance(node, dict) or len(node) != 1:
            raise self._error()
        ((kind, parts),) = node.items()
        if kind in RECORDS:
            return {kind: self._record(kind, parts, depth)}
        if kind not in ("tuple", "list", "dict") or not isinstance(parts, list):
            raise self._error()
        if kind == "dict":
            return {kind: self._pairs(parts, depth)}
        return {kind: [self.parse(child, depth + 1) for child in parts]}

    def _record(self, kind: str, parts: Any, depth: int) -> list:
        if not isinstance(parts, list) or len(parts) != 2 or not is_name(parts[0]):
            raise self._error()
        fields = self._pairs(parts[1], depth)
        if not all(is_field(kind, field) for field in fields) or len(fields) != len(parts[1]):
            raise self._error()
        return [parts[0], fields]

    def _pairs(self, parts: Any, depth: int) -> dict[str, Structure]:
        pairs = isinstance(parts, list) and all(
            isinstance(p, list) and len(p) == 2 and isinstance(p[0], (str, int)) for p in parts
        )
        if not pairs:
            raise self._error()
        return {key: self.parse(child, depth + 1) for key, child in parts}


def _read_layers(read: Reader) -> list[dict[str, Any]]:
    layers = []
    for index, values in enumerate(read.items("layers", 100_000)):
        layer = Reader(values, read.source, f"manifest: layers[{index}]")
        layer.text("name")
        for name in layer.values:
            if name in _LAYER_TEXTS:
                layer.text(name)
            elif name in _LAYER_COUNTS:
                layer.integer(name, 0, (1 << 63) - 1)
            elif name == "output_shape":
                layer.shape(name)
            elif name == "input_shapes":
                shapes = layer.items(name, 4096)
                for i, shape in enumerate(shapes):
                    Reader({name: shape}, read.source, f"{layer.where}[{i}]").shape(name)
            else:
                raise RasnaFileError(f"{read.source}: {layer.where} has an unknown entry {name!r}")
        layers.append(layer.values)
    return layers
