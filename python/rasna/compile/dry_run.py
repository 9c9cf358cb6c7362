"""Look for everything that is wrong with a model, in every stage, without stopping at the first.

What is not supported is replaced by an input with the value that PyTorch computed, so that
the stages behind capture see the rest of the model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from .. import graph as qg
from ..errors import CompileError, RasnaError
from ..targets import Target
from . import floatgraph as fg
from .backend import build_image
from .calibrate import choose_types
from .capture import Captured, capture_all, two_rows
from .check_quant import check_quant
from .lower import _Lowering
from .passes import simplify
from .pipeline import check_same
from .problems import Problems, first_line, problems_of
from .report import Report, make_report
from .samples import model_problems, to_cpu_float32
from .settings import Settings
from .until import Until
from .weights import max_magnitude

MAX_ROUNDS = 20  # layers that do not fit, reported one by one


def dry_run(
    model: torch.nn.Module,
    samples: Sequence[torch.Tensor],
    settings: Settings,
    target: Target,
    until: Until = None,
) -> Report:
    """The report about a model; raises nothing that is due to the model.

    Parameters
    ----------
    model : in any mode, which is kept; nothing in it is changed
    samples : float32 CPU tensors (batch, C, H, W) or (batch, F), one per input
    """
    problems = model_problems(model)
    tensors = (*model.parameters(), *model.buffers())
    lazy = torch.nn.parameter.is_lazy
    if any(lazy(t) or t.is_meta or t.layout != torch.strided for t in tensors):
        return make_report(model, target.name, problems.found, None)
    captured = None
    with _eval_mode(model):
        try:
            plain = to_cpu_float32(model)
            captured = capture_all(plain, samples, until=until)
            problems.extend(captured.problems.found)
            _later_stages(model, plain, captured, samples, settings, target, until, problems)
        except CompileError as error:
            problems.extend(problems_of(error))
        except RasnaError:  # an argument is wrong
            raise
        except Exception as error:
            problems.add(
                "", f"the compiler fails ({type(error).__name__}: {first_line(error)})",
                "please report this model",
            )  # fmt: skip
    return make_report(model, target.name, problems.found, captured)


@contextlib.contextmanager
def _eval_mode(model: torch.nn.Module) -> Iterator[None]:
    """All modules in eval mode, afterwards in the mode that they had."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in modes:
            module.training = False
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _later_stages(
    model, plain, captured: Captured, samples, settings: Settings, target: Target, until: Until,
    problems: Problems,
) -> None:  # fmt: skip
    """Types, comparison with the model, integers and instructions of what was captured."""
    graph = captured.graph
    if captured.problems.found:
        graph, samples = _without_opaque(captured, samples)
        if not graph.outputs:
            return
    graph = simplify(graph)
    types, outputs = choose_types(graph, plain, samples, settings.ab)
    if not captured.problems.found:
        largest = max(max_magnitude(type) * 2.0**-type.frac for type in types.values())
        try:
            check_same(model, plain, graph, samples, outputs, largest, until)
        except CompileError as error:
            problems.extend(problems_of(error))
    found = Problems()
    with torch.no_grad():
        quant = _Lowering(graph, plain, types, settings, found).run()
    problems.extend(found.found)
    _read_as_inputs(quant)
    check_quant(quant)
    _fits(quant, target, problems, {str(n.where): n.where for n in graph.nodes.values()})


def _without_opaque(
    captured: Captured, samples: Sequence[torch.Tensor]
) -> tuple[fg.FloatGraph, list[torch.Tensor]]:
    """The graph with inputs in place of Opaque nodes, their sources as outputs, and its samples."""
    graph = captured.graph
    rows = [two_rows(sample) for sample in samples]
    outputs = dict.fromkeys(graph.outputs)
    for name, (sources, value) in captured.opaque.items():
        node = graph.nodes[name]
        outputs.update(dict.fromkeys(sources))
        if len(value) == 2 and tuple(value.shape[1:]) == node.shape and node.shape:
            graph.nodes[name] = replace(node, op=fg.Input(len(rows)))
            graph.inputs.append(name)
            rows.append(torch.nan_to_num(value.detach().float()))
        else:
            outputs.pop(name, None)
    dropped = _behind(graph, {n for n, node in graph.nodes.items() if _is_opaque(node)})
    graph.nodes = {n: node for n, node in graph.nodes.items() if n not in dropped}
    graph.outputs = [n for n in outputs if n in graph.nodes and n not in graph.inputs]
    if not graph.outputs:  # the trace ended early: whatever nobody reads
        users = graph.users()
        graph.outputs = [n for n, u in users.items() if not u and n not in graph.inputs]
    return graph, rows


def _is_opaque(node: fg.Node) -> bool:
    return isinstance(node.op, fg.Opaque)


def _behind(graph: fg.FloatGraph, names: set[str]) -> set[str]:
    """The nodes and all that reads them."""
    found = set(names)
    for name, node in graph.nodes.items():
        if not found.isdisjoint(node.inputs):
            found.add(name)
    return found


def _read_as_inputs(quant: qg.QuantGraph) -> None:
    """Tensors that no operation writes, because it was refused, become inputs."""
    written = {port.tensor for port in quant.inputs} | {op.output for op in quant.ops}
    read = [name for op in quant.ops for name in op.inputs]
    for name in dict.fromkeys([*read, *(port.tensor for port in quant.outputs)]):
        if name not in written:
            quant.inputs.append(qg.Port(name, name, quant.tensors[name].shape))


def _fits(
    quant: qg.QuantGraph, target: Target, problems: Problems, places: dict[str, fg.Where]
) -> None:
    """Add every layer that does not fit the target."""
    for _ in range(MAX_ROUNDS):
        try:
            build_image(quant, target)
            return
        except CompileError as error:
            name = problems_of(error)[0].place
            bad = next((op for op in quant.ops if op.name == name), None)
            for problem in problems_of(error):
                where = places.get(bad.source if bad is not None else "", problem.place)
                problems.add(where, problem.reason, problem.remedy)
            if bad is None:
                return
            quant.ops.remove(bad)
            _read_as_inputs(quant)
            inputs = {port.tensor for port in quant.inputs}
            quant.outputs = [port for port in quant.outputs if port.tensor not in inputs]
