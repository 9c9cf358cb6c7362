"""What users pass and get: any array becomes integers in NCHW order, and back.

Nothing here writes to an array of the caller, and no result shares memory with one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RasnaTypeError, RasnaValueError
from ..golden.layers import quantize
from ..program.ports import PortInfo
from ..warn import warn_user

if TYPE_CHECKING:
    from ..program import Program


def to_numpy(x: Any, name: str) -> np.ndarray:
    """An array, a list or a tensor of any library with ``detach`` as a NumPy array.

    Raises RasnaTypeError when it does not hold real numbers.
    """
    if hasattr(x, "detach") and hasattr(x, "cpu"):  # a torch tensor; torch is not imported
        x = x.detach().cpu()
        try:
            x = x.numpy()
        except (TypeError, RuntimeError):  # bfloat16, conjugated, negated, sparse, quantised
            x = x.float().numpy() if hasattr(x, "float") else x
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise RasnaTypeError(f"input {name}: is not a rectangular array: {error}") from None
    if array.dtype.kind not in "fiub":
        raise RasnaTypeError(
            f"input {name}: floats or integers are needed, {_kind(x, array)} was given"
        )
    return array


def _kind(x: Any, array: np.ndarray) -> str:
    return type(x).__name__ if array.ndim == 0 else f"an array of {array.dtype}"


def has_batch(port: PortInfo, array: np.ndarray, channel_last: bool) -> bool:
    """Whether the array has a batch dimension. Raises RasnaValueError for a wrong shape."""
    needed = port.array_shape(channel_last)
    if array.shape == needed:
        return False
    if array.shape[1:] == needed and array.ndim == len(needed) + 1:
        return True
    raise RasnaValueError(_shape_message(port, array.shape, channel_last))


def _shape_message(port: PortInfo, given: tuple[int, ...], channel_last: bool) -> str:
    needed = port.array_shape(channel_last)
    axes = {3: "HW", 2: "L"}.get(len(needed), "")
    order = (axes + "C" if channel_last else "C" + axes) if axes else ""
    form = f" (B{order} or {order})" if order else ""
    text = (
        f"input {port.name}: shape (batch, {', '.join(map(str, needed))}) or {needed} is needed"
        f"{form}, {given} was given"
    )
    other = port.array_shape(not channel_last)
    if other != needed and other in (given, given[1:]):
        text += (
            f"; it looks like B{'C' + axes if channel_last else axes + 'C'}: "
            f"pass channel_last={not channel_last}"
        )
    elif len(given) not in (len(needed), len(needed) + 1):
        text += f"; {len(needed)} or {len(needed) + 1} dimensions are needed, not {len(given)}"
    return text


def warn_ambiguous(program: Program) -> None:
    """Ask about inputs that fit both orders of the dimensions, where compile was given the other.

    A run takes channels last where nothing is said.
    """
    for port in () if program.channel_last else program.inputs:
        needed = port.array_shape(True)
        if len(needed) in (2, 3) and needed == port.array_shape(False) and needed[0] > 1:
            order = {3: "HW", 2: "L"}[len(needed)]
            warn_user(
                f"input {port.name}: the shape {needed} does not tell which dimension holds the "
                f"channels; it is read as B{order}C, while the samples of this program were "
                f"BC{order}. Pass channel_last=True or channel_last=False"
            )


def check_numbers(port: PortInfo, array: np.ndarray, normalize: bool) -> None:
    """Refuse NaN and infinity, or, for packed integers, a wrong dtype or value."""
    if not normalize:
        _check_packed(port, array)
    elif array.dtype.kind == "f":
        count = array.size - int(np.count_nonzero(np.isfinite(array)))
        if count:
            raise RasnaValueError(
                f"input {port.name}: {count} of {array.size} values are NaN or infinite; "
                "only finite numbers can be quantised"
            )


def _check_packed(port: PortInfo, array: np.ndarray) -> None:
    if array.dtype != port.dtype:
        raise RasnaTypeError(
            f"input {port.name}: normalize=False needs {port.dtype} (program.inputs[i].dtype), "
            f"{array.dtype} was given; convert it, or pass real numbers with normalize=True"
        )
    if array.size and (array.min() < port.type.lo or array.max() > port.type.hi):
        raise RasnaValueError(
            f"input {port.name}: integers of type {port.type} are {port.type.lo} to "
            f"{port.type.hi}, {array.min()} to {array.max()} were given"
        )


def to_integers(
    port: PortInfo, array: np.ndarray, channel_last: bool, normalize: bool
) -> np.ndarray:
    """A checked array (batch, …) as integers (batch, *port.shape) of ``port.dtype``."""
    if channel_last and len(port.shape) in (2, 3):
        array = np.moveaxis(array, -1, 1)
    if not normalize:
        return array
    with np.errstate(over="ignore"):  # beyond float32: infinite, and saturated
        return quantize(array, port.type)
