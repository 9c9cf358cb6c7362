"""The arguments of ``rasna.tune``: what they may be, and where they are kept."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..errors import RasnaTypeError, TuneError

STRATEGIES = ("auto", "all")
_BITS = {
    "ab": (2, 8, "bits of an activation"),
    "wb": (2, 8, "bits of a weight"),
    "ib": (12, 24, "bits of an intermediate value"),
}


@dataclass(frozen=True)
class Settings:
    """Arguments of one call of ``tune``.

    sp: fraction of the weights of a pruned layer that are zero. ab, wb, ib: bits of
    activations, weights and intermediate values. chpad: circular padding everywhere.
    """

    sp: float = 0.8
    ab: int = 8
    wb: int = 8
    ib: int = 17
    chpad: bool = True
    strategy: str = "auto"


def _check_model(model: Any) -> None:
    if isinstance(model, type) and issubclass(model, nn.Module):
        raise RasnaTypeError(
            f"tune: model must be a torch.nn.Module object, the class {model.__name__} was "
            f"given; make an object of it first"
        )
    if not isinstance(model, nn.Module):
        raise RasnaTypeError(
            f"tune: model must be a torch.nn.Module, {type(model).__name__} was given"
        )
    wrapped = {"OptimizedModule": "torch.compile"}.get(type(model).__name__)
    if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        wrapped = type(model).__name__
    if wrapped:
        raise TuneError(
            f"tune: the model is wrapped by {wrapped}; tune the plain model first and "
            f"wrap it afterwards"
        )


def _bits(name: str, value: Any) -> int:
    lo, hi, what = _BITS[name]
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise RasnaTypeError(
            f"tune: {name} ({what}) must be an integer from {lo} to {hi}, {value!r} was given"
        )
    if not lo <= int(value) <= hi:
        raise TuneError(f"tune: {name} ({what}) must be {lo} to {hi}, {value!r} was given")
    return int(value)


def check_arguments(
    model: Any, sp: Any, ab: Any, wb: Any, ib: Any, chpad: Any, strategy: Any
) -> Settings:
    """Settings out of the arguments of ``tune``.

    Raises
    ------
    RasnaTypeError
        An argument has a wrong type.
    TuneError
        An argument has a wrong value; the message says what is allowed.
    """
    _check_model(model)
    what = "tune: sp (fraction of zero weights) must be"
    if isinstance(sp, bool) or not isinstance(sp, numbers.Real):
        raise RasnaTypeError(f"{what} a number with 0 <= sp < 1, {sp!r} was given")
    if not 0 <= float(sp) < 1:
        raise TuneError(f"{what} 0 <= sp < 1, {sp!r} was given")
    bits = [_bits(name, value) for name, value in (("ab", ab), ("wb", wb), ("ib", ib))]
    if not isinstance(chpad, bool):
        raise RasnaTypeError(f"tune: chpad must be True or False, {chpad!r} was given")
    if strategy not in STRATEGIES:
        raise TuneError(f"tune: strategy must be 'auto' or 'all', {strategy!r} was given")
    return Settings(float(sp), bits[0], bits[1], bits[2], chpad, strategy)
