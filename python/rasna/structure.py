"""How the outputs of a model are nested: plain data, and the containers made of it again.

A structure is an int (index of an output), None (the model returns None there),
{"tuple": [...]}, {"list": [...]}, {"dict": {key: ...}}, or a record, {kind: [name, {field: ...}]}
with one of the kinds below. A Program holds the structure alone, never a class of the user: a
runtime makes a class of the same kind, name and fields, which needs no import of the user's code.

=============  ================================================  ==========================
kind           the user's class                                  access
=============  ================================================  ==========================
namedtuple     collections.namedtuple, typing.NamedTuple         y.a, y[0], a, b = y
dataclass      dataclasses.dataclass                             y.a
model_output   a dict that is a dataclass, as ModelOutput of     y.a, y["a"], y[0]
               Hugging Face's transformers
=============  ================================================  ==========================
"""

from __future__ import annotations

import dataclasses
import keyword
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

Structure = int | dict | None
RECORDS = ("namedtuple", "dataclass", "model_output")


def record_kind(kind: Any) -> str | None:
    """Which kind of record a class is; None for all others, and for what is no class."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, tuple):
        return "namedtuple" if hasattr(kind, "_fields") else None
    if not dataclasses.is_dataclass(kind):
        return None
    return "model_output" if issubclass(kind, dict) else "dataclass"


def record_fields(record: Any) -> dict[str, Any]:
    """The fields of a record that its class takes, by name; of a model output those that it has."""
    kind = record_kind(type(record))
    if kind == "namedtuple":
        return dict(zip(record._fields, record, strict=True))
    if kind == "model_output":
        return dict(record.items())
    return {f.name: getattr(record, f.name) for f in dataclasses.fields(record) if f.init}


def is_name(name: Any) -> bool:
    """Whether a text can be the name of a record."""
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


def is_field(kind: str, name: Any) -> bool:
    """Whether a text can be the name of a field in this kind of record."""
    reserved = "_" if kind == "namedtuple" else "__"
    return is_name(name) and not name.startswith(reserved)


def children(structure: Structure) -> list[Structure]:
    """The structures inside of one, from left to right."""
    if not isinstance(structure, dict):
        return []
    ((kind, parts),) = structure.items()
    if kind in RECORDS:
        parts = parts[1]
    return list(parts.values()) if isinstance(parts, dict) else list(parts)


def leaves(structure: Structure) -> Iterator[int]:
    """The indices of outputs, from left to right."""
    if isinstance(structure, int):
        yield structure
    for child in children(structure):
        yield from leaves(child)


def nest(
    structure: Structure, outputs: Sequence[Any], classes: Mapping[tuple, type] | None = None
) -> Any:
    """The outputs in the nesting of the model.

    classes: the user's own classes of records, by :func:`record_key`; without them a record gets
    a class made from its name and fields.
    """
    if not isinstance(structure, dict):
        return None if structure is None else outputs[structure]
    ((kind, parts),) = structure.items()
    if kind in RECORDS:
        name, fields = parts
        values = {key: nest(child, outputs, classes) for key, child in fields.items()}
        own = (classes or {}).get(record_key(kind, name, fields))
        return own(**values) if own is not None else _make(kind, name, values)
    if kind == "dict":
        return {key: nest(child, outputs, classes) for key, child in parts.items()}
    nested = [nest(child, outputs, classes) for child in parts]
    return tuple(nested) if kind == "tuple" else nested


def record_key(kind: str, name: str, fields: Mapping[str, Any] | Sequence[str]) -> tuple:
    """What tells the classes of records in one structure apart."""
    return (kind, name, *fields)


class _ModelOutput(dict):
    """A dict whose values are attributes too, and can be had by number."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, slice)):
            return list(self.values())[key]
        return super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no output {name!r}") from None

    def to_tuple(self) -> tuple:
        """The values in order."""
        return tuple(self.values())


@lru_cache(maxsize=256)
def _class(kind: str, name: str, fields: tuple[str, ...]) -> type:
    """A class of a record, which pickles by its parts: no module holds it."""
    if kind == "namedtuple":
        made: Any = namedtuple(name, fields)  # noqa: PYI024
    elif kind == "dataclass":
        made = dataclasses.make_dataclass(name, fields, eq=False)
    else:
        made = type(name, (_ModelOutput,), {})
    made.__reduce_ex__ = lambda self, protocol: (_make, (kind, name, record_values(self, fields)))
    return made


def record_values(record: Any, fields: Sequence[str]) -> dict[str, Any]:
    """The values of a record's fields."""
    return {field: getattr(record, field) for field in fields}


def _make(kind: str, name: str, values: dict[str, Any]) -> Any:
    return _class(kind, name, tuple(values))(**values)
