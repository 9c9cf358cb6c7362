"""Partial models: end a trace at the output of a module or of an FX node (``until=``)."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from ..errors import CompileError, RasnaTypeError, RasnaValueError
from .floatgraph import Const, Param, Where, fetch
from .trace import Call, Trace, call_module, trace_all

Until = str | Sequence[str] | None


def check_until(until: Any) -> None:
    """Raise RasnaTypeError unless ``until`` is None, a name, or a list or tuple of names."""
    names = until if isinstance(until, (list, tuple)) else [until]
    if until is None or names and all(isinstance(name, str) for name in names):
        return
    raise RasnaTypeError(
        f"until must be a module path or the name of an FX node, or a list of them, "
        f"{until!r} was given"
    )


def cut(traced: Trace, model: torch.nn.Module, until: Until) -> Trace:
    """A trace that ends where ``until`` says; its output is the result of that module or node.

    Parameters
    ----------
    traced : of the whole model, as far as it could be traced; it is used up.
    until : a module path or node name; several give a tuple. A module path wins.

    Raises
    ------
    RasnaValueError
        The name is unknown, its module is not called, or is called several times.
    CompileError
        The trace ended before it.
    """
    if until is None:
        return traced
    check_until(until)
    many = not isinstance(until, str)
    names = list(until) if not isinstance(until, str) else [until]
    found = [_find(traced, model, name) for name in names]
    last = max(call.num_nodes for call in found)
    noted = max(call.num_problems for call in found)
    for node in reversed(list(traced.graph.nodes)[last:]):
        traced.graph.erase_node(node)
    results = [call.result for call in found]
    output = traced.graph.output(tuple(results) if many else results[0])
    traced.where[output.name] = Where(output.name)
    problems = traced.problems[:noted]
    problems += [item for item in traced.problems[noted:] if item[0] < last]
    return replace(traced, problems=problems, complete=True)


def _find(traced: Trace, model: torch.nn.Module, name: str) -> Call:
    """The result that ``name`` stands for, as if it were that of a module."""
    path = _path(traced, model, name)
    calls = traced.results.get(path, [])
    if len(calls) > 1:
        names = ", ".join(_names(call.result) for call in calls)
        raise RasnaValueError(
            f"until={name!r}: the module is called {len(calls)} times; "
            f"give the node of one of the calls: {names}"
        )
    if calls:
        return calls[0]
    for number, node in enumerate(traced.graph.nodes):
        if node.name == name and node.op != "output":
            before = [problem for at, problem in traced.problems if at <= number]
            return Call(node, number + 1, len(before))
    raise _missing(traced, model, name, path)


def _path(traced: Trace, model: torch.nn.Module, name: str) -> str:
    """The path under which the trace knows the module ``name``, which may have several."""
    modules = dict(model.named_modules(remove_duplicate=False))
    paths = [path for path in traced.results if modules.get(path) is modules.get(name, model)]
    return paths[0] if name and paths else name


def _names(result: Any) -> str:
    """The nodes of a result, for messages."""
    nodes: list[str] = []
    fx.node.map_arg(result, lambda node: nodes.append(node.name))
    return " and ".join(nodes) or "none"


def _missing(traced: Trace, model: torch.nn.Module, name: str, path: str) -> Exception:
    modules = {path for path, _ in model.named_modules() if path}
    known = [*traced.results, *(n.name for n in traced.graph.nodes if n.op.startswith("call"))]
    kind = type(model).__name__
    if not traced.complete and (name in modules or name not in known):
        problems = tuple(problem for _, problem in traced.problems)
        lines = "\n  ".join(str(problem) for problem in problems)
        return CompileError(
            f"until={name!r}: the trace of {kind} ends before it:\n  {lines}", problems
        )
    distinct: dict[str, str] = {}
    for item in known:
        distinct.setdefault(item.replace(".", "_"), item)
    known = list(distinct.values())
    close = [path for path in known if path.rpartition(".")[2] == name][:3]
    close = close or difflib.get_close_matches(name, known, 3, 0.6)
    hint = " or ".join(repr(match) for match in close)
    if name in modules:
        reason = f"is a module that the forward of {kind} does not call"
    else:
        reason = f"is neither a module nor an FX node of {kind}"
    if not hint:
        top = dict.fromkeys(path.split(".")[0] for path in known if path in traced.results)
        hint = "one of " + ", ".join(map(repr, list(top or known)[:12]))
        return RasnaValueError(f"until={name!r} {reason}; give {hint}")
    return RasnaValueError(f"until={name!r} {reason}; did you mean {hint}?")


# ---- what the model itself computes there -------------------------------------------------


class _Done(Exception):
    """Everything that was asked for has been computed."""


def run_until(
    model: torch.nn.Module, forward: Callable, inputs: Sequence[torch.Tensor], until: Until
) -> list[Any]:
    """The results that ``until`` names, computed by the model's own forward where it can tell.

    That is for modules. A node that is no module is computed from a fresh trace, which notices
    random numbers; hooks of the model itself would not be noticed and are refused.
    """
    names = [until] if isinstance(until, str) else list(until or ())
    modules = {name: model.get_submodule(name) for name in names if _is_module(model, name)}
    found: dict[str, Any] = {}

    def keep(name: str, result: Any) -> None:
        found.setdefault(name, copy.deepcopy(result))
        if len(found) == len(modules):
            raise _Done

    hooks = [
        module.register_forward_hook(lambda m, args, result, name=name: keep(name, result))
        for name, module in modules.items()
    ]
    try:
        if modules:
            forward(*inputs)
    except _Done:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    rest = [name for name in names if name not in found]
    if rest:
        _refuse_hooks(model, rest)
        found.update(zip(rest, _interpret(model, inputs, rest), strict=True))
    return [found[name] for name in names]


def _is_module(model: torch.nn.Module, name: str) -> bool:
    return name in dict(model.named_modules(remove_duplicate=False))


def _refuse_hooks(model: torch.nn.Module, names: Sequence[str]) -> None:
    """Those of the model itself are not in its trace; those of its modules are."""
    tuned = "_rasna_tune" in vars(model)
    if model._forward_pre_hooks or ("forward" in vars(model) and not tuned):
        raise CompileError(
            f"the model: hooks or a replaced forward cannot be checked with until={names[0]!r}, "
            f"which is no module; remove them, or give a module path"
        )


def _interpret(
    model: torch.nn.Module, inputs: Sequence[torch.Tensor], names: Sequence[str]
) -> tuple:
    """The results of nodes, from a trace of its own."""
    traced = cut(trace_all(model, len(inputs), inputs), model, list(names))
    values: dict[str, Any] = {}
    waiting = [x.clone() for x in inputs]
    for node in traced.graph.nodes:
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: values[n.name])
        if node.op == "placeholder":
            values[node.name] = waiting.pop(0) if waiting else None
        elif node.op == "get_attr":
            constant = traced.constants.get(str(node.target))
            ref = Param(str(node.target)) if constant is None else Const(constant)
            values[node.name] = fetch(model, ref)
        elif node.op == "call_module":
            values[node.name] = call_module(model, str(node.target), args, kwargs)
        elif node.op == "call_method":
            values[node.name] = getattr(args[0], str(node.target))(*args[1:], **kwargs)
        elif node.op == "call_function":
            values[node.name] = node.target(*args, **kwargs)
        else:
            return args[0]
    raise RuntimeError("a trace without an output")
