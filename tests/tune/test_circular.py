"""chpad: circular padding everywhere but where it would wrap more than once."""

import pytest
import torch
from torch import nn

from rasna.tune.circular import (
    circular_pad,
    keep_mode_where_it_wraps,
    make_circular,
    restore,
)


def net():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1),
        nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"),
        nn.AdaptiveAvgPool2d(2),
        nn.Conv2d(2, 2, 7, padding=3),
        nn.Conv2d(2, 2, 3, padding="same"),
    )


def test_every_convolution_becomes_circular_and_back():
    model = net()
    make_circular(model)
    make_circular(model)
    modes = [m.padding_mode for m in model if isinstance(m, nn.Conv2d)]
    assert modes == ["circular"] * 4
    restore(model)
    modes = [m.padding_mode for m in model if isinstance(m, nn.Conv2d)]
    assert modes == ["zeros", "reflect", "zeros", "zeros"]


def test_it_computes_what_a_circular_convolution_computes():
    model = net()
    make_circular(model)
    want = nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")
    want.load_state_dict(model[0].state_dict())
    x = torch.randn(2, 1, 5, 6)
    assert torch.equal(model[0](x), want(x))


def test_a_layer_that_would_wrap_more_than_once_keeps_its_mode_and_is_named():
    model = net()
    make_circular(model)
    x = torch.randn(2, 1, 5, 6)
    with pytest.warns(UserWarning) as warned:
        assert keep_mode_where_it_wraps(model, lambda: model(x)) == ["3 (zeros, map (2, 2))"]
    assert str(warned[0].message) == (
        "tune: circular padding would wrap more than once in 3 (zeros, map (2, 2)); "
        "these layers keep their padding mode"
    )
    assert model[3].padding_mode == "zeros" and model[4].padding_mode == "circular"
    assert not model[3]._forward_pre_hooks
    model(x)


def test_padding_as_large_as_the_map_wraps_once_and_is_circular():
    model = nn.Sequential(nn.Conv2d(1, 1, 5, padding=2))
    make_circular(model)
    x = torch.randn(1, 1, 2, 3)
    assert keep_mode_where_it_wraps(model, lambda: model(x)) == []
    assert model[0].padding_mode == "circular"


@pytest.mark.parametrize("edges", [(1, 1, 1, 1), (2, 4, 3, 0), (0, 0, 0, 1), (0, 0, 0, 0)])
def test_circular_pad_is_that_of_pytorch_with_its_gradient(edges):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 3, 4, requires_grad=True)
    y = circular_pad(x, edges)
    want = nn.functional.pad(x, edges, mode="circular")
    assert torch.equal(y, want)
    upstream = torch.randint(-9, 9, y.shape).float()
    (got,) = torch.autograd.grad(y, x, upstream, retain_graph=True)
    (expected,) = torch.autograd.grad(want, x, upstream)
    assert torch.equal(got, expected)
