"""The number rules (quantize.py)."""

import math
import random

import numpy as np
import pytest
import torch

from rasna.compile.quantize import (
    FRAC_LIMIT,
    choose_type,
    choose_weight_scale,
    clamp_limits,
    quantize_weight,
    requant_for,
    weight_limit,
)
from rasna.golden.layers import requantize
from rasna.graph import FixedPoint
from tests.compile.support import sample

# ---- types


@pytest.mark.parametrize(
    "values, bits, nonnegative, name",
    [
        ([0, 255], 8, True, "u8.0"),  # 8-bit images are exact
        ([0, 255.4], 8, True, "u8.0"),  # 255.4 still rounds to 255
        ([0, 256], 8, True, "u8.-1"),
        ([-1, 1], 8, False, "s8.6"),  # 1.0 is 64; 127/128 would clip it
        ([-1, 0.99], 8, False, "s8.7"),  # -128 may be used
        ([0, 1], 8, True, "u8.7"),
        ([0, 1], 2, True, "u2.1"),  # 0, 0.5, 1, 1.5
        ([0, 0], 8, True, "u8.8"),
        ([0, 0], 8, False, "s8.7"),
        ([0, 0], 4, False, "s4.3"),
        ([3.0, 3.0], 8, False, "s8.5"),  # constant: 96/32
        ([1e-30, 0], 8, True, "u8.107"),
        ([1e30, -1e30], 8, False, "s8.-93"),
        ([1e-40, 0], 8, True, "u8.8"),  # below FRAC_LIMIT: as zero
    ],
)
def test_type_of_given_values(values, bits, nonnegative, name):
    assert str(choose_type(torch.tensor(values), bits, nonnegative)) == name


def test_clipping_a_rare_large_value_beats_the_maximum():
    values = torch.cat([sample(100000) * 0.2, torch.tensor([4.0])])
    kind = choose_type(values, 4, False)
    assert kind.hi * 2.0**-kind.frac < 4.0
    eight = choose_type(values, 8, False)
    assert eight.hi * 2.0**-eight.frac > kind.hi * 2.0**-kind.frac


def test_a_large_outlier_among_few_values_is_kept():
    values = torch.cat([sample(3000), torch.tensor([1e4])])
    kind = choose_type(values, 8, False)
    assert kind.hi * 2.0**-kind.frac > 4e3


def test_the_choice_does_not_depend_on_order_or_shape():
    values = sample(999)
    kinds = {choose_type(v, 8, False) for v in (values, values.flip(0), values.view(3, 333))}
    assert len(kinds) == 1


def test_type_has_the_least_squared_error_of_all_scales():
    for seed in range(20):
        values = sample(500, seed=seed).abs() ** (1 + seed % 4)
        kind = choose_type(values, 6, True)

        def error(frac, values=values):
            q = (values.double() * 2.0**frac + 0.5).floor().clamp(0, 63) * 2.0**-frac
            return float(((q - values) ** 2).sum())

        best = min(range(-10, 20), key=error)
        assert kind.frac == best, f"seed {seed}"


# ---- weights


def test_powers_of_two_hold_weights_exactly_where_they_can():
    rows = torch.tensor([[1.0, -0.5], [0.0, 0.0], [3.0, 2.0**-5]])
    assert choose_weight_scale(rows, 8).log2().tolist() == [6, FRAC_LIMIT, 5]


def test_other_rows_use_all_integers():
    rows = torch.tensor([[1e6, 1.0], [0.3, 0.1], [1e-30, 7e-31]])
    scale = choose_weight_scale(rows, 8).double()
    largest = rows.abs().amax(1).double()
    assert torch.allclose(largest * scale, torch.full((3,), 127.0).double(), rtol=0.26)
    assert ((largest * scale).round() >= 127).all()


def test_a_factor_between_rows_changes_nothing_but_their_scale():
    rows = torch.randn(16, 50, generator=torch.Generator().manual_seed(0))
    for bits in (2, 3, 4, 8):
        scale = choose_weight_scale(rows, bits)
        assert torch.allclose(choose_weight_scale(4 * rows, bits), scale / 4)


