"""Evaluate a quantised graph with torch: the integers that the hardware computes, in batches.

This is the eval side of a tuned model. It follows docs/machine.md and rasna.graph and
shares no arithmetic with rasna.golden but that of host steps: each checks the other. It is not fast
inference: convolutions run in float64, rounded to the nearest integer, because float32
(Winograd, TF32) is not exact.

Between operations a tensor is (N, C, H, W) int16, which holds int8 and uint8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..golden.host import run_steps
from ..graph import (
    AvgPool,
    Conv,
    FixedPoint,
    Gather,
    MaxPool,
    Padding,
    Product,
    QuantGraph,
    Requant,
    Select,
    Sum,
)
from ..structure import nest

STORE = torch.int16
CHUNK_BYTES = 32 << 20  # of float64 in the largest tensor or column matrix of a chunk
_BELOW_ALL = -(1 << 15)  # loses every maximum, fits STORE


def quantize(x: torch.Tensor, kind: FixedPoint) -> torch.Tensor:
    """Integers of a fixed-point type: floor(x * 2**frac + 0.5), saturated. int16, any shape.

    x is cast to float32 first; the rest is float64. NaN is the caller's to refuse.
    """
    scaled = x.detach().to(torch.float32).to(torch.float64) * 2.0**kind.frac
    return torch.floor(scaled + 0.5).clamp_(kind.lo, kind.hi).to(STORE)


def dequantize(x: torch.Tensor, kind: FixedPoint) -> torch.Tensor:
    """Real numbers of the integers of a fixed-point type, float32 (exact)."""
    return (x.to(torch.float64) * 2.0**-kind.frac).to(torch.float32)


def requantize(acc: torch.Tensor, rq: Requant, index: torch.Tensor | None = None) -> torch.Tensor:
    """Apply the requantisation of docs/numerics.md to int64 accumulators.

    acc: (N, C, H, W) int64. index: (H, W) entry of every pixel, or None for entry = channel.
    Returns (N, C, H, W) int16.
    """

    def entries(a: np.ndarray) -> torch.Tensor | int:
        if index is None and (a == a[0]).all():
            return int(a[0])
        t = torch.as_tensor(np.asarray(a, np.int64), device=acc.device)
        return t.view(1, -1, 1, 1) if index is None else t[index]

    shift = entries(rq.shift)
    half = 1 << (shift - 1) if isinstance(shift, int) else torch.ones_like(shift) << (shift - 1)
    limit = 1 << (rq.ib - 1)
    t = (acc >> entries(rq.pre_shift)).clamp_(-limit, limit - 1)
    t.mul_(entries(rq.multiplier)).add_(half)
    return _finish(t >> shift, rq)


def _finish(y: torch.Tensor, rq: Requant) -> torch.Tensor:
    """Clamp and curve."""
    y = y.clamp_(rq.lo, rq.hi)
    if rq.curve is None:
        return y.to(STORE)
    return torch.as_tensor(rq.curve.values, device=y.device)[y & 0xFF]


def _pad(x: torch.Tensor, p: Padding, mode: str) -> torch.Tensor:
    if not (p.top or p.bottom or p.left or p.right):
        return x
    if mode == "zeros":
        return F.pad(x, (p.left, p.right, p.top, p.bottom))
    rows = torch.arange(-p.top, x.shape[2] + p.bottom, device=x.device) % x.shape[2]
    columns = torch.arange(-p.left, x.shape[3] + p.right, device=x.device) % x.shape[3]
    return x.index_select(2, rows).index_select(3, columns)


def _depthwise(x: torch.Tensor, op: Conv, weight: torch.Tensor) -> torch.Tensor:
    """One input channel per group: one shifted product per tap, in float64."""
    multiplier = weight.shape[0] // op.groups
    if multiplier > 1:
        x = x.repeat_interleave(multiplier, 1)
    kh, kw = weight.shape[2:]
    (sy, sx), (dy, dx) = op.stride, op.dilation
    oh = (x.shape[2] - dy * (kh - 1) - 1) // sy + 1
    ow = (x.shape[3] - dx * (kw - 1) - 1) // sx + 1
    acc = x.new_zeros(x.shape[0], x.shape[1], oh, ow)
    for i in range(kh):
        for j in range(kw):
            y0, x0 = i * dy, j * dx
            window = x[:, :, y0 : y0 + sy * (oh - 1) + 1 : sy, x0 : x0 + sx * (ow - 1) + 1 : sx]
            acc.addcmul_(window, weight[:, 0, i, j].view(1, -1, 1, 1))
    return acc


def _conv(op: Conv, x: torch.Tensor) -> torch.Tensor:
    x = _pad(x.to(torch.float64), op.padding, op.padding_mode)
    weight = torch.as_tensor(op.weight.astype(np.float64), device=x.device)
    bias = torch.as_tensor(np.asarray(op.bias, np.int64), device=x.device)
    if weight.shape[1] == 1 and op.groups > 1:
        acc = _depthwise(x, op, weight)
    elif weight.shape[2:] == x.shape[2:] and op.groups == 1:
        acc = (x.flatten(1) @ weight.flatten(1).t())[:, :, None, None]
    else:
        acc = F.conv2d(x, weight, None, op.stride, 0, op.dilation, op.groups)
    acc = torch.round(acc).to(torch.int64).add_(bias.view(1, -1, 1, 1))
    return requantize(acc, op.requant)


def _sum(op: Sum, *xs: torch.Tensor) -> torch.Tensor:
    acc = torch.as_tensor(np.asarray(op.bias, np.int64), device=xs[0].device).view(1, -1, 1, 1)
    for coefficient, x in zip(op.coefficients, xs, strict=True):
        acc = acc + x.to(torch.int64) * int(coefficient)
    return requantize(acc, op.requant)


def _product(op: Product, x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    shift = torch.as_tensor(np.asarray(op.requant.shift, np.int64), device=x.device)
    shift = shift.view(1, -1, 1, 1)
    half = torch.ones_like(shift) << (shift - 1)
    return _finish((x.to(torch.int64) * g.to(torch.int64) + half) >> shift, op.requant)


def _max_pool(op: MaxPool, x: torch.Tensor) -> torch.Tensor:
    p, need = op.padding, []
    for axis in (0, 1):
        reach = op.dilation[axis] * (op.kernel[axis] - 1) + 1
        need.append((op.out_hw[axis] - 1) * op.stride[axis] + reach)
    below = max(0, need[0] - p.top - x.shape[2])
    right = max(0, need[1] - p.left - x.shape[3])
    x = F.pad(x.to(torch.float32), (p.left, right, p.top, below), value=float(_BELOW_ALL))
    x = x[:, :, : need[0], : need[1]]
    return F.max_pool2d(x, op.kernel, op.stride, 0, op.dilation).clamp_(op.lo, op.hi).to(STORE)


def _avg_pool(op: AvgPool, x: torch.Tensor) -> torch.Tensor:
    """Window sums out of the table of sums of all prefixes."""
    table = F.pad(x.to(torch.int64), (1, 0, 1, 0)).cumsum(2).cumsum(3)
    r0, r1 = torch.as_tensor(np.asarray(op.rows, np.int64), device=x.device).t()
    c0, c1 = torch.as_tensor(np.asarray(op.columns, np.int64), device=x.device).t()
    table = table.index_select(2, r1) - table.index_select(2, r0)
    acc = table.index_select(3, c1) - table.index_select(3, c0)
    index = torch.as_tensor(np.asarray(op.requant_index, np.int64), device=x.device)
    return requantize(acc, op.requant, index)


def _entry(rq: Requant, k: int) -> Requant:
    """The requantisation of entry k alone."""
    one = slice(k, k + 1)
    return replace(
        rq, pre_shift=rq.pre_shift[one], multiplier=rq.multiplier[one], shift=rq.shift[one]
    )


def _select(op: Select, *xs: torch.Tensor) -> torch.Tensor:
    parts = [requantize(x.to(torch.int64), _entry(op.requant, k)) for k, x in enumerate(xs)]
    channels = torch.as_tensor(np.asarray(op.channels, np.int64), device=xs[0].device)
    picked = torch.cat(parts, 1).index_select(1, channels.flatten())
    height, width = xs[0].shape[2:]
    (oc, rows, columns) = channels.shape
    picked = picked.view(-1, oc, rows, columns, height, width).permute(0, 1, 4, 2, 5, 3)
    return picked.reshape(-1, oc, height * rows, width * columns)


def _gather(op: Gather, *xs: torch.Tensor) -> torch.Tensor:
    x = torch.cat(xs, op.axis + 1)
    for axis, numbers in enumerate((op.channels, op.rows, op.columns), start=1):
        n = torch.as_tensor(np.asarray(numbers, np.int64), device=x.device)
        x = x.index_select(axis, n.clamp_min(0))
        x = x.index_fill_(axis, (n < 0).nonzero().flatten(), op.fill)
    return x.clamp_(op.lo, op.hi)


_EVALUATE: dict[type, Callable[..., torch.Tensor]] = {
    Conv: _conv,
    Sum: _sum,
    Product: _product,
    MaxPool: _max_pool,
    AvgPool: _avg_pool,
    Select: _select,
    Gather: _gather,
}


def evaluate(graph: QuantGraph, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """All tensors of the graph, by name: (N, C, H, W) int16.

    inputs: integers in the order of ``graph.inputs``, each (N, C, H, W), any integer dtype.
    """
    values = {
        port.tensor: x.to(STORE).reshape(-1, *graph.tensors[port.tensor].shape)
        for port, x in zip(graph.inputs, inputs, strict=True)
    }
    with torch.no_grad():
        for op in graph.ops:
            values[op.output] = _EVALUATE[type(op)](op, *(values[name] for name in op.inputs))
    return values


class IntegerModel:
    """A QuantGraph as a function of float batches, exactly what a runtime object returns.

    ``model(x, …)``: one tensor per input, (N, *port.shape), any real dtype, NCHW. Returns
    float32 tensors in the model's output structure, on the device of the first input.

    Raises
    ------
    ValueError
        Wrong number or shape of the inputs; NaN or infinite values.
    """

    def __init__(self, graph: QuantGraph) -> None:
        self.graph = graph
        self._last_use = self._find_last_uses()
        self._image_bytes = self._largest_image_bytes()

    def _find_last_uses(self) -> list[list[str]]:
        """Tensors to drop after each operation."""
        keep = {port.tensor for port in self.graph.outputs}
        last = {name: i for i, op in enumerate(self.graph.ops) for name in op.inputs}
        drop: list[list[str]] = [[] for _ in self.graph.ops]
        for name, i in last.items():
            if name not in keep:
                drop[i].append(name)
        return drop

    def _largest_image_bytes(self) -> int:
        """float64 bytes of one image in the largest column matrix or tensor."""
        elems = [t.num_elems for t in self.graph.tensors.values()]
        for op in self.graph.ops:
            if isinstance(op, Conv):
                _, h, w = self.graph.tensors[op.output].shape
                elems.append(h * w * math.prod(op.weight.shape[1:]))
        return 8 * max(elems)

    def check(self, inputs: Sequence[torch.Tensor]) -> int:
        """The batch size, or ValueError with the port that does not fit."""
        ports = self.graph.inputs
        if len(inputs) != len(ports):
            names = ", ".join(p.name for p in ports)
            raise ValueError(f"the model has {len(ports)} inputs ({names}), {len(inputs)} given")
        for port, x in zip(ports, inputs, strict=True):
            if tuple(x.shape[1:]) != tuple(port.shape) or x.dim() == 0:
                raise ValueError(
                    f"input {port.name}: the types were fixed for shape (N, "
                    f"{', '.join(map(str, port.shape))}), {tuple(x.shape)} was given"
                )
            if x.shape[0] != inputs[0].shape[0]:
                raise ValueError(
                    f"input {port.name}: its batch is {x.shape[0]}, that of "
                    f"{ports[0].name} is {inputs[0].shape[0]}; they must be equal"
                )
            if x.is_floating_point() and not torch.isfinite(x).all():
                count = int((~torch.isfinite(x)).sum())
                raise ValueError(f"input {port.name}: {count} values are NaN or infinite")
        return int(inputs[0].shape[0])

    def _run_chunk(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        graph, values = self.graph, {}
        for port, x in zip(graph.inputs, inputs, strict=True):
            tensor = graph.tensors[port.tensor]
            values[port.tensor] = quantize(x, tensor.type).reshape(-1, *tensor.shape)
        for op, drop in zip(graph.ops, self._last_use, strict=True):
            values[op.output] = _EVALUATE[type(op)](op, *(values[name] for name in op.inputs))
            for name in drop:
                del values[name]
        return [
            dequantize(values[p.tensor], graph.tensors[p.tensor].type).reshape(-1, *p.shape)
            for p in graph.outputs
        ]

    def _on_host(self, leaves: list[torch.Tensor]) -> list[torch.Tensor]:
        """The host steps by the runtime's own NumPy, so that their results are the same."""
        if not self.graph.host_steps:
            return leaves
        ports = zip(self.graph.outputs, leaves, strict=True)
        outputs = {port.name: leaf.cpu().numpy() for port, leaf in ports}
        found = run_steps(self.graph.host_steps, self.graph.results, outputs)
        return [torch.from_numpy(array) for array in found]

    @torch.no_grad()
    def __call__(self, *inputs: torch.Tensor) -> Any:
        batch = self.check(inputs)
        device = inputs[0].device
        work = device if device.type != "mps" else torch.device("cpu")  # MPS has no float64
        step = max(1, CHUNK_BYTES // self._image_bytes)
        chunks = []
        with torch.autocast(device_type=work.type, enabled=False):
            for start in range(0, max(batch, 1), step):
                part = [x[start : start + step].to(work) for x in inputs]
                chunks.append(self._run_chunk(part))
        leaves = [torch.cat(parts) for parts in zip(*chunks, strict=True)]
        leaves = [leaf.to(device) for leaf in self._on_host(leaves)]
        return nest(self.graph.structure, leaves, self.graph.classes)
