"""Integers of single operations (weights.py)."""

import random

import numpy as np
import pytest
import torch

from rasna.compile.floatgraph import UNBOUNDED
from rasna.compile.quantize import choose_weight_scale
from rasna.compile.settings import Settings
from rasna.compile.weights import (
    Term,
    plan_sum,
    quantize_affine,
    quantize_average,
    quantize_convolution,
    quantize_sum,
    split_coefficient,
)
from rasna.golden.layers import requantize
from rasna.graph import FixedPoint
from tests.messages import refuses


def signed(frac: int) -> FixedPoint:
    return FixedPoint(8, frac, True)


def unsigned(frac: int) -> FixedPoint:
    return FixedPoint(8, frac, False)


# ---- convolutions


def test_bias_is_stored_at_the_scale_of_the_accumulator():
    weight = np.array([1.0, 0.25]).reshape(2, 1, 1, 1)
    made = quantize_convolution(
        weight, np.array([0.5, -1.0]), signed(5), signed(4), UNBOUNDED, Settings()
    )
    assert made.weight.ravel().tolist() == [64, 64]  # fraction bits 6 and 8
    assert made.bias.tolist() == [0.5 * 2**11, -1.0 * 2**13]
    assert made.requant.shift.tolist() == [7, 9]


def test_a_large_bias_makes_the_weights_coarser():
    made = quantize_convolution(
        np.ones((1, 1, 1, 1)), np.array([2.0**24]), signed(5), signed(-18), UNBOUNDED, Settings()
    )
    assert made.bias[0] == 2**30  # 6 fraction bits, 5 of them the input's
    assert made.weight.item() == 2


def test_accumulators_never_leave_32_bits():
    rows = np.full((3, 100000, 1, 1), 1.0)
    rows[1] *= -1
    rows[2, 1:] = 0
    made = quantize_convolution(
        rows, np.array([0.0, -(2.0**20), 0.0]), unsigned(0), signed(-20), UNBOUNDED, Settings()
    )
    sums = np.abs(made.weight.astype(np.int64)).sum((1, 2, 3))
    assert (sums * 255 + np.abs(made.bias.astype(np.int64)) < 2**31).all()
    assert made.weight[0].max() == 64 and made.weight[2].max() == 64


def test_a_row_of_zeros_keeps_an_exact_bias():
    made = quantize_convolution(
        np.zeros((1, 4, 1, 1)), np.array([0.75]), signed(3), signed(5), UNBOUNDED, Settings()
    )
    acc = np.array(made.bias, np.int64)
    assert requantize("bias", acc, made.requant, np.array([0]))[0] == 24


@pytest.mark.parametrize("wb", range(2, 9))
def test_weights_stay_within_their_bits(wb):
    weight = np.linspace(-1, 1, 99).reshape(1, 99, 1, 1)
    made = quantize_convolution(
        weight, np.zeros(1), signed(7), signed(4), UNBOUNDED, Settings(wb=wb)
    )
    assert np.abs(made.weight).max() == 2 ** (wb - 1) - 1 or wb == 2
    assert made.weight.min() == -made.weight.max()


@pytest.mark.parametrize("frac", [-120, -40, 40, 120])
@pytest.mark.parametrize("output", [-120, 0, 120])
def test_scales_of_any_distance_give_legal_parameters(frac, output):
    made = quantize_convolution(
        np.ones((1, 2, 1, 1)), np.ones(1), signed(frac), signed(output), UNBOUNDED, Settings()
    )
    r = made.requant
    assert 0 <= r.pre_shift[0] <= 31 and 1 <= r.multiplier[0] <= 32767 and 1 <= r.shift[0] <= 31


@pytest.mark.parametrize("wb", [2, 3, 8])
def test_a_factor_behind_the_layer_does_not_change_its_integers(wb):
    """Whatever BatchNorm does, the integers are those that were trained."""
    rng = np.random.default_rng(wb)
    weight = rng.normal(size=(6, 4, 3, 3))
    factor = np.array([1.0, -1.0, 0.37, -12.6, 3e-4, 0.0])
    bias = rng.normal(size=6)
    plain = quantize_convolution(
        weight, bias, signed(6), signed(4), UNBOUNDED, Settings(wb=wb)
    )
    made = quantize_convolution(
        weight, bias, signed(6), signed(4), UNBOUNDED, Settings(wb=wb), factor
    )
    sign = np.array([1, -1, 1, -1, 1, 0]).reshape(6, 1, 1, 1)
    assert (made.weight == plain.weight * sign).all() and made.weight[:5].any((1, 2, 3)).all()
    # a pixel of 1 in every input channel, against real arithmetic with the rounded weights
    scale = choose_weight_scale(torch.from_numpy(weight), wb).numpy().astype(float)
    rounded = plain.weight.sum((1, 2, 3)) / scale
    acc = 64 * made.weight.sum((1, 2, 3), dtype=np.int64) + made.bias
    got = requantize("factor", acc, made.requant, np.arange(6))
    want = np.clip(np.floor((factor * rounded + bias) * 16 + 0.5), -128, 127)
    assert (np.abs(got - want) <= 1).all()


# ---- per-channel affines