def test_the_least_squared_error_wins():
    rows = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    for bits in (2, 3, 4, 8):
        limit = weight_limit(bits)

        def error(scale, limit=limit):
            q = quantize_weight(rows, scale.unsqueeze(1), limit) / scale.unsqueeze(1)
            return ((q - rows) ** 2).sum(1)

        best = error(choose_weight_scale(rows, bits))
        largest = rows.abs().amax(1)
        for step in range(9):  # the candidates of the page on numbers
            assert (best <= error(limit / largest * 2 ** (step / 4)) * 1.0001).all()
        for step in range(4):
            power = torch.exp2((limit / largest).log2().floor() + step)
            assert (best <= error(power) * 1.0001).all()


def test_weights_never_use_the_lowest_integer():
    assert [weight_limit(b) for b in (2, 3, 4, 8)] == [1, 3, 7, 127]
    rows = torch.tensor([[-1.0, 1.0]])
    for bits in range(2, 9):
        integers = quantize_weight(rows, choose_weight_scale(rows, bits), weight_limit(bits))
        assert integers.tolist() == [[-integers[0, 1], integers[0, 1]]]


def test_ternary_weights_cut_small_ones_to_zero():
    rows = torch.tensor([[1.0, 0.9, 0.1, -0.05]])
    integers = quantize_weight(rows, choose_weight_scale(rows, 2), 1)
    assert integers.tolist() == [[1, 1, 0, 0]]


# ---- requantisation


def reference(acc, scale, lo, hi):
    return np.clip(np.floor(acc * scale + 0.5), lo, hi)


@pytest.mark.parametrize("seed", range(200))
def test_requantisation_is_within_one_step_of_the_exact_product(seed):
    rng = random.Random(seed)
    power = rng.random() < 0.5
    scale = 2.0 ** rng.randint(-24, 6) if power else 2.0 ** rng.uniform(-24, 6)
    lo, hi = rng.choice([(-128, 127), (0, 255), (0, 96), (-2, 1), (0, 3)])
    ib = rng.randint(12, 24)
    bound = rng.choice([1000, 2**16, 2**20, 2**31 - 1])
    made = requant_for(np.array([scale]), np.array([bound]), lo, hi, ib)
    acc = np.array([rng.randint(-bound, bound) for _ in range(200)] + [bound, -bound, 0])
    near = [int(rng.uniform(lo - 2, hi + 2) / scale) for _ in range(200)]
    acc = np.concatenate([acc, np.clip(near, -bound, bound)])
    got = requantize("test", acc, made, np.zeros(len(acc), int))
    want = reference(acc, scale, lo, hi)
    worst = np.abs(got - want).max()
    assert worst <= 1, f"seed {seed}: differs by {worst} (pytest -k 'step_of and {seed}')"
    if power and made.pre_shift[0] == 0 and scale <= 0.5:
        assert (got == want).all(), f"seed {seed}"


@pytest.mark.parametrize("ib", [12, 17, 24])
@pytest.mark.parametrize("log2", range(-30, 8))
def test_saturation_at_ib_bits_only_happens_where_the_clamp_does_the_same(log2, ib):
    made = requant_for(np.array([2.0**log2]), np.array([2**31 - 1]), -128, 127, ib)
    acc = np.array([2**31 - 1, -(2**31) + 1])
    assert requantize("test", acc, made, np.zeros(2, int)).tolist() == reference(
        acc, 2.0**log2, -128, 127
    ).tolist()


def test_powers_of_two_need_no_multiplier():
    made = requant_for(2.0 ** -np.arange(1.0, 20.0), np.full(19, 2**24), 0, 255, 17)
    assert (made.multiplier == 1).all()
    assert (made.pre_shift + made.shift == np.arange(1, 20)).all()


def test_up_scaling_uses_the_multiplier():
    made = requant_for(np.array([8.0]), np.array([10]), 0, 255, 17)
    assert (made.pre_shift[0], made.multiplier[0], made.shift[0]) == (0, 16, 1)


def test_one_over_49_has_15_bits():
    made = requant_for(np.array([1 / 49]), np.array([49 * 255]), 0, 255, 17)
    assert (made.pre_shift[0], made.multiplier[0], made.shift[0]) == (0, 2675, 17)


def test_clamp_limits_are_rounded_half_up_within_the_type():
    kind = FixedPoint(8, 4, True)
    assert clamp_limits(kind, (0.0, 6.0)) == (0, 96)
    assert clamp_limits(kind, (-math.inf, math.inf)) == (-128, 127)
    assert clamp_limits(kind, (0.03125, 100.0)) == (1, 127)
    assert clamp_limits(FixedPoint(8, 4, False), (-1.0, 2.0)) == (0, 32)
