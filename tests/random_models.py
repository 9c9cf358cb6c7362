"""Seeded random legal PyTorch models, for tests of everything behind ``rasna.compile``.

``random_model(seed)`` gives a model in eval mode, NCHW sample batches and a dict ``info``:

    seed, sp, ab, wb, ib   settings to tune or compile it with
    is_graph               it has adds, fan-out, several inputs or several outputs
    tags                   sorted attribute tags such as "conv.stride=2", for coverage tables

Print the table of the first N seeds:  python -m tests.random_models N
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from tests import random_curves as curves
from tests import random_moves as moves
from tests.models.zoo import prune_, settle

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 17, 33)
SIZES = (1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 20)
MAX_ELEMS = 6000
BATCH = 4

_ACTIVATIONS: dict[str, Callable] = {
    "F.relu": F.relu,
    "torch.relu": torch.relu,
    "x.relu": lambda x: x.relu(),
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "clamp": lambda x: torch.clamp(x, -0.5, 1.5),
    "clamp_min": lambda x: x.clamp_min(0),
    "clamp_positive": lambda x: x.clamp(0.25, 2),
}
_BINARY: dict[str, Callable] = {
    "a+b": lambda a, b: a + b,
    "b+a": lambda a, b: b + a,
    "a-b": lambda a, b: a - b,
    "torch.add": torch.add,
    "alpha=2": lambda a, b: torch.add(a, b, alpha=2),
    "torch.sub": torch.sub,
}
_AFFINE: dict[str, Callable] = {
    "x*2+1": lambda x: x * 2 + 1,
    "1-x": lambda x: 1 - x,
    "-x": lambda x: -x,
    "x/3": lambda x: x / 3,
    "x-0.3": lambda x: x - 0.3,
    "0.1*x": lambda x: 0.1 * x,
}
_FLATTEN: dict[str, Callable] = {
    "torch.flatten": lambda x: torch.flatten(x, 1),
    "x.flatten": lambda x: x.flatten(1),
    # What is sliced is not contiguous, and PyTorch has no view of it.
    "x.view": lambda x: x.contiguous().view(x.size(0), -1),
    "x.reshape": lambda x: x.reshape(x.shape[0], -1),
}


_LAYERS = (nn.Conv2d, nn.Conv1d, nn.ConvTranspose2d, nn.ConvTranspose1d, nn.Linear)


@dataclass
class _Step:
    """values[output] = function(module?, *values[inputs])"""

    function: Callable
    inputs: tuple[int, ...]
    module: str | None = None


class RandomNet(nn.Module):
    """A straight-line program over modules and functions; fx traces it."""

    num_inputs = 0

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict()
        self.steps: list[_Step] = []
        self.outputs: tuple[int, ...] = ()
        self.structure = "single"

    def run(self, *inputs):
        values = list(inputs)
        for step in self.steps:
            args = [values[i] for i in step.inputs]
            if step.module is not None:
                args.insert(0, self.layers[step.module])
            values.append(step.function(*args))
        result = [values[i] for i in self.outputs]
        if self.structure == "single":
            return result[0]
        if self.structure == "dict":
            return {f"out{i}": v for i, v in enumerate(result)}
        return tuple(result) if self.structure == "tuple" else result


class OneInput(RandomNet):
    num_inputs = 1

    def forward(self, a):
        return self.run(a)


class TwoInputs(RandomNet):
    num_inputs = 2

    def forward(self, a, b):
        return self.run(a, b)


def _call(layer, x):
    return layer(x)


class _Affine(nn.Module):
    """(x - mean) / std with buffers of one entry per channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.randn(channels, 1, 1))
        self.register_buffer("std", 0.5 + torch.rand(channels, 1, 1))

    def forward(self, x):
        return (x - self.mean) / self.std


class _FunctionalConv(nn.Module):
    def __init__(self, ic: int, oc: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(oc, ic, 3, 3) / (3 * ic**0.5))
        self.b = nn.Parameter(torch.randn(oc) * 0.1)

    def forward(self, x):
        return F.conv2d(input=x, weight=self.w, bias=self.b, padding=1)


