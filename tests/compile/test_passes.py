"""Each pass: a match, a near miss, and what it leaves alone (passes/)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile import floatgraph as fg
from rasna.compile.capture import capture
from rasna.compile.execute import run
from rasna.compile.passes import (
    check,
    drop_dropout,
    fold_clamp,
    hoist_clamp,
    merge_affine,
    merge_reshape,
    remove_dead_code,
)
from rasna.compile.passes.fold_clamp import compose
from tests.compile.support import Net, sample, settle


def children():
    return {
        "conv": nn.Conv2d(3, 4, 3), "bn": nn.BatchNorm2d(4), "bn2": nn.BatchNorm2d(4),
        "pool": nn.MaxPool2d(2), "fc": nn.Linear(4, 2),
    }  # fmt: skip


def captured(function) -> tuple[fg.FloatGraph, nn.Module]:
    model = settle(Net(function, **children()))
    return capture(model, [sample(2, 3, 8, 8)]), model


def kinds(graph: fg.FloatGraph) -> list[str]:
    return [type(node.op).__name__ for node in graph.nodes.values()]


def apply(rewrite, function) -> fg.FloatGraph:
    """Run one pass; the graph must stay legal and compute the same."""
    graph, model = captured(function)
    x = sample(3, 3, 8, 8, seed=5)
    with torch.no_grad():
        before = run(graph, model, [x])
        rewrite(graph)
        check(graph, rewrite.__name__)
        after = run(graph, model, [x])
    for a, b in zip(before, after, strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    return graph


# ---- drop_dropout


def test_drop_dropout_removes_it_from_the_middle_and_from_the_output():
    def forward(m, x):
        return F.dropout(m.conv(F.dropout(x, 0.1, training=False)), training=False)

    graph = apply(drop_dropout, forward)
    assert kinds(graph) == ["Input", "Conv"] and graph.outputs == ["conv"]


def test_drop_dropout_leaves_other_graphs_alone():
    graph = apply(drop_dropout, lambda m, x: m.bn(m.conv(x)))
    assert kinds(graph) == ["Input", "Conv", "Affine"]


# ---- merge_reshape


def test_merge_reshape_shortens_chains():
    graph = apply(merge_reshape, lambda m, x: m.pool(x).flatten(2).flatten(1))
    assert graph.nodes["flatten_1"].inputs == ["pool"]


def test_merge_reshape_removes_a_view_there_and_back():
    graph = apply(merge_reshape, lambda m, x: m.conv(x.flatten(1).view(-1, 3, 8, 8)))
    assert graph.nodes["conv"].inputs == ["x"]


def test_merge_reshape_leaves_a_single_flatten_alone():
    graph = apply(merge_reshape, lambda m, x: x.flatten(1))
    assert kinds(graph) == ["Input", "Reshape"]


# ---- remove_dead_code


def test_remove_dead_code_removes_what_no_output_needs():
    def forward(m, x):
        m.pool(m.conv(x))
        return m.conv(x)

    assert kinds(apply(remove_dead_code, forward)) == ["Input", "Conv"]


def test_remove_dead_code_keeps_unused_inputs():
    class Unused(nn.Module):
        def forward(self, x, y):
            return -x

    graph = capture(Unused().eval(), [sample(2, 3, 4, 4), sample(2, 3)])
    remove_dead_code(graph)
    assert kinds(graph) == ["Input", "Input", "Affine"]


# ---- merge_affine


def test_merge_affine_folds_batchnorm_and_what_follows_it():
    graph = apply(merge_affine, lambda m, x: m.bn2(m.bn(m.conv(x)) * 2 - 1))
    assert kinds(graph) == ["Input", "Conv"]
    assert len(graph.nodes["conv"].op.steps) == 4


def test_merge_affine_joins_affines_without_a_convolution():
    graph = apply(merge_affine, lambda m, x: (x - 1) / 2)
    assert kinds(graph) == ["Input", "Affine"]


def test_merge_affine_does_not_fold_over_a_relu():
    graph, _ = captured(lambda m, x: m.bn(F.relu(m.conv(x))))
    fold_clamp(graph)
    merge_affine(graph)
    assert kinds(graph) == ["Input", "Conv", "Affine"]


def test_merge_affine_does_not_fold_where_the_convolution_has_a_second_reader():
    def forward(m, x):
        y = m.conv(x)
        return m.bn(y) + y

    assert kinds(apply(merge_affine, forward)) == ["Input", "Conv", "Affine", "Sum"]


def test_merge_affine_does_not_fold_where_the_convolution_is_an_output():
    def forward(m, x):
        y = m.conv(x)
        return m.bn(y), y

    assert kinds(apply(merge_affine, forward)) == ["Input", "Conv", "Affine"]


def test_merge_affine_leaves_batchnorm_behind_pooling_alone():
    graph = apply(merge_affine, lambda m, x: m.bn(m.pool(m.conv(x))))
    assert kinds(graph) == ["Input", "Conv", "MaxPool", "Affine"]


# ---- fold_clamp


def test_fold_clamp_gives_the_limits_to_the_producer():
    graph = apply(fold_clamp, lambda m, x: F.relu6(m.conv(x)))
    assert graph.nodes["conv"].op.clamp == (0.0, 6.0) and graph.outputs == ["conv"]


@pytest.mark.parametrize(
    "function",
    [lambda m, x: F.relu(x + x), lambda m, x: F.relu(m.pool(x)), lambda m, x: F.relu(1 - x),
     lambda m, x: F.relu(x.mean((2, 3), keepdim=True)), lambda m, x: F.relu(x).clamp(max=1)],
)  # fmt: skip
def test_fold_clamp_knows_all_producers(function):
    assert len(kinds(apply(fold_clamp, function))) == 2


def test_fold_clamp_needs_the_only_reader():
    def forward(m, x):
        y = m.conv(x)
        return F.relu(y) + y

    assert kinds(apply(fold_clamp, forward)) == ["Input", "Conv", "Clamp", "Sum"]


def test_fold_clamp_leaves_the_relu_of_an_input_alone():
    assert kinds(apply(fold_clamp, lambda m, x: F.relu(x))) == ["Input", "Clamp"]


@pytest.mark.parametrize("first", [(0, 6), (-1, 1), (2, 3), (-5, -4)])
@pytest.mark.parametrize("second", [(0, 1), (-2, 0), (2.5, 9), (5, 5)])
def test_composed_limits_do_what_two_clamps_do(first, second):
    x = torch.linspace(-8, 8, 65)
    want = x.clamp(*first).clamp(*second)
    assert torch.equal(x.clamp(*compose(first, second)), want)


# ---- hoist_clamp


def test_hoist_clamp_moves_a_relu_before_max_pooling_and_flatten():
    graph = apply(hoist_clamp, lambda m, x: F.relu(m.pool(m.conv(x)).flatten(1)))
    assert kinds(graph) == ["Input", "Conv", "Clamp", "MaxPool", "Reshape"]
    assert graph.outputs == ["flatten"]


def test_hoist_clamp_needs_a_producer_without_other_readers():
    def forward(m, x):
        y = m.conv(x)
        return F.relu(m.pool(y)), y

    assert kinds(apply(hoist_clamp, forward)) == ["Input", "Conv", "MaxPool", "Clamp"]


def test_hoist_clamp_leaves_pooling_of_an_input_alone():
    graph = apply(hoist_clamp, lambda m, x: F.relu(m.pool(x)))
    assert kinds(graph) == ["Input", "MaxPool", "Clamp"]


def test_hoist_clamp_leaves_a_clamp_right_behind_its_producer_alone():
    assert kinds(apply(hoist_clamp, lambda m, x: F.relu(m.conv(x)))) == ["Input", "Conv", "Clamp"]


# ---- check


FAULT = "this is a fault of the compiler, please report the model"


def broken(change) -> str:
    graph, _ = captured(lambda m, x: F.relu(m.conv(x)) + m.conv(x))
    change(graph)
    with pytest.raises(RuntimeError) as error:
        check(graph, "some_pass")
    return str(error.value)


def test_check_names_the_pass_and_the_node():
    def reads_a_later_node(graph):
        graph.nodes["conv"].inputs = ["add"]

    assert broken(reads_a_later_node) == (
        f"after some_pass: node conv (Conv) reads add before they are computed; {FAULT}"
    )


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda g: g.outputs.append("gone"), "inputs or outputs gone are no nodes"),
        (lambda g: g.nodes["add"].inputs.pop(), "node add (Sum) has 1 inputs where 2 are needed"),
        (lambda g: setattr(g.nodes["relu"], "shape", (4, 1, 1)), 
         "node relu (Clamp) turns the shape (4, 6, 6) into (4, 1, 1)"),
        (lambda g: setattr(g.nodes["add"], "shape", (5, 6, 6)), 
         "node add (Sum) combines the shape (4, 6, 6) to (5, 6, 6)"),
        (lambda g: setattr(g.nodes["conv"], "shape", (0, 6, 6)), 
         "node conv (Conv) has the shape (0, 6, 6)"),
        (lambda g: setattr(g.nodes["relu"], "op", fg.Clamp((1, 0))), 
         "node relu (Clamp) has the empty clamp (1, 0)"),
        (lambda g: setattr(g.nodes["relu"], "name", "other"), 
         "node relu (Clamp) is called other too"),
    ],
)  # fmt: skip
def test_check_finds_what_is_broken(change, message):
    assert broken(change) == f"after some_pass: {message}; {FAULT}"
