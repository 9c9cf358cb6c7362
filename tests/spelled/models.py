"""Random legal PyTorch modules as source text, in the spellings that people use.

``spelled_model(seed)`` writes a class, executes it and gives the model (eval mode, random weights
and BatchNorm statistics), NCHW sample batches, and which lines may or must be refused. The
text is registered under ``model_<seed>.py``, so that error messages name its lines.

    python -m tests.spelled.models SEED     prints the model of a seed
"""

from __future__ import annotations

import contextlib
import linecache
import random
import sys
from dataclasses import dataclass, field

import torch
from torch import nn

from tests.models.zoo import settle

BATCH = 3
CHANNELS = (1, 2, 3, 4, 5, 6, 7, 8, 9)
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11)
MAX_ELEMS = 700
YES, NO, MAYBE = "supported", "refused", "either"

_HEADER = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    def __init__(self, channels, scale=1.0):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.scale = scale

    def forward(self, x):
        y = self.bn(self.conv(x))
        if self.scale != 1.0:
            y = self.scale * y
        y += x
        return self.relu(y)


class Normalize(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("mean", torch.randn(channels, 1, 1) / 4)
        self.register_buffer("std", torch.rand(1, channels, 1, 1) + 0.5)

    def forward(self, x):
        return (x - self.mean) / self.std


"""


@dataclass
class Spelled:
    """A model and what is expected of it.

    expected: line number of the source to YES, NO or MAYBE, only for lines that the outputs need.
    """

    model: nn.Module
    samples: list[torch.Tensor]
    source: str
    file: str
    expected: dict[int, str]
    tags: set[str]
    settings: dict[str, int]


@dataclass
class _Line:
    text: str
    inputs: tuple[str, ...]
    output: str
    status: str


@dataclass
class _Writer:
    rng: random.Random
    init: list[str] = field(default_factory=list)
    lines: list[_Line] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of every name, now
    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    viewed: set[str] = field(default_factory=set)  # names that share memory with another
    tags: set[str] = field(default_factory=set)
    count: int = 0

    # ---- building blocks

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def attr(self, expression: str, stem: str = "layer") -> str:
        """A new attribute of the model; returns how forward names it."""
        name = self.name(stem)
        self.init.append(f"self.{name} = {expression}")
        return f"self.{name}"

    def emit(self, expression, inputs, shape, status=YES, tag="", fresh=True) -> str:
        """``new = expression`` in forward, or the same name again, as people write."""
        inputs = tuple(inputs)
        reuse = fresh and len(inputs) == 1 and self.chance(0.3) and inputs[0].startswith("v")
        output = inputs[0] if reuse and inputs[0] not in self.viewed else self.name("v")
        if output == inputs[0] and self.shapes[output] != tuple(shape):
            output = self.name("v")
        self.lines.append(_Line(f"{output} = {expression}", inputs, output, status))
        self.shapes[output] = tuple(shape)
        self.tags.add(tag or "other")
        return output

    def pick(self, rank: int | None = None) -> str | None:
        fit = [n for n, s in self.shapes.items() if rank is None or len(s) == rank]
        if not fit:
            return None
        return fit[-1] if self.chance(0.7) else self.rng.choice(fit)

    def choice(self, *spellings: str) -> str:
        return self.rng.choice(spellings)

    def number(self) -> str:
        return self.choice("0.5", "2", "-1.5", "0.1", "3.0", "-0.25", "1 / 3", "7")

    # ---- convolutions

    def conv(self, x: str) -> str:
        rng, (c, h, w) = self.rng, self.shapes[x]
        groups = rng.choice([1, 1, 1, 1, c, *[g for g in (2, 3) if c % g == 0]])
        oc = groups * rng.randint(1, max(1, 9 // groups))
        kernel = rng.choice([(1, 1), (3, 3), (3, 3), (5, 5), (2, 2), (3, 1), (1, 4), (2, 3)])
        dilation = rng.choice([1, 1, 1, 2])
        stride = rng.choice([1, 1, 1, 2, (2, 1), 3])
        reach = [dilation * (k - 1) + 1 for k in kernel]
        padding = rng.choice([0, "half", "half", '"same"', '"valid"', (1, 0), 2])
        if padding == "half":
            padding = (reach[0] // 2, reach[1] // 2)
        if padding == '"same"':
            stride = 1
        mode = rng.choice(["zeros", "zeros", "zeros", "circular"])
        pads = {'"same"': reach, '"valid"': (0, 0)}.get(padding) if isinstance(padding, str) else (
            (padding, padding) if isinstance(padding, int) else padding)  # fmt: skip
        if mode == "circular" and any(p >= n for p, n in zip(pads, (h, w), strict=True)):
            mode = "zeros"
        room = [n + 2 * p for n, p in zip((h, w), pads, strict=True)]
        if padding != '"same"' and any(r < k for r, k in zip(room, reach, strict=True)):
            kernel, padding, stride, mode = (1, 1), 0, 1, "zeros"
        spelled = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        size = kernel[0] if kernel[0] == kernel[1] and self.chance(0.6) else kernel
        if self.chance(0.25) and mode == "zeros":
            return self.functional_conv(x, oc, kernel, spelled)
        bias = self.chance(0.5)
        args = ", ".join(f"{k}={v}" for k, v in spelled.items() if v not in (1, 0) or k == "x")
        more = ("" if bias else ", bias=False") + (f', padding_mode="{mode}"' if mode != "zeros"
                                                   else "")  # fmt: skip
        layer = f"nn.Conv2d({c}, {oc}, {size}{', ' + args if args else ''}{more})"
        self.tags |= {f"conv.groups={min(groups, 2)}", f"conv.padding={str(padding)[:6]}",
                      f"conv.mode={mode}", f"conv.dilation={dilation}"}  # fmt: skip
        return self.conv_block(x, layer, oc)

    def conv_block(self, x: str, layer: str, oc: int) -> str:
        shape = self.measure(layer, self.shapes[x])
        kind = self.rng.randrange(5)
        if kind == 0:
            return self.emit(f"{self.attr(layer, 'conv')}({x})", [x], shape, tag="conv.module")
        norm = self.choice(f"nn.BatchNorm2d({oc})", f"nn.BatchNorm2d({oc}, affine=False)")
        relu = self.choice("nn.ReLU()", "nn.ReLU(inplace=True)", "nn.ReLU6()", "nn.Hardtanh()")
        if kind == 1:
            self.tags.add("sequential")
            inner = self.choice(
                f"nn.Sequential({layer}, {norm}, {relu})", f"nn.Sequential({layer}, {relu})",
                f"nn.Sequential(nn.Sequential({layer}), nn.Identity(), {norm})",
                f"nn.Sequential({layer}, nn.Dropout(0.3), {relu}, {norm})",
            )  # fmt: skip
            return self.emit(f"{self.attr(inner, 'block')}({x})", [x], shape, tag="conv.block")
        if kind == 2:
            self.tags.add("module list")
            layers = self.attr(f"nn.ModuleList([{layer}, {norm}, {relu}])", "layers")
            y = self.name("v")
            text = f"{y} = {x}\n        for layer in {layers}:\n            {y} = layer({y})"
            self.lines.append(_Line(text, (x,), y, YES))
            self.shapes[y] = shape
            return y
        y = self.emit(f"{self.attr(layer, 'conv')}({x})", [x], shape, tag="conv.module")
        if self.chance(0.5):
            y = self.emit(f"{self.attr(norm, 'bn')}({y})", [y], shape, tag="batchnorm.module")
        return self.activation(y) if self.chance(0.6) else y

    def functional_conv(self, x: str, oc: int, kernel, spelled: dict) -> str:
        c = self.shapes[x][0] // spelled["groups"]
        fan = (c * kernel[0] * kernel[1]) ** 0.5
        weight = self.attr(
            f"nn.Parameter(torch.randn({oc}, {c}, {kernel[0]}, {kernel[1]}) / {fan:.3f})", "weight"
        )
        bias = self.attr(f"nn.Parameter(torch.randn({oc}) / 4)", "bias")
        args = ", ".join(f"{k}={v}" for k, v in spelled.items() if v not in (0, 1))
        tail = f", {args}" if args else ""
        call = self.choice(
            f"F.conv2d({x}, {weight}, {bias}{tail})",
            f"F.conv2d(input={x}, weight={weight}{tail}, bias={bias})",
            f"torch.conv2d({x}, {weight}{tail})",
            f"F.conv2d({x}, {weight} * 0.5{tail})",
        )
        layer = f"nn.Conv2d({self.shapes[x][0]}, {oc}, {kernel}{tail})"
        shape = self.measure(layer, self.shapes[x])
        return self.emit(call, [x], shape, tag="conv.functional")

    def measure(self, layer: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        with torch.no_grad():
            return tuple(eval(layer, {"nn": nn})(torch.zeros(2, *shape)).shape[1:])

    def twice(self, x: str) -> str:
        """One module, applied twice."""
        c = self.shapes[x][0]
        layer = self.attr(f"nn.Conv2d({c}, {c}, 3, padding=1)", "shared")
        text = self.choice(f"{layer}({layer}({x}))", f"{layer}(F.relu({layer}({x})))")
        return self.emit(text, [x], self.shapes[x], tag="shared module")

    def residual_block(self, x: str) -> str:
        c = self.shapes[x][0]
        scale = self.choice("", ", 0.1", ", 20.0")
        block = self.choice(
            f"Residual({c}{scale})", f"nn.Sequential(Residual({c}), Residual({c}{scale}))"
        )
        return self.emit(f"{self.attr(block, 'stage')}({x})", [x], self.shapes[x], tag="residual")

    # ---- element by element

    def batch_norm(self, x: str) -> str:
        shape = self.shapes[x]
        if self.chance(0.3):
            g, b = (self.attr(f"nn.Parameter(torch.randn({shape[0]}))", "p") for _ in "gb")
            m = self.attr(f"nn.Parameter(torch.randn({shape[0]}) / 4, requires_grad=False)", "mean")
            v = self.attr(f"nn.Parameter(torch.rand({shape[0]}) + 0.5, requires_grad=False)", "var")
            call = self.choice(
                f"F.batch_norm({x}, {m}, {v}, {g}, {b}, False)",
                f"F.batch_norm({x}, {m}, {v}, weight={g}, bias={b}, training=self.training)",
                f"F.batch_norm({x}, running_mean={m}, running_var={v})",
            )
            return self.emit(call, [x], shape, tag="batchnorm.functional")
        kind = "BatchNorm2d" if len(shape) == 3 else "BatchNorm1d"
        layer = self.attr(f"nn.{kind}({shape[0]}, eps={self.choice('1e-5', '1e-3')})", "bn")
        return self.emit(f"{layer}({x})", [x], shape, tag="batchnorm.alone")

    def activation(self, x: str) -> str:
        module = self.choice(
            "nn.ReLU()", "nn.ReLU(inplace=True)", "nn.ReLU6()", "nn.Hardtanh(-1, 1.5)",
            "nn.Hardtanh(min_val=0.0, max_val=4.0)",
        )  # fmt: skip
        spelled = self.choice(
            f"F.relu({x})", f"torch.relu({x})", f"{x}.relu()", f"F.relu6({x})",
            f"F.relu({x}, inplace=False)", f"F.hardtanh({x}, -0.5, 2)",
            f"F.hardtanh({x}, min_val=-2.0, max_val=2.0)", f"{x}.clamp(min=0)",
            f"torch.clamp({x}, min=0.0)", f"torch.clamp_min({x}, 0)", f"{x}.clamp_min(0.0)",
            f"torch.clamp({x}, -1, 1)", f"{x}.clamp(max=2.5)", f"torch.clip({x}, 0, 6)",
            f"{x}.clip(-0.7, 0.7)", f"{x}.clamp_max(1.0)", "module", "module", "module",
        )  # fmt: skip
        if spelled == "module":
            spelled = f"{self.attr(module, 'act')}({x})"
            if "inplace" in module and (not x.startswith("v") or x in self.viewed):
                spelled = f"F.relu({x})"
        elif x.startswith("v") and x not in self.viewed and self.chance(0.15):
            spelled = self.choice(f"{x}.relu_()", f"F.relu_({x})", f"F.relu({x}, inplace=True)",
                                  f"torch.relu_({x})", f"{x}.clamp_(min=0)")  # fmt: skip
            self.tags.add("in place")
        return self.emit(spelled, [x], self.shapes[x], tag="activation")

    def nothing(self, x: str) -> str:
        spelled = self.choice(
            f"{self.attr('nn.Identity()', 'id')}({x})", f"{self.attr('nn.Dropout(0.5)', 'd')}({x})",
            f"F.dropout({x}, 0.2, self.training)", f"F.dropout({x}, training=self.training)",
            f"{x}.contiguous()", f"{x}.clone()",
        )  # fmt: skip
        y = self.emit(spelled, [x], self.shapes[x], tag="nothing", fresh=False)
        self.viewed |= {x, y}
        return y

    def arithmetic(self, x: str) -> str:
        shape, k, j = self.shapes[x], self.number(), self.number()
        if len(shape) == 3 and self.chance(0.35):
            return self.per_channel(x)
        spelled = self.choice(
            f"{x} * {k} + {j}", f"{k} - {x}", f"-{x}", f"{x} / 255", f"{x} / {k}", f"{k} * {x}",
            f"({x} - {k}) / 2", f"torch.add({x}, {k})", f"{x}.add({k})", f"{x}.mul({k})",
            f"torch.mul({x}, {k})", f"{x}.sub({k})", f"torch.sub({x}, {k}, alpha=2)",
            f"torch.neg({x})", f"{x}.neg()", f"torch.div({x}, {k})", f"{x}.div({k})", f"+{x}",
            f"torch.rsub({x}, {k})", f"{x}.add({k}, alpha=0.5)", f"{k} + {x} * {j} - {k}",
        )  # fmt: skip
        return self.emit(spelled, [x], shape, tag="arithmetic")

    def per_channel(self, x: str) -> str:
        c = self.shapes[x][0]
        if self.chance(0.3):
            layer = self.attr(f"Normalize({c})", "norm")
            return self.emit(f"{layer}({x})", [x], self.shapes[x], tag="per channel")
        form = self.choice(f"{c}, 1, 1", f"1, {c}, 1, 1")
        value = self.attr(f"nn.Parameter(torch.randn({form}))", "scale")
        vector = self.attr(f"nn.Parameter(torch.randn({c}))", "shift")
        spelled = self.choice(
            f"{x} * {value}", f"{value} * {x}", f"{x} + {value}", f"{value} - {x}",
            f"{x} * {value} + {vector}.view(1, -1, 1, 1)", f"{x} + {vector}[:, None, None]",
            f"{x} - {vector}.reshape(1, {c}, 1, 1)", f"{x} / ({value}.abs() + 1)",
        )  # fmt: skip
        return self.emit(spelled, [x], self.shapes[x], tag="per channel")

    def add(self, x: str) -> str:
        shape = self.shapes[x]
        others = [n for n, s in self.shapes.items() if s == shape and n != x]
        if len(shape) == 3 and self.chance(0.25):
            mean = self.choice(
                f"{x}.mean((2, 3), keepdim=True)", f"F.adaptive_avg_pool2d({x}, 1)",
                f"torch.mean({x}, dim=[2, 3], keepdim=True)",
            )
            spelled = self.choice(f"{x} + {mean}", f"{x} - {mean}", f"{mean} + {x}")
            return self.emit(spelled, [x], shape, tag="sum.broadcast")
        y = self.rng.choice(others) if others and self.chance(0.8) else x
        spelled = self.choice(
            f"{x} + {y}", f"{y} + {x}", f"{x} - {y}", f"torch.add({x}, {y})", f"{x}.add({y})",
            f"torch.add({x}, {y}, alpha=0.5)", f"torch.sub({x}, {y}, alpha=3)", f"{x}.sub({y})",
            f"sum([{x}, {y}])", f"{x} + 100 * {y}", f"0.01 * {x} + {y}", f"{x} + {y} + {x}",
            f"torch.add(input={x}, other={y})", f"2 * {x} - {y} / 3",
        )  # fmt: skip
        y_new = self.emit(spelled, [x, y], shape, tag="sum", fresh=False)
        if self.chance(0.15) and y_new.startswith("v"):
            self.lines.append(_Line(f"{y_new} += {x}", (y_new, x), y_new, YES))
            self.tags.add("in place")
        return y_new

    # ---- pooling

    def max_pool(self, x: str) -> str:
        (c, h, w), rng = self.shapes[x], self.rng
        k = rng.randint(1, min(3, h, w))
        s, p = rng.randint(1, 3), rng.randint(0, k // 2)
        ceil = self.chance(0.4)
        layer = f"nn.MaxPool2d({k}, {s}, {p}, ceil_mode={ceil})"
        spelled = self.choice(
            "module", "module", f"F.max_pool2d({x}, {k}, {s}, {p}, ceil_mode={ceil})",
            f"F.max_pool2d({x}, kernel_size={k}, stride={s}, padding={p}, ceil_mode={ceil})",
            f"torch.max_pool2d({x}, {k}, {s}, {p}, 1, {ceil})", "adaptive",
        )  # fmt: skip
        if spelled == "adaptive":
            out = (rng.choice(_divisors(h)), rng.choice(_divisors(w)))
            text = self.choice(f"F.adaptive_max_pool2d({x}, {out})",
                               f"{self.attr(f'nn.AdaptiveMaxPool2d({out})', 'pool')}({x})")
            return self.emit(text, [x], (c, *out), tag="max_pool.adaptive")
        if spelled == "module":
            spelled = f"{self.attr(layer, 'pool')}({x})"
        return self.emit(spelled, [x], self.measure(layer, (c, h, w)), tag="max_pool")

    def average_pool(self, x: str) -> str:
        (c, h, w), rng = self.shapes[x], self.rng
        if self.chance(0.5):
            out = rng.choice([1, (1, 1), (None, 1), (rng.randint(1, h + 1), rng.randint(1, 7)), 2])
            layer = f"nn.AdaptiveAvgPool2d({out})"
            text = self.choice(f"F.adaptive_avg_pool2d({x}, {out})",
                               f"{self.attr(layer, 'pool')}({x})")
            return self.emit(text, [x], self.measure(layer, (c, h, w)), tag="average.adaptive")
        k = rng.randint(1, min(3, h, w))
        s, p = rng.randint(1, 3), rng.randint(0, k // 2)
        args = f"{k}, {s}, {p}, ceil_mode={self.chance(0.3)}"
        args += f", count_include_pad={self.chance(0.5)}"
        args += ", divisor_override=3" if self.chance(0.15) else ""
        layer = f"nn.AvgPool2d({args})"
        text = self.choice(f"F.avg_pool2d({x}, {args})", f"{self.attr(layer, 'pool')}({x})")
        return self.emit(text, [x], self.measure(layer, (c, h, w)), tag="average.pool")

    # ---- features

    def flatten(self, x: str) -> str:
        c, h, w = self.shapes[x]
        if self.chance(0.35):
            text = self.choice(f"{x}.mean((2, 3))", f"{x}.mean(dim=(2, 3))", f"{x}.mean([2, 3])",
                               f"torch.mean({x}, (-2, -1))", f"{x}.mean(3).mean(2)",
                               f"{x}.mean(-1).mean(-1)")  # fmt: skip
            return self.emit(text, [x], (c,), tag="mean")
        text = self.choice(
            f"torch.flatten({x}, 1)", f"{x}.flatten(1)", f"{self.attr('nn.Flatten()', 'f')}({x})",
            f"{x}.view({x}.size(0), -1)", f"{x}.view({x}.shape[0], -1)",
            f"{x}.reshape(-1, {c * h * w})", f"torch.reshape({x}, ({x}.size(0), -1))",
            f"{x}.view(-1, {c} * {h} * {w})", f"{x}.flatten(start_dim=1)",
            f"{x}.flatten(2).flatten(1)",
            f"{x}.view({x}.size(0), {x}.size(1) * {x}.size(2) * {x}.size(3))",
        )  # fmt: skip
        y = self.emit(text, [x], (c * h * w,), tag="flatten", fresh=False)
        self.viewed |= {x, y}
        return y

    def squeeze(self, x: str) -> str:
        c, h, w = self.shapes[x]
        pooled = self.emit(f"F.adaptive_avg_pool2d({x}, 1)", [x], (c, 1, 1), fresh=False)
        text = self.choice(f"{pooled}.squeeze(-1).squeeze(-1)", f"{pooled}.squeeze(3).squeeze(2)",
                           f"{pooled}[:, :, 0, 0]" if False else f"{pooled}.flatten(1)")
        y = self.emit(text, [pooled], (c,), tag="squeeze", fresh=False)
        self.viewed |= {pooled, y}
        return y

    def linear(self, x: str) -> str:
        (n,), out = self.shapes[x], self.rng.choice(CHANNELS)
        if self.chance(0.2):
            w = self.attr(f"nn.Parameter(torch.randn({out}, {n}) / {n**0.5:.3f})", "weight")
            b = self.attr(f"nn.Parameter(torch.randn({out}) / 4)", "bias")
            text = self.choice(f"F.linear({x}, {w}, {b})", f"F.linear({x}, {w})",
                               f"F.linear({x}, weight={w}, bias={b})")  # fmt: skip
            return self.emit(text, [x], (out,), tag="linear.functional")
        layer = self.choice(
            f"nn.Linear({n}, {out})", f"nn.Linear({n}, {out}, bias=False)",
            f"nn.Sequential(nn.Linear({n}, {out}), nn.ReLU())",
            f"nn.Sequential(nn.Linear({n}, {out}), nn.BatchNorm1d({out}), nn.ReLU())",
            f"nn.Sequential(nn.Dropout(), nn.Linear({n}, 5), nn.ReLU(), nn.Linear(5, {out}))",
        )  # fmt: skip
        y = self.emit(f"{self.attr(layer, 'fc')}({x})", [x], (out,), tag="linear")
        return self.activation(y) if self.chance(0.3) else y

    # ---- what is refused, or may be

    def unsupported(self, x: str) -> str:
        shape = self.shapes[x]
        if self.chance(0.4):
            return self.head(x)
        spelled = [f"{x}.cumsum(1)", f"{x}.flip(0)", f"torch.where({x} > 0, {x}, -{x})"]
        if len(shape) == 3:
            norm = self.attr(f"nn.GroupNorm(1, {shape[0]})", "norm")
            spelled += [f"{norm}({x})"]
        return self.emit(self.rng.choice(spelled), [x], shape, NO, tag="refused")

    def head(self, x: str) -> str:
        """Curves, and what the host computes: that is supported where nothing else reads it."""
        text = self.choice(
            f"torch.sigmoid({x})", f"{x}.sigmoid()", f"F.softmax({x}, 1)", f"torch.exp({x})",
            f"{self.attr('nn.Softmax(1)', 'act')}({x})", f"{x}.abs()", f"torch.tanh({x})",
            f"F.log_softmax({x}, -1)", f"F.softplus({x})", f"1 - torch.sigmoid({x}) / 2",
            f"{self.attr('nn.SiLU()', 'act')}({x})", f"F.gelu({x})", f"{x} * {x}", f"{x} ** 2",
            f"F.elu({x})", f"1 / ({x}.abs() + 1)",
        )  # fmt: skip
        kind = text.replace("self.act", "nn.Softmax").split("(")[0].split(".")[-1]
        return self.emit(text, [x], self.shapes[x], MAYBE, tag=f"head.{kind}")

    def undecided(self, x: str) -> str:
        """Legal PyTorch that a compiler may well support: either outcome is right."""
        shape = self.shapes[x]
        if len(shape) == 1:
            text = self.choice(f"torch.cat([{x}, {x}], 1)", f"F.leaky_relu({x}, 0.1)")
            out = shape if "leaky" in text else (2 * shape[0],)
            return self.emit(text, [x], out, MAYBE, tag=f"either.{text.split('(')[0]}")
        c, h, w = shape
        prelu = self.attr(f"nn.PReLU({c})", "act")
        other = [n for n, s in self.shapes.items() if len(s) == 3 and s[1:] == (h, w)]
        y = self.rng.choice(other)
        many = (c + self.shapes[y][0], h, w)
        cases = [
            (f"torch.cat([{x}, {y}], 1)", (x, y), many),
            (f"torch.cat(({x}, {y}), dim=1)", (x, y), many),
            (f"torch.cat([{x}, {y}, {x}], dim=-3)", (x, y), (many[0] + c, h, w)),
            (f"torch.concat([{x}, {y}], axis=1)", (x, y), many),
            (f"F.leaky_relu({x}, 0.1)", (x,), shape),
            (f"{self.attr('nn.LeakyReLU(0.25)', 'act')}({x})", (x,), shape),
            (f"{prelu}({x})", (x,), shape),
            (f"F.interpolate({x}, scale_factor=2)", (x,), (c, 2 * h, 2 * w)),
            (f"{self.attr('nn.Upsample(scale_factor=2)', 'up')}({x})", (x,), (c, 2 * h, 2 * w)),
            (f"F.pad({x}, (1, 2, 0, 1))", (x,), (c, h + 1, w + 3)),
            (f"{self.attr('nn.ZeroPad2d(1)', 'pad')}({x})", (x,), (c, h + 2, w + 2)),
            (f"F.hardswish({x})", (x,), shape), (f"F.hardsigmoid({x})", (x,), shape),
            (f"{x}[:, :1]", (x,), (1, h, w)), (f"{x}.transpose(2, 3)", (x,), (c, w, h)),
            (f"{x}.permute(0, 1, 3, 2)", (x,), (c, w, h)), (f"{x}.sum((2, 3))", (x,), (c,)),
            (f"{x}.amax((2, 3))", (x,), (c,)), (f"{x}.mean(1, keepdim=True)", (x,), (1, h, w)),
            (f"torch.chunk({x}, 1, 1)[0]", (x,), shape),
            (f"{x}.roll(1, 2)", (x,), shape), (f"{x}.flip(3)", (x,), shape),
            (f"{x}[:, :, ::2]", (x,), (c, -(-h // 2), w)),
            (f"torch.cat([{x}, {x}], 3)", (x,), (c, h, 2 * w)),
            (f"F.pad({x}, (2, 1, 0, 1), mode='replicate')", (x,), (c, h + 1, w + 3)),
            (f"F.interpolate({x}, scale_factor=2, mode='bilinear')", (x,), (c, 2 * h, 2 * w)),
            (f"{self.attr(f'nn.ConvTranspose2d({c}, {c}, 2, 2)', 'up')}({x})", (x,),
             (c, 2 * h, 2 * w)),
        ]  # fmt: skip
        text, inputs, out = self.rng.choice(cases)
        tag = "either." + text.split("(")[0].split("[")[0].split(".")[-1]
        y = self.emit(text, inputs, out, MAYBE, tag=tag, fresh=False)
        self.viewed |= {x, y}
        return y


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _elems(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def _input(rng: random.Random) -> tuple[int, ...]:
    if rng.random() < 0.12:
        return (rng.choice((1, 4, 9, 30)),)
    while True:
        shape = (rng.choice(CHANNELS[:6]), rng.choice(SIZES), rng.choice(SIZES))
        if _elems(shape) <= MAX_ELEMS // 2:
            return shape


def _grow(w: _Writer) -> None:
    x = w.pick(3 if w.chance(0.75) else 1) or w.pick()
    maps = [w.conv] * 6 + [w.activation] * 2 + [w.add] * 3 + [w.arithmetic] * 2
    maps += [w.max_pool, w.average_pool, w.batch_norm, w.nothing, w.twice, w.residual_block]
    maps += [w.flatten, w.squeeze]
    features = [w.linear] * 3 + [w.activation, w.add, w.arithmetic, w.batch_norm, w.nothing]
    w.rng.choice(maps if len(w.shapes[x]) == 3 else features)(x)


def _write(rng: random.Random) -> tuple[_Writer, list[str], list[str], str]:
    """The writer, names of inputs and outputs, and the return expression."""
    w = _Writer(rng)
    names = rng.choice([["x"], ["x"], ["x"], ["x"], ["image", "other"]])
    for name in names:
        other = name == "other" and w.chance(0.5)
        w.shapes[name] = w.inputs[name] = w.shapes["image"] if other else _input(rng)
    steps = rng.randint(2, 7)
    special = rng.random()
    for step in range(steps):
        _grow(w)
        last = list(w.shapes)[-1]
        if step == steps // 2 and special < 0.12:
            w.unsupported(last)
        elif step == steps // 2 and special < 0.30:
            w.undecided(last)
        if max(_elems(s) for s in w.shapes.values()) > MAX_ELEMS:
            break
    if w.chance(0.35) and (x := w.pick(3)):
        w.linear(w.flatten(x))
    used = {n for line in w.lines for n in line.inputs if n != line.output}
    ends = [n for n in w.shapes if n not in used and n not in names] or [list(w.shapes)[-1]]
    ends = ends[-3:]
    if w.chance(0.15):
        ends.append(rng.choice(list(w.shapes)))
    ends = list(dict.fromkeys(ends))
    if len(ends) == 1 and w.chance(0.8):
        return w, names, ends, ends[0]
    form = w.choice("({},)", "[{}]", "dict")
    if form == "dict":
        return w, names, ends, "{" + ", ".join(f'"out{i}": {n}' for i, n in enumerate(ends)) + "}"
    return w, names, ends, form.format(", ".join(ends))


def _needed(w: _Writer, ends: list[str]) -> set[int]:
    """Numbers of the lines that the outputs depend on."""
    live, needed = set(ends), set()
    for number in range(len(w.lines) - 1, -1, -1):
        line = w.lines[number]
        if line.output in live:
            if line.output not in line.inputs:
                live.discard(line.output)
            live.update(line.inputs)
            needed.add(number)
    return needed


def spelled_model(seed: int) -> Spelled:
    """The model of a seed: the first legal one that it leads to."""
    for attempt in range(20):
        with contextlib.suppress(RuntimeError):  # a view of a transposed map, for one
            spelled = _spell(seed, random.Random(f"{seed}, {attempt}"))
            with torch.no_grad():
                outputs = spelled.model(*[x.clone() for x in spelled.samples])
            if all(bool(torch.isfinite(t).all()) for t in _tensors(spelled.model, outputs)):
                return spelled
    raise AssertionError(f"seed {seed} leads to no legal model")


def _tensors(model: nn.Module, outputs) -> list[torch.Tensor]:
    outputs = list(outputs.values()) if isinstance(outputs, dict) else outputs
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    return [*outputs, *model.state_dict().values()]


def _spell(seed: int, rng: random.Random) -> Spelled:
    w, names, ends, returned = _write(rng)
    text = _HEADER + "class Model(nn.Module):\n    def __init__(self):\n"
    text += "".join(f"        {line}\n" for line in ["super().__init__()", *w.init])
    text += f"\n    def forward(self, {', '.join(names)}):\n"
    needed = _needed(w, ends)
    expected: dict[int, str] = {}
    for number, line in enumerate(w.lines):
        first = text.count("\n") + 1
        text += f"        {line.text}\n"
        if number in needed:
            expected.update((n, line.status) for n in range(first, text.count("\n") + 1))
    text += f"        return {returned}\n"
    file = f"model_{seed}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space: dict = {"__name__": f"model_{seed}"}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        exec(compile(text, file, "exec"), space)
        model = space["Model"]()
        scale = 10 ** rng.uniform(-2, 2)
        samples = [torch.randn(BATCH, *w.inputs[n]) * scale for n in names]
        if w.chance(0.25):
            samples = [s.abs() for s in samples]
        settle(model, *[s.clone() for s in samples])
        _vary(model, rng)
    settings = {"ab": 8, "wb": 8, "ib": 17}
    if w.chance(0.2):
        settings = {"ab": rng.randint(3, 8), "wb": rng.randint(3, 8), "ib": rng.randint(12, 24)}
    return Spelled(model, samples, text, file, expected, w.tags, settings)


@torch.no_grad()
def _vary(model: nn.Module, rng: random.Random) -> None:
    """Zeros, a dead channel, a negative or vanishing gamma, odd scales: as real weights have."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            kind = rng.randrange(8)
            if kind == 0:
                module.weight.mul_((torch.rand_like(module.weight) < 0.3).float())
            elif kind == 1:
                module.weight[rng.randrange(len(module.weight))] = 0
            elif kind == 2:
                module.weight.mul_(10 ** rng.uniform(-4, 3))
            elif kind == 3 and module.bias is not None:
                module.bias.mul_(rng.choice([0, 30]))
            elif kind == 4:
                module.weight[0].mul_(100)
        elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)) and module.affine:
            if rng.random() < 0.3:
                module.weight[0] = rng.choice([0.0, -1.0])


if __name__ == "__main__":
    spelled = spelled_model(int(sys.argv[1]))
    print(spelled.source)
    print(f"# inputs {[tuple(s.shape) for s in spelled.samples]}, {spelled.settings}")
    print(f"# {spelled.expected}")
