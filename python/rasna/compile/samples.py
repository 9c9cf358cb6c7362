"""Check the model and the samples that ``rasna.compile`` is given, and bring them into form."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..errors import RasnaTypeError, RasnaValueError
from ..warn import warn_user
from .problems import Problems

_WRAPPERS = (
    torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel,
    torch.optim.swa_utils.AveragedModel,
)  # fmt: skip


def unwrap(model: Any) -> torch.nn.Module:
    """The plain module inside ``torch.compile``, ``DataParallel``, DDP and ``AveragedModel``.

    Raises RasnaTypeError for what is no module, and for scripted modules.
    """
    while True:
        if isinstance(model, torch.jit.ScriptModule):
            raise RasnaTypeError(
                "the model is a TorchScript module, whose source cannot be traced; "
                "give the nn.Module that it was made from"
            )
        if hasattr(model, "_orig_mod"):  # torch.compile
            model = model._orig_mod
        elif isinstance(model, _WRAPPERS):
            model = model.module
        elif isinstance(model, torch.nn.Module):
            return model
        else:
            raise RasnaTypeError(
                f"the model must be a torch.nn.Module, {type(model).__name__} was given"
            )


def check_mode(model: torch.nn.Module) -> None:
    """Raise CompileError if the model or a part of it is in training mode or has no values."""
    model_problems(model).raise_if_any()


def model_problems(model: torch.nn.Module) -> Problems:
    """What is wrong with the modes and the values of a model."""
    problems = Problems()
    training = [name for name, module in model.named_modules() if module.training]
    if model.training:
        problems.add("", "the model is in training mode", "call model.eval() first")
    elif training:
        problems.add(
            ", ".join(training), "in training mode within a model in eval mode",
            "call model.eval() on the whole model first",
        )  # fmt: skip
    for name, tensor in _tensors(model):
        if torch.nn.parameter.is_lazy(tensor):
            problems.add(name, "is lazy and has no values", "run the model once before compiling")
        elif tensor.layout != torch.strided:
            problems.add(name, f"is a tensor of layout {tensor.layout}", "call to_dense() on it")
        elif tensor.is_meta:
            problems.add(name, "is on the meta device and has no values", "load it first")
        elif not _all_finite(tensor):
            count = int((~torch.isfinite(tensor)).sum())
            problems.add(
                name, f"{count} of {tensor.numel()} values are NaN or infinite",
                "repair the training or the checkpoint",
            )  # fmt: skip
    return problems


def _all_finite(tensor: torch.Tensor) -> bool:
    """Whether no value is NaN or infinite: both show in the extremes."""
    if tensor.numel() == 0 or not tensor.is_floating_point():
        return True
    return all(math.isfinite(float(v)) for v in torch.aminmax(tensor.detach()))


def _tensors(model: torch.nn.Module):
    yield from model.named_parameters()
    yield from model.named_buffers()


def to_cpu_float32(model: torch.nn.Module) -> torch.nn.Module:
    """The model itself if all it holds is float32 on the CPU, else such a copy."""
    floats = [t for _, t in _tensors(model) if t.is_floating_point()]
    if all(t.dtype == torch.float32 and t.device.type == "cpu" for t in floats):
        return model
    return copy.deepcopy(model).to("cpu").float()


def check_samples(samples: Sequence[Any], channel_last: bool) -> list[torch.Tensor]:
    """The samples as new contiguous float32 CPU tensors, batch first, channels second.

    Parameters
    ----------
    samples : arrays or tensors, (batch, H, W, C), (batch, L, C) or (batch, F), any real dtype.
    channel_last : False if they are (batch, C, H, W) or (batch, C, L).

    Raises
    ------
    RasnaTypeError, RasnaValueError
        No samples, a wrong rank, dtype or batch, or values that are NaN or infinite.
    """
    if not samples:
        raise RasnaTypeError("compile needs one sample array per model input, none was given")
    if not isinstance(channel_last, (bool, np.bool_)):
        raise RasnaTypeError(f"channel_last must be True or False, {channel_last!r} was given")
    result = [_check_sample(i, s, channel_last) for i, s in enumerate(samples)]
    sizes = [len(s) for s in result]
    if len(set(sizes)) > 1:
        raise RasnaValueError(
            f"all samples must have the same batch size, their batch sizes are "
            f"{', '.join(map(str, sizes))}"
        )
    return result


def warn_ambiguous(samples: Sequence[torch.Tensor]) -> None:
    """Ask about samples whose shape leaves open which dimension holds the channels.

    samples: NCHW, as :func:`check_samples` gives them from arrays with their channels last.
    """
    for index, sample in enumerate(samples):
        if sample.dim() > 2 and sample.shape[1] == sample.shape[2] > 1:  # C is H or L
            shape = (len(sample), *sample.shape[2:], sample.shape[1])
            order = ("L", "C") if len(shape) == 3 else ("H", "W", "C")
            second = ", ".join(["batch", "C", *order[:-1]])
            warn_user(
                f"sample {index}: the shape {shape} does not tell which dimension holds the "
                f"channels; it is read as (batch, {', '.join(order)}). Pass channel_last=True if "
                f"that is right, channel_last=False for ({second})"
            )


def mark_bytes(tensor: torch.Tensor, dtype: Any) -> torch.Tensor:
    """``tensor``, remembering whether its values came as uint8: their type is then exact."""
    tensor._rasna_bytes = dtype in (torch.uint8, np.dtype(np.uint8))  # type: ignore[attr-defined]
    return tensor


def holds_bytes(tensor: torch.Tensor) -> bool:
    """What :func:`mark_bytes` has left."""
    return getattr(tensor, "_rasna_bytes", False)


def was_moved(tensor: torch.Tensor) -> bool:
    """Whether a 3-D sample was given with its last dimension as channels."""
    return getattr(tensor, "_rasna_moved", False)


def _check_sample(index: int, sample: Any, channel_last: bool) -> torch.Tensor:
    name = f"sample {index}"
    if not isinstance(sample, torch.Tensor):
        sample = np.asarray(sample)
    if isinstance(sample, torch.Tensor):
        tensor = sample.detach().cpu()
    else:
        if sample.dtype.kind not in "fiub":
            raise RasnaTypeError(
                f"{name} must be an array of real numbers, its dtype is {sample.dtype}"
            )
        tensor = torch.from_numpy(sample.astype(np.float32))
    if tensor.is_complex():
        raise RasnaTypeError(f"{name} must be an array of real numbers, its dtype is complex")
    if tensor.dim() not in (2, 3, 4):
        layout = "(batch, H, W, C), (batch, L, C)"
        layout = layout if channel_last else "(batch, C, H, W), (batch, C, L)"
        raise RasnaValueError(
            f"{name} must be {layout} or (batch, features), its shape is "
            f"{tuple(tensor.shape)}; add the batch dimension if it is missing"
        )
    if 0 in tensor.shape:
        raise RasnaValueError(f"{name} is empty, its shape is {tuple(tensor.shape)}")
    tensor = tensor.to(torch.float32)
    moved = tensor.dim() > 2 and bool(channel_last)
    if moved:
        tensor = tensor.movedim(-1, 1)
    bad = int((~torch.isfinite(tensor)).sum())
    if bad:
        raise RasnaValueError(
            f"{name} holds {bad} values that are NaN or infinite in float32; remove them"
        )
    # A map of one channel counts as contiguous with strange strides, too; view() then fails.
    tensor = tensor.clone(memory_format=torch.contiguous_format)
    tensor._rasna_moved = moved and tensor.dim() == 3  # type: ignore[attr-defined]
    return mark_bytes(tensor, sample.dtype)
