"""More steps for tests/random_models.py: joined, moved and resampled channels, sequences, slopes.

Every function takes the builder and the number of a value, and returns that of a new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from tests import random_pixels as pixels

MAX_ELEMS = 3000  # of what a step that enlarges may give
MAX_LENGTH = 160  # of a sequence: all of it is one row in the map memory of `tiny`
MAX_STORED_LENGTH = 100  # of one that is made of single pixels, a word each
MAX_FEATURES = 600  # of a vector or map that is stored anew under another shape

_SLOPED: dict[str, Callable] = {
    "F.leaky_relu": F.leaky_relu,
    "slope 0.2": lambda x: F.leaky_relu(x, 0.2),
    "negative slope": lambda x: F.leaky_relu(x, -0.5),
    "hardsigmoid": F.hardsigmoid,
}


def sloped(b, x: int) -> int:
    """Leaky ReLU, PReLU or Hardsigmoid."""
    channels = b.shapes[x][0]
    kind = b.rng.choice([*_SLOPED, "nn.LeakyReLU", "nn.PReLU", "nn.PReLU channels"])
    b.tags.add(f"activation.{kind}")
    if kind in _SLOPED:
        return b.add(_SLOPED[kind], (x,), b.shapes[x])
    count = channels if kind.endswith("channels") else 1
    module = nn.LeakyReLU(0.3) if kind == "nn.LeakyReLU" else nn.PReLU(count)
    if isinstance(module, nn.PReLU):
        with torch.no_grad():
            module.weight.uniform_(-0.2, 1.2)
    return b.layer(module, x, b.shapes[x])


def cat(b, x: int) -> int:
    """With any values of the same size, twice the same among them; else with a layer's result."""
    shape = b.shapes[x]
    others = [i for i, s in enumerate(b.shapes) if s[1:] == shape[1:] and len(s) == len(shape)]
    if len(others) == 1 or b.chance(0.3):
        others.append(_same_size(b, x))
    parts = [x, *b.rng.choices(others, k=b.rng.randint(1, 3))]
    b.rng.shuffle(parts)
    count = sum(b.shapes[i][0] for i in parts)
    b.tags |= {"cat", f"cat.rank={len(shape)}", f"cat.parts={len(parts)}"}
    if len(set(parts)) < len(parts):
        b.tags.add("cat.repeated")
    return b.add(lambda *xs: torch.cat(xs, 1), parts, (count, *shape[1:]))


def _same_size(b, x: int) -> int:
    """Another number of channels, of another scale."""
    shape, count = b.shapes[x], b.rng.randint(1, 9)
    kind = {1: nn.Linear, 2: nn.Conv1d, 3: nn.Conv2d}[len(shape)]
    module = kind(shape[0], count) if kind is nn.Linear else kind(shape[0], count, 1)
    scale = 10 ** b.rng.uniform(-2, 1)
    with torch.no_grad():
        module.weight.mul_(scale)
        module.bias.mul_(scale)
    return b.layer(module, x, (count, *shape[1:]))


def upsample(b, x: int) -> int:
    """Nearest, by 1 to 4 in each direction."""
    shape = b.shapes[x]
    factors = tuple(b.rng.choice([1, 2, 2, 2, 3, 4]) for _ in shape[1:])
    if math.prod(shape) * math.prod(factors) > MAX_ELEMS:
        factors = (1,) * (len(factors) - 1) + (2,)
    if shape[-1] * factors[-1] > MAX_LENGTH:
        factors = (*factors[:-1], 1)
    b.tags |= {"upsample", f"upsample.{max(factors)}"}
    after = (shape[0], *(n * f for n, f in zip(shape[1:], factors, strict=True)))
    if b.chance(0.5):
        return b.layer(nn.Upsample(scale_factor=factors), x, after)
    return b.add(lambda v: F.interpolate(v, size=after[1:]), (x,), after)


