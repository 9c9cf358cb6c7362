"""Networks that the tests and benchmarks share: plain PyTorch, random weights, seeded.

Every builder returns an eval-mode module; ``sample(name, batch)`` gives matching NCHW inputs.
Weights are Kaiming-random and BatchNorm statistics are measured on noise, so that
activations keep a sensible scale through every depth.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn


class _Block(nn.Module):
    """A basic residual block with an optional 1x1 projection."""

    def __init__(self, ic: int, oc: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(ic, oc, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(oc)
        self.conv2 = nn.Conv2d(oc, oc, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(oc)
        self.down = nn.Sequential()
        if stride != 1 or ic != oc:
            self.down = nn.Sequential(nn.Conv2d(ic, oc, 1, stride, bias=False), nn.BatchNorm2d(oc))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.down(x))


class _Bottleneck(nn.Module):
    """A residual block of 1x1, 3x3 and 1x1 convolutions, ``4 * width`` channels wide outside."""

    def __init__(self, ic: int, width: int, stride: int) -> None:
        super().__init__()
        oc = 4 * width
        self.reduce = _conv_bn(ic, width, 1)
        self.conv = _conv_bn(width, width, 3, stride, 1)
        self.expand = _conv_bn(width, oc, 1)[:2]
        self.down = nn.Sequential()
        if stride != 1 or ic != oc:
            self.down = nn.Sequential(nn.Conv2d(ic, oc, 1, stride, bias=False), nn.BatchNorm2d(oc))

    def forward(self, x):
        return F.relu(self.expand(self.conv(self.reduce(x))) + self.down(x))


class _ResNet50(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(*_conv_bn(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1))
        layers, ic = [], 64
        for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
            for i in range(blocks):
                layers.append(_Bottleneck(ic, width, 2 if stage and i == 0 else 1))
                ic = 4 * width
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(ic, classes)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.layers(self.stem(x)), 1).flatten(1))


class _ResNet(nn.Module):
    def __init__(self, stem: nn.Module, widths: list[int], blocks: int, classes: int) -> None:
        super().__init__()
        self.stem = stem
        layers, ic = [], widths[0]
        for stage, oc in enumerate(widths):
            for i in range(blocks):
                layers.append(_Block(ic, oc, 2 if stage and i == 0 else 1))
                ic = oc
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(ic, classes)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.layers(self.stem(x)), 1).flatten(1))


def _conv_bn(ic: int, oc: int, k, stride=1, padding=0, groups=1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(ic, oc, k, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(oc),
        nn.ReLU(),
    )


def lenet5(classes: int = 10) -> nn.Module:
    """LeNet-5 with ReLU and max pooling, 1 x 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, classes),
    )  # fmt: skip


