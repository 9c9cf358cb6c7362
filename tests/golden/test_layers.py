"""The layer form against plain loops over pixels, and its refusals."""

import os

import numpy as np
import pytest

from rasna.errors import RasnaValueError
from rasna.golden import dequantize, evaluate, quantize
from rasna.golden.layers import requantize
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

SEED = int(os.environ.get("RASNA_SEED", "0"))
S8 = FixedPoint(8, 0, True)


def _requant(count, pre_shift=4, multiplier=3, shift=2, lo=-128, hi=127, ib=17):
    full = np.full(count, 1)
    return Requant(full * pre_shift, full * multiplier, full * shift, lo, hi, ib)


def _plain_requant(acc, r, i):
    limit = 1 << (r.ib - 1)
    t = max(-limit, min(limit - 1, int(acc) >> int(r.pre_shift[i])))
    s = int(r.shift[i])
    return max(r.lo, min(r.hi, (t * int(r.multiplier[i]) + (1 << (s - 1))) >> s))


def _evaluate(op, inputs, out_shape, type=S8):
    tensors = {f"x{i}": Tensor(f"x{i}", x.shape, S8) for i, x in enumerate(inputs)}
    tensors["y"] = Tensor("y", out_shape, type)
    ports = [Port(name, name, tensors[name].shape) for name in tensors]
    graph = QuantGraph(tensors, ports[:-1], ports[-1:], [op])
    return evaluate(graph, inputs)["y"]


CONVS = [  # shape, out channels, groups, kernel, stride, dilation, padding, mode
    ((3, 5, 7), 4, 1, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "zeros"),
    ((4, 6, 6), 4, 4, (3, 2), (2, 1), (1, 2), (2, 0, 1, 3), "zeros"),
    ((4, 6, 5), 8, 2, (2, 2), (3, 2), (2, 1), (0, 0, 0, 0), "zeros"),
    ((2, 4, 5), 3, 1, (3, 3), (2, 2), (1, 1), (1, 2, 2, 1), "circular"),
    ((2, 1, 1), 3, 1, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), "zeros"),
]


