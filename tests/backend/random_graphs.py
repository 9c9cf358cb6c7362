"""Random quantised graphs for the back end: every operator, attribute and shape, seeded."""

from __future__ import annotations

import numpy as np

from rasna.graph import (
    AvgPool,
    Conv,
    Curve,
    FixedPoint,
    Gather,
    MaxPool,
    Padding,
    Port,
    Product,
    QuantGraph,
    Requant,
    Select,
    Sum,
    Tensor,
)

MOST_LINEAR_WORDS = 100  # of a map that is one row of a linear layer: `tiny` holds it


class GraphMaker:
    """Grows a graph operation by operation; ``tags`` counts what it covers."""

    def __init__(self, seed: int, most: int = 20) -> None:
        self.rng = np.random.default_rng(seed)
        self.most = most
        self.graph = QuantGraph({}, [], [], [])
        self.tags: set[str] = set()

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def tensor(self, shape) -> str:
        name = f"t{len(self.graph.tensors)}"
        bits = int(self.pick(8, 8, 8, 4, 2, 6))
        signed = bool(self.rng.integers(2))
        type_ = FixedPoint(bits, int(self.rng.integers(-2, 9)), signed)
        self.graph.tensors[name] = Tensor(name, tuple(int(v) for v in shape), type_)
        return name

    def input(self, shape) -> str:
        name = self.tensor(shape)
        self.graph.inputs.append(Port(f"x{len(self.graph.inputs)}", name, tuple(shape)))
        return name

    def requant(self, channels: int, type_: FixedPoint, gain: float) -> Requant:
        """Requantisation that maps accumulators of magnitude ``gain`` onto the type."""
        shift = self.rng.integers(1, 8, channels)
        bits = max(0, int(np.log2(max(gain, 1)))) + 8
        pre = np.maximum(0, bits - 16) + self.rng.integers(0, 2, channels)
        scale = type_.hi / np.maximum(gain, 1) * 2.0 ** (shift + pre)
        multiplier = np.clip(np.round(scale * self.rng.uniform(0.5, 2, channels)), 1, 32767)
        lo = type_.lo if self.rng.random() < 0.7 else max(type_.lo, 0)
        return Requant(
            pre.astype(np.int32), multiplier.astype(np.int32), shift.astype(np.int32),
            lo, type_.hi, int(self.pick(17, 17, 12, 20, 24)),
        )

    def finish(self, op) -> str:
        if isinstance(op, (Conv, Sum, AvgPool)) and self.rng.random() < 0.25:
            type_ = self.graph.tensors[op.output].type
            values = self.rng.integers(type_.lo, type_.hi + 1, 256).astype(np.int16)
            op.requant.curve = Curve("random", values)
            self.tags.add(f"curve.{type(op).__name__}")
        self.graph.ops.append(op)
        return op.output

    def shape(self, name: str) -> tuple[int, int, int]:
        return self.graph.tensors[name].shape

    def conv(self, source: str) -> str | None:
        c, h, w = self.shape(source)
        rng, pick = self.rng, self.pick
        kernel = (int(pick(1, 2, 3, 3, 5, 7)), int(pick(1, 2, 3, 3, 5, 7)))
        stride = (int(pick(1, 1, 2, 3)), int(pick(1, 1, 2, 3)))
        dilation = (int(pick(1, 1, 1, 2)), int(pick(1, 1, 1, 2)))
        groups = int(pick(1, 1, 1, c, *[g for g in (2, 3) if c % g == 0]))
        mode = pick("zeros", "circular")
        extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
        pads = [int(rng.integers(0, e)) for e in (extent[0], extent[0], extent[1], extent[1])]
        if mode == "circular":
            pads = [min(p, size) for p, size in zip(pads, (h, h, w, w), strict=True)]
        padding = Padding(*pads)
        oh = (h + pads[0] + pads[1] - extent[0]) // stride[0] + 1
        ow = (w + pads[2] + pads[3] - extent[1]) // stride[1] + 1
        if oh < 1 or ow < 1:
            return None
        oc = groups * int(rng.integers(1, max(2, self.most // groups + 1)))
        weight = rng.integers(-127, 128, (oc, c // groups, *kernel)).astype(np.int8)
        sp = pick(0.0, 0.5, 0.8, 0.99)
        weight[rng.random(weight.shape) < sp] = 0
        out = self.tensor((oc, oh, ow))
        gain = max(1.0, 60 * 60 * np.sqrt(max(1, (weight != 0).sum() / oc)))
        for name, value in (("stride", max(stride) > 1), ("dilation", max(dilation) > 1),
                            ("groups", groups > 1), (mode, True), (f"sp{sp}", True)):
            if value:
                self.tags.add(name)
        return self.finish(Conv(
            f"conv{len(self.graph.ops)}", [source], out, "", weight,
            rng.integers(-5000, 5000, oc).astype(np.int32),
            self.requant(oc, self.graph.tensors[out].type, gain), stride, dilation, groups,
            padding, mode,
        ))

    def linear(self, source: str) -> str | None:
        c, h, w = self.shape(source)
        if h * -(-w // 8) > MOST_LINEAR_WORDS:
            return None
        oc = int(self.rng.integers(1, 40))
        weight = self.rng.integers(-127, 128, (oc, c, h, w)).astype(np.int8)
        weight[self.rng.random(weight.shape) < self.pick(0.0, 0.8)] = 0
        out = self.tensor((oc, 1, 1))
        self.tags.add("linear")
        return self.finish(Conv(
            f"linear{len(self.graph.ops)}", [source], out, "", weight,
            self.rng.integers(-5000, 5000, oc).astype(np.int32),
            self.requant(oc, self.graph.tensors[out].type, 3600 * np.sqrt(c * h * w)),
        ))

    def pool(self, source: str) -> str | None:
        c, h, w = self.shape(source)
        pick = self.pick
        kernel = (int(pick(1, 2, 2, 3)), int(pick(1, 2, 2, 3)))
        stride = (int(pick(1, 2, 2, 3)), int(pick(1, 2, 2, 3)))
        dilation = (int(pick(1, 1, 1, 2)), int(pick(1, 1, 1, 2)))
        pad = [int(self.rng.integers(0, k // 2 + 1)) for k in kernel]
        ceil_mode = bool(self.rng.integers(2))
        sizes = []
        for n, k, s, d, p in zip((h, w), kernel, stride, dilation, pad, strict=True):
            span = n + 2 * p - d * (k - 1) - 1
            if span < 0:
                return None
            o = -(-span // s) + 1 if ceil_mode else span // s + 1
            if ceil_mode and (o - 1) * s >= n + p:
                o -= 1
            # every window must hold a real pixel
            if any(not any(0 <= i * s - p + j * d < n for j in range(k)) for i in range(o)):
                return None
            sizes.append(o)
        out = self.tensor((c, *sizes))
        type_ = self.graph.tensors[source].type
        self.graph.tensors[out] = Tensor(out, (c, *sizes), type_)
        self.tags |= {"maxpool"} | ({"ceil_mode"} if ceil_mode else set())
        lo = type_.lo if self.rng.random() < 0.7 else 0
        return self.finish(MaxPool(
            f"pool{len(self.graph.ops)}", [source], out, "", kernel, stride, dilation,
            Padding(pad[0], pad[0], pad[1], pad[1]), tuple(sizes), lo, type_.hi,
        ))

    def average(self, source: str) -> str:
        c, h, w = self.shape(source)
        oh, ow = (int(self.pick(1, 1, 2, 3, n, n + 1)) for n in (h, w))
        windows = [
            [(i * n // o, -(-(i + 1) * n // o)) for i in range(o)] for n, o in ((h, oh), (w, ow))
        ]
        areas = np.array([[(b - a) * (d - c0) for c0, d in windows[1]] for a, b in windows[0]])
        kinds = np.unique(areas)
        out = self.tensor((c, oh, ow))
        type_ = self.graph.tensors[out].type
        shift = np.full(len(kinds), 14, np.int32)
        multiplier = np.maximum(1, np.round(2.0**14 / kinds / 2)).astype(np.int32)
        requant = Requant(0 * shift, multiplier, shift, type_.lo, type_.hi)
        self.tags.add("average")
        return self.finish(AvgPool(
            f"avg{len(self.graph.ops)}", [source], out, "", windows[0], windows[1], requant,
            np.searchsorted(kinds, areas),
        ))

    def sum(self, *sources: str) -> str:
        shape = self.shape(sources[0])
        out = self.tensor(shape)
        coefficients = [int(self.pick(1, -1, 2, 64, -128, 256)) for _ in sources]
        self.tags.add("add" if len(sources) > 1 else "requant")
        gain = 100 * max(abs(c) for c in coefficients)
        return self.finish(Sum(
            f"sum{len(self.graph.ops)}", list(sources), out, "", coefficients,
            self.rng.integers(-500, 500, shape[0]).astype(np.int32),
            self.requant(shape[0], self.graph.tensors[out].type, gain),
        ))

    def product(self, x: str, g: str) -> str:
        shape = self.shape(x)
        out = self.tensor(shape)
        ones = np.ones(shape[0], np.int32)
        requant = self.requant(shape[0], self.graph.tensors[out].type, 256)
        requant.pre_shift, requant.multiplier = 0 * ones, ones
        requant.shift = self.rng.integers(1, 16, shape[0]).astype(np.int32)
        self.tags.add("product")
        return self.finish(Product(
            f"product{len(self.graph.ops)}", [x, g], out, "", [1, 512], 0 * ones, requant,
        ))

    def select(self, *sources: str) -> str:
        """cat of some channels, or interleaved rows and columns of one input."""
        _, h, w = self.shape(sources[0])
        rh, rw = (1, 1)
        if len(sources) == 1 and h * w <= 200:
            rh, rw = (int(self.pick(1, 2, 2, 3)), int(self.pick(1, 2, 2, 3, 4)))
        count = sum(self.shape(n)[0] for n in sources)
        kind = self.pick("all", "some", "shuffled", "repeated")
        if kind == "all" or (kind == "shuffled" and rh * rw > count):
            base = np.arange(count)
        elif kind == "some":
            low = int(self.rng.integers(count))
            base = np.arange(low, int(self.rng.integers(low, count)) + 1)
        else:
            base = self.rng.permutation(count)
        if kind == "shuffled" and 1 < rh * rw <= count:  # pixel shuffle
            n = count // (rh * rw)
            channels = np.arange(n * rh * rw).reshape(n, rh, rw)
        else:
            channels = np.broadcast_to(base[:, None, None], (len(base), rh, rw)).copy()
        out = self.tensor((len(channels), h * rh, w * rw))
        self.tags |= {f"select.{kind}", f"select.{rh}x{rw}", f"select.inputs={len(sources)}"}
        return self.finish(Select(
            f"select{len(self.graph.ops)}", list(sources), out, "", channels,
            self.requant(len(sources), self.graph.tensors[out].type, 256),
        ))


    def numbers(self, size: int) -> np.ndarray:
        """A crop, steps, a flip, repeated, padded or mixed numbers below ``size``."""
        rng = self.rng
        kind = self.pick("all", "all", "crop", "steps", "flip", "any", "repeat")
        n = np.arange(size)
        if kind in ("crop", "steps"):
            low = int(rng.integers(size))
            n = n[low :: int(self.pick(2, 3)) if kind == "steps" else 1]
            n = n[: int(rng.integers(1, len(n) + 1))]
        elif kind == "flip":
            n = n[::-1]
        elif kind == "any":
            n = rng.integers(0, size, int(rng.integers(1, size + 3)))
        elif kind == "repeat" and size <= 24:
            n = np.repeat(n, 2)
        self.tags.add(f"gather.{kind}")
        pads = [int(self.pick(0, 0, 1, 2, 9)) for _ in range(2)]
        mode = self.pick("blank", "blank", "edge", "wrap")
        if any(pads):
            self.tags.add(f"gather.pad {mode}")
        if mode == "blank":
            return np.pad(n, pads, constant_values=-1)
        return np.pad(n, pads, mode=mode)

    def gather(self, *sources: str) -> str:
        """Moved pixels; of several sources joined along height or width."""
        types = self.graph.tensors[sources[0]].type
        axis = int(self.pick(1, 2))
        other = 3 - axis
        first = self.shape(sources[0])
        same = [
            n for n in sources
            if self.graph.tensors[n].type == types
            and (self.shape(n)[0], self.shape(n)[other]) == (first[0], first[other])
        ]
        sizes = list(first)
        sizes[axis] = sum(self.shape(n)[axis] for n in same)
        numbers = [self.numbers(size) for size in sizes]
        out = self.tensor([len(n) for n in numbers])
        self.graph.tensors[out] = Tensor(out, self.shape(out), types)
        lo = types.lo if self.rng.random() < 0.7 else 0
        fill = int(self.pick(0, 0, types.hi, int(self.rng.integers(lo, types.hi + 1))))
        self.tags |= {f"gather.inputs={len(same)}", f"gather.axis={axis}"}
        return self.finish(Gather(
            f"gather{len(self.graph.ops)}", same, out, "", *numbers, axis, fill, lo, types.hi,
        ))


def random_graph(seed: int, most_channels: int = 20, most_size: int = 20):
    """(QuantGraph, input arrays (C, H, W), tags) of a seed."""
    m = GraphMaker(seed, most_channels)
    rng = m.rng
    names = []
    for _ in range(int(m.pick(1, 1, 2))):
        h, w = (int(m.pick(1, 7, 8, int(rng.integers(1, most_size + 1)))) for _ in range(2))
        names.append(m.input((int(rng.integers(1, most_channels + 1)), h, w)))
    for _ in range(int(rng.integers(1, 6))):
        source = names[int(rng.integers(len(names)))]
        kind = m.pick("conv", "conv", "conv", "pool", "average", "linear", "sum", "sum", "wide",
                      "product",
                      "select", "select", "gather", "gather")
        if kind == "sum":
            same = [n for n in names if m.shape(n) == m.shape(source)]
            more = rng.integers(len(same), size=int(rng.integers(0, 3)))
            new = m.sum(source, *(same[int(i)] for i in more))
        elif kind == "product":
            same = [n for n in names if m.shape(n) == m.shape(source)]
            new = m.product(source, same[int(rng.integers(len(same)))])
        elif kind == "select":
            same = [n for n in names if m.shape(n)[1:] == m.shape(source)[1:]]
            more = rng.integers(len(same), size=int(rng.integers(0, 4)))
            new = m.select(source, *(same[int(i)] for i in more))
        elif kind == "gather":
            more = rng.integers(len(names), size=int(rng.integers(0, 4)))
            new = m.gather(source, *(names[int(i)] for i in more))
        elif kind == "wide":
            c = m.shape(source)[0]
            vectors = [n for n in names if m.shape(n) == (c, 1, 1)]
            if not vectors or m.shape(source) == (c, 1, 1):
                continue
            m.tags.add("broadcast")
            new = m.pick(m.sum, m.product)(source, vectors[0])
        else:
            new = getattr(m, kind)(source)
        if new is not None:
            names.append(new)
    used = {n for op in m.graph.ops for n in op.inputs}
    outs = [n for n in names if n not in used] or [names[-1]]
    if rng.random() < 0.2:
        outs.append(names[int(rng.integers(len(names)))])
        m.tags.add("extra output")
    m.graph.outputs = [Port(f"y{i}", n, m.shape(n)) for i, n in enumerate(outs)]
    m.graph.structure = {"tuple": list(range(len(outs)))} if len(outs) > 1 else 0
    if len(m.graph.inputs) > 1:
        m.tags.add("several inputs")
    if len(outs) > 1:
        m.tags.add("several outputs")
    arrays = []
    for port in m.graph.inputs:
        t = m.graph.tensors[port.tensor]
        arrays.append(rng.integers(t.type.lo, t.type.hi + 1, t.shape))
    return m.graph, arrays, m.tags
