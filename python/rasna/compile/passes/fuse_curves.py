"""Functions of one value that follow one another, or meet again, become one table.

Matches, of nodes that compute every element from the same element of one tensor (Curve, and
Affine with numbers, Clamp, Leaky, Sum and Product of such): one behind a Curve that has no other
reader; and a Product or Sum all of whose operands come from the same tensor this way, with at
least one curve or product among them, as in x * sigmoid(x). Does: puts the whole function into one
Curve, so that nothing is rounded within it.
"""

from __future__ import annotations

from .. import floatgraph as fg
from ..curves import Function, Step, is_curved

MAX_STEPS = 64  # of one function, for models that repeat themselves


def fuse_curves(graph: fg.FloatGraph) -> None:
    """Merge chains and diamonds of functions of one value."""
    for node in list(graph.nodes.values()):
        if node.name not in graph.nodes:
            continue
        if isinstance(node.op, (fg.Product, fg.Sum)):
            _fuse_diamond(graph, node)
        elif _own(node.op) is not None:
            _fuse_chain(graph, node)
    _drop_unused(graph)


def _own(op: fg.FloatOp) -> Function | None:
    """The function of a node with one input, None if it is not one of a single value."""
    if isinstance(op, fg.Curve):
        steps = op.function
    elif isinstance(op, fg.Clamp):
        steps = ()
    elif isinstance(op, fg.Leaky) and isinstance(op.slope, (int, float)):
        steps = (Step("leaky_relu", (float(op.slope),)),)
    elif isinstance(op, fg.Affine):
        numbers = [_line(step) for step in op.steps]
        if None in numbers:
            return None
        steps = tuple(Step("affine", line) for line in numbers if line is not None)
    else:
        return None
    return steps if op.clamp == fg.UNBOUNDED else (*steps, Step("clamp", op.clamp))


def _line(step: fg.Step) -> tuple[float, float] | None:
    """(a, b) of a step y = a*x + b with numbers."""
    if not isinstance(step, fg.Arithmetic) or not isinstance(step.operand, (int, float)):
        return None
    v = float(step.operand)
    return {
        "add": (1.0, v), "sub": (1.0, -v), "rsub": (-1.0, v), "mul": (v, 0.0),
        "div": (1.0 / v if v else 0.0, 0.0),
    }[step.kind]  # fmt: skip


def _fuse_chain(graph: fg.FloatGraph, node: fg.Node) -> None:
    before, own = graph.nodes[node.inputs[0]], _own(node.op)
    if own is None or not isinstance(before.op, fg.Curve) or isinstance(node.op, fg.Clamp):
        return  # a Clamp becomes that of the Curve: fold_clamp
    if graph.only_user(before.name, graph.users()) is None:
        return
    function = (*(_own(before.op) or ()), *own)
    node.op = fg.Curve(function)
    node.inputs = list(before.inputs)
    del graph.nodes[before.name]


def _fuse_diamond(graph: fg.FloatGraph, node: fg.Node) -> None:
    for root in _ancestors(graph, node.inputs[0]):
        function = _meet(graph, node, root)
        if function is not None:
            if is_curved(function) and _size(function) <= MAX_STEPS:
                node.op, node.inputs = fg.Curve(function), [root]
            return


def _ancestors(graph: fg.FloatGraph, name: str) -> list[str]:
    """The node and those in front of it, as far as its value depends on one of theirs alone."""
    found = [name]
    while _own(graph.nodes[found[-1]].op) is not None:
        found.append(graph.nodes[found[-1]].inputs[0])
    return found


def _function(graph: fg.FloatGraph, name: str, root: str) -> Function | None:
    """The value ``name`` as a function of ``root``, None if it is not one."""
    steps: Function = ()
    while name != root:
        node = graph.nodes[name]
        own = _own(node.op)
        if own is None:
            return None
        steps, name = (*own, *steps), node.inputs[0]
    return steps


def _meet(graph: fg.FloatGraph, node: fg.Node, root: str) -> Function | None:
    """A Product or Sum of two values as a function of ``root``."""
    op = node.op
    if len(node.inputs) != 2 or graph.nodes[root].shape != node.shape:
        return None
    parts = [_function(graph, name, root) for name in node.inputs]
    first, second = parts
    if first is None or second is None:
        return None
    if isinstance(op, fg.Product):
        step = Step("product", (first, second))
    else:
        a, b = op.coefficients
        step = Step("sum", (float(a), first, float(b), second))
    return (step,) if op.clamp == fg.UNBOUNDED else (step, Step("clamp", op.clamp))


def _size(function: Function) -> int:
    return sum(
        1 + sum(_size(arg) for arg in step.args if isinstance(arg, tuple)) for step in function
    )


def _drop_unused(graph: fg.FloatGraph) -> None:
    """Remove what nobody reads any more."""
    for node in reversed(list(graph.nodes.values())):
        if _own(node.op) is None or node.name in graph.outputs:
            continue
        if not any(node.name in other.inputs for other in graph.nodes.values()):
            del graph.nodes[node.name]
