"""flatten in all spellings; views that mix the batch are refused (operators/shape.py)."""

import pytest
import torch
from torch import nn

from rasna.compile.samples import check_samples
from rasna.errors import CompileError
from tests.compile.support import (
    Net,
    check,
    compiled,
    needs_traced_sizes_in_functions,
    sample,
    settle,
)
from tests.messages import refuses


def _unpacked(m, x):
    batch, channels, height, width = x.shape
    return m.fc(x.view(batch, channels * height * width))


FLATTENS = {
    "torch.flatten": lambda m, x: m.fc(torch.flatten(x, 1)),
    "torch.flatten, keywords": lambda m, x: m.fc(torch.flatten(x, start_dim=1, end_dim=-1)),
    "x.flatten": lambda m, x: m.fc(x.flatten(1)),
    "nn.Flatten": lambda m, x: m.fc(m.flatten(x)),
    "view(x.size(0), -1)": lambda m, x: m.fc(x.view(x.size(0), -1)),
    "view(x.shape[0], -1)": lambda m, x: m.fc(x.view(x.shape[0], -1)),
    "view(x.size()[0], -1)": lambda m, x: m.fc(x.view(x.size()[0], -1)),
    "view(-1, 60)": lambda m, x: m.fc(x.view(-1, 60)),
    "view((n, -1))": lambda m, x: m.fc(x.view((x.size(0), -1))),
    "reshape(-1, 60)": lambda m, x: m.fc(x.reshape(-1, 60)),
    "torch.reshape": lambda m, x: m.fc(torch.reshape(x, (x.shape[0], 60))),
    "sizes multiplied": lambda m, x: m.fc(x.view(x.size(0), x.size(1) * x.size(2) * x.size(3))),
    "unpacked": _unpacked,
    "flatten twice": lambda m, x: m.fc(x.flatten(2).flatten(1)),
    "there and back": lambda m, x: m.fc(x.flatten(1).view(-1, 3, 4, 5).flatten(1)),
}


@pytest.mark.parametrize("name", FLATTENS)
def test_flatten_follows_the_nchw_order(name):
    if name == "torch.reshape":
        needs_traced_sizes_in_functions()
    model = settle(Net(FLATTENS[name], fc=nn.Linear(60, 7), flatten=nn.Flatten()))
    graph = check(model, sample(4, 3, 4, 5))
    assert len(graph.ops) == 1


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_squeeze_removes_one_pixel_maps_and_never_the_batch(batch):
    model = settle(Net(lambda m, x: m.fc(x.mean((2, 3), keepdim=True).squeeze(3).squeeze(-1)),
                       fc=nn.Linear(3, 4)))  # fmt: skip
    check(model, sample(batch, 3, 4, 5))


def test_squeeze_without_a_dimension():
    model = settle(
        Net(lambda m, x: m.fc(x.mean((2, 3), keepdim=True).squeeze()), fc=nn.Linear(3, 4))
    )
    check(model, sample(4, 3, 4, 5))
    assert compiled(model, sample(1, 3, 4, 5)).outputs[0].shape == (4,)


def test_samples_with_the_strides_of_a_permuted_one_channel_image():
    x = sample(2, 4, 5, 1).permute(0, 3, 1, 2)
    check(settle(Net(lambda m, x: m.fc(x.view(x.size(0), -1)), fc=nn.Linear(20, 4))),
          check_samples([x], False)[0])  # fmt: skip


def test_new_dimensions_behind_the_batch():
    model = settle(Net(lambda m, x: m.conv(x[:, :, None, None]), conv=nn.Conv2d(6, 4, 1)))
    check(model, sample(4, 6))
    model = settle(Net(lambda m, x: m.conv(x.unsqueeze(-1).unsqueeze(3)), conv=nn.Conv2d(6, 4, 1)))
    check(model, sample(4, 6))


def test_features_that_are_viewed_as_a_map_at_once_are_stored_as_one():
    model = settle(Net(lambda m, x: m.conv(x.view(-1, 1, 4, 6)), conv=nn.Conv2d(1, 4, 3)))
    graph = check(model, sample(4, 24))
    assert graph.tensors["x"].shape == (1, 4, 6)
    assert graph.inputs[0].shape == (24,)


def test_a_flattened_output_keeps_its_logical_shape():
    graph = check(Net(lambda m, x: x.flatten(1)).eval(), sample(4, 3, 4, 5))
    assert graph.outputs[0].shape == (60,)
    assert graph.tensors[graph.outputs[0].tensor].shape == (3, 4, 5)


def test_computed_features_become_a_map():
    model = settle(
        Net(lambda m, x: m.conv(m.fc(x.flatten(1)).relu().view(-1, 2, 2, 3)), fc=nn.Linear(60, 12),
            conv=nn.Conv2d(2, 4, 2))
    )  # fmt: skip
    graph = check(model, sample(4, 3, 4, 5))
    assert [type(op).__name__ for op in graph.ops] == ["Conv", "Select", "Conv"]


def test_a_column_becomes_a_row():
    model = settle(Net(lambda m, x: m.conv(x.mean(3)), conv=nn.Conv1d(3, 4, 2)))
    check(model, sample(4, 3, 4, 5))


def test_shapes_as_kernel_sizes():
    model = Net(lambda m, x: torch.nn.functional.max_pool2d(x, (x.shape[2], x.size(-1)))).eval()
    check(model, sample(4, 3, 4, 5))


REFUSED = {
    "fixed batch": (
        lambda m, x: x.view(2, -1),
        "view, test_shape.py:N: a view with the fixed first dimension 2 is not supported; use "
        "x.size(0) for it, or torch.flatten(x, 1)",
    ),
    "batch mixed": (
        lambda m, x: x.view(-1, 30),
        "view, test_shape.py:N: a view of (batch, 3, 4, 5), which mixes the batch with other "
        "dimensions; use torch.flatten(x, 1)",
    ),
    "batch arithmetic": (
        lambda m, x: x.view(x.shape[0] * 3, 20),
        "the model cannot be compiled, 2 problems:\n"
        "  mul, test_shape.py:N: arithmetic on the batch size is not supported; use x.size(0) "
        "in view and reshape only\n"
        "  view, test_shape.py:N: a view with the fixed first dimension 6 is not supported; "
        "use x.size(0) for it, or torch.flatten(x, 1)",
    ),
    "flatten the batch": (
        lambda m, x: torch.flatten(x),
        "flatten, test_shape.py:N: flattening the batch dimension is not supported; use "
        "torch.flatten(x, 1)",
    ),
    "squeeze the batch": (
        lambda m, x: x.squeeze(0),
        "squeeze, test_shape.py:N: squeezing the batch dimension is not supported; use "
        "torch.flatten(x, 1)",
    ),
    "indexing": (
        lambda m, x: x[1:],
        "getitem, test_shape.py:N: indexing dimension 0 of (batch, 3, 4, 5) is not supported; "
        "the batch stays as it is; compute all of it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    model = settle(Net(function, fc=nn.Linear(60, 6), conv=nn.Conv2d(1, 1, 2)))
    with refuses(CompileError, message):
        compiled(model, sample(2, 3, 4, 5))