class DigitsCNN(nn.Module):
    """A small residual CNN for the 8 x 8 digits of scikit-learn."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1)
        self.bn3 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(x + self.bn3(self.conv3(x)))
        return self.fc(x.mean((2, 3)))


def resnet8(classes: int = 10, in_channels: int = 3) -> nn.Module:
    return _ResNet(_conv_bn(in_channels, 16, 3, 1, 1), [16, 32, 64], 1, classes)


def resnet20(classes: int = 10) -> nn.Module:
    return _ResNet(_conv_bn(3, 16, 3, 1, 1), [16, 32, 64], 3, classes)


def resnet18_32(classes: int = 10) -> nn.Module:
    return _ResNet(_conv_bn(3, 64, 3, 1, 1), [64, 128, 256, 512], 2, classes)


def resnet18_224(classes: int = 1000) -> nn.Module:
    stem = nn.Sequential(*_conv_bn(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1))
    return _ResNet(stem, [64, 128, 256, 512], 2, classes)


def resnet50_224(classes: int = 1000) -> nn.Module:
    return _ResNet50(classes)


def mobilenet_v1(width: float = 1.0, classes: int = 1000) -> nn.Module:
    """MobileNetV1; ``width`` scales every channel count."""
    ic = int(32 * width)
    layers = list(_conv_bn(3, ic, 3, 2, 1))
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    for oc, stride in plan + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]:
        oc = int(oc * width)
        layers += [*_conv_bn(ic, ic, 3, stride, 1, groups=ic), *_conv_bn(ic, oc, 1)]
        ic = oc
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(ic, classes))


def vgg16(classes: int = 10) -> nn.Module:
    layers: list[nn.Module] = []
    ic = 3
    for oc, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += _conv_bn(ic, oc, 3, 1, 1)
            ic = oc
        layers.append(nn.MaxPool2d(2))
    head = [nn.Flatten(), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, classes)]
    return nn.Sequential(*layers, *head)


def ds_cnn(classes: int = 12) -> nn.Module:
    """DS-CNN for keyword spotting, 1 x 49 x 10."""
    layers = list(_conv_bn(1, 64, (10, 4), (2, 2), (5, 1)))
    for _ in range(4):
        layers += [*_conv_bn(64, 64, 3, 1, 1, groups=64), *_conv_bn(64, 64, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def mlp(classes: int = 10) -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, classes)
    )


class Siamese(nn.Module):
    """Two inputs through one tower of shared weights; gives (difference, embedding)."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.Sequential(
            *_conv_bn(1, 8, 3, 2, 1), *_conv_bn(8, 16, 3, 2, 1), nn.AdaptiveAvgPool2d(1)
        )
        self.head = nn.Linear(16, 4)

    def forward(self, a, b):
        a, b = self.tower(a).flatten(1), self.tower(b).flatten(1)
        return self.head(a - b), a


ZOO: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]] = {
    "lenet5": (lenet5, ((1, 28, 28),)),
    "digits": (DigitsCNN, ((1, 8, 8),)),
    "resnet8": (resnet8, ((3, 32, 32),)),
    "resnet20": (resnet20, ((3, 32, 32),)),
    "resnet18_32": (resnet18_32, ((3, 32, 32),)),
    "resnet18_224": (resnet18_224, ((3, 224, 224),)),
    "resnet50_224": (resnet50_224, ((3, 224, 224),)),
    "mobilenet_v1": (mobilenet_v1, ((3, 224, 224),)),
    "mobilenet_v1_025": (lambda: mobilenet_v1(0.25), ((3, 96, 96),)),
    "vgg16": (vgg16, ((3, 32, 32),)),
    "ds_cnn": (ds_cnn, ((1, 49, 10),)),
    "mlp": (mlp, ((784,),)),
    "siamese": (Siamese, ((1, 16, 16), (1, 16, 16))),
}
SMALL = ("lenet5", "digits", "resnet8", "ds_cnn", "mlp", "siamese")


def sample(name: str, batch: int = 2, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Random inputs of a network of the zoo, (batch, *shape) float32, roughly unit scale."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(batch, *shape, generator=generator) for shape in ZOO[name][1])


@torch.no_grad()
def settle(model: nn.Module, *inputs: torch.Tensor, generator: torch.Generator | None = None):
    """Random gammas and betas, then BatchNorm statistics measured on the inputs; eval mode."""
    norms = [m for m in model.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    model.eval()
    momenta = [m.momentum for m in norms]
    for m in norms:
        if m.affine:
            m.weight.copy_(0.5 + torch.rand(m.weight.shape, generator=generator))
            m.bias.copy_(0.2 * torch.randn(m.bias.shape, generator=generator))
        m.momentum = 1.0
        m.train()
    if norms:
        model(*inputs)
    for m, momentum in zip(norms, momenta, strict=True):
        m.momentum = momentum
    return model.eval()


def build(name: str, seed: int = 0) -> nn.Module:
    """A network of the zoo with seeded random weights, in eval mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ZOO[name][0]()
    generator = torch.Generator().manual_seed(seed + 1)
    return settle(model, *sample(name, 4, seed), generator=generator)


@torch.no_grad()
def prune_(model: nn.Module, sp: float) -> nn.Module:
    """Zero the smallest fraction ``sp`` of every Conv2d and Linear weight, in place."""
    for m in model.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            flat = m.weight.view(-1)
            count = min(int(sp * flat.numel()), flat.numel() - 1)
            flat[flat.abs().argsort(stable=True)[:count]] = 0
    return model
