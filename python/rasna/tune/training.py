"""Run a float graph of the compiler in training: fake quantisation at every stored tensor.

What the hardware stores are the outputs of the compiler's own (fused) nodes, so the graph is
executed in that form: convolution with masked, fake-quantised weights (as they will be
after folding), BatchNorm by the user's own module (batch statistics, running updates),
then clamp and activation quantisation in one. Parameters are looked up in the live model
in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ..compile import curves, execute
from ..compile import floatgraph as fg
from ..compile.calibrate import byte_type, shared_types
from .circular import circular_pad
from .fake import fake_quantize, fake_quantize_weight
from .observe import Observers
from .prune import apply_mask, mask_of


def owner(root: nn.Module, ref: fg.Ref | None) -> nn.Module | None:
    """The module that holds a parameter as its ``weight``."""
    if isinstance(ref, fg.Derived) and ref.args and isinstance(ref.args[0], fg.Param):
        ref = ref.args[0]  # a linear layer on rows
    if not isinstance(ref, fg.Param) or ref.path.rpartition(".")[2] != "weight":
        return None
    return root.get_submodule(ref.path.rpartition(".")[0])


def training_steps(root: nn.Module, steps: Sequence[fg.Step], y: torch.Tensor) -> torch.Tensor:
    """Steps behind a convolution as the user's model computes them in training."""
    shape = (1, -1, *[1] * (y.dim() - 2))
    for step in steps:
        if isinstance(step, fg.BatchNorm) and step.path:
            layer = root.get_submodule(step.path)
            row = isinstance(layer, nn.BatchNorm1d) and y.dim() == 4  # of a Conv1d
            y = layer(y.squeeze(2)).unsqueeze(2) if row else layer(y)
        else:
            a, b = execute.per_channel(root, (step,), y.shape[1])
            y = y * a.view(shape).to(y.dtype) + b.view(shape).to(y.dtype)
    return y


def _convolve(x: torch.Tensor, weight: torch.Tensor, bias, op) -> torch.Tensor:
    """As execute.convolve, but faster to train."""
    if isinstance(op, fg.ConvTranspose):
        return execute.convolve(x, weight, bias, op)
    pad = op.padding
    if op.padding_mode == "circular":
        x, padding = circular_pad(x, (pad.left, pad.right, pad.top, pad.bottom)), (0, 0)
    elif (pad.top, pad.left) == (pad.bottom, pad.right):
        padding = (pad.top, pad.left)
    else:
        return execute.convolve(x, weight, bias, op)
    return F.conv2d(x, weight, bias, op.stride, padding, op.dilation, op.groups)


