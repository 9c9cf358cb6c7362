"""Run the float graph on the samples and choose the type of every tensor that is stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from ..errors import CompileError
from ..graph import FixedPoint
from . import floatgraph as fg
from .curves import choose_front, is_nonnegative
from .execute import per_channel, run
from .quantize import choose_type
from .samples import holds_bytes

# their results have their input's type
KEEPS_TYPE = (fg.MaxPool, fg.Select, fg.Gather, fg.Unshuffle, fg.Reshape, fg.Dropout)


def nonnegative_nodes(
    graph: fg.FloatGraph, root: torch.nn.Module, inputs: Sequence[bool]
) -> dict[str, bool]:
    """For every node, whether its values can never be negative, whatever the samples are.

    inputs: the same for every model input; for these only the samples can tell.
    """
    known: dict[str, bool] = {}
    for node in graph.nodes.values():
        before = [known[name] for name in node.inputs]
        known[node.name] = _is_nonnegative(graph, root, node, before, inputs)
    return known


def _is_nonnegative(graph, root, node: fg.Node, before: list[bool], inputs) -> bool:
    op = node.op
    if isinstance(op, fg.Input):
        return bool(inputs[op.index])
    if getattr(op, "clamp", fg.UNBOUNDED)[0] >= 0 and not isinstance(op, KEEPS_TYPE):
        return True
    if isinstance(op, (*KEEPS_TYPE, fg.AvgPool)):
        return before[0]
    if isinstance(op, fg.Clamp):
        return before[0] and op.clamp[1] >= 0
    if isinstance(op, fg.Concat):
        return all(before) and op.clamp[1] >= 0
    if isinstance(op, fg.Leaky):
        return before[0] and op.clamp[1] >= 0
    if isinstance(op, fg.Curve):
        return is_nonnegative(op.function, before[0]) and op.clamp[1] >= 0
    if isinstance(op, fg.Product):
        return all(before) and op.clamp[1] >= 0
    if isinstance(op, fg.Sum):
        return all(before) and min(op.coefficients) >= 0
    if isinstance(op, fg.Affine) and before[0]:
        a, b = per_channel(root, op.steps, node.shape[0])
        return bool((a >= 0).all() and (b >= 0).all())
    return False


def shared_types(graph: fg.FloatGraph) -> dict[str, str]:
    """Nodes that take over the type of the Concat that alone reads them, and that Concat.

    Their results are rounded once, and can be written where the Concat needs them. Between the
    two may be nodes that keep their input's type.
    """
    users, shared = graph.users(), {}
    for node in reversed(list(graph.nodes.values())):
        if not isinstance(node.op, fg.Concat):
            continue
        for name in node.inputs:
            while graph.only_user(name, users) and isinstance(graph.nodes[name].op, KEEPS_TYPE):
                name = graph.nodes[name].inputs[0]
            if graph.only_user(name, users) and not isinstance(
                graph.nodes[name].op, (fg.Input, fg.Product, *KEEPS_TYPE)
            ):
                shared[name] = shared.get(node.name, node.name)
    return shared


def settle_types(graph: fg.FloatGraph, types: dict[str, FixedPoint]) -> dict[str, FixedPoint]:
    """``types`` with those entries put right, in place, that follow from others."""
    for name, concat in shared_types(graph).items():
        types[name] = types[concat]
    for node in graph.nodes.values():
        if isinstance(node.op, KEEPS_TYPE):
            types[node.name] = types[node.inputs[0]]
        elif isinstance(node.op, fg.Product):
            first, second = (types[name] for name in node.inputs)
            types[node.name] = product_type(types[node.name], first, second)
    return types


def product_type(wanted: FixedPoint, first: FixedPoint, second: FixedPoint) -> FixedPoint:
    """The type of a product: one fraction bit less than both operands together at most.

    Finer would be of no use, and the shift of the hardware is 1 to 31.
    """
    exact = first.frac + second.frac
    return replace(wanted, frac=max(exact - 31, min(exact - 1, wanted.frac)))


def fronts(graph: fg.FloatGraph) -> dict[str, fg.Curve]:
    """Nodes whose values nobody reads but one Curve, and that Curve.

    Their type is the one in front of its table. Between the two may be nodes that keep their
    input's type.
    """
    users, found = graph.users(), {}
    for node in graph.nodes.values():
        if not isinstance(node.op, fg.Curve):
            continue
        name = node.inputs[0]
        while graph.only_user(name, users) and isinstance(graph.nodes[name].op, KEEPS_TYPE):
            name = graph.nodes[name].inputs[0]
        if graph.only_user(name, users) and not isinstance(
            graph.nodes[name].op, (fg.Input, *KEEPS_TYPE)
        ):
            found[name] = node.op
    return found


def type_for(
    name: str, values: torch.Tensor, bits: int, nonnegative: bool, in_front: dict[str, fg.Curve]
) -> FixedPoint:
    """The type of a stored tensor, or of one in front of a table (see :func:`fronts`)."""
    if name not in in_front:
        return choose_type(values, bits, nonnegative)
    curve = in_front[name]
    return choose_front(values, bits, nonnegative, curve.function, curve.clamp)


def byte_type(bits: int) -> FixedPoint:
    """The type of an input of bytes: 0 to 255 in steps of 1, with fewer bits in larger steps."""
    return FixedPoint(bits, bits - 8, False)


def choose_types(
    graph: fg.FloatGraph, root: torch.nn.Module, samples: Sequence[torch.Tensor], bits: int
) -> tuple[dict[str, FixedPoint], list[torch.Tensor]]:
    """Run the graph on the samples: the types of all nodes, and the graph's float outputs.

    Parameters
    ----------
    samples : float32 (batch, C, H, W) or (batch, F) tensors, one per input; those that were
        uint8 (:func:`rasna.compile.samples.mark_bytes`) fix their input's type
    bits : of every stored tensor

    Raises
    ------
    CompileError
        A value is NaN or infinite; the node is named.
    """
    nonnegative = nonnegative_nodes(graph, root, [bool((s >= 0).all()) for s in samples])
    types: dict[str, FixedPoint] = {}
    in_front = fronts(graph)

    def observe(node: fg.Node, value: torch.Tensor) -> torch.Tensor:
        if isinstance(node.op, fg.Host):  # behind what is stored
            return value
        if not math.isfinite(float(value.abs().max())):
            raise CompileError(
                f"{node.where}: the samples give NaN or infinite values here; "
                f"check the weights and the range of the samples"
            )
        if isinstance(node.op, KEEPS_TYPE):
            types[node.name] = types[node.inputs[0]]
        elif isinstance(node.op, fg.Input) and holds_bytes(samples[node.op.index]):
            types[node.name] = byte_type(bits)
        else:
            types[node.name] = type_for(
                node.name, value, bits, nonnegative[node.name], in_front
            )
        return value

    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        outputs = run(graph, root, samples, observe)
    return settle_types(graph, types), outputs
