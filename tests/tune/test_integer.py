"""The torch evaluator against sums written out pixel by pixel, and against the golden model."""

import random

import numpy as np
import pytest
import torch

from rasna.golden import layers
from rasna.graph import (
    AvgPool,
    Conv,
    FixedPoint,
    MaxPool,
    Padding,
    Port,
    QuantGraph,
    Requant,
    Sum,
    Tensor,
)
from rasna.tune import integer
from rasna.tune.integer import IntegerModel, dequantize, evaluate, quantize

SEEDS = range(12)


def requant(rng, count, lo=-128, hi=127, ib=17):
    return Requant(
        np.array([rng.randint(0, 6) for _ in range(count)], np.int32),
        np.array([rng.choice([1, 2, 181, 32767]) for _ in range(count)], np.int32),
        np.array([rng.randint(1, 20) for _ in range(count)], np.int32),
        lo, hi, ib,
    )  # fmt: skip


def apply(acc, rq, i):
    limit = 1 << (rq.ib - 1)
    t = max(-limit, min(limit - 1, acc >> int(rq.pre_shift[i])))
    s = int(rq.shift[i])
    return max(rq.lo, min(rq.hi, (t * int(rq.multiplier[i]) + (1 << (s - 1))) >> s))


def reference(op, xs, shape):
    """Output of one operation on nested integers x[c][y][x], by definition."""
    x, out = xs[0], np.zeros(shape, np.int64)
    h, w = x.shape[1:]
    for n, y, c in np.ndindex(shape):
        if isinstance(op, Conv):
            per_group = op.weight.shape[1]
            first = n // (op.weight.shape[0] // op.groups) * per_group
            acc = int(op.bias[n])
            for k, i, j in np.ndindex(op.weight.shape[1:]):
                r = y * op.stride[0] + i * op.dilation[0] - op.padding.top
                q = c * op.stride[1] + j * op.dilation[1] - op.padding.left
                if op.padding_mode == "circular":
                    r, q = r % h, q % w
                if 0 <= r < h and 0 <= q < w:
                    acc += int(op.weight[n, k, i, j]) * int(x[first + k, r, q])
            out[n, y, c] = apply(acc, op.requant, n)
        elif isinstance(op, Sum):
            acc = int(op.bias[n])
            for coefficient, v in zip(op.coefficients, xs, strict=True):
                acc += coefficient * int(v[n, y, c] if v.shape[1:] == shape[1:] else v[n, 0, 0])
            out[n, y, c] = apply(acc, op.requant, n)
        elif isinstance(op, MaxPool):
            window = [
                int(x[n, r, q])
                for i, j in np.ndindex(op.kernel)
                if 0 <= (r := y * op.stride[0] + i * op.dilation[0] - op.padding.top) < h
                and 0 <= (q := c * op.stride[1] + j * op.dilation[1] - op.padding.left) < w
            ]
            out[n, y, c] = max(op.lo, min(op.hi, max(window)))
        else:
            window = x[n, slice(*op.rows[y]), slice(*op.columns[c])]
            out[n, y, c] = apply(int(window.sum()), op.requant, op.requant_index[y, c])
    return out


def check(op, inputs, kinds, shape, seed):
    """inputs: list of (C, H, W) arrays; two images are run, the second one flipped."""
    tensors = {
        f"x{i}": Tensor(f"x{i}", x.shape, k)
        for i, (x, k) in enumerate(zip(inputs, kinds, strict=True))
    }
    tensors["y"] = Tensor("y", shape, FixedPoint(8, 0, True))
    ports = [Port(n, n, t.shape) for n, t in tensors.items() if n != "y"]
    graph = QuantGraph(tensors, ports, [Port("y", "y", shape)], [op])
    batches = [np.stack([x, x[:, ::-1, ::-1]]) for x in inputs]
    got = evaluate(graph, [torch.from_numpy(b) for b in batches])["y"].numpy()
    assert got.size
    for image in (0, 1):
        xs = [batches[int(name[1:])][image] for name in op.inputs]
        want = reference(op, xs, shape)
        assert (got[image] == want).all(), f"seed {seed}, {op}"
        golden = layers.evaluate(graph, [b[image] for b in batches])["y"]
        assert (got[image] == golden).all(), f"golden differs, seed {seed}, {op}"


