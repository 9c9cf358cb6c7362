"""Model and samples to quantised graph, and the proof that the capture means the same."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import CompileError
from ..graph import FixedPoint, QuantGraph
from ..structure import record_fields, record_kind
from .calibrate import choose_types
from .capture import capture, two_rows
from .check_quant import check_quant
from .execute import run
from .floatgraph import FloatGraph
from .lower import lower
from .passes import simplify
from .samples import check_mode, to_cpu_float32
from .settings import Settings
from .until import Until, run_until
from .weights import max_magnitude

# Differences of the model and its captured graph that need no explanation. In float32,
# relative to an output: most models are far below. In float64, which decides where
# float32 does not: relative to the largest intermediate value, since an output may be a small
# difference of large numbers; rounding is 1e-16 of it times the length of the sums.
SAME_FLOAT32, SAME_FLOAT64 = 1e-4, 1e-11
# Models that run in float32 only: as above, with the rounding of float32.
SAME_OUTPUT, SAME_INTERMEDIATE = 1e-3, 1e-5


@dataclass
class Compiled:
    """What the front end makes: the simplified float graph and its integer form.

    types: of every node's values; where one curve alone reads them, in front of its table.
    """

    float_graph: FloatGraph
    quant_graph: QuantGraph
    types: dict[str, FixedPoint]


def quantize_model(
    model: torch.nn.Module,
    samples: Sequence[torch.Tensor],
    settings: Settings,
    until: Until = None,
) -> Compiled:
    """Capture, simplify, calibrate and lower a model.

    Parameters
    ----------
    model : plain module in eval mode, on any device and of any float dtype; unchanged
    samples : float32 CPU tensors (batch, C, H, W) or (batch, F), one per input
    settings : bits
    until : module path or FX node (or several) at whose result the model ends

    Raises
    ------
    CompileError
        The model is in training mode, or something in it cannot be compiled.
    """
    check_mode(model)
    plain = to_cpu_float32(model)
    graph = simplify(capture(plain, samples, until=until))
    types, outputs = choose_types(graph, plain, samples, settings.ab)
    largest = max(max_magnitude(type) * 2.0**-type.frac for type in types.values())
    check_same(model, plain, graph, samples, outputs, largest, until)
    quant = check_quant(lower(graph, plain, types, settings))
    return Compiled(graph, quant, types)


def check_same(
    model: torch.nn.Module,
    plain: torch.nn.Module,
    graph: FloatGraph,
    samples: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    largest: float,
    until: Until = None,
) -> None:
    """Raise CompileError unless the model itself gives the outputs of the captured graph.

    Parameters
    ----------
    model, plain : the user's model, and itself or its float32 copy
    outputs : of the graph for the samples, float32
    largest : magnitude of the largest intermediate value
    """
    inputs = [two_rows(sample) for sample in samples]
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        expected = _run_model(plain, inputs, until)
        got = [two_rows(output) for output in outputs]
        found = _compare(graph, expected, got, SAME_FLOAT32, 0.0)
        if found is None:
            return
        try:
            exact = copy.deepcopy(plain).double()
            doubles = [x.double() for x in inputs]
            expected, got = _run_model(exact, doubles, until), run(graph, exact, doubles)
            found = _compare(graph, expected, got, 0.0, SAME_FLOAT64 * largest)
        except Exception:  # a forward that makes float32 tensors of its own
            found = _compare(graph, expected, got, SAME_OUTPUT, SAME_INTERMEDIATE * largest)
    if found is not None:
        raise CompileError(_difference(plain, *found))


def _run_model(
    plain: torch.nn.Module, inputs: Sequence[torch.Tensor], until: Until
) -> list[torch.Tensor]:
    """The outputs of the model's own forward, or of what ``until`` names in it."""
    # a tuned model's own forward quantises; its class has the forward that was traced
    tuned = "_rasna_tune" in vars(plain)
    forward = type(plain).forward.__get__(plain) if tuned else plain
    inputs = [x.clone() for x in inputs]
    if until is None:
        return flatten_outputs(forward(*inputs))
    return flatten_outputs(run_until(plain, forward, inputs, until))


def _compare(
    graph: FloatGraph,
    expected: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    relative: float,
    absolute: float,
) -> tuple[str, str] | None:
    """The first output that differs too much and how, or None."""
    for name, want, got in zip(graph.outputs, expected, outputs, strict=True):
        if want.shape != got.shape:
            return name, f"shape {tuple(want.shape)} instead of {tuple(got.shape)}"
        same = (want == got) | (want.isnan() & got.isnan())  # infinite ones too, of log(0)
        difference = float((want - got).abs().masked_fill(same, 0).max())
        largest = float(want.abs().nan_to_num(0, 0).max())
        if not difference <= relative * largest + absolute:
            return name, f"values that differ by {difference:.3g}"
    return None


def _difference(plain: torch.nn.Module, name: str, found: str) -> str:
    hooked = [
        path or "the model"
        for path, module in plain.named_modules()
        if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
    ]
    cause = (
        f"hooks or a replaced forward of {', '.join(hooked)}"
        if hooked
        else "random numbers or state that changes in forward"
    )
    return (
        f"output {name}: the model gives {found} compared with its traced operations; "
        f"possible causes are {cause}; remove them before compiling"
    )


def flatten_outputs(value: Any) -> list[torch.Tensor]:
    """The tensors of nested tuples, lists, dicts and records, in order."""
    if value is None:
        return []
    if record_kind(type(value)):
        value = record_fields(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in flatten_outputs(item)]
    return [value]
