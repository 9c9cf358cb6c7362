"""Models from real life: each compiles, and its tuned eval equals the runtime bit for bit.

The large ones are narrowed or shrunk so that the file takes seconds; ``make fit`` and
``make bench`` compile such models in their real size.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import rasna
from tests.models import nets, zoo
from tests.networks.check import objects, outputs_of

# name: (builder, shapes of the inputs without the batch, target)
MODELS = {
    "LeNet-5": (zoo.lenet5, [(1, 28, 28)], "tiny"),
    "ResNet-8": (zoo.resnet8, [(3, 32, 32)], "pynq-z2"),
    "ResNet-20": (zoo.resnet20, [(3, 32, 32)], "pynq-z2"),
    "ResNet-18, a quarter wide": (nets.resnet18, [(3, 32, 32)], "pynq-z2"),
    "ResNet-50, a quarter wide": (lambda: nets.ResNet50(16, 100), [(3, 64, 64)], "pynq-z2"),
    "MobileNetV1 0.25, 96 x 96": (lambda: zoo.mobilenet_v1(0.25, 2), [(3, 96, 96)], "pynq-z2"),
    "VGG-16, a quarter wide": (nets.vgg16, [(3, 32, 32)], "pynq-z2"),
    "SqueezeNet 1.1": (nets.squeezenet, [(3, 64, 64)], "pynq-z2"),
    "DS-CNN": (zoo.ds_cnn, [(1, 49, 10)], "pynq-z2"),
    "U-Net, concatenated": (nets.UNet, [(3, 32, 32)], "pynq-z2"),
    "U-Net, added": (lambda: nets.UNet("add"), [(3, 32, 32)], "pynq-z2"),
    "Siamese": (zoo.Siamese, [(1, 16, 16), (1, 16, 16)], "tiny"),
    "autoencoder": (nets.autoencoder, [(640,)], "pynq-z2"),
    "MLP": (zoo.mlp, [(784,)], "pynq-z2"),
    "1-d convolutions": (nets.TextRow, [(8, 64)], "pynq-z2"),
}
def model_and_inputs(name: str, batch: int = 2) -> tuple[nn.Module, list[torch.Tensor]]:
    """The model with settled BatchNorm, in eval mode, and NCHW inputs; seeded."""
    builder, shapes, _ = MODELS[name]
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = builder()
    inputs = [torch.randn(batch, *shape, generator=generator) for shape in shapes]
    return zoo.settle(model, *[x.clone() for x in inputs], generator=generator), inputs


@pytest.mark.parametrize("name", MODELS)
def test_tuned_eval_equals_the_runtime(name):
    target = MODELS[name][2]
    model, inputs = model_and_inputs(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rasna.tune(model, sp=0.8, strategy="all")
    model.eval()
    program = rasna.compile(model, *inputs, channel_last=False, target=target)
    with torch.no_grad():
        expected = outputs_of(model(*inputs))
    with program.to_runtime(objects(target)[0]) as runtime:
        got = outputs_of(runtime(*inputs, channel_last=False))
    for want, found in zip(expected, got, strict=True):
        assert np.array_equal(want, found) and np.ptp(found) > 0
