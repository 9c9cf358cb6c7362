"""The main job of Rasna on real data: train, tune, compile, save, load, run.

    python examples/digits.py [--runtime build/rasna-pynq-z2.so] [--sparsity 0.8]

A small CNN learns the 1,797 scanned digits that ship with scikit-learn (8 x 8 pixels). It is
made sparse and fine-tuned with quantisation, compiled to digits.rasna, and run on the
simulator that was built from the accelerator's own source. Every output of the runtime is
compared with PyTorch's.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

import rasna
from rasna.targets import TARGETS

ROOT = Path(__file__).resolve().parents[1]
NUM_TRAIN = 1200


class DigitsNet(nn.Module):
    """Two convolutional stages with a residual block, about 76,000 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 32, 3, padding=1, bias=False)
        self.stem_bn = nn.BatchNorm2d(32)
        self.conv1 = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.conv2 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # x: (batch, 1, 12, 12)
        x = F.relu(self.stem_bn(self.stem(x)))
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.relu(x + self.bn2(self.conv2(x)))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def load_data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training and test images (N, 1, 12, 12) in 0 to 1 and their labels.

    The digits touch the border of their 8 x 8 pixels. A margin of two keeps circular padding,
    which ``rasna.tune`` brings in, from joining what lies on opposite sides.
    """
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
    images = F.pad(images, (2, 2, 2, 2))
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, test = order[:NUM_TRAIN], order[NUM_TRAIN:]
    return images[train], labels[train], images[test], labels[test]


def train(model: nn.Module, images, labels, epochs: int, rate: float, title: str) -> None:
    """A plain PyTorch loop; nothing in it knows of Rasna."""
    optimiser = torch.optim.AdamW(model.parameters(), rate, weight_decay=1e-4)
    steps = epochs * (len(labels) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    model.train()
    for epoch in range(epochs):
        order = torch.randperm(len(labels))
        for batch in order[: len(labels) // 64 * 64].split(64):
            shift = torch.randint(-1, 2, (2,)).tolist()
            x = torch.roll(images[batch], shift, (2, 3))
            loss = F.cross_entropy(model(x), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        print(f"\r{title}: epoch {epoch + 1} of {epochs}, loss {loss:.3f}", end="", flush=True)
    print()
    model.eval()


def accuracy(outputs: np.ndarray, labels: torch.Tensor) -> float:
    return float((outputs.argmax(1) == labels.numpy()).mean() * 100)


def predict(model: nn.Module, images: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return model(images).numpy()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runtime", default=str(ROOT / "build" / "rasna-pynq-z2.so"))
    parser.add_argument("--sparsity", type=float, default=0.8)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--output", default=str(ROOT / "build" / "digits.rasna"))
    args = parser.parse_args()
    if not Path(args.runtime).exists():
        print(f"{args.runtime} does not exist; build it with: make sim-so", file=sys.stderr)
        return 1
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the maps are so small that more threads only wait
    x_train, y_train, x_test, y_test = load_data()

    model = DigitsNet()
    train(model, x_train, y_train, args.epochs, 4e-3, "training")
    float_accuracy = accuracy(predict(model, x_test), y_test)
    checkpoint = Path(args.output).with_suffix(".pt")
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), checkpoint)

    rasna.tune(model, sp=args.sparsity)
    # Circular padding is new to the model, so it learns on as fast as before.
    train(model, x_train, y_train, args.epochs, 4e-3, f"fine-tuning at {args.sparsity:.0%} zeros")

    samples = x_train[:256].permute(0, 2, 3, 1)  # BHWC, as arrays usually come
    program = rasna.compile(model, samples)
    program.save(args.output)
    tuned = predict(model, x_test)

    runtime = rasna.load(args.output).to_runtime(args.runtime)
    start = time.perf_counter()
    outputs = runtime(x_test.permute(0, 2, 3, 1).numpy())
    seconds = time.perf_counter() - start
    equal = int(np.count_nonzero(np.all(outputs == tuned, axis=1)))

    print()
    print(f"accuracy, float model           {float_accuracy:6.2f} %")
    print(f"accuracy, tuned model (PyTorch) {accuracy(tuned, y_test):6.2f} %")
    print(f"accuracy, runtime               {accuracy(outputs, y_test):6.2f} %")
    print(f"bit-exact: {equal} of {len(outputs)} outputs equal")
    file_bytes, float_bytes = Path(args.output).stat().st_size, checkpoint.stat().st_size
    print(f"size: {file_bytes:,} bytes, float checkpoint {float_bytes:,} bytes "
          f"({float_bytes / file_bytes:.1f} times as large)")
    print(f"simulator: {len(outputs) / seconds:,.0f} images per second on this computer")
    print("estimates of the compiler (not run on hardware):")
    for name, target in TARGETS.items():
        on_target = rasna.compile(model, samples, target=name)
        cycles = sum(layer["cycles"] for layer in on_target.layers)
        rate = target.clock_mhz * 1e6 / cycles
        print(f"  {name:8} {cycles:9,} cycles per image, {rate:9,.0f} images per second "
              f"at {target.clock_mhz} MHz")
    return 0 if equal == len(outputs) else 1


if __name__ == "__main__":
    sys.exit(main())
