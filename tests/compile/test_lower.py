"""Logical and stored shapes, conversions between them, ports (lower.py)."""

import torch
import torch.nn.functional as F
from torch import nn

from rasna.errors import CompileError
from rasna.graph import Conv, Padding, Sum
from tests.compile.support import Net, Net2, check, compiled, sample, settle
from tests.messages import refuses


def test_attributes_of_a_convolution_arrive():
    layer = nn.Conv2d(
        4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(2, 1), groups=2,
        padding_mode="circular",
    )  # fmt: skip
    (op,) = compiled(settle(layer), sample(2, 4, 9, 8)).ops
    assert op.weight.shape == (6, 2, 3, 2)
    assert (op.stride, op.dilation, op.groups) == ((2, 1), (2, 1), 2)
    assert op.padding == Padding(1, 1, 2, 2) and op.padding_mode == "circular"


def test_sources_name_node_path_and_line():
    graph = compiled(settle(Net(lambda m, x: m.c(x), c=nn.Conv2d(3, 4, 1))), sample(2, 3, 4, 4))
    assert graph.ops[0].source.startswith("c (c), test_lower.py:")


def test_ports_are_named_after_nodes_and_unique():
    graph = compiled(Net(lambda m, x: (x, x, -x)).eval(), sample(2, 3, 4, 4))
    assert [port.name for port in graph.inputs] == ["x"]
    assert [port.name for port in graph.outputs] == ["x_out", "x_out_out", "neg"]


def test_a_map_and_computed_features_are_added_through_a_flatten_operation():
    model = settle(Net(lambda m, x: x.flatten(1) + m.fc(x.flatten(1)), fc=nn.Linear(24, 24)))
    graph = check(model, sample(4, 2, 3, 4))
    kinds = {op.name: type(op) for op in graph.ops}
    assert kinds == {"fc": Conv, "x_flat": Conv, "add": Sum}
    flat = graph.tensors["x_flat"]
    assert flat.shape == (24, 1, 1) and flat.type == graph.tensors["x"].type


def test_a_flatten_operation_is_made_once_and_is_exact():
    def forward(m, x):
        y = x.flatten(1)
        return m.bn(y), m.bn(y) + m.fc(y)

    model = settle(Net(forward, bn=nn.BatchNorm1d(24), fc=nn.Linear(24, 24)))
    graph = check(model, sample(4, 2, 3, 4))
    assert [op.name for op in graph.ops].count("x_flat") == 1
    (op,) = [op for op in graph.ops if op.name == "x_flat"]
    assert (op.weight.reshape(24, 24) != 0).sum() == 24


def test_a_flatten_operation_of_too_many_features_is_refused():
    model = settle(Net(lambda m, x: m.bn(x.flatten(1)), bn=nn.BatchNorm1d(4800)))
    with refuses(
        CompileError,
        "bn (bn), test_lower.py:N: a map of shape (3, 40, 40) that is used with the shape (4800,) "
        "is not supported; keep (channels, height, width) until a linear layer or the output",
    ):
        compiled(model, sample(2, 3, 40, 40))


def test_all_problems_of_lowering_are_reported_too():
    def forward(m, x):
        y = m.fc(x).view(-1, 2, 50, 48)
        return m.a(y), F.max_pool2d(y, 2)

    model = settle(Net(forward, fc=nn.Linear(6, 4800), a=nn.Conv2d(2, 2, 1)))
    with refuses(
        CompileError,
        "the model cannot be compiled, 2 problems:\n"
        "  a (a), test_lower.py:N: a map of shape (4800, 1, 1) that is used with the shape (2, "
        "50, 48) is not supported; keep (channels, height, width) until a linear layer or the "
        "output\n"
        "  max_pool2d, test_lower.py:N: a map of shape (4800, 1, 1) that is used with the shape "
        "(2, 50, 48) is not supported; keep (channels, height, width) until a linear layer or "
        "the output",
    ):
        compiled(model, sample(2, 6))


def test_one_coarser_copy_serves_two_sums():
    def forward(m, x):
        y = 1e5 * m.conv(x)
        return x + y, y - x

    graph = check(settle(Net(forward, conv=nn.Conv2d(3, 3, 1))), sample(4, 3, 5, 5))
    assert [op.name for op in graph.ops].count("x_coarse") == 1


def test_a_broadcast_operand_is_stored_as_one_pixel():
    graph = check(Net2(lambda m, x, y: x + y).eval(), sample(4, 3, 5, 5), sample(4, 3, 1, 1))
    assert graph.tensors["y"].shape == (3, 1, 1) and graph.tensors["add"].shape == (3, 5, 5)


def test_parameters_may_require_gradients_and_nothing_is_recorded():
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)))
    assert all(p.requires_grad for p in model.parameters())
    with torch.enable_grad():
        compiled(model, sample(2, 3, 4, 4))
    assert all(p.grad is None for p in model.parameters())
