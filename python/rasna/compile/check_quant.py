"""The last check of the front end: a quantised graph keeps every rule of its contract."""

from __future__ import annotations

import numpy as np

from .. import graph as qg
from .weights import MAX_COEFFICIENT, max_magnitude


def check_quant(graph: qg.QuantGraph) -> qg.QuantGraph:
    """Return ``graph``; raise RuntimeError, which names the operation, if a rule is broken."""
    written = {port.tensor for port in graph.inputs}
    for op in graph.ops:
        complaint = _complaint(graph, op, written)
        if complaint:
            raise RuntimeError(
                f"{op.source or op.name}: {complaint}; "
                f"this is a fault of the compiler, please report the model"
            )
        written.add(op.output)
    for port in graph.outputs:
        if port.tensor not in written:
            raise RuntimeError(f"output {port.name}: tensor {port.tensor} is never written")
    return graph


def _complaint(graph: qg.QuantGraph, op: qg.AnyOp, written: set[str]) -> str:
    unknown = [name for name in op.inputs if name not in written]
    if unknown:
        return f"reads {', '.join(unknown)} before they are written"
    output = graph.tensors[op.output]
    if isinstance(op, qg.MaxPool):
        same = output.type == graph.tensors[op.inputs[0]].type
        return "" if same else "max pooling changes the type"
    if isinstance(op, qg.Select):
        count = sum(graph.tensors[name].shape[0] for name in op.inputs)
        if op.channels.min() < 0 or op.channels.max() >= count:
            return f"channels {op.channels.min()} to {op.channels.max()} of {count}"
    if isinstance(op, qg.Gather):
        return _gather_complaint(graph, op)
    return _requant_complaint(op.requant, output.type) or _acc_complaint(graph, op)


def _gather_complaint(graph: qg.QuantGraph, op: qg.Gather) -> str:
    sources, type = [graph.tensors[name] for name in op.inputs], graph.tensors[op.output].type
    if any(source.type != type for source in sources):
        return "moving pixels changes the type"
    if not type.lo <= op.lo <= op.fill <= op.hi <= type.hi:
        return f"the fill {op.fill} within {op.lo} to {op.hi} does not fit the type {type}"
    sizes = list(sources[0].shape)
    sizes[op.axis] = sum(source.shape[op.axis] for source in sources)
    names = ("channels", "rows", "columns")
    for what, size in zip(names, sizes, strict=True):
        numbers = getattr(op, what)
        if numbers.min() < -1 or numbers.max() >= size:
            return f"{what} {numbers.min()} to {numbers.max()} of {size}"
    return ""


def _requant_complaint(requant: qg.Requant, type: qg.FixedPoint) -> str:
    for name, lo, hi in (("pre_shift", 0, 31), ("multiplier", 1, 32767), ("shift", 1, 31)):
        values = getattr(requant, name)
        if values.min() < lo or values.max() > hi:
            return f"{name} is {values.min()} to {values.max()}, {lo} to {hi} is allowed"
    if requant.curve is not None:
        if not -128 <= requant.lo <= requant.hi <= min(255, requant.lo + 255):
            return f"the clamp {requant.lo} to {requant.hi} in front of a curve is not one of bytes"
        values = requant.curve.values
        if values.shape != (256,) or not type.lo <= values.min() <= values.max() <= type.hi:
            return f"the curve {requant.curve.name} does not fit the type {type}"
    elif not type.lo <= requant.lo <= requant.hi <= type.hi:
        return f"the clamp {requant.lo} to {requant.hi} does not fit the type {type}"
    return ""


def _acc_complaint(graph: qg.QuantGraph, op: qg.AnyOp) -> str:
    """The proof that accumulators fit int32: |bias| + sum of |weight| * max|x| < 2**31."""
    largest = [max_magnitude(graph.tensors[name].type) for name in op.inputs]
    if isinstance(op, qg.Conv):
        weight = np.abs(op.weight.astype(np.int64)).reshape(len(op.weight), -1)
        bound = np.abs(op.bias.astype(np.int64)) + weight.sum(axis=1) * largest[0]
    elif isinstance(op, qg.Sum):
        if any(abs(c) > MAX_COEFFICIENT for c in op.coefficients):
            return f"a coefficient of {op.coefficients} is larger than {MAX_COEFFICIENT}"
        pairs = zip(op.coefficients, largest, strict=True)
        bound = np.abs(op.bias.astype(np.int64)) + sum(abs(c) * m for c, m in pairs)
    elif isinstance(op, qg.AvgPool):
        rows, columns = (max(b - a for a, b in w) for w in (op.rows, op.columns))
        bound = np.array([rows * columns * largest[0]])
    else:
        return ""
    return "" if bound.max() < 2**31 else f"accumulators may reach {bound.max()}"
