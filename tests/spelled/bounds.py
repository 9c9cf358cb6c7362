"""How far a quantised network may be from the float model: a bound derived from its types.

``error_bounds(compiled, root, inputs)`` gives, for every output, an array of the same shape that
|integers - floats| cannot exceed if every operation follows docs/numerics.md. Nothing in it is
fitted: it is propagated from operation to operation, element by element.

Notation: x a stored tensor with exact value x and error e(x) >= |stored - x|; LSB = 2**-frac of
the result's type; u the exact value before clamp and saturation, v the one after.

=============  ==============================================================================
operation      error of u
=============  ==============================================================================
Input          |floor(x/LSB + 0.5) * LSB - x| as it is
Conv, Linear   |f| (|W| * e(x) + |dW|_2 |x|_2) + half an accumulator step for the bias, with f
               the factor of the folded BatchNorm. |dW|_2 <= sqrt(n) max|W| / (2 limit) over the n
               non-zero weights of a channel, since the scale has the least squared error of
               candidates one of which clips nothing (numerics.md, Weights); the products with
               the stored x, |x| + e(x), are bounded by Cauchy and Schwarz. A bias beyond 2**29
               steps makes them coarser.
Affine         |a| e(x) + |a| 2**-(frac(x) + 7) for the bias; a channel whose bias exceeds 2**30
               steps loses a x
Sum            sum |c| e(x) + |c - c'| |x|, c' of 7 bits; an operand of much finer type is
               rounded to 2**-8 of the coarser one's step
AvgPool        average of e(x)
Concat         e(x)
Curve          the largest change of the function within e(x); 64 steps of it are looked at, and the
               largest difference of two neighbours is added for what lies between
Product        |x| e(y) + |y| e(x) + e(x) e(y)
Leaky          max(1, |s|) e(x) + 2**-(n+1) |x|, with the slope s in n fraction bits
=============  ==============================================================================

Requantisation adds half an LSB, 2**-15 of |u| (multiplier of 15 bits; none for sums), and
where accumulators are shifted first 2 max|q| / (2**(ib-1) - 1) LSB (floor). Then v has that
error, plus what a clamp limit moves when it is rounded to the type, plus the distance of v from
the type's range. Clamping itself adds nothing: it is 1-Lipschitz, as the maximum is, so that
MaxPool has the largest error of its window. Select, Gather and Unshuffle move errors with the
values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from rasna.compile import curves
from rasna.compile import floatgraph as fg
from rasna.compile.execute import (
    HOST,
    average,
    convolve,
    fetch_number,
    gather,
    layer_parameters,
    per_channel,
    run,
    select,
)
from rasna.compile.lower_moves import leaky_coefficients
from rasna.compile.pipeline import Compiled
from rasna.graph import FixedPoint

CURVE_STEPS = 32  # to either side
SLACK = 1 + 2.0**-10  # float32 where weights are scaled, float64 here


def error_bounds(
    compiled: Compiled, root: torch.nn.Module, inputs: Sequence[torch.Tensor],
    wb: int = 8, ib: int = 17,
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:  # fmt: skip
    """Exact outputs and error bounds, float64, batch first.

    compiled: of ``quantize_model``. root: the model as float64. inputs: float64, NCHW.
    """
    bounds = _Bounds(compiled, root, wb, ib)
    outputs = run(compiled.float_graph, root, inputs, bounds.observe)
    return outputs, [bounds.error[name] for name in compiled.float_graph.outputs]


class _Bounds:
    def __init__(self, compiled: Compiled, root: torch.nn.Module, wb: int, ib: int) -> None:
        tensors = compiled.quant_graph.tensors
        self.stored = {**compiled.types, **{name: t.type for name, t in tensors.items()}}
        self.root = root
        self.limit = (1 << (wb - 1)) - 1
        self.ib = ib
        self.value: dict[str, torch.Tensor] = {}
        self.error: dict[str, torch.Tensor] = {}
        self.types: dict[str, FixedPoint] = {}

    def observe(self, node: fg.Node, v: torch.Tensor) -> torch.Tensor:
        if isinstance(node.op, fg.Host):
            return self._host(node, v)
        same = isinstance(
            node.op,
            (fg.Reshape, fg.MaxPool, fg.Dropout, fg.Select, fg.Gather, fg.Unshuffle),
        )
        name = node.inputs[0] if same else node.name
        self.types[node.name] = self.types[name] if same else self.stored[name]
        rule = getattr(self, f"_{type(node.op).__name__.lower()}", None)
        if rule is None:
            raise NotImplementedError(f"no error bound for {type(node.op).__name__}")
        self.value[node.name] = v
        xs = [self.value[name] for name in node.inputs]
        es = [self.error[name] for name in node.inputs]
        self.error[node.name] = rule(node, v, xs, es)
        return v

    def _host(self, node: fg.Node, v: torch.Tensor) -> torch.Tensor:
        """A host step rounds to float32 once; what it makes of an error follows from its slope."""
        x, e = self.value[node.inputs[0]], self.error[node.inputs[0]]
        rule = _HOST.get(node.op.kind, _monotone)
        error = rule(node.op.kind, dict(node.op.attributes), x, e, v)
        self.value[node.name], self.error[node.name] = v, error + 2.0**-22 * v.abs() + 2.0**-40
        return v

    # ---- what every operation with an integer result adds

    def _finish(self, node, v, u, e, relative=2.0**-15):
        kind = self.types[node.name]
        lsb = 2.0**-kind.frac
        reach = max(kind.hi, -kind.lo)
        steps = 0.5 + 2 * reach / (2 ** (self.ib - 1) - 1) + 2.0 ** (self.ib - 32)
        e = e * SLACK + relative * (u.abs() + e) + steps * lsb
        return e + self._clamped(node, v, kind)

    def _clamped(self, node, v, kind: FixedPoint):
        """Rounded clamp limits, and the distance of v from the range of the type."""
        lsb = 2.0**-kind.frac
        moved = 0.0
        for bound in getattr(node.op, "clamp", fg.UNBOUNDED):
            if math.isfinite(bound) and kind.lo * lsb <= bound <= kind.hi * lsb:
                moved = max(moved, abs(math.floor(bound / lsb + 0.5) * lsb - bound))
        beyond = torch.maximum(v - kind.hi * lsb, kind.lo * lsb - v).clamp_min(0)
        return moved + beyond

    # ---- operations

    def _input(self, node, v, xs, es):
        kind = self.types[node.name]
        lsb = 2.0**-kind.frac
        stored = torch.floor(v / lsb + 0.5).clamp(kind.lo, kind.hi) * lsb
        return (stored - v).abs()

    def _conv(self, node, v, xs, es):
        def apply(x, weight):
            return convolve(x, weight, None, node.op)

        return self._layer(node, v, xs[0], es[0], apply, (1, -1, 1, 1))

    _convtranspose = _conv

    def _linear(self, node, v, xs, es):
        return self._layer(node, v, xs[0], es[0], F.linear, (1, -1))

    def _layer(self, node, v, x, e, apply, shape):
        limit = 127 if getattr(node.op, "fixed", False) else self.limit
        weight, factor, bias = layer_parameters(self.root, node.op)
        rows = weight.reshape(len(weight), -1)
        present = (weight != 0).to(x.dtype)
        count = (rows != 0).sum(1).double()
        assert count.max() < 33000, "bias and products may exceed the accumulator"
        largest, factor, bias = rows.abs().amax(1), factor.abs().view(shape), bias.view(shape)
        rounded = (count.sqrt() * largest / (2 * limit)).view(shape)
        stored = x.abs() + e
        error = apply(e, weight.abs()) + rounded * apply(stored**2, present).sqrt()
        fx = self.types[node.inputs[0]].frac
        one = largest.view(shape) * factor * 2.0**-fx / limit
        coarser = bias.abs() * 2.0**-29  # the step that keeps the bias within 2**30
        step = torch.where(coarser > one / 8.2, torch.maximum(coarser, 2 * one), 2 * one)
        error = factor * error + step / 2 + 2.0 ** -(self.types[node.name].frac + 14)
        extra = 0.5 * coarser * 2.0**fx * apply(stored, present)
        error = error + torch.where(coarser > one / 8.2, extra, torch.zeros_like(extra))
        a = layer_parameters(self.root, node.op)[1].view(shape)
        return self._finish(node, v, a * apply(x, weight) + bias, error)

    def _affine(self, node, v, xs, es):
        (x,), (e,) = xs, es
        shape = (1, -1, *[1] * (x.dim() - 2))
        a, b = (p.view(shape) for p in per_channel(self.root, node.op.steps, x.shape[1]))
        fx, lsb = self.types[node.inputs[0]].frac, 2.0 ** -self.types[node.name].frac
        lost = b.abs() * 2.0 ** (fx + 6) > 2.0**29.9 * a.abs()
        error = a.abs() * (e + 2.0 ** -(fx + 7)) + 2.0**-9 * lsb
        error = error + torch.where(lost, a.abs() * (x.abs() + e), torch.zeros_like(x))
        return self._finish(node, v, a * x + b, error)

    def _sum(self, node, v, xs, es):
        op = node.op
        steps = [
            abs(c) * 2.0 ** -self.types[name].frac
            for c, name in zip(op.coefficients, node.inputs, strict=True)
        ]
        parts = [_integer_part(c) for c in op.coefficients]
        grains = [s / max(a, 1) for s, a in zip(steps, parts, strict=True)]
        u, error = torch.zeros_like(v), torch.zeros_like(v)
        for c, x, e, a, grain in zip(op.coefficients, xs, es, parts, grains, strict=True):
            inexact = 0.0 if c == 0 or _is_short(c) else 2.0**-7
            error = error + abs(c) * (e + inexact * (x.abs() + e))
            if any(grain * 8 < other for other in grains):
                error = error + (a / 512 + 2.0**-20) * max(steps)
            u = u + c * x
        return self._finish(node, v, u, error, relative=0.0)

    def _clamp(self, node, v, xs, es):
        return self._finish(node, v, xs[0], es[0], relative=0.0)

    def _maxpool(self, node, v, xs, es):
        op = node.op
        e = F.max_pool2d(es[0], op.kernel, op.stride, op.padding, op.dilation, op.ceil_mode)
        return self._moved(node, v, e)

    def _avgpool(self, node, v, xs, es):
        return self._finish(node, v, average(xs[0], node.op), average(es[0], node.op))

    def _concat(self, node, v, xs, es):
        u, e = (torch.cat(parts, node.op.axis) for parts in (xs, es))
        return self._finish(node, v, u, e, relative=0.0)

    def _select(self, node, v, xs, es):
        return self._moved(node, v, select(es[0], node.op))

    def _gather(self, node, v, xs, es):
        lsb = 2.0 ** -self.types[node.name].frac
        rounded = abs(math.floor(node.op.fill / lsb + 0.5) * lsb - node.op.fill)
        return self._moved(node, v, gather(es[0], replace(node.op, fill=rounded)))

    def _unshuffle(self, node, v, xs, es):
        return self._moved(node, v, F.pixel_unshuffle(es[0], node.op.factor))

    def _leaky(self, node, v, xs, es):
        (x,), (e,) = xs, es
        slope = fetch_number(self.root, node.op.slope)
        error = max(1.0, abs(slope)) * e
        error = error + 2.0 ** -(leaky_coefficients(slope)[2] + 1) * (x.abs() + e)
        return self._finish(node, v, torch.where(x >= 0, x, slope * x), error, relative=0.0)

    def _curve(self, node, v, xs, es):
        (x,), (e,) = xs, es
        kind = self.types[node.name]
        lsb = 2.0**-kind.frac
        lo, hi = max(kind.lo * lsb, node.op.clamp[0]), min(kind.hi * lsb, node.op.clamp[1])

        def f(x):
            return curves.apply(node.op.function, x).nan_to_num(0.0, 1e30, -1e30).clamp(lo, hi)

        middle, before = f(x), f(x - e)
        error, step = (before - middle).abs(), torch.zeros_like(x)
        for k in range(-CURVE_STEPS + 1, CURVE_STEPS + 1):
            now = f(x + e * (k / CURVE_STEPS))
            error = torch.maximum(error, (now - middle).abs())
            step = torch.maximum(step, (now - before).abs())
            before = now
        return error + step + 0.5 * lsb + self._clamped(node, v, kind)

    def _product(self, node, v, xs, es):
        (x, y), (ex, ey) = xs, es
        error = x.abs() * ey + y.abs() * ex + ex * ey
        return self._finish(node, v, x * y, error, relative=0.0)

    def _moved(self, node, v, e):
        if node.op.clamp == fg.UNBOUNDED:
            return e
        return e + self._clamped(node, v, self.types[node.name])

    def _reshape(self, node, v, xs, es):
        return es[0].reshape(v.shape)

    def _dropout(self, node, v, xs, es):
        return es[0]


def _monotone(kind, attributes, x, e, v):
    """A function of one value that never falls: its largest step to either side."""
    def f(x):
        return HOST[kind](x.clamp_min(1e-9) if kind in ("log", "sqrt") else x, **attributes)

    return torch.maximum((f(x + e) - v).abs(), (v - f(x - e)).abs()).nan_to_num(1e30)


def _softmax(kind, attributes, x, e, v):
    """Every log-probability moves by at most the largest error and its own."""
    moved = e + e.amax(attributes["axis"], keepdim=True)
    if kind == "log_softmax":
        return moved
    return (v * torch.expm1(moved)).nan_to_num(1.0).clamp_max(1.0)


def _index(kind, attributes, x, e, v):
    """Exact where the best value wins by more than the errors of both, else any."""
    axis, keepdim = attributes["axis"], attributes["keepdim"]
    size = x.shape[axis]
    best = v if keepdim else v.unsqueeze(axis)
    sign = 1 if kind == "argmax" else -1
    margin = (x.gather(axis, best) - x) * sign - e - e.gather(axis, best)
    others = torch.ones_like(x, dtype=torch.bool).scatter(axis, best, False)
    safe = ((margin > 0) | ~others).all(axis, keepdim=True)
    error = torch.where(safe, 0.0, float(size))
    return error if keepdim else error.squeeze(axis)


def _normalize(kind, attributes, x, e, v):
    """The length changes by at most the length of the errors, and the part with it."""
    axis = attributes["axis"]
    length = x.norm(dim=axis, keepdim=True)
    moved = e.norm(dim=axis, keepdim=True)
    return (e + v.abs() * moved) / (length - moved).clamp_min(1e-9)


_HOST = {
    "softmax": _softmax, "log_softmax": _softmax, "argmax": _index, "argmin": _index,
    "normalize": _normalize, "abs": lambda kind, a, x, e, v: e,
    "scale": lambda kind, a, x, e, v: abs(a["factor"]) * e,
    "reshape": lambda kind, a, x, e, v: e.reshape(v.shape),
    "take": lambda kind, a, x, e, v: HOST["take"](e, **a),
}  # fmt: skip


def _integer_part(c: float) -> int:
    """alpha of c = alpha * 2**-e: odd where 7 bits hold it, else 64 to 127."""
    if c == 0:
        return 0
    a = math.floor(math.frexp(abs(c))[0] * 128 + 0.5)
    while a % 2 == 0:
        a //= 2
    return a


def _is_short(c: float) -> bool:
    """Whether 7 bits hold the factor exactly."""
    scaled = math.frexp(abs(c))[0] * 128
    return scaled == math.floor(scaled)
