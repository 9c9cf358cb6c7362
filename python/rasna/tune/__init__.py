"""``rasna.tune``: make a model sparse and quantised while the user's own loop trains it."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from ..compile.trace import Trace, trace
from ..errors import CompileError, TuneError
from ..warn import warn_user
from .circular import make_circular, restore
from .prune import prune, unprune, weight_of
from .settings import Settings, check_arguments
from .state import Tuned

__all__ = ["tune"]

MAX_STARRED = 8  # inputs that are tried for a forward with *args

_CONVOLUTIONS = (nn.Conv2d, nn.Conv1d, nn.ConvTranspose2d, nn.ConvTranspose1d)
_FUNCTIONS = (
    F.conv2d, torch.conv2d, F.conv1d, torch.conv1d, F.linear, F.conv_transpose2d,
    torch.conv_transpose2d, F.conv_transpose1d, torch.conv_transpose1d,
)  # fmt: skip


def tune(
    model: nn.Module,
    sp: float = 0.8,
    ab: int = 8,
    wb: int = 8,
    ib: int = 17,
    chpad: bool = True,
    strategy: str = "auto",
) -> nn.Module:
    """Make a model sparse and quantised, in place; fine-tune it with your own loop afterwards.

    In training the model computes with fake-quantised weights and activations, in eval the
    integers that the hardware computes; after ``rasna.compile`` eval equals the runtime bit for
    bit until a weight changes or the model is trained on. Pruned weights stay zero under
    any optimiser. ``state_dict()`` has the keys of the plain model. To reload a checkpoint, tune
    a fresh model with the same arguments, then ``load_state_dict``: masks are made anew
    from what is loaded. A checkpoint that was trained with ``chpad`` computes something else in a
    plain model. Calling ``tune`` again replaces all that the first call has set.

    Parameters
    ----------
    model : torch.nn.Module
        Traceable by torch.fx, with at least one Conv2d, Conv1d or Linear.
    sp : float
        Share of the weights of every pruned layer that become zero, 0 <= sp < 1. The
        smallest magnitudes of the layer go.
    ab, wb : int
        Bits of activations and weights, 2 to 8.
    ib : int
        Bits of the intermediate value of requantisation, 12 to 24.
    chpad : bool
        Make the padding of every Conv2d and Conv1d circular (fine-tuning adapts to it). Where that
        would wrap more than once the layer keeps its mode, with a warning.
    strategy : {"auto", "all"}
        "auto" leaves the first convolution, depthwise convolutions and linear layers dense;
        "all" prunes every convolution, transposed ones included, and every Linear.

    Returns
    -------
    torch.nn.Module
        ``model`` itself.

    Raises
    ------
    RasnaTypeError, TuneError
        An argument is wrong (RasnaTypeError is a TypeError, TuneError a ValueError).
    CompileError
        The model cannot be traced; says where. What the compiler does not support is
        refused in the first forward, with all places.
    """
    settings = check_arguments(model, sp, ab, wb, ib, chpad, strategy)
    layers = _layers(model)
    _check_layers(layers)
    restore(model)
    for layer in model.modules():
        unprune(layer)
    chosen = _layers_to_prune(layers, settings)
    for layer in chosen:
        prune(layer, settings.sp)
    if settings.chpad:
        make_circular(model)
    tuned: Any = Tuned(model, settings)
    model._rasna_tune = model.forward = tuned
    return model


def _layers(model: nn.Module) -> dict[str, nn.Module | None]:
    """Convolutions and Linear layers by path, in the order of execution; functional ones: None."""
    found: dict[str, nn.Module | None] = {}
    for node in _trace(model).graph.nodes:
        if node.op == "call_module":
            layer = model.get_submodule(node.target)
            if isinstance(layer, (*_CONVOLUTIONS, nn.Linear)):
                found.setdefault(node.target, layer)
        elif node.op == "call_function" and node.target in _FUNCTIONS:
            found[node.name] = None
    if not found:
        raise TuneError(
            f"tune: {type(model).__name__} has no convolution or Linear layer that its forward "
            f"uses; there is nothing to prune or to quantise"
        )
    return found


def _trace(model: nn.Module) -> Trace:
    """The trace with the required inputs, or with as many as the forward needs."""
    try:
        return trace(model)
    except CompileError as error:
        parameters = list(inspect.signature(type(model).forward).parameters.values())[1:]
        positional = sum(p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters)
        starred = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        for count in range(positional, positional + MAX_STARRED + 1 if starred else positional + 1):
            with contextlib.suppress(CompileError):
                return trace(model, count)
        raise error


def _check_layers(layers: dict[str, nn.Module | None]) -> None:
    for name, layer in layers.items():
        if layer is None:
            continue
        path = name or f"the model ({type(layer).__name__})"
        if nn.parameter.is_lazy(weight_of(layer)):
            raise TuneError(f"tune: {path} is lazy; run the model once, then tune it")
        if layer.weight.is_meta:
            raise TuneError(f"tune: {path} is on the meta device; load its weights, then tune it")
        if parametrize.is_parametrized(layer, "weight"):
            raise TuneError(
                f"tune: the weight of {path} is parametrised; call "
                f"torch.nn.utils.parametrize.remove_parametrizations(layer, 'weight') first"
            )


def _layers_to_prune(layers: dict[str, nn.Module | None], settings: Settings) -> list[nn.Module]:
    """The layers that the strategy prunes. A weight that a dense layer shares stays dense."""
    if settings.strategy == "all":
        return [layer for layer in layers.values() if layer is not None]
    chosen: list[nn.Module] = []
    dense: list[nn.Module] = []
    first = True
    for layer in layers.values():
        if isinstance(layer, _CONVOLUTIONS) and not first and not _is_depthwise(layer):
            chosen.append(layer)
        elif layer is not None:
            dense.append(layer)
        first = first and isinstance(layer, nn.Linear)
    shared = {id(layer.weight) for layer in dense}
    chosen = [layer for layer in chosen if id(layer.weight) not in shared]
    if settings.sp > 0 and not chosen:
        warn_user(
            "tune: no weight is pruned, because strategy 'auto' leaves the first convolution, "
            "depthwise convolutions and linear layers dense; use strategy='all' to prune them"
        )
    return chosen


def _is_depthwise(layer: Any) -> bool:
    return layer.groups > 1 and layer.groups == layer.in_channels
