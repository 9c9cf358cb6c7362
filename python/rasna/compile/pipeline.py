"""Model and samples to quantised graph, and the proof that the capture means the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import CompileError
from ..graph import QuantGraph
from .calibrate import choose_types
from .capture import capture, two_rows
from .check_quant import check_quant
from .floatgraph import FloatGraph
from .lower import lower
from .passes import simplify
from .samples import check_mode, to_cpu_float32
from .settings import Settings
from .weights import max_magnitude

# float32 in another order of summation: relative to an output, and to the largest
# intermediate value, since an output may be a small difference of large numbers
SAME_OUTPUT, SAME_INTERMEDIATE = 1e-3, 1e-5


@dataclass
class Compiled:
    """What the front end makes: the simplified float graph and its integer form."""

    float_graph: FloatGraph
    quant_graph: QuantGraph


def quantize_model(
    model: torch.nn.Module, samples: Sequence[torch.Tensor], settings: Settings
) -> Compiled:
    """Capture, simplify, calibrate and lower a model.

    Parameters
    ----------
    model : plain module in eval mode, on any device and of any float dtype; unchanged
    samples : float32 CPU tensors (batch, C, H, W) or (batch, F), one per input
    settings : bits

    Raises
    ------
    CompileError
        The model is in training mode, or something in it cannot be compiled.
    """
    check_mode(model)
    plain = to_cpu_float32(model)
    graph = simplify(capture(plain, samples))
    types, outputs = choose_types(graph, plain, samples, settings.ab)
    largest = max(max_magnitude(type) * 2.0**-type.frac for type in types.values())
    _check_same(model, plain, graph, samples, outputs, SAME_INTERMEDIATE * largest)
    quant = check_quant(lower(graph, plain, types, settings))
    return Compiled(graph, quant)


def _check_same(
    model: torch.nn.Module,
    plain: torch.nn.Module,
    graph: FloatGraph,
    samples: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    tolerance: float,
) -> None:
    """Raise CompileError unless the model itself gives the outputs of the captured graph."""
    inputs = [two_rows(sample) for sample in samples]
    # a tuned model's own forward quantises; its class has the forward that was traced
    forward = type(plain).forward.__get__(plain) if hasattr(model, "_rasna_tune") else plain
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        expected = flatten_outputs(forward(*inputs))
    for name, want, got in zip(graph.outputs, expected, outputs, strict=True):
        got = two_rows(got)
        allowed = SAME_OUTPUT * float(want.abs().max()) + tolerance
        if want.shape != got.shape:
            found = f"shape {tuple(want.shape)} instead of {tuple(got.shape)}"
        elif float((want - got).abs().max()) > allowed:
            found = f"values that differ by {float((want - got).abs().max()):.3g}"
        else:
            continue
        raise CompileError(_difference(plain, name, found))


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
    """The tensors of nested tuples, lists and dicts, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in flatten_outputs(item)]
    return [value]
