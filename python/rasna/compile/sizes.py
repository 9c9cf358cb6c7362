"""Conditions on sizes while a model is traced: ``if x.shape[1] != self.width``, ``assert …``.

A trace has no values, but a condition that reads shapes only has the same result for all
inputs of the samples' shapes. It is computed from the nodes so far, with two batch sizes;
one that depends on the batch, or on values, stays an error.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.fx._symbolic_trace import _orig_module_call, _orig_module_getattr

Fetch = Callable[[fx.Node], Any]  # the tensor or value behind a get_attr node

_ATTRIBUTES = ("shape", "ndim", "dtype", "device", "is_cuda")
_METHODS = ("size", "dim", "ndimension", "is_floating_point", "numel")


class DependsOnValues(Exception):
    """The condition reads tensor values, or the size of the batch."""


def reads_sizes_only(node: fx.Node) -> bool:
    """Whether a condition is made of shapes and Python values alone."""
    if _is_size(node):
        return True
    if node.op != "call_function":
        return False
    return all(reads_sizes_only(source) for source in node.all_input_nodes)


def _is_size(node: fx.Node) -> bool:
    if node.op == "call_method":
        return node.target in _METHODS
    return node.op == "call_function" and node.target is getattr and node.args[1] in _ATTRIBUTES


def condition(
    node: fx.Node, root: torch.nn.Module, fetch: Fetch, samples: Sequence[torch.Tensor]
) -> bool:
    """The truth of a condition for inputs of the samples' shapes.

    Raises DependsOnValues unless it reads sizes only and is the same for every batch.
    """
    return _same_for_every_batch(bool, node, root, fetch, samples)


def length(
    node: fx.Node, root: torch.nn.Module, fetch: Fetch, samples: Sequence[torch.Tensor]
) -> int:
    """How many sizes there are: 3 of ``x.size()[1:]`` where x is a map. Raises as above."""
    return _same_for_every_batch(len, node, root, fetch, samples)


def _same_for_every_batch(function: Callable, node: fx.Node, root, fetch: Fetch, samples) -> Any:
    if not reads_sizes_only(node):
        raise DependsOnValues
    found = set()
    for batch in (2, 3):
        inputs = [sample[:1].expand(batch, *sample.shape[1:]).clone() for sample in samples]
        with torch.no_grad(), torch.autocast("cpu", enabled=False), _not_tracing():
            found.add(function(_Interpreter(root, fetch, inputs).value(node)))
    if len(found) > 1:
        raise DependsOnValues
    return found.pop()


@contextlib.contextmanager
def _not_tracing() -> Iterator[None]:
    """Calls of modules compute; while fx traces, it has replaced two methods of nn.Module."""
    patched = nn.Module.__call__, nn.Module.__getattr__
    nn.Module.__call__, nn.Module.__getattr__ = _orig_module_call, _orig_module_getattr
    try:
        yield
    finally:
        nn.Module.__call__, nn.Module.__getattr__ = patched


class _Interpreter:
    """Computes the nodes that one node needs."""

    def __init__(self, root: torch.nn.Module, fetch: Fetch, inputs: list[torch.Tensor]) -> None:
        self.root, self.fetch, self.inputs = root, fetch, inputs
        self.values: dict[fx.Node, Any] = {}

    def value(self, node: fx.Node) -> Any:
        """The result of a node; everything before it is computed once, in order."""
        placeholders = [n for n in node.graph.nodes if n.op == "placeholder"]
        self.values.update(zip(placeholders, self.inputs, strict=False))
        needed, waiting = set(), [node]
        while waiting:
            current = waiting.pop()
            if current not in needed:
                needed.add(current)
                waiting += current.all_input_nodes
        for current in node.graph.nodes:
            if current in needed and current not in self.values:
                self.values[current] = self._compute(current)
        return self.values[node]

    def _compute(self, node: fx.Node) -> Any:
        if node.op == "placeholder":
            return None
        if node.op == "get_attr":
            return self.fetch(node)
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: self.values[n])
        target: Any = node.target
        if node.op == "call_module":
            return self.root.get_submodule(target)(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs)
        if target in (operator.iadd, operator.isub, operator.imul, operator.itruediv):
            return target(args[0].clone(), *args[1:])
        return target(*args, **kwargs)
