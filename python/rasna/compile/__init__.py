"""The compiler: a PyTorch model and samples in, a Program out.

samples → capture (FX trace to float graph) → passes → calibrate (types) → lower
(quantised graph) → backend (instructions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..targets import DEFAULT_TARGET, Target, get_target

if TYPE_CHECKING:
    import torch

    from ..program import Program


def compile(
    model: torch.nn.Module,
    *samples: Any,
    channel_last: bool = True,
    target: str | Target = DEFAULT_TARGET,
) -> Program:
    """Compile a model to a Program.

    Parameters
    ----------
    model : torch.nn.Module
        In eval mode; it is not changed. A tuned model carries its numbers of bits, and its
        eval equals the runtime bit for bit from now on.
    *samples : array or tensor
        One per positional input of the model's forward, batch first: (batch, H, W, C) or
        (batch, features), any real dtype. Their values choose the fixed-point types.
    channel_last : bool
        False: 4-D samples are (batch, C, H, W).
    target : str or Target
        Which machine the program is for.

    Returns
    -------
    Program

    Raises
    ------
    CompileError
        The model is in training mode, or parts of it cannot be compiled: one line each,
        with FX node, module path and source line.
    RasnaTypeError, RasnaValueError
        An argument is wrong.
    """
    # here, so that the back end can be imported where torch is not installed
    from .backend import build_program
    from .pipeline import quantize_model
    from .samples import check_mode, check_samples, unwrap
    from .settings import settings_of

    arrays = list(samples)
    if arrays and isinstance(arrays[-1], bool):
        channel_last = arrays.pop()  # given by position
    target = get_target(target)
    model = unwrap(model)
    inputs = check_samples(arrays, channel_last)
    tuned = getattr(model, "_rasna_tune", None)
    if tuned is not None:
        check_mode(model)
        tuned.prepare(inputs)
    compiled = quantize_model(model, inputs, settings_of(model))
    program = build_program(compiled.quant_graph, target, channel_last=channel_last)
    if tuned is not None:
        tuned.freeze(compiled.quant_graph)
    return program
