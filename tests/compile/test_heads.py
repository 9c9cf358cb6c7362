"""Softmax, argmax and curves at the end of a model: host steps (operators/heads.py)."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rasna
from rasna.errors import CompileError
from tests.compile.support import Net, check, compiled, sample, settle
from tests.messages import refuses
from tests.networks.check import objects, outputs_of

HEADS = {
    "F.softmax": lambda m, x: F.softmax(m.fc(x), 1),
    "F.softmax dim=-1": lambda m, x: F.softmax(m.fc(x), dim=-1),
    "torch.softmax dtype": lambda m, x: torch.softmax(m.fc(x), 1, dtype=torch.float32),
    "x.softmax": lambda m, x: m.fc(x).softmax(1),
    "nn.Softmax": lambda m, x: nn.Softmax(1)(m.fc(x)),
    "F.log_softmax": lambda m, x: F.log_softmax(m.fc(x), dim=1),
    "nn.LogSoftmax": lambda m, x: nn.LogSoftmax(-1)(m.fc(x)),
    "F.softmin": lambda m, x: F.softmin(m.fc(x), 1),
    "F.normalize": lambda m, x: F.normalize(m.fc(x)),
    "arithmetic": lambda m, x: 1 - torch.softmax(m.fc(x), 1) * 2 + 0.5,
    "division": lambda m, x: -(torch.softmax(m.fc(x), 1) / 4),
    "one class": lambda m, x: torch.softmax(m.fc(x), 1)[:, 1],
    "a part": lambda m, x: torch.softmax(m.fc(x), 1)[:, 1:3],
    "view": lambda m, x: torch.softmax(m.fc(x), 1).view(-1, 2, 5),
    "log behind it": lambda m, x: torch.log(torch.softmax(m.fc(x), 1)),
    "sqrt behind it": lambda m, x: F.softmax(m.fc(x), 1).sqrt(),
    "map": lambda m, x: torch.softmax(m.conv(x), 1),
    "map, width": lambda m, x: torch.log_softmax(m.conv(x), 3),
    "behind a view": lambda m, x: F.log_softmax(m.fc(x).view(-1, 2, 5), dim=2),
    "two of them": lambda m, x: (torch.softmax(m.fc(x), 1), F.log_softmax(m.fc(x), 1)),
}


def model_of(function) -> nn.Module:
    children = {"conv": nn.Conv2d(3, 4, 3), "flat": nn.Flatten(), "fc": None}
    children["fc"] = nn.Sequential(nn.Flatten(), nn.Linear(108, 10))
    return settle(Net(function, **children))


@pytest.mark.parametrize("name", HEADS)
def test_a_head_gives_what_pytorch_gives(name):
    graph = check(model_of(HEADS[name]), sample(4, 3, 6, 6), least_db=25)
    assert graph.host_steps and all(step.name for step in graph.host_steps)


@pytest.mark.parametrize("name", HEADS)
def test_a_tuned_model_with_a_head_trains_and_its_eval_equals_the_runtime(name, tmp_path):
    model, x = model_of(HEADS[name]).train(), sample(4, 3, 6, 6)
    rasna.tune(model, sp=0, strategy="all", chpad=False)
    result = model(x)
    leaves = result if isinstance(result, tuple) else (result,)
    sum(leaf.sum() for leaf in leaves).backward()
    assert any(p.grad is not None for p in model.parameters())
    program = rasna.compile(model.eval(), x, channel_last=False, target="tiny")
    program.save(tmp_path / "m.rasna")
    again = rasna.load(tmp_path / "m.rasna")
    assert again.host_steps and again.results == program.results
    with torch.no_grad():
        want = outputs_of(model(x))
    for path in objects("tiny"):
        with again.to_runtime(path) as runtime:
            runtime.selfcheck()
            got = outputs_of(runtime(x, channel_last=False))
            one = outputs_of(runtime(x[0], channel_last=False))
        for a, b, c in zip(want, got, one, strict=True):
            assert a.dtype == b.dtype and np.array_equal(a, b) and np.array_equal(a[0], c)


INDICES = {
    "argmax": lambda m, x: m.fc(x).argmax(1),
    "keepdim": lambda m, x: torch.argmax(m.fc(x), dim=-1, keepdim=True),
    "argmin": lambda m, x: torch.argmin(m.fc(x), 1),
    "of a map": lambda m, x: m.conv(x).argmax(1),
    "of a map, keepdim": lambda m, x: m.conv(x).argmax(1, keepdim=True),
    "of softmax": lambda m, x: F.softmax(m.fc(x), 1).argmax(1),
    "reshaped": lambda m, x: m.conv(x).argmax(1).flatten(1),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_are_those_of_the_integers(name):
    """Exactly: argmax of what the accelerator computes, which PyTorch gets from a tuned model."""
    model, x = model_of(INDICES[name]).train(), sample(8, 3, 6, 6)
    rasna.tune(model, sp=0, strategy="all", chpad=False).eval()
    program = rasna.compile(model, x, channel_last=False, target="tiny")
    plain = model_of(INDICES[name])
    with torch.no_grad():
        want, floats = model(x), plain(x)
    with program.to_runtime(objects("tiny")[0]) as runtime:
        got = runtime(x, channel_last=False)
    assert got.dtype == np.int64 and got.shape == tuple(floats.shape)
    assert np.array_equal(got, want)
    assert float((got == floats.numpy()).mean()) > 0.8  # rounding turns some close ones


def test_channels_go_last_only_where_there_are_any():
    def forward(m, x):
        y = m.conv(x)
        return torch.softmax(y, 1), y.argmax(1), y.argmax(1, keepdim=True), y.argmax(3)

    x = sample(2, 3, 6, 8)
    model = settle(Net(forward, conv=nn.Conv2d(3, 5, 3)))
    program = rasna.compile(model, x, channel_last=False, target="tiny")
    with program.to_runtime(objects("tiny")[0]) as runtime:
        first = runtime(x, channel_last=False)
        last = runtime(x.permute(0, 2, 3, 1))
    assert [y.shape for y in first] == [(2, 5, 4, 6), (2, 4, 6), (2, 1, 4, 6), (2, 5, 4)]
    assert [y.shape for y in last] == [(2, 4, 6, 5), (2, 4, 6), (2, 4, 6, 1), (2, 4, 5)]
    for a, b, moved in zip(first, last, (True, False, True, True), strict=True):
        assert np.array_equal(np.moveaxis(a, 1, -1) if moved else a, b)


def test_packed_integers_are_those_in_front_of_the_host_steps():
    def forward(m, x):
        y = m.conv(x)
        return {"p": torch.softmax(y, 1), "i": y.argmax(1), "y": y}

    x = sample(2, 3, 6, 6)
    model = settle(Net(forward, conv=nn.Conv2d(3, 5, 3)))
    program = rasna.compile(model, x, channel_last=False, target="tiny")
    assert [port.name for port in program.outputs] == ["conv"]  # stored once for all three
    assert program.results == ["softmax", "argmax", "conv"]
    packed = rasna.golden.quantize(x.numpy(), program.inputs[0].type)
    with program.to_runtime(objects("tiny")[0]) as runtime:
        got = runtime(packed, channel_last=False, normalize=False)
        real = runtime(x, channel_last=False)
    assert got["p"].dtype == got["i"].dtype == got["y"].dtype == program.outputs[0].dtype
    assert np.array_equal(got["p"], got["y"]) and np.array_equal(got["i"], got["y"])
    assert np.array_equal(rasna.golden.dequantize(got["y"], program.outputs[0].type), real["y"])
    assert np.array_equal(got["y"].argmax(1), real["i"])
    got["p"][:] = 0
    assert got["y"].any()  # no two results share memory


def test_the_program_shows_what_runs_where():
    model = settle(nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Softmax(1)))
    program = rasna.compile(model, sample(2, 3, 2, 2), channel_last=False, target="tiny")
    lines = str(program).splitlines()
    assert "host    _2 4 float32 = softmax(_1, axis=1)" in lines and "returns _2" in lines
    row = program.layers[-1]
    assert (row["operation"], row["mapping"]) == ("host softmax", "NumPy on the host")
    assert row["cycles"] == row["num_instructions"] == 0
    assert (row["input_shapes"], row["output_shape"]) == ([(4,)], (4,))


def test_until_a_head_ends_with_it():
    model = settle(nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Softmax(1), nn.Unfold(1)))
    program = rasna.compile(
        model, sample(2, 3, 2, 2), channel_last=False, target="tiny", until="2"
    )
    assert program.results == ["_2"]


IN_FRONT = "in front of other operations is not supported; end the compiled model before it, until="
REFUSED = {
    "a convolution behind it": (
        lambda m, x: m.one(torch.softmax(m.conv(x), 1)),
        f"softmax, test_heads.py:N: softmax {IN_FRONT}'conv', and apply it in PyTorch",
    ),
    "a sum behind it": (
        lambda m, x: torch.softmax(m.conv(x), 1) + m.conv(x),
        f"softmax, test_heads.py:N: softmax {IN_FRONT}'conv', and apply it in PyTorch",
    ),
    "pooling behind two": (
        lambda m, x: F.max_pool2d(torch.softmax(m.conv(x), 1) * 2, 2),
        f"softmax, test_heads.py:N: softmax {IN_FRONT}'conv', and apply it in PyTorch",
    ),
    "an output too": (
        lambda m, x: (y := torch.softmax(m.one(m.conv(x)), 1), F.relu(y)),
        f"softmax, test_heads.py:N: softmax {IN_FRONT}'one', and apply it in PyTorch",
    ),
    "the batch": (
        lambda m, x: torch.softmax(m.conv(x), 0),
        "softmax, test_heads.py:N: softmax over the batch is not supported; give it a dimension "
        "behind the batch, as dim=1",
    ),
    "everything": (
        lambda m, x: torch.argmax(m.conv(x)),
        "argmax, test_heads.py:N: argmax over all dimensions with the batch is not supported; give "
        "it a dimension behind the batch, as dim=1",
    ),
    "a curve that the host has not": (
        lambda m, x: F.silu(torch.softmax(m.conv(x), 1)),
        f"softmax, test_heads.py:N: softmax {IN_FRONT}'conv', and apply it in PyTorch",
    ),
    "another norm": (
        lambda m, x: F.normalize(m.conv(x), p=1),
        "normalize, test_heads.py:N: normalize with p=1 is not supported; use p=2, or end the "
        "compiled model before it, until='conv', and apply it in PyTorch",
    ),
    "two dimensions": (
        lambda m, x: F.normalize(m.conv(x), dim=(2, 3)),
        "normalize, test_heads.py:N: normalize of (batch, 4, 4, 4) over the dimensions (2, 3) is "
        "not supported; flatten it and give it one dimension",
    ),
    "float64": (
        lambda m, x: torch.softmax(m.conv(x), 1, dtype=torch.float64),
        "softmax, test_heads.py:N: softmax with dtype=torch.float64 is not supported; leave dtype "
        "out",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    function, message = REFUSED[name]
    model = settle(Net(function, conv=nn.Conv2d(3, 4, 3), one=nn.Conv2d(4, 4, 1)))
    with refuses(CompileError, message):
        compiled(model, sample(2, 3, 6, 6))
