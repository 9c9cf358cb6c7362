import numpy as np
import pytest

from rasna.compile.backend.plan import Limits, Planner, plan_window, position_chunks
from rasna.compile.backend.window import conv_window
from rasna.errors import CompileError
from rasna.graph import Conv, FixedPoint, Padding, Requant, Tensor
from rasna.targets import get_target


def window(channels=16, size=16, outputs=16, kernel=3, width=None, density=1.0):
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 128, (outputs, channels, kernel, kernel)).astype(np.int8)
    weight[rng.random(weight.shape) >= density] = 0
    ones = np.ones(outputs, np.int32)
    pad = kernel // 2
    op = Conv("conv1", ["x"], "y", "", weight, 0 * ones, Requant(ones, ones, ones, -128, 127),
              padding=Padding(pad, pad, pad, pad))
    type_ = FixedPoint(8, 4, True)
    shape = (channels, size, width or size)
    return conv_window(op, Tensor("x", shape, type_), Tensor("y", (outputs, *shape[1:]), type_))


def test_a_layer_that_fits_is_computed_in_one_pass():
    target = get_target("pynq-z2")
    plan = plan_window(window(), target, Limits(target.map_words - 1))
    assert plan.num_passes(window()) == 1
    assert plan.stripes * plan.out_rows >= 16


def test_channels_that_do_not_fit_are_computed_in_passes():
    target = get_target("tiny")
    w = window(channels=64)
    plan = plan_window(w, target, Limits(target.map_words - 1))
    assert plan.num_passes(w) > 1
    assert plan.hold < 64


def test_kernel_positions_beyond_the_table_are_cut():
    target = get_target("tiny")
    chunks = position_chunks(window(kernel=7), target)
    assert [len(c) for c in chunks] == [25, 24]
    assert sorted(i for c in chunks for i in c) == list(range(49))


def test_a_resident_source_forbids_other_mappings():
    target = get_target("pynq-z2")
    w = window()
    g = w.plain_geometry(8, 2)
    plan = Planner(w, target, Limits(500, resident=g)).best()
    assert (plan.stripes, plan.out_rows) == (8, 2)


def test_a_resident_source_without_the_halo_is_not_readable():
    w = window()
    assert not w.can_read(window(kernel=1).plain_geometry(8, 2))
    assert window(kernel=1).can_read(w.plain_geometry(8, 2))


def test_sparse_layers_are_planned_with_fewer_cycles():
    target = get_target("pynq-z2")
    limits = Limits(target.map_words - 1)
    dense, sparse = (
        plan_window(window(64, 16, 64, density=d), target, limits).cycles for d in (1.0, 0.2)
    )
    assert sparse < dense / 2


def test_a_row_that_cannot_fit_is_refused_with_the_numbers():
    target = get_target("tiny")
    with pytest.raises(CompileError) as error:
        plan_window(window(channels=1, size=8, width=500), target, Limits(target.map_words - 1))
    assert str(error.value) == (
        "conv1: one output row needs 255 words of map memory in every slice (3 input rows of 63 "
        "words and 63 output words), target tiny has 127; use narrower inputs or a larger target"
    )