def shuffle(b, x: int) -> int:
    """Pixels to channels or back, or channels among themselves."""
    c, h, w = b.shapes[x]
    if c % 4 == 0 and b.chance(0.5):
        b.tags.add("pixel_shuffle")
        return b.layer(nn.PixelShuffle(2), x, (c // 4, 2 * h, 2 * w))
    if h % 2 == w % 2 == 0 and b.chance(0.6):
        b.tags.add("pixel_unshuffle")
        return b.layer(nn.PixelUnshuffle(2), x, (4 * c, h // 2, w // 2))
    groups = [g for g in range(2, c) if c % g == 0]
    if not groups:
        return upsample(b, x)
    g = b.rng.choice(groups)
    b.tags.add("channel_shuffle")

    def view(v):
        v = v.view(v.size(0), g, c // g, h, w).transpose(1, 2)
        return v.reshape(v.size(0), c, h, w)

    return b.add(view, (x,), (c, h, w))


def channels(b, x: int) -> int:
    """Some channels, or both halves added or joined again."""
    shape = b.shapes[x]
    count = shape[0]
    if count >= 2 and count % 2 == 0 and b.chance(0.5):
        half = (count // 2, *shape[1:])
        first = b.add(lambda v: v.chunk(2, 1)[0], (x,), half)
        second = b.add(lambda v: v[:, count // 2 :], (x,), half)
        b.tags.add("halves")
        if b.chance(0.5):
            second = _same_size(b, second) if b.chance(0.3) else second
            total = b.shapes[first][0] + b.shapes[second][0]
            return b.add(
                lambda v, u: torch.cat([u, v], 1), (first, second), (total, *shape[1:])
            )
        return b.add(lambda v, u: v + u, (first, second), half)
    low, step = b.rng.randrange(count), b.rng.choice([1, 1, 2])
    numbers = range(low, count, step)
    b.tags.add("slice")
    return b.add(lambda v: v[:, low::step], (x,), (len(numbers), *shape[1:]))


def as_map(b, x: int) -> int:
    """A vector as a map."""
    count = b.shapes[x][0]
    if count > MAX_FEATURES:
        return b.linear(x)
    c = b.rng.choice([n for n in range(1, count + 1) if count % n == 0])
    h = b.rng.choice([n for n in range(1, count // c + 1) if count // c % n == 0])
    shape = (c, h, count // c // h)
    b.tags.add("vector as map")
    return b.add(lambda v: v.view(-1, *shape), (x,), shape)


# ---- sequences


def as_sequence(b, x: int) -> int:
    """A map as a sequence of its pixels, or the mean of its rows or columns."""
    c, h, w = b.shapes[x]
    if c * h * w <= MAX_FEATURES and h * w <= MAX_STORED_LENGTH:
        b.tags.add("map as sequence")
        return b.add(lambda v: v.flatten(2), (x,), (c, h * w))
    b.tags.add("mean of rows")
    return b.add(lambda v: v.mean(2), (x,), (c, w))


def conv1d(b, x: int) -> int:
    rng, (ic, length) = b.rng, b.shapes[x]
    groups = rng.choice([1, 1, 1, ic])
    oc = groups * rng.randint(1, 2) if groups > 1 else rng.choice((1, 3, 4, 8, 9, 17))
    kernel, dilation = rng.choice([1, 2, 3, 3, 5, 9]), rng.choice([1, 1, 2])
    reach = dilation * (kernel - 1) + 1
    mode = rng.choice(["zeros", "zeros", "circular", "reflect", "replicate"])
    pad = min(rng.choice([0, reach // 2]), length - (mode == "reflect"))
    if length + 2 * pad < reach:
        kernel, dilation, pad = 1, 1, 0
    module = nn.Conv1d(
        ic, oc, kernel, rng.choice([1, 1, 2, 3]), pad, dilation, groups, b.chance(0.7), mode
    )
    b.tags |= {"conv1d", f"conv1d.padding_mode={mode}", f"conv1d.stride={module.stride[0]}"}
    y = b.layer(module, x)
    if b.chance(0.4):
        y = b.layer(nn.BatchNorm1d(oc), y, b.shapes[y])
    return b.activation(y) if b.chance(0.6) else y


def pool1d(b, x: int) -> int:
    rng, (_, length) = b.rng, b.shapes[x]
    kernel = min(rng.randint(2, 3), length)
    b.tags.add("pool1d")
    kinds = [
        nn.MaxPool1d(kernel, rng.randint(1, 3), kernel // 2, ceil_mode=b.chance(0.5)),
        nn.AvgPool1d(kernel, rng.randint(1, 3), kernel // 2, count_include_pad=b.chance(0.5)),
        nn.AdaptiveAvgPool1d(rng.randint(1, min(length + 1, 9))),
    ]
    return b.layer(rng.choice(kinds), x)


def to_vector(b, x: int) -> int:
    c, length = b.shapes[x]
    b.tags.add("sequence to vector")
    if b.chance(0.5):
        return b.add(lambda v: v.mean(-1), (x,), (c,))
    return b.add(lambda v: v.flatten(1), (x,), (c * length,))


def of_sequence(b, x: int) -> int:
    """One more step behind a sequence."""
    steps = [conv1d] * 5 + [pool1d] * 6 + [cat, upsample, channels, to_vector, sloped]
    steps += [reduce, pixel_constant, linear_rows, stack] + pixels.MAPS
    return b.rng.choice(steps)(b, x)


_REDUCED = ("mean", "sum", "amax", "amin")


def reduce(b, x: int) -> int:
    """Some of the dimensions of a map or sequence, kept with one pixel."""
    shape, name = b.shapes[x], b.rng.choice(_REDUCED)
    dims = b.rng.choice([(1,), (2,), (3,), (2, 3), (1, 3)] if len(shape) == 3 else [(1,), (2,)])
    b.tags.add(f"reduce.{name}")
    out = tuple(1 if i + 1 in dims else n for i, n in enumerate(shape))
    y = b.add(lambda v: getattr(v, name)(dims, keepdim=True), (x,), out)
    if b.chance(0.5):
        b.tags.add("add.broadcast of a reduction")
        y = b.add(lambda v, w: v + w, (x, y), shape)
    return y


class _Pixels(nn.Module):
    """Arithmetic with a constant that varies along the pixels."""

    def __init__(self, shape: tuple[int, ...], factor: bool) -> None:
        super().__init__()
        self.c = nn.Parameter(torch.randn(shape))
        self.factor = factor

    def forward(self, x):
        return x * self.c if self.factor else x + self.c


def pixel_constant(b, x: int) -> int:
    shape = b.shapes[x]
    if shape[-1] > 8:  # on tiny its numbers, of one row at once, may not fit
        return limits(b, x)
    factor = b.chance(0.3)
    constant = b.rng.choice([shape, shape[1:], shape[-1:], (*shape[:-1], 1)])
    b.tags.add(f"affine.pixels {'*' if factor else '+'}")
    return b.layer(_Pixels(constant, factor), x, shape)


def linear_rows(b, x: int) -> int:
    b.tags.add("linear.rows")
    shape, out = b.shapes[x], b.rng.randint(1, 9)
    return b.layer(nn.Linear(shape[-1], out, bias=b.chance(0.7)), x, (*shape[:-1], out))


def stack(b, x: int) -> int:
    b.tags.add("stack")
    c, *rest = b.shapes[x]
    dim = b.rng.choice([1, 2])
    return b.add(
        lambda v: torch.stack([v, 0.5 * v], dim).flatten(1, 2), (x,), (2 * c, *rest)
    )


def largest(b, x: int) -> int:
    """Adaptive max pooling, and the larger one of two."""
    b.tags.add("adaptive_max.any")
    _, h, w = b.shapes[x]
    size = (b.rng.randint(1, min(h + 1, 7)), b.rng.randint(1, min(w + 1, 7)))
    return b.layer(nn.AdaptiveMaxPool2d(size), x)


def limits(b, x: int) -> int:
    b.tags.add("maximum")
    return b.add(lambda v: torch.maximum(v, 0.25 - v), (x,), b.shapes[x])


_HEADS = {
    "softmax": lambda v: torch.softmax(v, 1), "log_softmax": lambda v: F.log_softmax(v, -1),
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "softplus": F.softplus,
    "exp": lambda v: torch.exp(v.clamp(-4, 4)),
    "argmax": lambda v: v.argmax(1, keepdim=True), "normalize": lambda v: F.normalize(v, dim=1),
    "1 - sigmoid": lambda v: 1 - torch.sigmoid(v), "abs": torch.abs,
}  # fmt: skip


def head(b, x: int) -> int:
    """What the host computes; nothing may follow it."""
    name = b.rng.choice(list(_HEADS))
    b.tags.add(f"head.{name}")
    shape = b.shapes[x]
    return b.add(_HEADS[name], (x,), (1, *shape[1:]) if name == "argmax" else shape)


MAPS = [cat] * 3 + [upsample, shuffle, channels, sloped] + [as_sequence] * 2 + pixels.MAPS
MAPS += [reduce, pixel_constant, linear_rows, stack, largest, limits]
VECTORS = [cat, as_map, sloped, stack, limits]
