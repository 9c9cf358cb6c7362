"""What every float graph must be between passes; a broken one is named with its pass."""

from __future__ import annotations

import math

from .. import floatgraph as fg

_INPUTS = {fg.Input: 0, fg.Opaque: 0, fg.Product: 2}  # all others but Sum and Concat have one


def check(graph: fg.FloatGraph, after: str) -> None:
    """Raise RuntimeError, which says what ``after`` broke, if ``graph`` is not legal."""
    seen: set[str] = set()
    for name, node in graph.nodes.items():
        complaint = _complaint(graph, name, node, seen)
        if complaint:
            raise RuntimeError(
                f"after {after}: node {name} ({type(node.op).__name__}) {complaint}; "
                f"this is a fault of the compiler, please report the model"
            )
        seen.add(name)
    missing = [name for name in (*graph.inputs, *graph.outputs) if name not in seen]
    if missing:
        raise RuntimeError(
            f"after {after}: inputs or outputs {', '.join(missing)} are no nodes; "
            f"this is a fault of the compiler, please report the model"
        )


def _complaint(graph: fg.FloatGraph, name: str, node: fg.Node, seen: set[str]) -> str:
    op = node.op
    unknown = [i for i in node.inputs if i not in seen]
    behind = [i for i in node.inputs if i in seen and isinstance(graph.nodes[i].op, fg.Host)]
    if behind and not isinstance(op, fg.Host):
        return f"reads the host step {behind[0]}"
    if unknown:
        return f"reads {', '.join(unknown)} before they are computed"
    if node.name != name:
        return f"is called {node.name} too"
    if isinstance(op, fg.Concat) and node.inputs:
        return _shape_complaint(node, [graph.nodes[i].shape for i in node.inputs])
    wanted = len(op.coefficients) if isinstance(op, fg.Sum) else _INPUTS.get(type(op), 1)
    if len(node.inputs) != wanted:
        return f"has {len(node.inputs)} inputs where {wanted} are needed"
    if isinstance(op, fg.Host):
        return ""
    if not node.shape or min(node.shape) < 1:
        return f"has the shape {node.shape}"
    clamp = getattr(op, "clamp", fg.UNBOUNDED)
    if not clamp[0] <= clamp[1]:
        return f"has the empty clamp {clamp}"
    return _shape_complaint(node, [graph.nodes[i].shape for i in node.inputs])


def _shape_complaint(node: fg.Node, inputs: list[tuple[int, ...]]) -> str:
    op, shape = node.op, node.shape
    if isinstance(op, fg.Concat):
        at = op.axis - 1
        sizes = {(*i[:at], *i[at + 1 :]) for i in inputs}
        joined = sum(i[at] for i in inputs)
        if sizes != {(*shape[:at], *shape[at + 1 :])} or shape[at] != joined:
            return f"joins the shapes {inputs} to {shape}"
    if isinstance(op, fg.Select):
        count, rows, columns = op.channels.shape
        spatial = (1, 1)[: 3 - len(shape)] + inputs[0][1:]
        wanted = tuple(n * f for n, f in zip(spatial, (rows, columns), strict=True))
        if shape[0] != count or (1, 1)[: 3 - len(shape)] + shape[1:] != wanted:
            return f"turns the shape {inputs[0]} into {shape}"
    if isinstance(op, fg.Gather):
        numbers = (op.channels, op.rows, op.columns)
        inside = len(inputs[0]) == 3 and all(
            n.min() >= -1 and n.max() < size for n, size in zip(numbers, inputs[0], strict=True)
        )
        if not inside or shape != tuple(len(n) for n in numbers):
            return f"turns the shape {inputs[0]} into {shape}"
    if isinstance(op, (fg.Affine, fg.Clamp, fg.Curve, fg.Dropout, fg.Leaky)) and shape != inputs[0]:
        return f"turns the shape {inputs[0]} into {shape}"
    if isinstance(op, fg.Reshape) and math.prod(shape) != math.prod(inputs[0]):
        return f"turns the shape {inputs[0]} into {shape}"
    if isinstance(op, (fg.Sum, fg.Product)):
        single = (shape[0], *[1] * (len(shape) - 1))
        bad = [i for i in inputs if i not in (shape, single)]
        if bad:
            return f"combines the shape {bad[0]} to {shape}"
    if isinstance(op, (fg.Conv, fg.ConvTranspose, fg.MaxPool, fg.AvgPool, fg.Unshuffle)):
        if len(inputs[0]) != 3 or len(shape) != 3:
            return f"turns the shape {inputs[0]} into {shape}"
    if isinstance(op, fg.Linear) and (len(inputs[0]) != 1 or len(shape) != 1):
        return f"turns the shape {inputs[0]} into {shape}"
    return ""
