"""What the walker makes of whole models: structure, in-place semantics, all problems at once."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile.capture import capture
from rasna.compile.floatgraph import Affine, Const, Conv, Derived, Dropout, Param, fetch
from rasna.errors import CompileError
from tests.compile.support import Net, Net2, check, compiled, sample, settle
from tests.messages import refuses


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x):
        return torch.cumsum(self.bn(self.conv(x)), 1)


def line_of(function, offset: int) -> str:
    return f"test_capture.py:{function.__code__.co_firstlineno + offset}"


def test_nodes_know_name_path_and_line():
    model = settle(nn.ModuleDict({"a": nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 1)))})["a"])
    graph = capture(model, [sample(2, 3, 4, 4)])
    assert str(graph.nodes["_0_0"].where) == "_0_0 (0.0)"
    graph = capture(settle(Net(lambda m, x: m.c(x).relu(), c=nn.Conv2d(3, 4, 1))),
                    [sample(2, 3, 4, 4)])  # fmt: skip
    assert str(graph.nodes["c"].where).startswith("c (c), test_capture.py:")


def test_all_problems_are_reported_at_once():
    model = settle(
        nn.Sequential(
            Block(), nn.GroupNorm(2, 4), nn.Conv2d(4, 4, 1), nn.Unfold(1)
        )
    )
    with pytest.raises(CompileError) as error:
        compiled(model, sample(2, 4, 6, 6))
    assert str(error.value) == (
        "the model cannot be compiled, 3 problems:\n"
        f"  cumsum (0), {line_of(Block.forward, 1)}: cumsum is not supported; "
        "end the compiled model before it, until='0.bn', and apply it in PyTorch\n"
        "  _1 (1): GroupNorm is not supported; use nn.BatchNorm2d, whose running statistics are "
        "constants, and train it again\n"
        "  _3 (3): Unfold is not supported; end the compiled model before it and apply it in "
        "PyTorch"
    )


def test_a_recurrent_layer_with_several_results_is_one_problem():
    model = settle(
        Net(lambda m, x: m.fc(m.lstm(x)[0]), lstm=nn.LSTM(5, 6), fc=nn.Linear(6, 2))
    )
    with refuses(
        CompileError,
        "lstm (lstm), test_capture.py:N: LSTM is not supported; apply it to the input in "
        "PyTorch and compile what follows",
    ):
        compiled(model, sample(3, 5))


def test_parameters_are_references_by_path():
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)))
    graph = capture(model, [sample(2, 3, 4, 4)])
    conv, bn = graph.nodes["_0"].op, graph.nodes["_1"].op
    assert isinstance(conv, Conv) and conv.weight == Param("0.weight")
    assert isinstance(bn, Affine) and bn.steps[0].mean == Param("1.running_mean")
    other = copy.deepcopy(model)
    assert fetch(other, conv.weight) is other[0].weight


def test_expressions_of_parameters_stay_live():
    model = Net(lambda m, x: F.conv2d(x, m.w * m.mask), w=nn.Parameter(sample(2, 3, 1, 1)),
                mask=torch.ones(2, 3, 1, 1)).eval()  # fmt: skip
    graph = capture(model, [sample(2, 3, 4, 4)])
    (ref,) = [n.op.weight for n in graph.nodes.values() if isinstance(n.op, Conv)]
    assert isinstance(ref, Derived)
    model.mask.zero_()
    assert not fetch(model, ref).any()


def test_tensors_made_in_forward_are_constants_and_leave_the_model_alone():
    model = Net(lambda m, x: x + torch.tensor(3.0)).eval()
    before = set(vars(model))
    graph = capture(model, [sample(2, 3, 4, 4)])
    assert isinstance(graph.nodes["add"].op.steps[0].operand, Const)
    assert set(vars(model)) == before and not dict(model.named_buffers())


def test_dropout_is_kept_for_training():
    model = nn.Sequential(nn.Dropout(0.25), nn.Conv2d(3, 4, 1)).train()
    graph = capture(model, [sample(2, 3, 4, 4)], training=True)
    assert graph.nodes["_0"].op == Dropout(0.25, "0")


def test_the_samples_are_never_changed():
    x = sample(2, 3, 4, 4)
    kept = x.clone()
    check(Net(lambda m, x: x.mul_(2).relu_()).eval(), x)
    assert (x == kept).all()


# ---- structure of inputs and outputs

OUTPUTS = {
    "tuple": (lambda m, x: (m.conv(x), x.relu()), {"tuple": [0, 1]}),
    "list": (lambda m, x: [m.conv(x), x.relu()], {"list": [0, 1]}),
    "dict": (lambda m, x: {"y": m.conv(x), "x": x}, {"dict": {"y": 0, "x": 1}}),
    "nested": (
        lambda m, x: {"a": (m.conv(x), [x.relu()]), "b": -x},
        {"dict": {"a": {"tuple": [0, {"list": [1]}]}, "b": 2}},
    ),
    "single": (lambda m, x: m.conv(x), 0),
    "tuple of one": (lambda m, x: (m.conv(x),), {"tuple": [0]}),
    "the input itself": (lambda m, x: x, 0),
    "the same tensor twice": (lambda m, x: (lambda y: (y, y))(m.conv(x)), {"tuple": [0, 1]}),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_structure_of_the_outputs(name):
    function, structure = OUTPUTS[name]
    graph = check(settle(Net(function, conv=nn.Conv2d(3, 4, 3))), sample(4, 3, 5, 5))
    assert graph.structure == structure
    names = [port.name for port in (*graph.inputs, *graph.outputs)]
    assert len(set(names)) == len(names)


def test_an_intermediate_result_that_is_an_output_too():
    def forward(m, x):
        y = m.a(x)
        return m.b(F.relu(y)), y

    check(settle(Net(forward, a=nn.Conv2d(3, 4, 3), b=nn.Conv2d(4, 4, 3))), sample(4, 3, 7, 7))


def test_one_tensor_read_by_two_differently_padded_convolutions():
    model = settle(
        Net(lambda m, x: m.a(m.c(x)) + m.b(m.c(x)), a=nn.Conv2d(4, 4, 5, padding=2),
            b=nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"), c=nn.Conv2d(3, 4, 1))
    )  # fmt: skip
    check(model, sample(4, 3, 7, 7))


def test_two_inputs_of_different_shapes():
    model = settle(
        Net2(lambda m, x, y: m.a(x).mean((2, 3)) + m.b(y), a=nn.Conv2d(3, 6, 3),
             b=nn.Linear(9, 6))
    )  # fmt: skip
    graph = check(model, sample(4, 3, 7, 7), sample(4, 9, seed=2))
    assert [port.shape for port in graph.inputs] == [(3, 7, 7), (9,)]


def test_parameters_of_forward_with_defaults_may_be_left_out():
    class Masked(nn.Module):
        def forward(self, x, mask=None, scale=2.0, flip=False, *, offset=1.0):
            if mask is not None:
                x = x * mask
            return (-x if flip else x) * scale + offset

    check(Masked().eval(), sample(4, 3, 5, 5))


def test_module_lists_shared_layers_and_unused_ones():
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1) for _ in range(3)])
            self.relu = nn.ReLU(inplace=True)
            self.unused = nn.LSTM(3, 3)

        def forward(self, x):
            for layer in self.layers:
                x = self.relu(layer(x))
            return x

    graph = check(settle(Shared()), sample(4, 4, 6, 6))
    assert len(graph.ops) == 3


def test_what_no_output_needs_is_not_compiled():
    def forward(m, x):
        m.big(x)
        return m.conv(x)

    model = settle(Net(forward, big=nn.Conv2d(3, 9, 3), conv=nn.Conv2d(3, 4, 1)))
    assert len(check(model, sample(4, 3, 5, 5)).ops) == 1


BAD_OUTPUTS = {
    "nothing": (
        lambda m, x: None,
        "output: the model returns no tensor that it computes; return at least one",
    ),
    "a size": (
        lambda m, x: (x, x.dim()),
        "output: an output that is a int is not supported; return computed tensors in tuples, "
        "lists, dicts, named tuples or dataclasses only",
    ),
    "a parameter": (
        lambda m, x: (x, m.w),
        "output: an output that is a parameter or constant is not supported; return computed "
        "tensors in tuples, lists, dicts, named tuples or dataclasses only",
    ),
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_outputs_that_are_refused(name):
    function, message = BAD_OUTPUTS[name]
    with refuses(CompileError, message):
        compiled(Net(function, w=nn.Parameter(torch.ones(3))).eval(), sample(2, 3, 5, 5))


# ---- in-place operations


def test_an_inplace_relu_changes_every_name_of_its_tensor():
    def forward(m, x):
        y = m.conv(x)
        z = m.relu(y)
        return y + z  # both are relu(conv(x))

    check(settle(Net(forward, conv=nn.Conv2d(3, 4, 3), relu=nn.ReLU(inplace=True))),
          sample(4, 3, 6, 6))  # fmt: skip


def test_an_inplace_operation_seen_through_a_view_is_refused():
    def forward(m, x):
        y = m.conv(x)
        flat = y.flatten(1)
        y.relu_()
        return m.fc(flat)

    model = settle(Net(forward, conv=nn.Conv2d(3, 1, 3), fc=nn.Linear(9, 2)))
    with pytest.raises(CompileError) as error:
        compiled(model, sample(2, 3, 5, 5))
    assert str(error.value) == (
        f"fc (fc), {line_of(forward, 4)}: using a tensor that relu_, {line_of(forward, 3)} "
        "changes in place through another view is not supported; remove inplace=True there"
    )


def test_changing_a_buffer_in_forward_is_refused():
    model = Net(lambda m, x: x + m.count.add_(1), count=torch.zeros(1)).eval()
    with refuses(
        CompileError,
        "the model cannot be compiled, 2 problems:\n"
        "  add_, test_capture.py:N: changing a constant or an argument in place is not "
        "supported; use the operation that returns a new tensor\n"
        "  add, test_capture.py:N: changing a constant or an argument in place is not supported; "
        "use the operation that returns a new tensor",
    ):
        compiled(model, sample(2, 3, 5, 5))


def test_shapes_that_do_not_fit_are_reported_with_pytorchs_own_words():
    model = settle(nn.Sequential(nn.Conv2d(8, 4, 3)))
    x = sample(2, 3, 5, 8)
    with pytest.raises(RuntimeError) as own:
        model(x)
    with refuses(
        CompileError,
        "_0 (0): PyTorch cannot compute this for inputs of the shapes (2, 3, 5, 8) "
        f"({own.value}); the 8 channels that it needs come last in the samples: pass "
        "channel_last=True",
    ):
        compiled(model, x)
    compiled(model, x.movedim(3, 1))


def test_samples_that_fit_no_layout_are_reported():
    model = settle(nn.Sequential(nn.Conv2d(8, 4, 3)))
    x = sample(2, 3, 5, 6)
    with pytest.raises(RuntimeError) as own:
        model(x)
    with refuses(
        CompileError,
        "_0 (0): PyTorch cannot compute this for inputs of the shapes (2, 3, 5, 6) "
        f"({own.value}); check the samples and channel_last",
    ):
        compiled(model, x)
