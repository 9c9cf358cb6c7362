"""Bilinear and linear interpolation (operators/interpolation.py)."""

import numpy as np
import pytest
import torch.nn.functional as F
from torch import nn

from rasna.graph import Conv, Gather, Select
from rasna.targets import TARGETS
from tests.backend.graph_check import compare
from tests.compile.support import Net, check, compiled, integers, sample, settle


def up(size=None, scale=None, corners=False):
    return Net(
        lambda m, x: F.interpolate(m.a(x), size, scale, mode="bilinear", align_corners=corners),
        a=nn.Conv2d(3, 4, 1),
    )


CASES = {
    "twice": up(scale=2),
    "three times": up(scale=3),
    "four times": up(scale=4),
    "other factors": up(scale=(1, 2)),
    "a size": up(size=(12, 16)),
    "not an integer": up(scale=1.5),
    "smaller": up(size=(4, 5)),
    "twice, corners aligned": up(scale=2, corners=True),
    "corners aligned, an integer factor between pixels": up(size=(11, 15), corners=True),
    "corners aligned, smaller": up(size=(3, 4), corners=True),
    "nn.Upsample": nn.Upsample(scale_factor=2, mode="bilinear"),
    "nn.UpsamplingBilinear2d": nn.UpsamplingBilinear2d(scale_factor=2),
    "in front of ReLU": Net(
        lambda m, x: F.interpolate(m.a(x), scale_factor=2, mode="bilinear").relu(),
        a=nn.Conv2d(3, 4, 3),
    ),
    "recompute": Net(
        lambda m, x: F.interpolate(
            x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True
        )
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_maps(name):
    check(settle(CASES[name]), sample(4, 3, 6, 8))


@pytest.mark.parametrize("length", [1, 2, 3, 9])
@pytest.mark.parametrize("corners", [False, True])
def test_sequences(length, corners):
    model = nn.Upsample(scale_factor=2, mode="linear", align_corners=corners)
    check(settle(nn.Sequential(nn.Conv1d(3, 4, 1), model)), sample(4, 3, length))


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (2, 2), (3, 1)])
def test_small_maps(size):
    check(settle(up(scale=2)), sample(4, 3, *size))


def test_an_integer_factor_is_one_convolution_of_exact_weights():
    graph = compiled(nn.Upsample(scale_factor=2, mode="bilinear").eval(), sample(2, 3, 6, 8))
    pad, conv, select = graph.ops
    assert (type(pad), type(conv), type(select)) == (Gather, Conv, Select)
    assert conv.weight.shape == (12, 1, 3, 3)
    assert sorted(set(np.abs(conv.weight).ravel())) == [0, 8, 24, 72]
    assert np.count_nonzero(conv.weight) == 4 * 12


@pytest.mark.parametrize("name", ["twice", "not an integer", "twice, corners aligned"])
@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
def test_the_program_computes_the_integers(name, target):
    x = sample(1, 3, 6, 8)
    graph = compiled(settle(CASES[name]), x)
    compare(graph, [integers(graph, x)], TARGETS[target])


def test_rows_that_become_a_map_are_written_in_place():
    x = sample(1, 3, 6, 8)
    graph = compiled(settle(CASES["not an integer"]), x)
    image = compare(graph, [integers(graph, x)], TARGETS["pynq-z2"])
    layers = {layer["name"]: layer["num_instructions"] for layer in image.layers}
    assert layers["interpolate_rows_whole"] == 0
    assert layers["interpolate_columns_whole"] > 0


def test_weights_keep_eight_bits_where_learned_ones_have_two():
    x = sample(2, 3, 6, 8)
    graph = compiled(nn.Upsample(scale_factor=2, mode="bilinear").eval(), x, wb=2)
    assert max(np.abs(op.weight).max() for op in graph.ops if isinstance(op, Conv)) == 72