@pytest.mark.parametrize("case", CONVS)
def test_conv_equals_plain_loops(case):
    shape, oc, groups, kernel, stride, dilation, pad, mode = case
    rng = np.random.default_rng(SEED)
    x = rng.integers(-128, 128, shape)
    weight = rng.integers(-127, 128, (oc, shape[0] // groups, *kernel)).astype(np.int8)
    bias = rng.integers(-999, 1000, oc)
    padding = Padding(*pad)
    padded = (shape[1] + pad[0] + pad[1], shape[2] + pad[2] + pad[3])
    oh, ow = (
        (padded[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)
    )
    op = Conv("c", ["x0"], "y", weight=weight, bias=bias, requant=_requant(oc), stride=stride,
              dilation=dilation, groups=groups, padding=padding, padding_mode=mode)
    y = _evaluate(op, [x], (oc, oh, ow))

    def pixel(c, r, q):
        r, q = r - pad[0], q - pad[2]
        if mode == "circular":
            return x[c, r % shape[1], q % shape[2]]
        return x[c, r, q] if 0 <= r < shape[1] and 0 <= q < shape[2] else 0

    for o, i, j in np.ndindex(oc, oh, ow):
        first = o // (oc // groups) * (shape[0] // groups)
        acc = bias[o] + sum(
            int(weight[o, c, ky, kx])
            * pixel(first + c, i * stride[0] + ky * dilation[0], j * stride[1] + kx * dilation[1])
            for c, ky, kx in np.ndindex(weight.shape[1:])
        )
        assert y[o, i, j] == _plain_requant(acc, op.requant, o)


def test_sum_broadcasts_and_repeats_an_operand():
    rng = np.random.default_rng(SEED)
    a, b = rng.integers(-128, 128, (3, 2, 5)), rng.integers(-128, 128, (3, 1, 1))
    op = Sum("s", ["x0", "x1", "x0"], "y", coefficients=[300, -7, 5], bias=np.array([9, -9, 0]),
             requant=_requant(3, pre_shift=6))
    y = _evaluate(op, [a, b], (3, 2, 5))
    for index in np.ndindex(a.shape):
        c = index[0]
        acc = 305 * a[index] - 7 * b[c, 0, 0] + op.bias[c]
        assert y[index] == _plain_requant(acc, op.requant, c)


POOLS = [  # shape, kernel, stride, dilation, padding, out_hw
    ((2, 5, 6), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), (3, 3)),
    ((1, 4, 7), (2, 3), (2, 2), (1, 2), (0, 0, 2, 2), (2, 4)),
    ((1, 5, 5), (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (3, 3)),  # ceil_mode: beyond the input
]


@pytest.mark.parametrize("case", POOLS)
def test_max_pool_equals_plain_loops(case):
    shape, kernel, stride, dilation, pad, out_hw = case
    x = np.random.default_rng(SEED).integers(-128, 128, shape)
    op = MaxPool("m", ["x0"], "y", kernel=kernel, stride=stride, dilation=dilation,
                 padding=Padding(*pad), out_hw=out_hw, lo=-100, hi=90)
    y = _evaluate(op, [x], (shape[0], *out_hw))
    for c, i, j in np.ndindex(y.shape):
        window = [
            int(x[c, r, q])
            for ky, kx in np.ndindex(kernel)
            for r in [i * stride[0] + ky * dilation[0] - pad[0]]
            for q in [j * stride[1] + kx * dilation[1] - pad[2]]
            if 0 <= r < shape[1] and 0 <= q < shape[2]
        ]
        assert y[c, i, j] == max(-100, min(90, max(window)))


def test_avg_pool_equals_plain_loops():
    x = np.random.default_rng(SEED).integers(-128, 128, (2, 7, 5))
    rows, columns = [(0, 3), (2, 5), (4, 7)], [(0, 2), (1, 5)]
    index = np.array([[0, 1], [0, 1], [0, 1]])
    requant = Requant(np.array([0, 1]), np.array([5461, 2731]), np.array([15, 14]), -128, 127)
    op = AvgPool("a", ["x0"], "y", rows=rows, columns=columns, requant=requant,
                 requant_index=index)
    y = _evaluate(op, [x], (2, 3, 2))
    for c, i, j in np.ndindex(y.shape):
        acc = x[c, slice(*rows[i]), slice(*columns[j])].sum()
        assert y[c, i, j] == _plain_requant(acc, requant, index[i, j])


def test_requantize_floors_saturates_and_rounds_half_up():
    def one(acc, **changes):
        return int(requantize("n", np.array([acc]), _requant(1, **changes), np.array([0]))[0])

    assert one(-1, pre_shift=3, multiplier=1, shift=1) == 0  # -1 >> 3 = -1; (-1 + 1) >> 1
    assert one(-3, pre_shift=0, multiplier=1, shift=1) == -1  # (-3 + 1) >> 1
    assert one(3, pre_shift=0, multiplier=1, shift=1) == 2  # 1.5 rounds up
    assert one(2**30, pre_shift=0, multiplier=1, shift=16, ib=12) == 0  # saturated to 2047
    assert one(2**30, pre_shift=0, multiplier=32, shift=10, ib=12) == 64  # 2047*32/1024


def test_quantize_is_exact_at_ties_and_saturates():
    u8, s4 = FixedPoint(8, 0, False), FixedPoint(4, 1, True)
    values = np.array([0.49999997, 0.5, 1.5, 2.5, -0.5, -3, 255.4, 300])
    assert quantize(values, u8).tolist() == [0, 1, 2, 3, 0, 0, 255, 255]
    assert quantize(np.array([-0.25, 0.25, -9, 9]), s4).tolist() == [0, 1, -8, 7]
    assert quantize(np.array([np.inf, -np.inf]), s4).tolist() == [7, -8]
    assert quantize(np.zeros((0, 3)), u8).shape == (0, 3)
    assert dequantize(np.array([-3, 5], np.int8), s4).tolist() == [-1.5, 2.5]
    assert dequantize(np.array([3], np.uint8), FixedPoint(8, -2, False)).tolist() == [12.0]


def test_an_accumulator_outside_int32_is_refused():
    x = np.full((1, 1, 1), 127)
    op = Sum("far", ["x0"], "y", coefficients=[1], bias=np.array([2**31 - 1]),
             requant=_requant(1))
    with pytest.raises(RasnaValueError, match="far: accumulators from .* do not fit int32"):
        _evaluate(op, [x], (1, 1, 1))


def test_a_result_outside_its_type_is_refused():
    op = Sum("s", ["x0"], "y", coefficients=[1], bias=np.array([0]),
             requant=_requant(1, pre_shift=0, multiplier=2, shift=1))
    with pytest.raises(RasnaValueError, match="s: computes 100 to 100, but tensor y of type u4.0"):
        _evaluate(op, [np.full((1, 1, 1), 100)], (1, 1, 1), FixedPoint(4, 0, False))


@pytest.mark.parametrize(
    "inputs, message",
    [
        ([], "the graph has 1 inputs, 0 arrays were given"),
        ([np.zeros((1, 1, 1))], "input x0: integers of shape"),
        ([np.zeros((1, 2, 1), int)], "input x0: integers of shape"),
        ([np.full((1, 1, 1), 128)], "input x0: values of type s8.0 are -128 to 127, 128 to 128"),
    ],
)
def test_wrong_inputs_are_refused(inputs, message):
    tensors = {"x0": Tensor("x0", (1, 1, 1), S8)}
    port = Port("x0", "x0", (1, 1, 1))
    with pytest.raises(RasnaValueError, match=message):
        evaluate(QuantGraph(tensors, [port], [port], []), inputs)


def test_an_empty_window_is_refused():
    op = MaxPool("m", ["x0"], "y", kernel=(1, 1), stride=(3, 3), out_hw=(2, 1))
    with pytest.raises(RasnaValueError, match="m: a pooling window holds no pixel of the input"):
        _evaluate(op, [np.zeros((1, 3, 3), int)], (1, 2, 1))