def values(rng, kind, shape):
    return np.array([rng.randint(kind.lo, kind.hi) for _ in range(np.prod(shape))]).reshape(shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_convolution_equals_its_definition(seed):
    rng = random.Random(seed)
    kind = FixedPoint(8, 3, rng.random() < 0.5)
    groups = rng.choice([1, 1, 2, 3])
    per_group, multiplier = rng.choice([1, 2]), rng.choice([1, 2, 3])
    h, w, kh, kw = (rng.randint(*r) for r in ((3, 7), (3, 7), (1, 3), (1, 3)))
    stride, dilation = (rng.randint(1, 3), rng.randint(1, 3)), (rng.randint(1, 2), 1)
    pad = Padding(*(rng.randint(0, 9) if rng.random() < 0.5 else 2 for _ in range(4)))
    weight = values(rng, FixedPoint(8, 0, True), (groups * multiplier, per_group, kh, kw))
    weight = np.maximum(weight, -127).astype(np.int8)
    oc = weight.shape[0]
    oh = (h + pad.top + pad.bottom - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (w + pad.left + pad.right - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    bias = np.array([rng.randint(-(2 ** rng.randint(0, 24)), 1000) for _ in range(oc)], np.int32)
    op = Conv(
        "conv", ["x0"], "y", "", weight, bias, requant(rng, oc), stride, dilation, groups, pad,
        rng.choice(["zeros", "circular"]),
    )  # fmt: skip
    check(op, [values(rng, kind, (groups * per_group, h, w))], [kind], (oc, oh, ow), seed)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("sign", [127, -127])
def test_extreme_weights_and_activations_are_exact_in_the_longest_list(signed, sign):
    kind = FixedPoint(8, 0, signed)
    for extreme in (kind.lo, kind.hi):
        x = np.full((512, 3, 3), extreme)
        weight = np.full((2, 512, 3, 3), sign, np.int8)
        weight[1, 1::2] *= -1
        rq = Requant(*(np.full(2, v, np.int32) for v in (12, 32767, 31)), -128, 127, 24)
        op = Conv(
            "conv", ["x0"], "y", "", weight, np.array([5, -5]), rq, padding=Padding(1, 1, 1, 1)
        )
        check(op, [x], [kind], (2, 3, 3), "extreme")


@pytest.mark.parametrize("seed", SEEDS)
def test_sum_broadcasts_and_repeats_its_inputs(seed):
    rng = random.Random(seed)
    kinds = [FixedPoint(8, 0, True), FixedPoint(8, 2, False)]
    xs = [values(rng, kinds[0], (3, 4, 5)), values(rng, kinds[1], (3, 1, 1))]
    bias = np.array([rng.randint(-100, 100) for _ in range(3)], np.int32)
    coefficients = [rng.randint(-1024, 1024) for _ in range(3)]
    op = Sum("sum", ["x0", "x1", "x0"], "y", "", coefficients, bias, requant(rng, 3))
    check(op, xs, kinds, (3, 4, 5), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_max_pooling_ignores_padding_and_what_lies_outside(seed):
    rng = random.Random(seed)
    kind = FixedPoint(8, 0, rng.random() < 0.7)
    h, w = rng.randint(2, 8), rng.randint(2, 8)
    kernel, stride = (rng.randint(1, 3), rng.randint(1, 3)), (rng.randint(1, 3), rng.randint(1, 2))
    pad = Padding(*(rng.randint(0, k // 2) for k in kernel for _ in (0, 1)))
    out = tuple(
        max(1, (s + p - 1) // st)
        for s, st, p in zip((h, w), stride, (pad.top + 1, pad.left + 1), strict=True)
    )
    # every window starts before the end of the map, so it holds a pixel unless it ends in the pad
    kernel = (max(kernel[0], pad.top + 1), max(kernel[1], pad.left + 1))
    dilation = (rng.randint(1, 2), 1) if not pad.top and h > 2 else (1, 1)
    x = values(rng, kind, (2, h, w))
    if kind.signed and rng.random() < 0.6:
        x = -np.abs(x)  # a padded zero would win
    op = MaxPool("pool", ["x0"], "y", "", kernel, stride, dilation, pad, out, -120, 90)
    check(op, [x], [kind], (2, *out), seed)


def test_average_pooling_takes_the_entry_of_each_window():
    rng = random.Random(3)
    kind = FixedPoint(8, 0, True)
    rows, columns = [(0, 2), (1, 4), (3, 5)], [(0, 3), (2, 7)]
    index = np.array([[0, 1], [2, 3], [1, 0]])
    op = AvgPool("pool", ["x0"], "y", "", rows, columns, requant(rng, 4), index)
    check(op, [values(rng, kind, (3, 5, 7))], [kind], (3, 3, 2), 3)


@pytest.mark.parametrize(
    ("value", "frac", "want"),
    [
        (0.49999997, 0, 0), (0.5, 0, 1), (-0.5, 0, 0), (-0.50000006, 0, -1), (1.5, 0, 2),
        (2.5, 0, 3), (1e9, 0, 127), (-1e9, 0, -128), (-129.0, 0, -128), (0.3, 4, 5),
        (1e-30, 7, 0), (300.0, -3, 38), (0.1 + 1e-12, 7, 13),
    ],
)  # fmt: skip
def test_quantize_rounds_half_up_in_float64_after_a_cast_to_float32(value, frac, want):
    x = torch.tensor([value], dtype=torch.float64)
    assert quantize(x, FixedPoint(8, frac, True)).tolist() == [want]


def test_dequantize_is_exact():
    kind = FixedPoint(8, 5, True)
    x = torch.arange(-128, 128, dtype=torch.int16)
    assert dequantize(x, kind).tolist() == [v / 32 for v in range(-128, 128)]
    assert (quantize(dequantize(x, kind), kind) == x).all()


def identity_graph():
    kind = FixedPoint(8, 4, True)
    tensors = {"x": Tensor("x", (2, 1, 3), kind), "y": Tensor("y", (2, 1, 3), kind)}
    rq = Requant(*(np.full(2, v, np.int32) for v in (0, 2, 1)), -128, 127)
    op = Sum("y", ["x"], "y", "", [1], np.zeros(2, np.int32), rq)
    outputs = [Port("y", "y", (6,)), Port("x", "x", (2, 1, 3))]
    structure = {"dict": {"a": {"tuple": [0, 1]}, "b": {"list": [1]}}}
    return QuantGraph(tensors, [Port("x", "x", (2, 1, 3))], outputs, [op], structure)


def test_integer_model_keeps_structure_and_shape_in_any_number_of_chunks(monkeypatch):
    model = IntegerModel(identity_graph())
    monkeypatch.setattr(integer, "CHUNK_BYTES", 100)
    x = torch.randn(7, 2, 1, 3)
    got = model(x)
    want = torch.floor(x * 16 + 0.5) / 16
    assert list(got) == ["a", "b"] and isinstance(got["a"], tuple) and isinstance(got["b"], list)
    assert torch.equal(got["a"][0], want.flatten(1)) and got["a"][0].dtype == torch.float32
    assert torch.equal(got["b"][0], want)
    assert model(x[:0])["b"][0].shape == (0, 2, 1, 3)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((), "the model has 1 inputs (x), 0 given"),
        (
            (torch.zeros(2, 2, 3),),
            "input x: the types were fixed for shape (N, 2, 1, 3), (2, 2, 3) was given",
        ),
        ((torch.full((1, 2, 1, 3), float("nan")),), "input x: 6 values are NaN or infinite"),
    ],
)
def test_integer_model_names_what_does_not_fit(inputs, message):
    with pytest.raises(ValueError) as error:
        IntegerModel(identity_graph())(*inputs)
    assert str(error.value) == message


def test_autocast_does_not_touch_the_integers():
    graph = identity_graph()
    x = torch.randn(5, 2, 1, 3)
    want = IntegerModel(graph)(x)["b"][0]
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(IntegerModel(graph)(x)["b"][0], want)
