"""Steps behind the accelerator, in NumPy: softmax, argmax and other heads of a model.

A Program names them as data (``rasna.graph.HostStep``); only the kinds below exist. They are
computed in float64 from the exact values of the accelerator's integers and rounded to float32
once, so that they are within float32 rounding of what PyTorch computes of the same values.

Arrays are batch first, dimensions in PyTorch's order (N, C, H, W); axes count the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..graph import HostStep

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """compute(x float64, **attributes); shape(shape without the batch, **attributes) of the result.

    attributes: name to a check of a value, given the shape.
    """

    compute: Callable[..., np.ndarray]
    shape: Callable[..., Shape] = lambda shape, **_: shape
    attributes: Mapping[str, Callable[[Any, Shape], bool]] = None  # type: ignore[assignment]

    def accepts(self, attributes: Mapping[str, Any], shape: Shape) -> bool:
        """Whether these are the attributes of the kind, for an input of this shape."""
        checks = self.attributes or {}
        return set(attributes) == set(checks) and all(
            check(attributes[name], shape) for name, check in checks.items()
        )


def _is_axis(value: Any, shape: Shape) -> bool:
    return type(value) is int and 1 <= value <= len(shape)


def _is_flag(value: Any, shape: Shape) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any, shape: Shape) -> bool:
    return type(value) in (int, float) and bool(np.isfinite(value))


def _is_same_size(value: Any, shape: Shape) -> bool:
    sizes = isinstance(value, (list, tuple)) and all(type(n) is int and n > 0 for n in value)
    return sizes and prod(value) == prod(shape)


def _are_channels(value: Any, shape: Shape) -> bool:
    numbers = isinstance(value, (list, tuple)) and len(value) > 0
    return numbers and all(type(n) is int and 0 <= n < shape[0] for n in value)


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def _normalize(x: np.ndarray, axis: int, eps: float) -> np.ndarray:
    return x / np.maximum(np.sqrt((x * x).sum(axis, keepdims=True)), eps)


def _first(function: Callable) -> Callable:
    """argmax or argmin: the first of equal values, as PyTorch on a CPU."""

    def compute(x: np.ndarray, axis: int, keepdim: bool) -> np.ndarray:
        index = function(x, axis)
        return np.expand_dims(index, axis) if keepdim else index

    return compute


def _reduced(shape: Shape, axis: int, keepdim: bool) -> Shape:
    return (*shape[: axis - 1], *([1] if keepdim else []), *shape[axis:])


_AXIS = {"axis": _is_axis}
_INDEX = {"axis": _is_axis, "keepdim": _is_flag}

KINDS: dict[str, Kind] = {
    "softmax": Kind(_softmax, attributes=_AXIS),
    "log_softmax": Kind(_log_softmax, attributes=_AXIS),
    "argmax": Kind(_first(np.argmax), _reduced, _INDEX),
    "argmin": Kind(_first(np.argmin), _reduced, _INDEX),
    "sigmoid": Kind(_sigmoid),
    "logsigmoid": Kind(lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))),
    "softplus": Kind(lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
    "tanh": Kind(np.tanh),
    "exp": Kind(np.exp),
    "log": Kind(np.log),
    "sqrt": Kind(np.sqrt),
    "abs": Kind(np.abs),
    "normalize": Kind(_normalize, attributes={"axis": _is_axis, "eps": _is_number}),
    "scale": Kind(
        lambda x, factor, offset: x * factor + offset,
        attributes={"factor": _is_number, "offset": _is_number},
    ),
    "reshape": Kind(
        lambda x, shape: x.reshape(len(x), *shape), lambda _, shape: tuple(shape),
        {"shape": _is_same_size},
    ),
    "take": Kind(
        lambda x, channels: x[:, list(channels)], lambda s, channels: (len(channels), *s[1:]),
        {"channels": _are_channels},
    ),
}  # fmt: skip

INDICES = ("argmax", "argmin")  # kinds whose result is int64 whatever they read
MOVES = ("reshape", "take")  # kinds whose result has the type of what they read


def run_step(step: HostStep, x: np.ndarray) -> np.ndarray:
    """What a step makes of its input (batch, …); an array of ``step.dtype``."""
    with np.errstate(all="ignore"):  # log of 0 is -inf, exp of 100 inf, as in PyTorch
        y = KINDS[step.kind].compute(x.astype(np.float64), **step.attributes)
        return np.ascontiguousarray(y.astype(step.dtype))


def run_steps(
    steps: Sequence[HostStep], results: Sequence[str], outputs: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """The results of a model.

    Parameters
    ----------
    steps : in order
    results : names of output ports and steps
    outputs : by port name, the accelerator's outputs as float32 (batch, *port.shape)
    """
    values = dict(outputs)
    for step in steps:
        values[step.name] = run_step(step, values[step.source])
    return [values[name] for name in results]