class TrainingGraph:
    """A float graph as a function of a batch: ``graph(*inputs)`` gives the list of outputs."""

    def __init__(self, graph: fg.FloatGraph, root: nn.Module, observers: Observers) -> None:
        self.graph, self.root, self.observers = graph, root, observers
        self._unstored = shared_types(graph)  # quantised with the Concat that reads them
        index = {name: i for i, name in enumerate(graph.nodes)}
        last = {index[i]: index[n.name] for n in graph.nodes.values() for i in n.inputs}
        keep = {index[name] for name in graph.outputs}
        self._outputs = [index[name] for name in graph.outputs]
        self._steps: list[tuple[Callable, fg.Node, list[int], list[int]]] = []
        for number, node in enumerate(graph.nodes.values()):
            inputs = [index[name] for name in node.inputs]
            drop = [i for i in set(inputs) if last[i] == number and i not in keep]
            self._steps.append((self._function(node), node, inputs, drop))

    def _function(self, node: fg.Node) -> Callable:
        functions: dict[type, Callable] = {
            fg.Input: self._input,
            fg.Conv: self._conv,
            fg.ConvTranspose: self._conv,
            fg.Linear: self._conv,
            fg.Affine: self._affine,
            fg.Sum: self._sum,
            fg.Clamp: self._store,
            fg.AvgPool: self._average,
            fg.Dropout: self._dropout,
            fg.Concat: self._concat,
            fg.Leaky: self._leaky,
            fg.Curve: self._curve,
            fg.Product: self._product,
        }
        return functions.get(type(node.op), self._keep_type)

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        values: list[Any] = [None] * len(self._steps)
        for number, (function, node, sources, drop) in enumerate(self._steps):
            if sources:
                values[number] = function(node, *[values[i] for i in sources])
            else:
                values[number] = function(node, inputs[node.op.index])
            for i in drop:
                values[i] = None
        return [values[i] for i in self._outputs]

    def _store(self, node: fg.Node, y: torch.Tensor) -> torch.Tensor:
        """Clamp and quantise a stored tensor."""
        if node.name in self._unstored:
            op: Any = node.op
            return y if op.clamp == fg.UNBOUNDED else torch.clamp(y, *op.clamp)
        scale, lo, hi = self.observers.activation(node, y)
        return fake_quantize(y, scale, lo, hi)

    def _input(self, node: fg.Node, x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.uint8:
            kind = self.observers.types[node.name] = byte_type(self.observers.settings.ab)
            x = x.to(torch.get_default_dtype())
            return fake_quantize(x, 2.0**kind.frac, kind.lo, kind.hi)
        if not x.is_floating_point():
            x = x.to(torch.get_default_dtype())
        return self._store(node, x)

    def _conv(self, node: fg.Node, x: torch.Tensor) -> torch.Tensor:
        op: Any = node.op
        own = execute.layer_weight(self.root, op)
        weight, factor, offset = execute.fold_before(self.root, op, own)
        bias = None if op.bias is None else fg.fetch(self.root, op.bias)
        inner = None if op.before else bias
        layer = owner(self.root, op.weight)
        keep = None
        if layer is not None and (mask := mask_of(layer)) is not None:
            apply_mask(layer)
            if isinstance(op.weight, fg.Param):
                keep = execute.in_rows(mask.on(weight.device), op)
        scale, limit = self.observers.weight(node, weight)
        weight = fake_quantize_weight(weight, scale, limit, keep)
        y = (
            F.linear(x, weight, inner)
            if isinstance(op, fg.Linear)
            else _convolve(x, weight, inner, op)
        )
        if op.before:
            offset = offset if bias is None else bias + offset
            y = y * factor + offset.view(1, -1, *[1] * (y.dim() - 2))
        return self._store(node, training_steps(self.root, op.steps, y))

    def _affine(self, node: fg.Node, x: torch.Tensor) -> torch.Tensor:
        return self._store(node, training_steps(self.root, node.op.steps, x))

    def _keep_type(self, node: fg.Node, x: torch.Tensor) -> torch.Tensor:
        """Max pooling and what only moves: their input is on the grid already."""
        return execute.run_node(self.root, node, (x,))

    def _dropout(self, node: fg.Node, x: torch.Tensor) -> torch.Tensor:
        op: Any = node.op
        if op.path:
            return self.root.get_submodule(op.path)(x)
        return F.dropout(x, op.p, self.root.training)

    def _average(self, node: fg.Node, x: torch.Tensor) -> torch.Tensor:
        return self._store(node, execute.average(x, node.op))

    def _concat(self, node: fg.Node, *xs: torch.Tensor) -> torch.Tensor:
        return self._store(node, torch.cat(xs, node.op.axis))

    def _leaky(self, node: fg.Node, x: torch.Tensor) -> torch.Tensor:
        return self._store(node, execute.leaky(self.root, x, node.op))

    def _curve(self, node: fg.Node, x: torch.Tensor) -> torch.Tensor:
        return self._store(node, curves.apply(node.op.function, x))

    def _product(self, node: fg.Node, x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return self._store(node, x * g)

    def _sum(self, node: fg.Node, *xs: torch.Tensor) -> torch.Tensor:
        op: Any = node.op
        y = xs[0] if op.coefficients[0] == 1 else xs[0] * op.coefficients[0]
        for coefficient, x in zip(op.coefficients[1:], xs[1:], strict=True):
            y = torch.add(y, x, alpha=coefficient)
        return self._store(node, y)