@dataclass
class _Builder:
    rng: random.Random
    net: RandomNet
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    uses: Counter = field(default_factory=Counter)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def add(self, function, inputs, shape, module: nn.Module | None = None) -> int:
        name = None
        if module is not None:
            name = f"m{len(self.net.layers)}"
            self.net.layers[name] = module
        self.net.steps.append(_Step(function, tuple(inputs), name))
        self.uses.update(set(inputs))
        self.shapes.append(tuple(shape))
        return len(self.shapes) - 1

    def layer(self, module: nn.Module, x: int, shape=None) -> int:
        """Apply a module; the shape is measured when it is not given."""
        if shape is None:
            with torch.no_grad():
                module.eval()
                shape = module(torch.zeros(1, *self.shapes[x])).shape[1:]
        return self.add(_call, (x,), shape, module)

    def pick(self, maps: bool = True) -> int | None:
        """A recent value: (C, H, W) maps, or feature vectors."""
        return self.pick_rank(3 if maps else 1)

    def pick_rank(self, rank: int) -> int | None:
        fit = [i for i, s in enumerate(self.shapes) if len(s) == rank]
        if not fit:
            return None
        return fit[-1] if self.chance(0.75) else self.rng.choice(fit)

    # --- one method per kind of step; each takes a value and returns a new one

    def conv(self, x: int) -> int:
        rng, (ic, h, w) = self.rng, self.shapes[x]
        groups = rng.choice([1, 1, 1, ic, ic] + [g for g in (2, 3, 4) if ic % g == 0])
        oc = groups * rng.randint(1, 2) if groups == ic and ic > 1 else rng.choice(CHANNELS)
        oc = max(groups, oc // groups * groups)
        kernel = (rng.randint(1, 5), rng.randint(1, 5)) if self.chance(0.4) else rng.choice(
            [(3, 3), (3, 3), (1, 1), (5, 5), (2, 2)])  # fmt: skip
        stride = rng.choice([(1, 1), (1, 1), (1, 1), (2, 2), (3, 3), (2, 1), (1, 2)])
        dilation = rng.choice([(1, 1), (1, 1), (1, 1), (2, 2), (1, 2)])
        mode = rng.choice(["zeros", "zeros", "zeros", "circular", "circular", "other"])
        if mode == "other":
            mode = rng.choice(["reflect", "replicate"])
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        padding = self._conv_padding(reach, (h, w), mode)
        if padding == "same":
            stride = (1, 1)
        room = [h, w] if isinstance(padding, str) else [h + 2 * padding[0], w + 2 * padding[1]]
        if padding != "same" and (room[0] < reach[0] or room[1] < reach[1]):
            kernel, dilation, padding = (1, 1), (1, 1), (0, 0)
        bias = self.chance(0.6)
        conv = nn.Conv2d(ic, oc, kernel, stride, padding, dilation, groups, bias, mode)
        with torch.no_grad():
            conv.weight.mul_(3**0.5)
        self._tag_conv(conv)
        y = self.layer(conv, x)
        if self.chance(0.4):
            y = self.batch_norm(y)
        return self.activation(y) if self.chance(0.6) else y

    def _conv_padding(self, reach, size, mode):
        rng = self.rng
        kind = rng.choice(["none", "half", "half", "half", "same", "valid", "any"])
        if kind == "valid":
            return "valid"
        if kind == "same":
            room = [s - (mode == "reflect") for s in size]
            fits = all((r - 1) - (r - 1) // 2 <= s for r, s in zip(reach, room, strict=True))
            return "same" if fits or mode == "zeros" else (0, 0)
        pads = {"none": [0, 0], "half": [r // 2 for r in reach]}.get(kind)
        pads = pads or [rng.randint(0, 3), rng.randint(0, 3)]
        if mode in ("circular", "reflect"):
            room = [s - (mode == "reflect") for s in size]
            pads = [min(p, s) for p, s in zip(pads, room, strict=True)]
        return tuple(pads)

    def _tag_conv(self, c: nn.Conv2d) -> None:
        depthwise = c.groups == c.in_channels and c.groups > 1
        groups = "depthwise" if depthwise else "1" if c.groups == 1 else "many"
        if depthwise and c.out_channels > c.in_channels:
            self.tags.add("conv.depth_multiplier")
        square = c.kernel_size[0] == c.kernel_size[1]
        self.tags |= {
            f"conv.kernel={max(c.kernel_size)}{'' if square else ' non-square'}",
            f"conv.stride={max(c.stride)}{'' if c.stride[0] == c.stride[1] else ' non-square'}",
            f"conv.dilation={max(c.dilation)}",
            f"conv.groups={groups}",
            f"conv.padding={c.padding if isinstance(c.padding, str) else 'numbers'}",
            f"conv.padding_mode={c.padding_mode}",
            f"conv.bias={c.bias is not None}",
        }
        if c.in_channels % 2:
            self.tags.add("conv.odd channels")

    def functional_conv(self, x: int) -> int:
        self.tags.add("conv.functional")
        return self.layer(_FunctionalConv(self.shapes[x][0], self.rng.choice(CHANNELS)), x)

    def batch_norm(self, x: int) -> int:
        shape = self.shapes[x]
        self.tags.add("batchnorm.after conv" if self._after(x, nn.Conv2d) else "batchnorm.alone")
        kind = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
        return self.layer(kind(shape[0], affine=self.chance(0.9)), x, shape)

    def _after(self, x: int, kind: type) -> bool:
        step = x - self.net.num_inputs
        name = self.net.steps[step].module if step >= 0 else None
        return name is not None and isinstance(self.net.layers[name], kind)

    def activation(self, x: int) -> int:
        if self.chance(0.3):
            module = self.rng.choice([nn.ReLU, nn.ReLU6, nn.Hardtanh])()
            self.tags.add(f"activation.nn.{type(module).__name__}")
            return self.layer(module, x, self.shapes[x])
        if self.chance(0.3):
            return curves.curve(self, x)
        names = ["F.relu"] * 4 + list(_ACTIVATIONS)
        name = self.rng.choice(names)
        self.tags.add(f"activation.{name}")
        return self.add(_ACTIVATIONS[name], (x,), self.shapes[x])

    def max_pool(self, x: int) -> int:
        rng, (_, h, w) = self.rng, self.shapes[x]
        kernel = (min(rng.randint(1, 3), h), min(rng.randint(1, 3), w))
        if self.chance(0.5):
            kernel = (min(kernel[0], w),) * 2
        padding = (rng.randint(0, kernel[0] // 2), rng.randint(0, kernel[1] // 2))
        stride = (rng.randint(1, 3), rng.randint(1, 3)) if self.chance(0.4) else (2, 2)
        dilation = 2 if padding == (0, 0) and min(h, w) >= 5 and self.chance(0.35) else 1
        ceil = self.chance(0.5)
        self.tags |= {
            f"max_pool.ceil_mode={ceil}",
            f"max_pool.padding={padding != (0, 0)}",
            f"max_pool.dilation={dilation}",
            f"max_pool.square={kernel[0] == kernel[1] and stride[0] == stride[1]}",
        }
        return self.layer(nn.MaxPool2d(kernel, stride, padding, dilation, ceil_mode=ceil), x)

    def average_pool(self, x: int) -> int:
        rng, (_, h, w) = self.rng, self.shapes[x]
        kind = rng.choice(["adaptive 1", "adaptive", "adaptive", "adaptive None", "pool"])
        self.tags.add(f"average_pool.{kind}")
        if kind == "pool":
            k = min(2, h, w)
            return self.layer(nn.AvgPool2d(k, rng.randint(1, 2)), x)
        out = {"adaptive 1": 1, "adaptive None": (None, 1)}.get(kind)
        out = out or (rng.randint(1, min(h + 1, 7)), rng.randint(1, min(w, 7)))
        return self.layer(nn.AdaptiveAvgPool2d(out), x)

    def residual(self, x: int) -> int:
        """A branch of the same shape, of another scale, added or subtracted."""
        c = self.shapes[x][0]
        scale = 10 ** self.rng.uniform(-3, 2)
        if len(self.shapes[x]) > 1:
            kernel = self.rng.choice([1, 3])
            kind = nn.Conv2d if len(self.shapes[x]) == 3 else nn.Conv1d
            module: nn.Module = kind(c, c, kernel, padding=kernel // 2)
        else:
            module = nn.Linear(c, c)
        with torch.no_grad():
            module.weight.mul_(scale)
            module.bias.mul_(scale)
        y = self.layer(module, x, self.shapes[x])
        if self.chance(0.3):
            y = self.activation(y)
        self.tags.add(f"add.scale=1e{round(torch.tensor(scale).log10().item())}")
        return self.binary(x, y)

    def binary(self, x: int, y: int) -> int:
        name = self.rng.choice(list(_BINARY))
        self.tags.add(f"add.{name}")
        return self.add(_BINARY[name], (x, y), self.shapes[x])

    def sum_of_two(self, x: int) -> int:
        """An operand with itself, any other value of the shape, or a broadcast one."""
        shape = self.shapes[x]
        if self.chance(0.3):
            self.tags.add("add.self")
            return self.add(lambda a: a + a, (x,), shape)
        if len(shape) == 3 and self.chance(0.5):
            self.tags.add("add.broadcast")
            return self.binary(x, self.layer(nn.AdaptiveAvgPool2d(1), x))
        others = [i for i, s in enumerate(self.shapes) if s == shape and i != x]
        return self.binary(x, self.rng.choice(others)) if others else self.residual(x)

    def affine(self, x: int) -> int:
        shape = self.shapes[x]
        if len(shape) == 3 and self.chance(0.3):
            self.tags.add("affine.buffers")
            return self.layer(_Affine(shape[0]), x, shape)
        name = self.rng.choice(list(_AFFINE))
        self.tags.add(f"affine.{name}")
        return self.add(_AFFINE[name], (x,), shape)

    def flatten(self, x: int) -> int:
        shape = self.shapes[x]
        count = shape[0] * shape[1] * shape[2]
        if self.chance(0.3):
            self.tags.add("flatten.mean")
            return self.add(lambda v: v.mean((2, 3)), (x,), (shape[0],))
        if self.chance(0.3):
            self.tags.add("flatten.nn.Flatten")
            return self.layer(nn.Flatten(), x, (count,))
        name = self.rng.choice(list(_FLATTEN))
        self.tags.add(f"flatten.{name}")
        return self.add(_FLATTEN[name], (x,), (count,))

    def linear(self, x: int) -> int:
        bias = self.chance(0.8)
        self.tags.add(f"linear.bias={bias}")
        y = self.layer(nn.Linear(self.shapes[x][0], self.rng.choice(CHANNELS), bias=bias), x)
        if self.chance(0.2):
            y = self.batch_norm(y)
        return self.activation(y) if self.chance(0.4) else y

    def grow(self) -> None:
        """One more step somewhere."""
        x = self.pick_rank(2)
        if x is not None and (self.chance(0.4) or self.pick() is self.pick(False) is None):
            moves.of_sequence(self, x)
            return
        x = self.pick(maps=self.chance(0.8))
        x = self.pick(True) if x is None else x
        x = self.pick(False) if x is None else x
        vector = [self.linear, self.linear, self.activation, self.residual, self.affine]
        maps = [self.conv] * 8 + [self.residual] * 3 + [self.max_pool, self.average_pool] * 2
        maps += [self.sum_of_two, self.affine] * 2 + [self.batch_norm, self.activation]
        maps += [self.functional_conv]
        is_map = len(self.shapes[x]) == 3
        if self.chance(0.12):
            curves.product(self, x)
        elif self.chance(0.38):
            self.rng.choice(moves.MAPS if is_map else moves.VECTORS)(self, x)
        else:
            self.rng.choice(maps if is_map else vector)(x)

    def finish(self) -> None:
        """A head for some, then the outputs and their nesting."""
        if self.chance(0.4) and (x := self.pick(True)) is not None:
            self.linear(self.flatten(x))
        ends = [i for i in range(len(self.shapes)) if not self.uses[i]]
        for i in self.rng.sample(ends, max(0, len(ends) - 3)):
            if i >= self.net.num_inputs:
                ends.remove(i)
        ends = [i for i in ends if i >= self.net.num_inputs] or [len(self.shapes) - 1]
        if self.chance(0.15):
            ends.append(self.rng.randrange(len(self.shapes)))
            self.tags.add("output.intermediate")
        if self.chance(0.2):
            ends[0] = moves.head(self, ends[0])
        self.net.outputs = tuple(dict.fromkeys(ends))
        kinds = ["tuple", "list", "dict"]
        if len(self.net.outputs) == 1:
            kinds = ["single"] * 9 + kinds
        self.net.structure = self.rng.choice(kinds)
        self.tags.add(f"output.{self.net.structure}")


def _input_shape(rng: random.Random) -> tuple[int, ...]:
    if rng.random() < 0.15:
        return (rng.choice((1, 2, 3, 8, 10, 17)), rng.choice((1, 5, 16, 37, 49, 100)))
    if rng.random() < 0.1:
        return (rng.choice([1, 5, 16, 40]),)
    while True:
        shape = (rng.choice((1, 2, 3, 3, 4, 8, 17)), rng.choice(SIZES), rng.choice(SIZES))
        if shape[0] * shape[1] * shape[2] <= MAX_ELEMS // 2:
            return shape


def _build(rng: random.Random) -> tuple[RandomNet, _Builder]:
    num_inputs = 2 if rng.random() < 0.2 else 1
    net = TwoInputs() if num_inputs == 2 else OneInput()
    b = _Builder(rng, net)
    shape = _input_shape(rng)
    b.shapes = [shape]
    if num_inputs == 2:
        b.shapes.append(shape if b.chance(0.7) else _input_shape(rng))
        if b.shapes[1] == shape and b.chance(0.5):
            b.binary(0, 1)
        else:
            for x in (0, 1):
                rank = len(b.shapes[x])
                b.conv(x) if rank == 3 else moves.conv1d(b, x) if rank == 2 else b.linear(x)
    graph = b.chance(0.7)
    target = rng.randint(1, 7)
    while len(net.steps) < target:
        before = len(net.steps)
        b.grow()
        if graph and b.chance(0.3):
            b.sum_of_two(len(b.shapes) - 1)
        if any(_elems(s) > MAX_ELEMS for s in b.shapes[before:]):
            break
    b.finish()
    return net, b


def _elems(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def _used_steps(net: RandomNet) -> None:
    """Drop steps that no output needs, as a model that people write has none."""
    first = net.num_inputs
    needed = set(net.outputs)
    for i in range(len(net.steps) - 1, -1, -1):
        if first + i in needed:
            needed.update(net.steps[i].inputs)
    kept = [i for i in range(len(net.steps)) if first + i in needed]
    number = {i: i for i in range(first)} | {first + i: first + n for n, i in enumerate(kept)}
    steps = [net.steps[i] for i in kept]
    for step in steps:
        step.inputs = tuple(number[i] for i in step.inputs)
    net.steps, net.outputs = steps, tuple(number[i] for i in net.outputs)
    for name in set(net.layers) - {s.module for s in steps}:
        del net.layers[name]


def random_model(seed: int) -> tuple[nn.Module, list[torch.Tensor], dict]:
    """A random model in eval mode, one (BATCH, …) float32 sample per input, and ``info``."""
    rng = random.Random(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        while True:
            net, builder = _build(rng)
            _used_steps(net)
            if any(isinstance(m, _LAYERS) for m in net.modules()):
                break  # without a layer there is nothing to tune
        samples = [torch.randn(BATCH, *s) for s in builder.shapes[: net.num_inputs]]
        if rng.random() < 0.2:
            samples = [s.abs() * 10 ** rng.uniform(-2, 2) for s in samples]
            builder.tags.add("input.positive")
        settle(net, *samples)
    sp = rng.choice([0.0, 0.0, 0.5, 0.8, 0.9, 0.99])
    prune_(net, sp)
    uses = Counter(i for step in net.steps for i in set(step.inputs))
    fan_out = any(n > 1 for n in uses.values())
    tags = builder.tags | ({"fan_out"} if fan_out else set())
    tags |= {f"inputs={net.num_inputs}", f"outputs={len(net.outputs)}", f"sp={sp}"}
    bits = {"ab": 8, "wb": 8, "ib": 17}
    if rng.random() < 0.4:
        bits = {"ab": rng.randint(2, 8), "wb": rng.randint(2, 8), "ib": rng.randint(12, 24)}
    tags |= {f"ab={bits['ab']}", f"wb={bits['wb']}"}
    joins = any(len(step.inputs) > 1 for step in net.steps) or "add.self" in tags
    is_graph = joins or fan_out or net.num_inputs > 1 or len(net.outputs) > 1
    return (
        net,
        samples,
        {"seed": seed, "sp": sp, **bits, "is_graph": is_graph, "tags": sorted(tags)},
    )


def coverage(seeds: range) -> tuple[Counter, int]:
    """How many of the seeds have each tag, and how many are graphs."""
    count: Counter = Counter()
    graphs = 0
    for seed in seeds:
        info = random_model(seed)[2]
        count.update(info["tags"])
        graphs += info["is_graph"]
    return count, graphs


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    table, num_graphs = coverage(range(total))
    for tag, number in sorted(table.items()):
        print(f"{number:6d}  {tag}")
    print(f"{num_graphs:6d}  graphs of {total} models")
