"""Scaling of inputs goes into the first layer; inputs of bytes (passes/fold_affine.py)."""

import numpy as np
import pytest
import torch
from torch import nn

import rasna
from rasna.graph import Conv
from tests.compile.support import Net, check, compiled, sample, settle, simplified

MEAN = torch.tensor([0.5, -0.25, 1.0]).view(3, 1, 1)
STD = torch.tensor([0.5, 2.0, -1.0]).view(3, 1, 1)


def net(function, *, padding=0, mode="zeros", groups=1) -> nn.Module:
    return settle(
        Net(
            function, mean=MEAN, std=STD, bn=nn.BatchNorm2d(3), fc=nn.Linear(3 * 30, 4),
            conv=nn.Conv2d(3, 6, 3, padding=padding, padding_mode=mode, groups=groups),
        )
    )  # fmt: skip


FOLDED = {
    "x / 255": (lambda m, x: m.conv(x / 255), {}),
    "x / 255, padded": (lambda m, x: m.conv(x / 255), {"padding": 1}),
    "mean and std": (lambda m, x: m.conv((x - m.mean) / m.std), {}),
    "mean and std, circular": (
        lambda m, x: m.conv((x - m.mean) / m.std), {"padding": 1, "mode": "circular"}
    ),
    "std, padded": (lambda m, x: m.conv(x / m.std), {"padding": 1}),
    "depthwise": (lambda m, x: m.conv((x - m.mean) / m.std), {"groups": 3}),
    "and BatchNorm behind": (lambda m, x: m.conv(1 - x)[:, :3].relu(), {}),
    "linear": (lambda m, x: m.fc(((x - 0.5) / 0.25).flatten(1)), {}),
    "negative": (lambda m, x: m.conv(-x), {"padding": 1}),
}


@pytest.mark.parametrize("name", FOLDED)
def test_matches(name):
    function, attributes = FOLDED[name]
    graph = check(net(function, **attributes), sample(4, 3, 5, 6))
    assert isinstance(graph.ops[0], Conv) and graph.ops[0].name in ("conv", "fc")


STANDALONE = {
    "zero padding": (lambda m, x: m.conv((x - m.mean) / m.std), {"padding": 1}),
    "zero padding and a number": (lambda m, x: m.conv(x - 0.5), {"padding": 1}),
    "another reader": (lambda m, x: (lambda y: m.conv(y)[:, :3] + y.mean((2, 3), True))
                       (x / m.std), {}),
    "BatchNorm, which training needs": (lambda m, x: m.conv(m.bn(x)), {}),
    "no input": (lambda m, x: m.conv((x.clamp(-1, 1) - m.mean) / m.std), {}),
    "clamped": (lambda m, x: m.conv((x * 2).clamp(-1, 1)), {}),
    "per channel, flattened": (lambda m, x: m.fc((x - m.mean).flatten(1)), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", STANDALONE)
def test_near_misses_stay(name):
    function, attributes = STANDALONE[name]
    model = net(function, **attributes)
    nodes = simplified(model, sample(4, 3, 5, 6)).nodes.values()
    assert not any(getattr(node.op, "before", ()) for node in nodes)
    check(model, sample(4, 3, 5, 6))


def test_a_number_leaves_the_integers_of_the_weights():
    scaled, plain = net(lambda m, x: m.conv((x - 0.5) / 255)), net(lambda m, x: m.conv(x))
    graphs = [compiled(m, sample(4, 3, 5, 6)) for m in (scaled, plain)]
    assert np.array_equal(graphs[0].ops[0].weight, graphs[1].ops[0].weight)


def test_bytes_fix_the_type_of_their_input_whatever_the_samples_are():
    model = net(lambda m, x: m.conv((x / 255 - 0.5) / 0.25))
    dark = torch.randint(0, 60, (4, 5, 6, 3), dtype=torch.uint8)
    for samples in (dark, dark.numpy()):
        program = rasna.compile(model, samples, target="tiny")
        assert str(program.inputs[0].type) == "u8.0" and len(program.layers) == 1
    assert str(rasna.compile(model, dark.float(), target="tiny").inputs[0].type) == "u8.2"


@pytest.mark.parametrize("bits, kind", [(8, "u8.0"), (4, "u4.-4")])
def test_a_tuned_model_of_bytes(bits, kind):
    model = net(lambda m, x: m.conv((x - 100 * m.mean) / 50), padding=1)
    rasna.tune(model, sp=0, ab=bits)
    x = torch.randint(0, 256, (8, 3, 5, 6), dtype=torch.uint8)
    model.train()(x).sum().backward()
    assert model.conv.weight.grad.abs().sum() > 0
    assert str(model._rasna_tune.observers.types["x"]) == kind
    model.eval()
    before = model(x)
    program = rasna.compile(model, x, channel_last=False, target="tiny")
    assert str(program.inputs[0].type) == kind
    assert model(x).shape == before.shape