@pytest.mark.parametrize("seed", range(100))
def test_affines_are_within_one_step_of_the_real_result(seed):
    rng = random.Random(seed)
    a = rng.choice([0.0, 1.0, -1.0, rng.uniform(-3, 3), 10 ** rng.uniform(-6, 3)])
    b = rng.choice([0.0, rng.uniform(-2, 2), 10 ** rng.uniform(-6, 4)])
    source = rng.choice([signed, unsigned])(rng.randint(-2, 9))
    x = np.arange(source.lo, source.hi + 1)
    real = a * x * 2.0**-source.frac + b
    largest = max(np.abs(real).max(), 1e-9)
    output = signed(int(np.floor(np.log2(127 / largest))))
    made = quantize_affine(np.array([a]), np.array([b]), source, output, UNBOUNDED, 17)
    acc = made.weight.item() * x + int(made.bias[0])
    got = requantize("affine", acc, made.requant, np.zeros(len(x), int))
    want = np.floor(real * 2.0**output.frac + 0.5)
    worst = np.abs(got - want).max()
    assert worst <= 1, f"seed {seed}: {worst} steps (pytest -k 'real_result and {seed}')"


def test_channels_have_their_own_scale_and_a_negligible_one_becomes_a_constant():
    made = quantize_affine(
        np.array([2.0, 0.0, 1e-12, -1.0]), np.array([0.0, 1.0, 1.0, 0.5]), signed(5), signed(4),
        UNBOUNDED, 17,
    )  # fmt: skip
    assert made.weight.ravel().tolist() == [64, 0, 0, -64]
    got = requantize("constant", made.bias.astype(np.int64), made.requant, np.arange(4))
    assert got.tolist() == [0, 16, 16, 8]


# ---- averages


def test_averages_have_one_entry_per_window_size():
    made = quantize_average(
        np.array([3, 4]), np.array([3.0, 4.0]), unsigned(4), unsigned(4), UNBOUNDED, 17
    )
    got = requantize("mean", np.array([3 * 77, 4 * 77]), made.requant, np.array([0, 1]))
    assert got.tolist() == [77, 77]


def test_the_average_of_the_largest_values_is_the_largest_value():
    for count in (1, 2, 3, 7, 49, 3136, 50176):
        made = quantize_average(
            np.array([count]), np.array([float(count)]), unsigned(0), unsigned(0), UNBOUNDED, 17
        )
        assert requantize("mean", np.array([255 * count]), made.requant, np.array([0]))[0] == 255


def test_a_window_that_is_too_large_is_refused():
    with refuses(OverflowError, "the sum of a pooling window does not fit 32 bits"):
        quantize_average(
            np.array([2**24]), np.array([1.0]), unsigned(0), unsigned(0), UNBOUNDED, 17
        )


# ---- sums


@pytest.mark.parametrize(
    "value, parts",
    [(1, (1, 0)), (-1, (-1, 0)), (2, (1, -1)), (0.5, (1, 1)), (3, (3, 0)), (-12, (-3, -2)),
     (100, (25, -2)), (127, (127, 0)), (128, (1, -7)), (0, (0, 0)), (0.3, (77, 8))],
)  # fmt: skip
def test_factors_are_split_into_an_integer_and_a_power_of_two(value, parts):
    assert split_coefficient(value) == parts


@pytest.mark.parametrize("factor", [1.0, -1.0])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("difference", range(21))
def test_fraction_bits_that_differ_by_up_to_20(difference, swap, factor):
    fracs, coarse = [difference + 2, 2], 2
    factors = [1.0, factor]
    if swap:
        fracs.reverse()
    acc_frac, terms = plan_sum(fracs, factors)
    assert acc_frac == coarse + min(difference, 8)
    exact = 1 if difference > 8 else 0
    for frac, c, term in zip(fracs, factors, terms, strict=True):
        fine = frac > coarse
        assert term.frac == (coarse + 8 if fine and exact else frac)
        assert term.coefficient == c * 2 ** (acc_frac - term.frac)
        assert abs(term.coefficient) <= 256


@pytest.mark.parametrize("seed", range(200))
def test_sums_are_within_a_step_of_the_real_sum(seed):
    rng = random.Random(seed)
    count = rng.randint(1, 4)
    fracs = [rng.randint(-4, 20) for _ in range(count)]
    factors = [rng.choice([1.0, -1.0, 2.0, 0.3, -7.0, 100.0, rng.uniform(-9, 9)])
               for _ in range(count)]  # fmt: skip
    acc_frac, terms = plan_sum(fracs, factors)
    xs = [rng.randint(-128, 127) for _ in range(count)]
    real = sum(c * x * 2.0**-f for c, x, f in zip(factors, xs, fracs, strict=True))
    largest = sum(abs(c) * 128 * 2.0**-f for c, f in zip(factors, fracs, strict=True))
    output = signed(int(np.floor(np.log2(127 / largest))))
    made = quantize_sum(
        acc_frac, terms, [signed(t.frac) for t in terms], 1, output, UNBOUNDED, 17
    )
    acc = 0
    for x, f, term in zip(xs, fracs, terms, strict=True):
        coarser = f - term.frac
        acc += term.coefficient * ((x + (1 << coarser >> 1)) >> coarser)
    assert all(abs(t.coefficient) <= 1024 for t in terms)
    got = requantize("sum", np.array([acc]), made.requant, np.array([0]))[0]
    # factors of 7 bits are within 1/128, and the output spans 127 steps
    assert abs(got - real * 2.0**output.frac) <= 1.6, f"seed {seed} (pytest -k 'a_step and {seed}')"


def test_an_operand_far_below_all_rounding_is_left_out():
    assert plan_sum([100, 0], [1, 1]) == (8, [Term(100, 0), Term(0, 256)])


def test_a_factor_of_zero():
    assert plan_sum([5, 3], [1, 0]) == (5, [Term(5, 1), Term(3, 0)])
