"""Fake quantisation: the grid, and the gradients."""

import torch

from rasna.graph import FixedPoint
from rasna.tune.fake import fake_quantize, fake_quantize_weight
from rasna.tune.integer import dequantize, quantize


def test_values_are_those_of_the_integer_types():
    for kind in (FixedPoint(8, 3, True), FixedPoint(4, -2, False), FixedPoint(2, 5, True)):
        x = torch.randn(1000) * 2.0 ** (kind.bits - kind.frac)
        got = fake_quantize(x, 2.0**kind.frac, kind.lo, kind.hi)
        assert torch.equal(got, dequantize(quantize(x, kind), kind))


def test_the_gradient_is_straight_through_inside_and_zero_outside():
    x = torch.tensor([-3.0, -0.1, 0.1, 0.7, 1.9, 2.5], requires_grad=True)
    y = fake_quantize(x, 8.0, 0, 15)
    y.backward(torch.arange(1.0, 7.0))
    assert y.tolist() == [0.0, 0.0, 0.125, 0.75, 1.875, 1.875]
    assert x.grad.tolist() == [0.0, 0.0, 3.0, 4.0, 0.0, 0.0]


def test_low_precision_inputs_are_rounded_in_float32():
    x = torch.tensor([0.49999997, 0.3, 100.0]).to(torch.bfloat16).requires_grad_()
    y = fake_quantize(x, 64.0, -128, 127)
    assert y.dtype == torch.bfloat16 and y.tolist() == [0.5, 0.296875, 1.984375]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0]


def test_weights_have_a_scale_per_channel_and_keep_their_mask():
    w = torch.tensor([[0.3, -2.0], [0.3, 0.0], [5.0, 1.0]], requires_grad=True)
    scale = torch.tensor([[4.0], [10.0], [0.0]])
    keep = torch.tensor([[True, True], [True, False], [True, True]])
    y = fake_quantize_weight(w, scale, 3, keep)
    y.sum().backward()
    want = torch.tensor([[0.25, -0.75], [0.3, 0.0], [0.0, 0.0]])
    assert torch.allclose(y, want) and not y[2].any()
    assert w.grad.tolist() == [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]


def test_gradients_equal_finite_differences_of_the_clamp():
    torch.manual_seed(0)
    x = (torch.randn(64, dtype=torch.float64) * 2).requires_grad_()
    upstream = torch.randn(64, dtype=torch.float64)
    (fake_quantize(x, 16.0, -20, 20) * upstream).sum().backward()
    twin = x.detach().clone().requires_grad_()
    (twin.clamp(-20 / 16, 20 / 16) * upstream).sum().backward()
    assert torch.equal(x.grad, twin.grad)
