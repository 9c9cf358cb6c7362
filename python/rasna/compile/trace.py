"""From a live module to an FX graph whose nodes know their place in the user's source.

Leaves are the ``torch.nn`` modules; everything else is traced through. Nothing is added
to the user's module: tensors made inside ``forward`` are kept by the tracer. What tracing
cannot follow (control flow on values, iteration, ``len``, ``print``) becomes a
CompileError that says where.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import operator
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import fx

from ..errors import CompileError
from ..structure import record_fields, record_kind
from .floatgraph import Const, Param, Where, fetch
from .operators import find_handler
from .problems import Problem, Problems, remedy_for, shorten
from .sizes import DependsOnValues, condition, length, reads_sizes_only

_TORCH_DIR = os.path.dirname(torch.__file__) + os.sep
MAX_PROBLEMS = 100  # of one trace: beyond it, a loop does not end
MAX_TURNS = 8  # of a loop whose condition cannot be computed
_OWN_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True)
class Call:
    """A call of a module. result: nodes in nested tuples, lists and dicts.

    num_nodes, num_problems: of the graph and noted by the tracer, when it returned.
    """

    result: Any
    num_nodes: int
    num_problems: int


@dataclass
class Trace:
    """An FX graph, the place of every node, and tensors that ``forward`` made by itself.

    Attributes
    ----------
    constants : dict
        Tensors by the path of their get_attr node.
    problems : list of (int, Problem)
        What could not be traced, each behind so many nodes of the graph: first what the
        tracer noted, then the calls of opaque modules.
    opaque : set of str
        Paths of modules whose forward could not be traced: calls of them as a whole.
    results : dict
        Module path to its calls.
    complete : bool
        False if the trace ended at a problem: the graph has no output node then.
    """

    graph: fx.Graph
    where: dict[str, Where] = field(default_factory=dict)
    constants: dict[str, torch.Tensor] = field(default_factory=dict)
    problems: list[tuple[int, Problem]] = field(default_factory=list)
    opaque: set[str] = field(default_factory=set)
    results: dict[str, list[Call]] = field(default_factory=dict)
    complete: bool = True


class _TracedValue(fx.Proxy):
    """A proxy that records in-place operators as such and refuses to be printed."""

    def __str__(self) -> str:
        return self.tracer.note("printing")

    def __format__(self, spec: str) -> str:
        return self.tracer.note("printing")

    def __len__(self) -> int:
        self.tracer.note("'len' is not supported")
        return 1

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
    """Notes what cannot be traced and goes on where it can, so that the rest is seen too."""

    proxy_buffer_attributes = True

    def __init__(self, opaque: set[str], samples: Sequence[torch.Tensor] | None = None) -> None:
        super().__init__()
        self.samples = samples
        self.asked: Counter[tuple[str, int]] = Counter()  # places of conditions on sizes
        self.where: dict[str, Where] = {}
        self.constants: dict[str, torch.Tensor] = {}
        self.opaque = opaque
        self.problems: list[tuple[int, Problem]] = []
        self.results: dict[str, list[Call]] = {}
        self.failed: str | None = None  # path of the innermost module with an exception

    def note(self, text: str, frame: FrameType | None = None) -> str:
        """Add the problem that ``text`` explains, at the user's present line."""
        file, line = _user_line(frame or sys._getframe(2))
        where = Where("", self.scope.module_path, file, line)
        self.problems.append((len(self.graph.nodes), _problem(where, *_explain(text))))
        if len(self.problems) > MAX_PROBLEMS:
            raise _Untraceable("control flow without an end")
        return ""

    def to_bool(self, obj: fx.Proxy) -> bool:
        """Control flow: on sizes it is decided; on a value it is noted, and the branch taken once.

        Without samples, conditions on sizes are true, but no loop is followed for long.
        """
        if self.samples is None and reads_sizes_only(obj.node):
            place = _user_line(sys._getframe(1))
            self.asked[place] += 1
            return self.asked[place] <= MAX_TURNS
        if self.samples is not None:
            with contextlib.suppress(DependsOnValues):
                return condition(obj.node, self.root, self._fetch, self.samples)
        before = [problem for _, problem in self.problems]
        self.note("control flow", sys._getframe(1))
        return self.problems[-1][1] not in before

    def iter(self, obj: fx.Proxy) -> Iterator[Any]:
        """Sizes can be iterated over, as in ``for n in x.size()[1:]``; tensors cannot."""
        if reads_sizes_only(obj.node):
            with contextlib.suppress(DependsOnValues, TypeError):
                samples = self.samples
                if samples is None:  # what layers there are does not depend on it
                    return iter([obj[0]])
                count = length(obj.node, self.root, self._fetch, samples)
                return iter([obj[i] for i in range(count)])
        return super().iter(obj)

    def _fetch(self, node: fx.Node) -> Any:
        path = str(node.target)
        constant = self.constants.get(path)
        return fetch(self.root, Param(path) if constant is None else Const(constant))

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _TracedValue(node, self)

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        if module_qualified_name in self.opaque:
            return True
        if isinstance(m, torch.nn.Sequential):
            return False
        # a parametrised module has a generated class: its base tells what it is
        origin = type(m).forward.__module__ or ""  # None where exec defined it
        return origin.startswith(("torch.nn.", "torch.ao.nn."))

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None) -> fx.Node:
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        path = target if kind == "call_module" else self.scope.module_path
        file, line = _user_line(sys._getframe(1))
        self.where[node.name] = Where(node.name, path, file, line)
        return node

    def call_module(self, m: torch.nn.Module, forward, args: tuple, kwargs: dict) -> Any:
        if m not in (self.submodule_paths or {}):  # made in forward or kept in a plain list
            return forward(*args, **kwargs)
        path = self.path_of_module(m)
        try:
            if "_rasna_tune" in vars(m) and path not in self.opaque:
                raise _Untraceable("tuned by itself")
            result = super().call_module(m, forward, args, kwargs)
        except Exception:
            self.failed = self.failed or path
            raise
        call = Call(_nodes(result), len(self.graph.nodes), len(self.problems))
        self.results.setdefault(path, []).append(call)
        return result

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """A placeholder per input; parameters behind them take their defaults."""
        names = concrete_args or {}
        placeholders = [self.create_proxy("placeholder", name, (), {}) for name in names["inputs"]]
        return root_fn, [self.root, *placeholders]

    def create_arg(self, a: Any) -> Any:
        if record_kind(type(a)):
            fields = {name: self.create_arg(item) for name, item in record_fields(a).items()}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, torch.Tensor):
            owned = itertools.chain(self.root.named_parameters(), self.root.named_buffers())
            path = self.tensor_attrs.get(a) or next((n for n, t in owned if t is a), None)
            if path is None:
                path = f"_constant_{len(self.constants)}"
                self.constants[path] = a
                self.tensor_attrs[a] = path
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)


