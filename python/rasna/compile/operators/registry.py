"""Tables of handlers, the values they work on, and helpers that several families share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx

from ...structure import record_kind
from .. import floatgraph as fg

FUNCTIONS: dict[Callable, Callable] = {}
METHODS: dict[str, Callable] = {}
MODULES: dict[type, Callable] = {}
BY_NAME: dict[str, Callable] = {}  # functions of packages that need not be installed
TAKES_CONSTANTS: set[Callable] = set()  # as first argument, beside a computed tensor


@dataclass(frozen=True)
class Value:
    """A tensor that the model computes: the name of its node, its shape without the batch."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """A named tuple, dataclass or model output that the model makes. fields: what is known."""

    kind: type
    fields: dict[str, Any]


class _Batch:
    """The batch size: it may be passed to ``view`` and ``reshape``, and to nothing else."""

    def __repr__(self) -> str:
        return "batch size"


BATCH = _Batch()


def register(
    functions: Iterable[Callable] = (), methods: Iterable[str] = (), constants: bool = False
) -> Callable:
    """Decorator: the handler serves these functions and these tensor methods.

    constants: its first argument may be a parameter or constant.
    """

    def decorate(handler: Callable) -> Callable:
        if constants:
            TAKES_CONSTANTS.add(handler)
        FUNCTIONS.update(dict.fromkeys(functions, handler))
        METHODS.update(dict.fromkeys(methods, handler))
        return handler

    return decorate


def register_module(*types: type) -> Callable:
    """Decorator: the handler ``(context, module, path, *inputs)`` serves these module classes."""

    def decorate(handler: Callable) -> Callable:
        MODULES.update(dict.fromkeys(types, handler))
        return handler

    return decorate


def pair(value: Any) -> tuple[int, int]:
    """(height, width) of an int, or of a sequence of one or two."""
    if isinstance(value, int):
        return (value, value)
    items = tuple(int(v) for v in value)
    return (items[0], items[0]) if len(items) == 1 else (items[0], items[1])


def single(value: Any) -> int:
    """The number of an int, or of a sequence of one."""
    return int(value) if isinstance(value, int) else int(value[0])


def describe(shape: tuple[int, ...]) -> str:
    """A shape as users see it, batch first: ``(batch, 3, 8, 8)``."""
    return f"({', '.join(['batch', *map(str, shape)])})"


def host_step(
    ctx: Any, input: Value, kind: str, shape: tuple[int, ...] | None = None, *,
    channels: bool = True, suffix: str = "", **attributes: Any,
) -> Value:  # fmt: skip
    """A step behind the accelerator (``fg.Host``); without a shape that of its input.

    channels: dimension 1 of the result holds channels, if it does so in the input. attributes: of
    the kind; those that are called as a parameter here get an underscore behind their names.
    """
    before = ctx.graph.nodes[input.name].op
    kept, dtype = True, torch.float32
    if isinstance(before, fg.Host):
        kept = before.channels
        dtype = before.dtype if kind in ("reshape", "take") else dtype
    named = tuple((name.rstrip("_"), value) for name, value in attributes.items())
    op = fg.Host(kind, named, dtype, channels and kept)
    return ctx.add(op, [input], input.shape if shape is None else shape, suffix)


def _make_record(kind: type, ctx: Any, **fields: Any) -> Record:
    return Record(kind, fields)


def find_handler(root: torch.nn.Module, node: fx.Node) -> tuple[str, Callable | None]:
    """The name that a user knows for the called thing, and its handler if there is one.

    A module is served by the handler of the class that defines its forward.
    """
    target: Any = node.target
    if node.op == "call_method":
        return target, METHODS.get(target)
    if node.op == "call_function" and record_kind(target):
        return target.__name__, partial(_make_record, target)
    if node.op == "call_function":
        name = getattr(target, "__name__", str(target))
        return name, FUNCTIONS.get(target) or BY_NAME.get(name)
    module: Any = root.get_submodule(target)
    bases: Any = type(module).__mro__
    for base in bases:
        if base in MODULES and type(module).forward is base.forward:
            return base.__name__, MODULES[base]
    return type(module).__name__, None
