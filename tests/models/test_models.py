"""The zoo and the random models are what their users rely on."""

import pytest
import torch
from torch import nn

from tests.models.zoo import SMALL, build, prune_, sample
from tests.random_models import coverage, random_model


def leaves(value) -> list[torch.Tensor]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


@pytest.mark.parametrize("name", SMALL)
def test_a_seed_gives_the_same_network_with_sensible_outputs(name):
    a, b = build(name, 3), build(name, 3)
    with torch.no_grad():
        pairs = zip(leaves(a(*sample(name))), leaves(b(*sample(name))), strict=True)
        for x, y in pairs:
            assert torch.equal(x, y) and 1e-3 < float(x.std()) < 100
    assert not a.training


def test_prune_zeroes_the_share_of_every_layer():
    model = prune_(build("lenet5"), 0.75)
    for m in model.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            assert abs(float((m.weight == 0).float().mean()) - 0.75) < 0.01


def test_random_models_are_reproducible_and_finite():
    for seed in range(20):
        model, samples, info = random_model(seed)
        twin, again, same = random_model(seed)
        assert info == same and not model.training
        with torch.no_grad():
            for x, y in zip(leaves(model(*samples)), leaves(twin(*again)), strict=True):
                assert torch.equal(x, y) and bool(torch.isfinite(x).all()), f"seed {seed}"


def test_random_models_cover_every_attribute_and_half_are_graphs():
    tags, graphs = coverage(range(300))
    assert graphs >= 150
    kernels = {f"conv.kernel={k}" for k in (1, 2, 3, 5)}
    wanted = kernels | {
        "conv.kernel=5 non-square", "conv.stride=3", "conv.dilation=2", "conv.groups=depthwise",
        "conv.groups=many", "conv.depth_multiplier", "conv.padding=same", "conv.padding=valid",
        "conv.padding_mode=circular", "conv.bias=False", "conv.odd channels", "conv.functional",
        "batchnorm.alone", "batchnorm.after conv", "max_pool.ceil_mode=True",
        "max_pool.dilation=2", "max_pool.padding=True", "max_pool.square=False",
        "average_pool.adaptive", "average_pool.adaptive None", "add.a-b", "add.self",
        "add.broadcast", "add.alpha=2", "add.scale=1e-3", "add.scale=1e2", "affine.buffers",
        "affine.1-x", "fan_out", "inputs=2", "outputs=3", "output.dict", "output.intermediate",
        "linear.bias=False", "sp=0.99", "ab=2", "wb=2",
    }  # fmt: skip
    assert not wanted - set(tags)
