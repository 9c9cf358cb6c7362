"""More networks from real life, as their authors' papers describe them; plain PyTorch.

Used by the tests only; ``zoo.py`` has those that the benchmarks share.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


def _conv_bn_relu6(ic: int, oc: int, kernel=3, stride=1, groups=1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(ic, oc, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
        nn.BatchNorm2d(oc),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """Expand, depthwise, project; added to the input where the shapes agree."""

    def __init__(self, ic: int, oc: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = ic * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers.append(_conv_bn_relu6(ic, hidden, 1))
        layers += [
            _conv_bn_relu6(hidden, hidden, 3, stride, hidden),
            nn.Conv2d(hidden, oc, 1, bias=False),
            nn.BatchNorm2d(oc),
        ]
        self.conv = nn.Sequential(*layers)
        self.use_res_connect = stride == 1 and ic == oc

    def forward(self, x):
        if self.use_res_connect:
            return x + self.conv(x)
        return self.conv(x)


class MobileNetV2(nn.Module):
    """MobileNetV2 with the state_dict keys of the usual checkpoints, 3 x 224 x 224."""

    PLAN = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        features: list[nn.Module] = [_conv_bn_relu6(3, 32, 3, 2)]
        ic = 32
        for expand, oc, count, stride in self.PLAN:
            for i in range(count):
                features.append(InvertedResidual(ic, oc, stride if i == 0 else 1, expand))
                ic = oc
        features.append(_conv_bn_relu6(ic, 1280, 1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x):
        x = self.features(x)
        x = x.mean([2, 3])
        return self.classifier(x)


class Photographs(nn.Module):
    """A network behind what photographs need: bytes to the mean and deviation of ImageNet."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([123.675, 116.28, 103.53]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([58.395, 57.12, 57.375]).view(1, 3, 1, 1))
        self.network = network

    def forward(self, x):
        return self.network((x - self.mean) / self.std)


class Bottleneck(nn.Module):
    """The block of ResNet-50."""

    def __init__(self, ic: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(ic, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or ic != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(ic, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet50(nn.Module):
    """ResNet-50; ``width`` is 64 in the paper, 3 x 224 x 224."""

    def __init__(self, width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        ic = width
        for stage, count in enumerate((3, 4, 6, 3)):
            blocks = []
            for i in range(count):
                blocks.append(Bottleneck(ic, width << stage, 2 if stage and i == 0 else 1))
                ic = 4 * (width << stage)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(ic, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


class BasicBlock(nn.Module):
    """The block of ResNet-18."""

    def __init__(self, ic: int, oc: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(ic, oc, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(oc)
        self.conv2 = nn.Conv2d(oc, oc, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(oc)
        self.relu = nn.ReLU()
        self.downsample = None
        if stride != 1 or ic != oc:
            self.downsample = nn.Sequential(
                nn.Conv2d(ic, oc, 1, stride, bias=False), nn.BatchNorm2d(oc)
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + identity)


def resnet18(width: int = 16, classes: int = 10) -> nn.Module:
    """ResNet-18 for 32 x 32 images; ``width`` is 64 in the paper."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
    ]  # fmt: skip
    ic = width
    for stage in range(4):
        oc = width << stage
        layers += [BasicBlock(ic, oc, 2 if stage else 1), BasicBlock(oc, oc)]
        ic = oc
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(ic, classes))


def vgg16(width: int = 16, classes: int = 10) -> nn.Module:
    """VGG-16 without BatchNorm for 32 x 32 images; ``width`` is 64 in the paper."""
    layers: list[nn.Module] = []
    ic = 3
    for oc, count in ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(ic, oc * width, 3, padding=1), nn.ReLU(inplace=True)]
            ic = oc * width
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(ic, 64), nn.ReLU(True), nn.Dropout(),
        nn.Linear(64, classes),
    )  # fmt: skip


class Fire(nn.Module):
    """SqueezeNet's block: two kinds of convolution, concatenated."""

    def __init__(self, ic: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(ic, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.relu(self.squeeze(x))
        return torch.cat([self.relu(self.expand1x1(x)), self.relu(self.expand3x3(x))], 1)


def squeezenet(classes: int = 10, width: int = 16) -> nn.Module:
    """SqueezeNet 1.1; ``width`` is 64 in the paper."""
    w = width // 4
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(width, w, width), Fire(2 * width, w, width), nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(2 * width, 2 * w, 2 * width), Fire(4 * width, 2 * w, 2 * width),
        nn.MaxPool2d(3, 2, ceil_mode=True), Fire(4 * width, 3 * w, 3 * width),
        Fire(6 * width, 4 * w, 4 * width), nn.Dropout(0.5), nn.Conv2d(8 * width, classes, 1),
        nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(),
    )  # fmt: skip


class UNet(nn.Module):
    """Encoder and decoder with skips; how the skips are joined decides what it needs.

    join: "cat" as in the paper, or "add". up: nn.Upsample, nearest.
    """

    def __init__(self, join: str = "cat", width: int = 8, classes: int = 2) -> None:
        super().__init__()
        self.join = join
        self.down = nn.ModuleList([self._double(3, width), self._double(width, 2 * width)])
        self.bottom = self._double(2 * width, 2 * width if join == "add" else 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        inputs = (2 * width, 2 * width) if join == "add" else (6 * width, 3 * width)
        outputs = (2 * width, width) if join == "add" else (2 * width, width)
        self.decode = nn.ModuleList([self._double(inputs[0], outputs[0])])
        self.decode.append(self._double(inputs[1], outputs[1]))
        self.narrow = nn.Conv2d(2 * width, width, 1) if join == "add" else nn.Identity()
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def _double(ic: int, oc: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(ic, oc, 3, padding=1), nn.BatchNorm2d(oc), nn.ReLU(inplace=True),
            nn.Conv2d(oc, oc, 3, padding=1), nn.BatchNorm2d(oc), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x):
        skips = []
        for layer in self.down:
            x = layer(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for layer, skip in zip(self.decode, reversed(skips), strict=True):
            x = self.up(x)
            if self.join == "cat":
                x = torch.cat([skip, x], dim=1)
            else:
                x = x + (skip if skip.shape[1] == x.shape[1] else F.relu(self.widen(skip)))
            x = layer(x)
        return self.head(x)

    def widen(self, x):
        return F.conv2d(x, self.narrow.weight.transpose(0, 1))


def autoencoder(features: int = 640) -> nn.Module:
    """The deep autoencoder of MLPerf Tiny (anomaly detection): linear layers with BatchNorm."""
    layers: list[nn.Module] = []
    widths = [features, 128, 128, 128, 128, 8, 128, 128, 128, 128]
    for ic, oc in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(ic, oc), nn.BatchNorm1d(oc), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(128, features))


class TextRow(nn.Module):
    """A 1-d convolutional classifier of sequences, (batch, channels, length)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(8, 16, 5, padding=2)
        self.bn1 = nn.BatchNorm1d(16)
        self.pool = nn.MaxPool1d(2)
        self.conv2 = nn.Conv1d(16, 16, 3, padding=1)
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        return self.fc(F.relu(self.conv2(x)).mean(2))