def call_module(root: torch.nn.Module, path: str, args: tuple, kwargs: dict) -> Any:
    """What a module of a trace computes by itself, also where it is a tuned model as a whole."""
    module = root.get_submodule(path)
    if "_rasna_tune" in vars(module):
        return type(module).forward(module, *args, **kwargs)
    return module(*args, **kwargs)


def _is_user_file(filename: str) -> bool:
    return not filename.startswith((_TORCH_DIR, _OWN_DIR, "<"))


def _nodes(value: Any) -> Any:
    """A module's result with nodes in place of proxies."""
    if isinstance(value, fx.Proxy):
        return value.node
    if record_kind(type(value)) in ("dataclass", "model_output"):
        value = record_fields(value)
    if isinstance(value, dict):
        return {key: _nodes(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [_nodes(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _user_line(frame: FrameType | None) -> tuple[str, int]:
    """File name and line of the innermost frame of the user's forward; ("", 0) if there is none."""
    while frame is not None and frame.f_code is not _trace_once.__code__:
        if _is_user_file(frame.f_code.co_filename):
            return os.path.basename(frame.f_code.co_filename), frame.f_lineno
        frame = frame.f_back
    return "", 0


def trace(model: torch.nn.Module, num_inputs: int | None = None) -> Trace:
    """Trace ``model.forward`` as its class defines it, completely.

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
    traced = trace_all(model, num_inputs)
    if not traced.problems:
        return traced
    problems = Problems()
    places = {(p.file, p.line) for _, p in traced.problems}
    waiting = sorted(traced.problems, key=lambda item: item[0])
    for number, node in enumerate(traced.graph.nodes):  # what else is wrong, in order
        while waiting and waiting[0][0] <= number:
            problems.extend([waiting.pop(0)[1]])
        origin = traced.where[node.name]
        if node.op.startswith("call_") and (origin.file, origin.line) not in places:
            name, handler = find_handler(model, node)
            if handler is None and node.target not in traced.opaque:
                problems.add(origin, f"{name} is not supported", remedy_for(name))
    problems.extend(problem for _, problem in waiting)
    raise CompileError(problems.text(), tuple(problems.found))


def trace_all(
    model: torch.nn.Module,
    num_inputs: int | None = None,
    samples: Sequence[torch.Tensor] | None = None,
) -> Trace:
    """As :func:`trace`, but what cannot be traced is left to ``Trace.problems``.

    samples: their shapes decide conditions on sizes. A module whose forward cannot be traced is
    called as a whole; what lies behind it is traced nevertheless. Raises CompileError for
    other parameters than the inputs.
    """
    if _Tracer(set()).is_leaf_module(model, ""):
        return _trace_leaf(model, num_inputs)
    names = _input_names(model, num_inputs)
    opaque: dict[str, Problem] = {}
    while True:
        traced, failed, problem = _trace_once(model, names, opaque, samples)
        if problem is None:
            return traced
        if not failed or failed in opaque:
            traced.problems.append((len(traced.graph.nodes), problem))
            return traced
        opaque[failed] = problem


def _trace_once(
    model: torch.nn.Module, names: Sequence[str], opaque: dict[str, Problem],
    samples: Sequence[torch.Tensor] | None,
) -> tuple[Trace, str | None, Problem | None]:
    """The trace with ``opaque`` modules as leaves; the module and the problem that ended it."""
    tracer = _Tracer(set(opaque), samples)
    failed, problem = None, None
    try:
        tracer.trace(model, concrete_args={"inputs": names})
    except Exception as error:
        failed, problem = tracer.failed, _problem_of(error, tracer)
    traced = Trace(
        tracer.graph, tracer.where, tracer.constants, tracer.problems, tracer.opaque,
        tracer.results, problem is None,
    )  # fmt: skip
    for number, node in enumerate(tracer.graph.nodes):  # opaque modules, where they are called
        if node.op == "call_module" and node.target in opaque:
            traced.problems.append((number, opaque[str(node.target)]))
    return traced, failed, problem


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


def _input_names(model: torch.nn.Module, num_inputs: int | None) -> list[str]:
    """Names of the inputs: parameters of forward, then numbers for those of ``*args``."""
    parameters = list(inspect.signature(type(model).forward).parameters.values())[1:]
    positional = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    required = [p for p in parameters if p.name in positional and p.default is p.empty]
    starred = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), None)
    count = num_inputs if num_inputs is not None else max(len(required), int(starred is not None))
    if count < len(required) or (count > len(positional) and starred is None):
        least, most = len(required), len(positional)
        wanted = f"{least}" if least == most else f"{least} to {most}"
        names = [*positional, f"*{starred}"] if starred else positional
        wanted = f"at least {least}" if starred else wanted
        raise CompileError(_wrong_count(type(model).__name__, wanted, ", ".join(names), count))
    rest = range(count - len(positional))
    return [*positional[:count], *(f"{starred}_{number}" for number in rest)]


def _wrong_count(name: str, wanted: str, names: str, given: int | None) -> str:
    return (
        f"{name}.forward takes {wanted} inputs ({names}), {given} samples were given; "
        f"give one sample array per input, in this order"
    )


_EXPLANATIONS = (  # pattern in the error's text, what, remedy
    ("cannot be iterated", "iterating over a traced tensor",
     "loop over a constant number of times or over modules"),
    ("control flow without an end", "a loop that ends on the value of a tensor",
     "loop over a constant number of times"),
    ("tuned by itself", "a module that is tuned within a model that is not",
     "compile the module alone, or tune the whole model"),
    ("control flow", "control flow on the value of a tensor",
     "decide on constants of the module (self.…), or end the compiled model before it"),
    ("'len' is not supported", "len() of a traced tensor",
     "use a constant, or x.size(0) for the batch"),
    ("printing", "printing a traced tensor", "remove the print from forward"),
    ("'(Proxy|Attribute|_TracedValue)'", "a Python number made of a traced tensor",
     "use a constant of the module instead"),
)  # fmt: skip


def _problem(where: Where, what: str, remedy: str) -> Problem:
    problems = Problems()
    problems.add(where, what, remedy)
    return problems.found[0]


def _problem_of(error: Exception, tracer: _Tracer) -> Problem:
    """The problem that ended a trace, at the user's innermost line."""
    where = Where("", tracer.failed or "")
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_user_file(frame.filename):
            name = os.path.basename(frame.filename)
            where = Where("", tracer.failed or "", name, frame.lineno or 0)
            break
    return _problem(where, *_explain(str(error), type(error).__name__))


def _explain(text: str, kind: str = "") -> tuple[str, str]:
    """What is not possible, and the remedy. text, kind: of the exception."""
    for pattern, what, remedy in _EXPLANATIONS:
        if re.search(pattern, text):
            return f"{what} is not supported", remedy
    first = shorten(text)
    if kind == "AssertionError":
        return (
            f"an assertion of the model fails for these samples ({first or 'without a text'})",
            "check the samples and channel_last",
        )
    return (
        f"the forward cannot be traced ({kind}: {first})",
        "make it a fixed sequence of tensor operations",
    )
