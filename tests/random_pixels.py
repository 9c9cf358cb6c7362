"""More steps for tests/random_models.py: pads, parts, joins, and maps that grow.

Every function takes the builder and the number of a value, and returns that of a new one.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

MAX_ELEMS = 3000  # of what a step that enlarges may give
MAX_WIDTH = 40  # of a row that is interleaved: all of it is in the map memory of `tiny`


def pad(b, x: int) -> int:
    """F.pad in every mode, also negative; channels too where zeros or a constant are added."""
    rng, (channels, *size) = b.rng, b.shapes[x]
    mode = rng.choice(["constant", "constant", "reflect", "replicate", "circular"])
    most = {"reflect": [n - 1 for n in size], "circular": size}.get(mode, [4] * len(size))
    edges = [[rng.randint(0, min(3, m)) for _ in range(2)] for m in most]
    shape = [channels, *(n + sum(e) for n, e in zip(size, edges, strict=True))]
    flat = [e for pair in reversed(edges) for e in pair]
    value = 0.0
    if mode == "constant":
        value = rng.choice([0.0, 0.0, 0.0, 0.125])
        if size[-1] > 3 and b.chance(0.3):
            b.tags.add("pad.negative")
            shape[-1] += -1 - flat[0]
            flat[0] = -1
        if b.chance(0.2):
            b.tags.add("pad.channels")
            flat += [0, 2]
            shape[0] += 2
    b.tags |= {f"pad.{mode}", f"pad.rank={len(shape)}"} | ({"pad.value"} if value else set())
    if value:
        x = b.add(lambda v: v.clamp(-0.5, 1.0), (x,), b.shapes[x])  # which holds the constant
    fill = value if mode == "constant" else None
    return b.add(lambda v: F.pad(v, flat, mode, fill), (x,), shape)


def part(b, x: int) -> int:
    """Crops, steps, flips and rolls of height, width or length."""
    rng, shape = b.rng, b.shapes[x]
    axis = rng.randrange(1, len(shape))
    size, rest = shape[axis], list(shape)
    kind = rng.choice(["slice", "slice", "flip", "roll", "narrow", "chunk"])
    b.tags |= {f"part.{kind}", f"part.rank={len(shape)}"}
    dim = axis + 1
    if kind == "flip":
        return b.add(lambda v: v.flip(dim), (x,), shape)
    if kind == "roll":
        amount = rng.randint(-3, 3)
        return b.add(lambda v: v.roll(amount, dim), (x,), shape)
    if kind == "chunk" and size > 1:
        rest[axis] = -(-size // 2)
        return b.add(lambda v: v.chunk(2, dim)[0], (x,), rest)
    first, step = rng.randrange(size), rng.choice([1, 1, 2, 3])
    limit = rng.randint(first + 1, size)
    if kind == "narrow":
        rest[axis] = limit - first
        return b.add(lambda v: v.narrow(dim, first, limit - first), (x,), rest)
    items = (*[slice(None)] * dim, slice(first, limit, step))
    rest[axis] = len(range(first, limit, step))
    return b.add(lambda v: v[items], (x,), rest)


def join(b, x: int) -> int:
    """cat along height, width or length, with what fits."""
    shape = b.shapes[x]
    axis = b.rng.randrange(1, len(shape))

    def others(s):
        return [*s[:axis], *s[axis + 1 :]]

    fit = [
        i for i, s in enumerate(b.shapes) if len(s) == len(shape) and others(s) == others(shape)
    ]
    parts = [x, *b.rng.choices(fit, k=b.rng.randint(1, 2))]
    b.rng.shuffle(parts)
    rest = list(shape)
    rest[axis] = sum(b.shapes[i][axis] for i in parts)
    if math.prod(rest) > MAX_ELEMS or rest[-1] > 160:
        return part(b, x)
    b.tags |= {"join", f"join.axis={axis} of {len(shape) - 1}"}
    return b.add(lambda *vs: torch.cat(vs, axis + 1), parts, rest)


def transposed(b, x: int) -> int:
    """ConvTranspose2d or ConvTranspose1d with any attributes."""
    rng, shape = b.rng, b.shapes[x]
    rank, channels = len(shape) - 1, shape[0]
    groups = rng.choice([1, 1, 1, *[g for g in (2, 3, channels) if channels % g == 0]])
    stride = [rng.choice([1, 2, 2, 2, 3]) for _ in range(rank)]
    kernel = [rng.choice([s, s + 1, 2 * s, rng.randint(1, 4)]) for s in stride]
    dilation = [rng.choice([1, 1, 1, 2]) for _ in range(rank)]
    padding = [rng.randint(0, (k - 1) * d // 2) for k, d in zip(kernel, dilation, strict=True)]
    extra = [rng.randrange(s) for s in stride]
    sizes = zip(shape[1:], stride, padding, dilation, kernel, extra, strict=True)
    out = [(n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in sizes]
    count = groups * rng.randint(1, max(1, 8 // groups))
    if count * math.prod(out) > MAX_ELEMS or out[-1] > MAX_WIDTH or min(out) < 1:
        return part(b, x)
    kind = nn.ConvTranspose2d if rank == 2 else nn.ConvTranspose1d
    layer = kind(
        channels, count, kernel, stride, padding, extra, groups, b.chance(0.6), dilation
    )
    b.tags |= {
        "transposed", f"transposed.rank={rank}", f"transposed.stride={max(stride)}",
        f"transposed.groups={'1' if groups == 1 else 'many'}",
        f"transposed.dilation={max(dilation)}",
    }
    y = b.layer(layer, x, (count, *out))
    if b.chance(0.4):
        y = b.layer((nn.BatchNorm2d if rank == 2 else nn.BatchNorm1d)(count), y, (count, *out))
    return b.activation(y) if b.chance(0.5) else y


def bilinear(b, x: int) -> int:
    """Linear interpolation, by a factor or to a size, with corners aligned or not."""
    rng, shape = b.rng, b.shapes[x]
    rank, corners = len(shape) - 1, b.chance(0.4)
    by_factor = b.chance(0.6)
    factors = [rng.choice([1, 2, 2, 3]) for _ in range(rank)]
    sizes = zip(shape[1:], factors, strict=True)
    out = [n * f if by_factor else rng.randint(1, 2 * n) for n, f in sizes]
    if shape[0] * math.prod(out) > MAX_ELEMS or max(out) > MAX_WIDTH:
        return part(b, x)
    mode = "bilinear" if rank == 2 else "linear"
    b.tags |= {"bilinear", f"bilinear.corners={corners}", f"bilinear.by factor={by_factor}"}
    return b.add(
        lambda v: F.interpolate(v, tuple(out), mode=mode, align_corners=corners), (x,),
        (shape[0], *out),
    )


MAPS = [pad, pad, part, join, join, transposed, transposed, bilinear, bilinear]
