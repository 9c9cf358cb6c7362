import re

import numpy as np
import pytest
from torch import nn

from rasna.compile.backend import build_image
from rasna.compile.backend.memory import OutOfMap
from rasna.compile.backend.plan import Limits, Planner, plan_window, position_chunks
from rasna.compile.backend.window import conv_window
from rasna.compile.backend.window_lower import WindowLowering
from rasna.errors import CompileError
from rasna.graph import Conv, FixedPoint, Padding, Requant, Tensor
from rasna.targets import get_target
from tests.compile.support import Net, Net2, compiled, sample, settle
from tests.messages import refuses


def window(channels=16, size=16, outputs=16, kernel=3, width=None, density=1.0, stride=1):
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 128, (outputs, channels, kernel, kernel)).astype(np.int8)
    weight[rng.random(weight.shape) >= density] = 0
    ones = np.ones(outputs, np.int32)
    pad = kernel // 2
    op = Conv("conv1", ["x"], "y", "", weight, 0 * ones, Requant(ones, ones, ones, -128, 127),
              stride=(stride, stride), padding=Padding(pad, pad, pad, pad))
    type_ = FixedPoint(8, 4, True)
    shape = (channels, size, width or size)
    out = (outputs, *(-(-n // stride) for n in shape[1:]))
    return conv_window(op, Tensor("x", shape, type_), Tensor("y", out, type_))


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
    g = w.resident_geometry(8, 2)
    plan = Planner(w, target, Limits(500, resident=g)).best()
    assert (plan.stripes, plan.out_rows) == (8, 2)


def test_a_resident_source_without_the_halo_is_not_readable():
    w = window()
    assert not w.can_read(window(kernel=1).resident_geometry(8, 2))
    assert window(kernel=1).can_read(w.resident_geometry(8, 2))


def test_sparse_layers_are_planned_with_fewer_cycles():
    target = get_target("pynq-z2")
    limits = Limits(target.map_words - 1)
    dense, sparse = (
        plan_window(window(64, 16, 64, density=d), target, limits).cycles for d in (1.0, 0.2)
    )
    assert sparse < dense / 2


def refused_image(model, message, *samples):
    """tiny refuses the model with ``message``, in which pynq-z2 is named, and pynq-z2 takes it."""
    graph = compiled(settle(model), *samples)
    with refuses(CompileError, message):
        build_image(graph, get_target("tiny"))
    assert build_image(graph, get_target("pynq-z2")).layers


def test_an_average_that_does_not_fit_is_refused_with_the_numbers():
    refused_image(
        nn.AvgPool2d(2),
        "avgpool2d: average pooling from 4x300 to 2x150 needs 103 words of map memory and 19 "
        "accumulator tiles in every slice, target tiny has 127 and 16; use narrower maps, or "
        "target='pynq-z2', which has 1023 and 64",
        sample(1, 1, 4, 300),
    )


def test_a_sum_that_does_not_fit_is_refused_with_the_numbers():
    refused_image(
        Net2(lambda m, x, y: x + y),
        "add: one row of each of 2 operands and the result needs 233 words of map memory in every "
        "slice, target tiny has 127; use narrower maps, or target='pynq-z2', which has 1023",
        sample(1, 1, 4, 600), sample(1, 1, 4, 600),
    )  # fmt: skip


def test_what_needs_more_than_is_free_is_refused_with_the_numbers(monkeypatch):
    def run(self):
        raise OutOfMap(70, 60)

    monkeypatch.setattr(WindowLowering, "run", run)
    with refuses(
        CompileError,
        "conv: 70 words of map memory are needed at once in every slice, target tiny has 60 left; "
        "use narrower maps, or target='pynq-z2', which has 1023",
    ):
        build_image(
            compiled(settle(Net(lambda m, x: m.conv(x), conv=nn.Conv2d(1, 1, 1))),
                     sample(1, 1, 4, 4)),
            get_target("tiny"),
        )  # fmt: skip


def test_a_row_that_cannot_fit_is_refused_with_the_numbers():
    target = get_target("tiny")
    with pytest.raises(CompileError) as error:
        plan_window(window(channels=1, size=8, width=500), target, Limits(target.map_words - 1))
    assert str(error.value) == (
        "conv1: one output row needs 257 words of map memory in every slice (3 input rows of 63 "
        "words, 63 output words, 5 around them), target tiny has 127; use narrower inputs, or "
        "target='pynq-z2', which has 1023"
    )


def test_the_room_for_phases_is_counted_where_strides_are_refused():
    target = get_target("tiny")
    with refuses(
        CompileError,
        "conv1: one output row needs 408 words of map memory in every slice (3 input rows of 64 "
        "words, 21 output words, 191 to part the columns by the stride of 3, 4 around them), "
        "target tiny has 127; use narrower inputs, or target='pynq-z2', which has 1023",
    ):
        plan_window(window(channels=3, size=8, width=500, stride=3), target, Limits(127))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_the_words_that_are_asked_for_are_just_enough(kernel, stride, channels):
    w, target = window(channels, 9, kernel=kernel, stride=stride, width=700), get_target("tiny")
    with pytest.raises(CompileError) as error:
        plan_window(w, target, Limits(target.map_words - 1))
    needed = int(re.search(r"needs (\d+) words", str(error.value))[1])
    rows, words = re.search(r"(\d+) input rows of (\d+) words", str(error.value)).groups()
    parts = re.findall(r"(\d+) (?:output words|to part|around)", str(error.value))
    assert needed == int(rows) * int(words) + sum(map(int, parts))
    assert plan_window(w, target, Limits(needed)).out_rows == 1
    with pytest.raises(CompileError):
        plan_window(w, target, Limits(needed - 1))
