"""Compile the trunk of a model and keep its head in PyTorch.

    python examples/partial.py [--runtime build/rasna-pynq-z2.so]

A small digit classifier whose head normalises its features and takes a softmax: two things
that the machine cannot compute. ``rasna.check`` says so and where to split; ``until=`` compiles
what comes before; the head is the model's own submodule, applied to what the runtime gives.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

import rasna

ROOT = Path(__file__).resolve().parents[1]


class Head(nn.Module):
    """Cosine similarity to ten class vectors, as a probability."""

    def __init__(self) -> None:
        super().__init__()
        self.classes = nn.Parameter(torch.randn(10, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.normalize(x.flatten(1), dim=1)
        return F.softmax(8 * x @ F.normalize(self.classes, dim=1).t(), dim=1)


class Classifier(nn.Module):
    """x: (batch, 1, 8, 8) images of 0 to 1; gives (batch, 10) probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.head = Head()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.trunk(x))


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(epochs):
        for part in torch.randperm(len(x)).split(64):
            loss = F.nll_loss(model(x[part]).log(), y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main(argv: list[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runtime", default=str(ROOT / "build" / "rasna-pynq-z2.so"))
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args(argv)
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.from_numpy((digits.images / 16).astype(np.float32)).unsqueeze(1)  # (1797, 1, 8, 8)
    labels = torch.from_numpy(digits.target)
    model = Classifier()
    train(model, x[:1200], labels[:1200], args.epochs)
    model.eval()

    report = rasna.check(model, x[:100], channel_last=False)
    print(report)

    program = rasna.compile(model, x[:100], channel_last=False, until=report.until)
    runtime = program.to_runtime(args.runtime)
    features = runtime(x[1200:], channel_last=False)  # (597, 32, 1, 1), as the head wants it
    with torch.no_grad():
        wanted = model(x[1200:])
        got = model.head(torch.from_numpy(features))
    result = {
        "until": report.until,
        "float": float((wanted.argmax(1) == labels[1200:]).float().mean()),
        "split": float((got.argmax(1) == labels[1200:]).float().mean()),
    }
    print(f"accuracy: {result['float']:.2%} in PyTorch, {result['split']:.2%} split")
    return result


if __name__ == "__main__":
    main()
