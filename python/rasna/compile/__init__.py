"""The compiler: a PyTorch model and samples in, a Program out.

samples → capture (FX trace to float graph) → passes → calibrate (types) → lower
(quantised graph) → backend (instructions).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import CompileError
from ..targets import DEFAULT_TARGET, Target, get_target

if TYPE_CHECKING:
    import torch

    from ..program import Program
    from .report import Report


def compile(
    model: torch.nn.Module,
    *samples: Any,
    channel_last: bool | None = None,
    target: str | Target = DEFAULT_TARGET,
    until: str | Sequence[str] | None = None,
) -> Program:
    """Compile a model to a Program.

    Parameters
    ----------
    model : torch.nn.Module
        In eval mode; it is not changed. A tuned model carries its numbers of bits, and its
        eval equals the runtime bit for bit from now on (not with ``until``).
    *samples : array or tensor
        One per positional input of the model's forward, batch first: (batch, H, W, C),
        (batch, L, C) or (batch, features), any real dtype. Their values choose the types.
    channel_last : bool, default True
        False: samples are (batch, C, H, W) or (batch, C, L). Where it is not given and a sample
        fits both orders, as (batch, 16, 16) does, a warning asks for it.
    target : str or Target
        Which machine the program is for.
    until : str or list of str
        Compile a part: the result is that of this module (a path as in
        ``model.named_modules()``) or FX node (as in messages and ``print(program)``). A list
        gives a tuple. What comes behind need not be supported; all inputs stay inputs.

    Returns
    -------
    Program

    Raises
    ------
    CompileError
        The model is in training mode, or parts of it cannot be compiled: all that is in the
        way, with FX node, module path and source line; ``error.report`` is what :func:`check`
        returns.
    RasnaTypeError, RasnaValueError
        An argument is wrong.
    """
    # here, so that the back end can be imported where torch is not installed
    from .backend import build_program
    from .pipeline import quantize_model
    from .samples import check_mode
    from .settings import settings_of

    model, inputs, channel_last, machine = _arguments(model, samples, channel_last, target, until)
    tuned = model.__dict__.get("_rasna_tune")
    try:
        if tuned is not None:
            check_mode(model)
            tuned.prepare(inputs)
        compiled = quantize_model(model, inputs, settings_of(model), until)
        program = build_program(compiled.quant_graph, machine, channel_last=channel_last)
    except CompileError as error:
        from .dry_run import dry_run

        report = dry_run(model, inputs, settings_of(model), machine, until)
        if report.ok:
            raise
        raise CompileError(str(report), report.problems, report) from error
    if tuned is not None and until is None:
        tuned.freeze(compiled.quant_graph)
    return program


def check(
    model: torch.nn.Module,
    *samples: Any,
    channel_last: bool | None = None,
    target: str | Target = DEFAULT_TARGET,
    until: str | Sequence[str] | None = None,
) -> Report:
    """Say all that stands in the way of compiling a model, and how it could be split.

    Nothing is changed, and nothing is raised that is due to the model.

    Parameters
    ----------
    model, samples, channel_last, target, until
        As for :func:`compile`; the model may be in training mode, which is one of the problems.

    Returns
    -------
    Report
        ``print`` shows it; it is true if the model compiles.

    Raises
    ------
    RasnaTypeError, RasnaValueError
        An argument is wrong.
    """
    from .dry_run import dry_run
    from .settings import settings_of

    model, inputs, _, machine = _arguments(model, samples, channel_last, target, until)
    tuned = model.__dict__.get("_rasna_tune")
    if tuned is not None:
        tuned.prepare(inputs)
    return dry_run(model, inputs, settings_of(model), machine, until)


def _arguments(model, samples: Sequence[Any], channel_last, target, until) -> tuple:
    """Plain module, NCHW tensors, channel_last and Target, all checked."""
    from .samples import check_samples, unwrap, warn_ambiguous
    from .until import check_until

    arrays = list(samples)
    if arrays and isinstance(arrays[-1], bool):
        channel_last = arrays.pop()  # given by position
    machine = get_target(target)
    model = unwrap(model)
    check_until(until)
    inputs = check_samples(arrays, True if channel_last is None else channel_last)
    if channel_last is None:
        warn_ambiguous(inputs)
        channel_last = True
    return model, inputs, channel_last, machine
