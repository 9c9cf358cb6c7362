"""Lowering of functions of one value and of products of two tensors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .. import graph as qg
from ..graph import Requant, Tensor
from . import floatgraph as fg
from .curves import make_curve
from .quantize import clamp_limits
from .weights import plan_sum, quantize_sum

if TYPE_CHECKING:
    from .lower import _Lowering

PRODUCT_COEFFICIENTS = [1, 512]  # x + 512*g is what the machine takes apart


def curve(lowering: _Lowering, node: fg.Node) -> None:
    """A table: behind the operation in front if nobody else reads that, else of its own."""
    type, source = lowering.types[node.name], lowering._stored(node.inputs[0])
    made = make_curve(node.op.function, node.op.clamp, source.type, type)
    op = _writer(lowering, node)
    if op is None:
        op = _copy(lowering, node, source)
        lowering.quant.ops.append(op)
    else:
        del lowering.quant.tensors[source.name]
        op.output = node.name
    op.requant = replace(op.requant, curve=made)  # type: ignore[union-attr]
    lowering._tensor(node, source.shape, type)


def _writer(lowering: _Lowering, node: fg.Node) -> qg.AnyOp | None:
    """The operation whose result goes into the curve alone, if it can hold one."""
    graph, name = lowering.float, node.inputs[0]
    users = graph.users()
    while graph.only_user(name, users) and isinstance(graph.nodes[name].op, fg.Reshape):
        name = graph.nodes[name].inputs[0]
    if graph.only_user(name, users) is None or lowering.tensor_of[name] != name:
        return None
    op = next((op for op in lowering.quant.ops if op.output == name), None)
    if not isinstance(op, (qg.Conv, qg.Sum, qg.AvgPool)) or op.requant.curve is not None:
        return None
    return op


def _copy(lowering: _Lowering, node: fg.Node, source: Tensor) -> qg.Sum:
    """A sum of one operand that keeps its integers."""
    acc_frac, terms = plan_sum([source.type.frac], [1.0])
    made = quantize_sum(
        acc_frac, terms, [source.type], source.shape[0], source.type, fg.UNBOUNDED,
        lowering.settings.ib,
    )  # fmt: skip
    return qg.Sum(
        node.name, [source.name], node.name, str(node.where), coefficients=[1], bias=made.bias,
        requant=made.requant,
    )  # fmt: skip


def product(lowering: _Lowering, node: fg.Node) -> None:
    """Two tensors of one shape, or one with a value per channel."""
    sources = [lowering._stored(name) for name in node.inputs]
    if len({s.shape for s in sources}) > 1:
        sources = [lowering._as_logical(name) for name in node.inputs]
    shape = max((s.shape for s in sources), key=math.prod)
    type = lowering.types[node.name]
    ones = np.ones(shape[0], np.int32)
    shift = sum(s.type.frac for s in sources) - type.frac
    lo, hi = clamp_limits(type, node.op.clamp)
    lowering._tensor(node, shape, type)
    lowering.quant.ops.append(
        qg.Product(
            node.name, [s.name for s in sources], node.name, str(node.where),
            coefficients=list(PRODUCT_COEFFICIENTS), bias=0 * ones,
            requant=Requant(0 * ones, ones, shift * ones, lo, hi, lowering.settings.ib),
        )  # fmt: skip
    )
