"""From a live module to an FX graph whose nodes know their place in the user's source.

Leaves are the ``torch.nn`` modules; everything else is traced through. Nothing is added
to the user's module: tensors made inside ``forward`` are kept by the tracer. What tracing
cannot follow (control flow on values, iteration, ``len``, ``print``) becomes a
CompileError that says where.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import os
import re
import sys
import traceback
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import fx

from ..errors import CompileError
from .floatgraph import Where
from .operators import find_handler
from .problems import Problems, remedy_for

_TORCH_DIR = os.path.dirname(torch.__file__) + os.sep
_OWN_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass
class Trace:
    """An FX graph, the place of every node, and tensors that ``forward`` made by itself."""

    graph: fx.Graph
    where: dict[str, Where] = field(default_factory=dict)
    constants: dict[str, torch.Tensor] = field(default_factory=dict)


class _TracedValue(fx.Proxy):
    """A proxy that records in-place operators as such and refuses to be printed."""

    def __str__(self) -> str:
        raise _Untraceable("printing a traced tensor")

    def __format__(self, spec: str) -> str:
        raise _Untraceable("printing a traced tensor")

    def _inplace(self, function, other):
        return self.tracer.create_proxy("call_function", function, (self, other), {})

    def __iadd__(self, other):
        return self._inplace(operator.iadd, other)

    def __isub__(self, other):
        return self._inplace(operator.isub, other)

    def __imul__(self, other):
        return self._inplace(operator.imul, other)

    def __itruediv__(self, other):
        return self._inplace(operator.itruediv, other)


class _Untraceable(Exception):
    pass


class _Tracer(fx.Tracer):
    proxy_buffer_attributes = True

    def __init__(self) -> None:
        super().__init__()
        self.where: dict[str, Where] = {}
        self.constants: dict[str, torch.Tensor] = {}

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _TracedValue(node, self)

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        if isinstance(m, torch.nn.Sequential):
            return False
        # a parametrised module has a generated class: its base tells what it is
        return type(m).forward.__module__.startswith(("torch.nn.", "torch.ao.nn."))

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None) -> fx.Node:
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        path = target if kind == "call_module" else self.scope.module_path
        file, line = _user_line(sys._getframe(1))
        self.where[node.name] = Where(node.name, path, file, line)
        return node

    def call_module(self, m: torch.nn.Module, forward, args: tuple, kwargs: dict) -> Any:
        if m not in (self.submodule_paths or {}):  # made in forward or kept in a plain list
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, torch.Tensor):
            owned = itertools.chain(self.root.named_parameters(), self.root.named_buffers())
            path = self.tensor_attrs.get(a) or next((n for n, t in owned if t is a), None)
            if path is None:
                path = f"_constant_{len(self.constants)}"
                self.constants[path] = a
                self.tensor_attrs[a] = path
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)


def _is_user_file(filename: str) -> bool:
    return not filename.startswith((_TORCH_DIR, _OWN_DIR, "<"))


def _user_line(frame: FrameType | None) -> tuple[str, int]:
    """File name and line of the innermost frame of the user's forward; ("", 0) if there is none."""
    while frame is not None and frame.f_code is not trace.__code__:
        if _is_user_file(frame.f_code.co_filename):
            return os.path.basename(frame.f_code.co_filename), frame.f_lineno
        frame = frame.f_back
    return "", 0


def trace(model: torch.nn.Module, num_inputs: int | None = None) -> Trace:
    """Trace ``model.forward`` as its class defines it.

    Parameters
    ----------
    model : the module; its mode (training or eval) is what ``self.training`` will be.
    num_inputs : positional inputs; parameters of forward behind them take their defaults.
        None: all parameters without a default are inputs.

    Raises
    ------
    CompileError
        The forward does something that cannot be traced, or has other parameters.
    """
    tracer = _Tracer()
    if tracer.is_leaf_module(model, ""):
        return _trace_leaf(model, num_inputs)
    defaults = _default_arguments(model, num_inputs)
    try:
        graph = tracer.trace(model, concrete_args=defaults or None)
    except Exception as error:
        raise _trace_error(error, tracer) from error
    return Trace(graph, tracer.where, tracer.constants)


def _trace_leaf(model: torch.nn.Module, num_inputs: int | None) -> Trace:
    """A model that is one torch.nn layer: a call of the module with the empty path."""
    if num_inputs not in (None, 1):
        raise CompileError(_wrong_count(type(model).__name__, "1", "input", num_inputs))
    graph = fx.Graph()
    x = graph.placeholder("input")
    name = type(model).__name__.lower()
    call = graph.create_node("call_module", "", (x,), {}, name=name)
    graph.output(call)
    return Trace(graph, {node.name: Where(node.name) for node in graph.nodes})


def _default_arguments(model: torch.nn.Module, num_inputs: int | None) -> dict[str, Any]:
    parameters = list(inspect.signature(type(model).forward).parameters.values())[1:]
    positional = [p for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    required = [p for p in positional if p.default is p.empty]
    starred = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    count = len(required) if num_inputs is None else num_inputs
    name = type(model).__name__
    if starred:
        raise CompileError(
            f"{name}.forward takes *args, which cannot be traced; give every input a name"
        )
    if count < len(required) or count > len(positional):
        names = ", ".join(p.name for p in positional)
        least, most = len(required), len(positional)
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise CompileError(_wrong_count(name, wanted, names, count))
    skipped = positional[count:] + [p for p in parameters if p.kind == p.KEYWORD_ONLY]
    return {p.name: p.default for p in skipped}


def _wrong_count(name: str, wanted: str, names: str, given: int | None) -> str:
    return (
        f"{name}.forward takes {wanted} inputs ({names}), {given} samples were given; "
        f"give one sample array per input, in this order"
    )


_EXPLANATIONS = (  # pattern in the error's text, what, remedy
    ("cannot be iterated", "iterating over a traced tensor",
     "loop over a constant number of times or over modules"),
    ("control flow", "control flow on the value of a tensor",
     "decide on constants of the module (self.…), or end the compiled model before it"),
    ("'len' is not supported", "len() of a traced tensor",
     "use a constant, or x.size(0) for the batch"),
    ("printing", "printing a traced tensor", "remove the print from forward"),
    ("'(Proxy|Attribute|_TracedValue)'", "a Python number made of a traced tensor",
     "use a constant of the module instead"),
)  # fmt: skip


def _trace_error(error: Exception, tracer: _Tracer) -> CompileError:
    """The error of a failed trace: the user's innermost line, and what was refused before it."""
    place = ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_user_file(frame.filename):
            place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
            break
    stack = list(getattr(tracer, "module_stack", {}).values())  # not unwound after an error
    path = stack[-1][0] if stack else ""
    where = ", ".join(part for part in (path and f"({path})", place) if part)
    problems = Problems()
    for node in tracer.graph.nodes:  # what came before it, on other lines
        origin = tracer.where[node.name]
        if node.op.startswith("call_") and f"{origin.file}:{origin.line}" != place:
            name, handler = find_handler(tracer.root, node)
            if handler is None:
                problems.add(origin, f"{name} is not supported", remedy_for(name))
    problems.add(where, *_explain(error))
    return CompileError(problems.text())


def _explain(error: Exception) -> tuple[str, str]:
    """What is not possible, and the remedy."""
    text = str(error)
    for pattern, what, remedy in _EXPLANATIONS:
        if re.search(pattern, text):
            return f"{what} is not supported", remedy
    first = text.split("\n")[0]
    return (
        f"the forward cannot be traced ({type(error).__name__}: {first})",
        "make it a fixed sequence of tensor operations",
    )
