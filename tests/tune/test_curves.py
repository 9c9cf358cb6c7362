"""Curves, products and gates: trained, then eval equals the runtime's bits on both simulators."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rasna
from rasna.compile import curves
from tests.compile.support import Net, settle
from tests.networks.check import objects


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels: int, gate: type[nn.Module] = nn.Sigmoid) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.down, self.act = nn.Conv2d(channels, channels // 2, 1), nn.SiLU()
        self.up, self.gate = nn.Conv2d(channels // 2, channels, 1), gate()

    def forward(self, x):
        return x * self.gate(self.up(self.act(self.down(self.pool(x)))))


class Inverted(nn.Module):
    """The block of MobileNetV3 and EfficientNet: expand, depthwise, gate, project, add."""

    def __init__(self, act: type[nn.Module], gate: type[nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.body = nn.Sequential(
            nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8), act(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8), act(),
            Gate(8, gate), nn.Conv2d(8, 4, 1, bias=False), nn.BatchNorm2d(4),
        )  # fmt: skip

    def forward(self, x):
        x = self.stem(x)
        return x + self.body(x)


def layer(ic: int, oc: int, kernel: int) -> nn.Module:
    conv = nn.Conv2d(ic, oc, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(oc), nn.SiLU())


class CrossStage(nn.Module):
    """The block of YOLO: half of the channels through a bottleneck, all joined."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.end = layer(3, 8, 1), layer(12, 8, 1)
        self.first, self.second = layer(4, 4, 3), layer(4, 4, 3)

    def forward(self, x):
        a, b = self.start(x).chunk(2, 1)
        return self.end(torch.cat([a, b, b + self.second(self.first(b))], 1))


def gated(m, x):
    return m.c(torch.tanh(m.a(x)) * torch.sigmoid(m.b(x)))


MODELS = {
    "mobilenet v3": (lambda: Inverted(nn.Hardswish, nn.Hardsigmoid), (3, 9, 10)),
    "efficientnet": (lambda: Inverted(nn.SiLU, nn.Sigmoid), (3, 9, 10)),
    "yolo": (CrossStage, (3, 8, 9)),
    "wavenet": (
        lambda: Net(gated, a=nn.Conv1d(3, 6, 3), b=nn.Conv1d(3, 6, 3), c=nn.Conv1d(6, 4, 1)),
        (3, 20),
    ),
    "autoencoder": (
        lambda: nn.Sequential(
            nn.Linear(20, 12), nn.ELU(), nn.Linear(12, 4), nn.Tanh(), nn.Linear(4, 20), nn.Sigmoid()
        ),
        (20,),
    ),
    "conv mixer": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 2, 2), nn.GELU(), nn.BatchNorm2d(8),
            nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.GELU(), nn.BatchNorm2d(8),
        ),
        (3, 8, 10),
    ),
}  # fmt: skip


def step(model: nn.Module, x: torch.Tensor) -> None:
    for parameter in model.parameters():
        parameter.grad = None
    model.train()(x).square().mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad


@pytest.mark.parametrize("name", MODELS)
def test_eval_after_training_equals_both_simulators(name):
    make, shape = MODELS[name]
    torch.manual_seed(1)
    model = settle(make())
    x = torch.randn(6, *shape)
    rasna.tune(model, sp=0.3, strategy="all")
    for _ in range(3):
        step(model, x)
    moved = [p.grad.abs().sum() > 0 for p in model.parameters()]
    assert sum(moved) > len(moved) / 2
    model.eval()
    for target in ("tiny", "pynq-z2"):
        program = rasna.compile(model, x, target=target, channel_last=False)
        want = model(x).detach().numpy()
        assert np.ptp(want) > 0
        for path in objects(target):
            got = program.to_runtime(path)(x.numpy(), channel_last=False)
            assert np.array_equal(got, want), path


def test_training_rounds_in_front_of_a_curve_and_behind_it():
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh()))
    x = torch.randn(4, 3, 6, 7)
    rasna.tune(model, sp=0)
    y = model.train()(x).detach()
    types = model._rasna_tune.observers.types
    front, back = types["_0"], types["_1"]
    levels = torch.arange(front.lo, front.hi + 1) * 2.0**-front.frac
    possible = torch.floor(torch.tanh(levels) * 2.0**back.frac + 0.5).clamp(back.lo, back.hi)
    assert torch.isin(y * 2.0**back.frac, possible).all()


@pytest.mark.parametrize("name", ["silu", "tanh", "gelu"])
def test_gradients_are_those_of_the_real_function(name):
    """Straight through both roundings: f'(rounded x), where x lies in the range."""
    function = {"silu": F.silu, "tanh": torch.tanh, "gelu": F.gelu}[name]
    model = Net(lambda m, x: function(m.scale(x)), scale=nn.Conv2d(1, 1, 1, bias=False)).eval()
    nn.init.constant_(model.scale.weight, 1.0)
    x = torch.rand(4, 1, 5, 5)
    rasna.tune(model, sp=0)
    x.requires_grad_()
    model.train()(x).sum().backward()
    front = model._rasna_tune.observers.types["scale"]
    rounded = (torch.floor(x.detach() * 2.0**front.frac + 0.5) / 2.0**front.frac).requires_grad_()
    wanted = curves.Step(name, ("none",) if name == "gelu" else ())
    curves.apply((wanted,), rounded).sum().backward()
    inside = rounded.detach() < front.hi * 2.0**-front.frac
    assert inside.any() and torch.allclose(x.grad[inside], rounded.grad[inside], atol=0.02)
