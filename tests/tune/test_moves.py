"""Joined and moved channels, sequences, slopes: trained, then eval equals the runtime's bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rasna
from tests.compile.support import Net, settle
from tests.networks.check import objects


class Fire(nn.Module):
    """SqueezeNet's: two layers side by side, joined."""

    def __init__(self, channels: int, squeezed: int, out: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.one, self.three = nn.Conv2d(squeezed, out, 1), nn.Conv2d(squeezed, out, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)


class Unet(nn.Module):
    """One level: down, up again, joined with what was there."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.low = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)
        self.up, self.end = nn.Upsample(scale_factor=2), nn.Conv2d(14, 2, 3, padding=1)

    def forward(self, x):
        skip = F.leaky_relu(self.down(x), 0.1)
        low = F.leaky_relu(self.low(F.max_pool2d(skip, 2)), 0.1)
        return self.end(torch.cat([self.up(low), skip], 1))


class Decoder(nn.Module):
    """A U-Net whose decoder grows by transposed convolutions, padded to the size of the skip."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, padding=1, padding_mode="replicate")
        self.low = nn.Conv2d(6, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 6, 2, 2, bias=False)
        self.norm, self.end = nn.BatchNorm2d(6), nn.Conv2d(12, 2, 3, padding=1)

    def forward(self, x):
        skip = F.relu(self.down(x))
        low = F.relu(self.norm(self.up(F.relu(self.low(F.max_pool2d(skip, 2))))))
        missing = [skip.shape[3] - low.shape[3], skip.shape[2] - low.shape[2]]
        low = F.pad(low, (0, missing[0], 0, missing[1]))
        return self.end(torch.cat([low, skip], 1))


class Causal(nn.Module):
    """A block of a temporal convolution network, with its chomp."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=2 * dilation, dilation=dilation)
        self.chomp = 2 * dilation

    def forward(self, x):
        return F.relu(x + F.relu(self.conv(x)[:, :, : -self.chomp].contiguous()))


def focus(m, x):
    parts = [x[..., i::2, j::2] for j in (0, 1) for i in (0, 1)]
    return m.b(F.relu(m.a(torch.cat(parts, 1))))


def shuffled(m, x):
    a, b = m.a(x).chunk(2, 1)
    return m.shuffle(torch.cat([a, m.b(b)], 1))


def dense(m, x):
    for layer in (m.a, m.b, m.c):
        x = torch.cat([x, F.relu(layer(x))], 1)
    return x


MODELS = {
    "squeeze": (lambda: nn.Sequential(Fire(3, 4, 5), Fire(10, 3, 8)), (3, 9, 10)),
    "u-net": (Unet, (3, 8, 12)),
    "shuffle": (
        lambda: Net(
            shuffled, a=nn.Conv2d(3, 8, 3), b=nn.Conv2d(4, 4, 1), shuffle=nn.ChannelShuffle(2)
        ),
        (3, 8, 9),
    ),
    "dense": (
        lambda: Net(dense, a=nn.Conv2d(3, 4, 1), b=nn.Conv2d(7, 4, 1), c=nn.Conv2d(11, 4, 1)),
        (3, 6, 7),
    ),
    "pixel shuffle": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.PReLU(8), nn.PixelShuffle(2), nn.PReLU()),
        (3, 7, 8),
    ),
    "keywords": (  # a 1-d CNN as for keyword spotting
        lambda: nn.Sequential(
            nn.Conv1d(10, 12, 9, 2, 4), nn.BatchNorm1d(12), nn.ReLU(),
            nn.Conv1d(12, 12, 5, padding=2, groups=12), nn.BatchNorm1d(12), nn.ReLU(),
            nn.Conv1d(12, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 5),
        ),
        (10, 49),
    ),
    "decoder": (
        lambda: nn.Sequential(
            nn.Linear(6, 24), nn.ReLU(), nn.Unflatten(1, (4, 2, 3)), nn.Upsample(scale_factor=2),
            nn.Conv2d(4, 3, 3, padding=1), nn.Hardsigmoid(),
        ),
        (6,),
    ),
    "u-net, transposed": (Decoder, (3, 9, 11)),
    "u-net, bilinear": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 6, 3),
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(6, 4, 3), nn.ReLU(),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(4, 2, 1),
        ),
        (3, 10, 12),
    ),
    "temporal convolutions": (
        lambda: nn.Sequential(nn.Conv1d(4, 8, 1), Causal(8, 1), Causal(8, 2), Causal(8, 4)),
        (4, 40),
    ),
    "focus": (
        lambda: Net(focus, a=nn.Conv2d(12, 8, 3, padding=1), b=nn.Conv2d(8, 4, 1)), (3, 12, 16),
    ),
    "autoencoder of sequences": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 6, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(6, 6, 4, 2, 1),
            nn.BatchNorm1d(6), nn.ReLU(), nn.ReflectionPad1d(1), nn.Conv1d(6, 2, 3),
        ),
        (2, 22),
    ),
    "sequence to sequence": (
        lambda: nn.Sequential(nn.Conv1d(3, 8, 3, padding=1), nn.LeakyReLU(), nn.Conv1d(8, 2, 1)),
        (3, 21),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_eval_after_training_equals_the_runtime(name):
    make, shape = MODELS[name]
    torch.manual_seed(1)
    model = settle(make())
    x = torch.randn(6, *shape)
    rasna.tune(model, sp=0.3)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(3):
        loss = model.train()(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    moved = [p.grad.abs().sum() for p in model.parameters() if p.requires_grad]
    assert sum(g > 0 for g in moved) > len(moved) / 2
    model.eval()
    early = model(x)
    last = x.movedim(1, -1) if x.dim() > 2 else x
    for target in ("tiny", "pynq-z2"):
        program = rasna.compile(model, last, target=target)
        want = model(x).detach().numpy()
        got = program.to_runtime(objects(target)[0])(last.numpy())
        got = np.moveaxis(got, -1, 1) if got.ndim > 2 else got
        assert np.ptp(want) > 0 and np.array_equal(got, want)
    assert early.shape == want.shape


def test_training_rounds_where_the_machine_does():
    """Layers that only a cat reads are rounded once, in its type."""
    model = settle(nn.Sequential(Fire(3, 4, 5)))
    x = torch.rand(4, 3, 6, 7)
    rasna.tune(model, sp=0)
    y = model.train()(x)
    types = model._rasna_tune.observers.types
    (name,) = [n for n in types if "cat" in n]
    scaled = y.detach() * 2.0 ** types[name].frac
    assert torch.equal(scaled, scaled.round())
    assert not any("one" in n or "three" in n for n in types)
    model.eval()(x)
    final = model._rasna_tune.observers.types
    assert final["_0_one"] == final["_0_three"] == final[name]
