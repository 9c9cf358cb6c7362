"""The worked examples of docs/numerics.md, row by row; the page and the code must agree."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rasna.compile.floatgraph import UNBOUNDED
from rasna.compile.quantize import (
    choose_type,
    choose_weight_scale,
    quantize_weight,
    requant_for,
    weight_limit,
)
from rasna.compile.settings import Settings
from rasna.compile.weights import (
    plan_sum,
    quantize_affine,
    quantize_convolution,
    quantize_sum,
)
from rasna.golden.layers import quantize, requantize
from rasna.graph import FixedPoint

PAGE = (Path(__file__).parents[2] / "docs" / "numerics.md").read_text(encoding="utf-8")

S = {f: FixedPoint(8, f, True) for f in range(0, 20)}
U = {f: FixedPoint(8, f, False) for f in range(0, 20)}


def on_page(row: str) -> None:
    assert row in PAGE, f"docs/numerics.md has no row {row!r}"


def one(acc: int, made) -> int:
    return int(requantize("example", np.array([acc]), made, np.array([0]))[0])


@pytest.mark.parametrize(
    "v, kind, q, row",
    [
        (0.3, S[5], 10, "| 0.3 | s8.5 | 9.6 | 10 | 0.3125 |"),
        (-0.296875, S[5], -9, "| −0.296875 | s8.5 | −9.5 | −9 | −0.28125 |"),
        (5.0, S[5], 127, "| 5.0 | s8.5 | 160 | 127 | 3.96875 |"),
        (0.49999997, U[0], 0, "| 0.49999997 | u8.0 | 0.49999997 | 0 | 0 |"),
        (200, U[0], 200, "| 200 | u8.0 | 200 | 200 | 200 |"),
    ],
)
def test_quantising_an_input(v, kind, q, row):
    on_page(row)
    assert quantize(np.array(v), kind) == q


@pytest.mark.parametrize(
    "values, bits, nonnegative, name",
    [
        ([0, 255], 8, True, "u8.0"),
        ([0, 1], 8, True, "u8.7"),
        ([-1, 1], 8, False, "s8.6"),
        ([0.1] * 64 + [0.9], 2, True, "u2.3"),
    ],
)
def test_choice_of_the_type(values, bits, nonnegative, name):
    on_page(f"| {name} |\n")
    assert str(choose_type(torch.tensor(values), bits, nonnegative)) == name


def test_squared_errors_of_the_last_type():
    values = np.array([0.1] * 64 + [0.9])
    errors = {}
    for f in (1, 2, 3, 4):
        q = np.clip(np.floor(values * 2.0**f + 0.5), 0, 3) * 2.0**-f
        errors[f] = float(((q - values) ** 2).sum())
    text = ", ".join(f"f={f}: {e:.4f}" for f, e in errors.items())
    on_page(f"| {text} |")


@pytest.mark.parametrize(
    "weights, bits, row",
    [
        ([1.0, -0.5], 8, "| 1, −0.5 | 8 | 64 | 64, −32 | 1, −0.5 |"),
        ([0.3, 0.1], 8, "| 0.3, 0.1 | 8 | 423.33 | 127, 42 | 0.3, 0.0992 |"),
        ([1.0, 0.9, 0.1, -0.05], 2, "| 1, 0.9, 0.1, −0.05 | 2 | 1 | 1, 1, 0, 0 | 1, 1, 0, 0 |"),
    ],
)
def test_scales_of_weights(weights, bits, row):
    on_page(row)
    rows = torch.tensor([weights])
    scale = choose_weight_scale(rows, bits)
    integers = quantize_weight(rows, scale, weight_limit(bits))
    _, _, sigma, q, values = (cell.strip() for cell in row.strip("|").split("|"))
    assert round(float(scale), 2) == float(sigma)
    assert integers[0].tolist() == [int(v.replace("−", "-")) for v in q.split(",")]
    real = (integers / scale)[0].tolist()
    assert [round(v, 4) for v in real] == [float(v.replace("−", "-")) for v in values.split(",")]


def test_bound_of_a_large_layer():
    assert 25088 * 127 * 255 == 812474880 < 2**31
    on_page("25,088 · 127 · 255 = 812,474,880")
    made = quantize_convolution(
        np.full((1, 25088, 1, 1), 1.0), np.zeros(1), U[0], S[0], UNBOUNDED, Settings()
    )
    assert (made.weight == 64).all()


@pytest.mark.parametrize(
    "scale, bound, lo, hi, ib, params, acc, y, row",
    [
        (2**-12, 2**24, 0, 255, 17, (4, 1, 8), 100000, 24,
         "| 2^−12 | 2^24 | 0, 255 | 17 | 4 | 1 | 8 | 100,000 → t = 6,250 → 24 |"),
        (2**-12, 2**15, 0, 255, 17, (0, 1, 12), 6144, 2,
         "| 2^−12 | 2^15 | 0, 255 | 17 | 0 | 1 | 12 | 6,144 → 2 (a tie, up) |"),
        (2**-7, 2**24, -128, 127, 17, (0, 1, 7), -192, -1,
         "| 2^−7 | 2^24 | −128, 127 | 17 | 0 | 1 | 7 | −192 → −1 (a tie, up) |"),
        (2**-12, 2**24, 0, 255, 12, (9, 1, 3), 100000, 24,
         "| 2^−12 | 2^24 | 0, 255 | 12 | 9 | 1 | 3 | 100,000 → t = 195 → 24 |"),
        (8.0, 10, 0, 255, 17, (0, 16, 1), 3, 24,
         "| 8 | 10 | 0, 255 | 17 | 0 | 16 | 1 | 3 → 24 |"),
        (1 / 49, 49 * 255, 0, 255, 17, (0, 2675, 17), 1000, 20,
         "| 1/49 | 12,495 | 0, 255 | 17 | 0 | 2,675 | 17 | 1,000 → 20 |"),
    ],
)  # fmt: skip
def test_requantisation(scale, bound, lo, hi, ib, params, acc, y, row):
    on_page(row)
    made = requant_for(np.array([scale]), np.array([bound]), lo, hi, ib)
    assert (made.pre_shift[0], made.multiplier[0], made.shift[0]) == params
    assert one(acc, made) == y


@pytest.mark.parametrize(
    "a, b, source, output, weight, bias, params, x, acc, y, row",
    [
        (-0.5, 1.0, S[4], S[5], -64, 2048, (0, 1, 6), 24, 512, 8,
         "| −0.5 | 1 | 4 | 5 | −64 | 2,048 | 0 | 1 | 6 | 24 → 512 → 8 |"),
        (1 / 255, 0.0, U[0], U[8], 64, 0, (0, 257, 14), 255, 16320, 255,
         "| 1/255 | 0 | 0 | 8 | 64 | 0 | 0 | 257 | 14 | 255 → 16,320 → 256, clamped to 255 |"),
    ],
)  # fmt: skip
def test_per_channel_arithmetic(a, b, source, output, weight, bias, params, x, acc, y, row):
    on_page(row)
    made = quantize_affine(np.array([a]), np.array([b]), source, output, UNBOUNDED, 17)
    assert (made.weight.item(), made.bias.item()) == (weight, bias)
    requant = made.requant
    assert (requant.pre_shift[0], requant.multiplier[0], requant.shift[0]) == params
    assert weight * x + bias == acc
    assert one(acc, requant) == y


@pytest.mark.parametrize(
    "fracs, factors, coefficients, xs, acc, frac, y, row",
    [
        ((6, 4), (1, 1), [1, 4], (100, 50), 300, 4, 75,
         "| 100 (s8.6) + 50 (s8.4) | 2 | 1, 4 | 300 | s8.4 | (300 + 2) >> 2 = 75 |"),
        ((6, 4), (1, -3), [1, -12], (100, 50), -500, 3, -62,
         "| 100 (s8.6) − 3 · 50 (s8.4) | 2 | 1, −12 | −500 | s8.3 | (−500 + 4) >> 3 = −62 |"),
        ((16, 4), (1, 1), [1, 256], (6, 50), 12806, 4, 50,
         "| 100 (s8.16) + 50 (s8.4) | 12 | 100 becomes (100 + 8) >> 4 = 6 (s8.12); 1, 256 | 12,806 "
         "| s8.4 | (12,806 + 128) >> 8 = 50 |"),
    ],
)  # fmt: skip
def test_sums(fracs, factors, coefficients, xs, acc, frac, y, row):
    on_page(row)
    acc_frac, terms = plan_sum(list(fracs), list(factors))
    assert [t.coefficient for t in terms] == coefficients
    assert sum(c * x for c, x in zip(coefficients, xs, strict=True)) == acc
    made = quantize_sum(acc_frac, terms, [S[4], S[4]], 1, S[frac], UNBOUNDED, 17)
    assert one(acc, made.requant) == y


def test_the_finer_operand_of_the_last_sum_is_requantised_first():
    _, terms = plan_sum([16, 4], [1, 1])
    assert terms[0].frac == 12
    acc_frac, own = plan_sum([16], [1.0])
    made = quantize_sum(acc_frac, own, [S[16]], 1, S[12], UNBOUNDED, 17)
    assert one(100, made.requant) == 6
