"""Masks: what is pruned, and that it stays pruned whatever happens to the layer."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

from rasna.tune.prune import magnitude_mask, mask_of, prune, unprune


def test_the_smallest_magnitudes_of_the_layer_go():
    weight = torch.tensor([[0.1, -4.0, 3.0], [-0.2, 2.0, 5.0]])
    keep = magnitude_mask(weight, 0.5)
    assert keep.tolist() == [[False, True, True], [False, False, True]]


def test_existing_zeros_go_first_and_equal_magnitudes_in_order():
    weight = torch.tensor([1.0, 1.0, 0.0, -1.0, 0.0, 1.0])
    assert magnitude_mask(weight, 0.5).tolist() == [False, True, False, True, False, True]


@pytest.mark.parametrize(
    ("sp", "n", "zeros"), [(0.0, 10, 0), (0.8, 10, 8), (0.29, 100, 29), (0.99, 8, 7), (0.999, 1, 0)]
)
def test_the_number_of_zeros_is_the_rounded_share_but_one_weight_stays(sp, n, zeros):
    assert int((~magnitude_mask(torch.randn(n), sp)).sum()) == zeros


def layer(sp=0.75):
    torch.manual_seed(0)
    conv = nn.Conv2d(4, 8, 3)
    prune(conv, sp)
    return conv


def test_state_dict_has_the_keys_of_the_plain_layer():
    assert list(layer().state_dict()) == ["weight", "bias"]
    assert [n for n, _ in layer().named_buffers()] == []


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_has_its_own_equal_mask_and_hooks(make):
    conv = layer()
    twin = make(conv)
    assert mask_of(twin) is not mask_of(conv)
    assert torch.equal(mask_of(twin).keep, mask_of(conv).keep)
    twin.weight.data.fill_(1)
    assert int((twin.state_dict()["weight"] == 0).sum()) == 216
    assert int((conv.weight == 0).sum()) == 216


OPTIMISERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 0.1, momentum=0.9),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_momentum_from_before_the_pruning_moves_nothing(name):
    torch.manual_seed(1)
    conv = nn.Conv2d(4, 8, 3)
    optimiser = OPTIMISERS[name](conv.parameters())
    conv(torch.randn(2, 4, 5, 5)).square().sum().backward()
    optimiser.step()
    prune(conv, 0.75)
    before = conv.weight.detach().clone()
    for _ in range(3):
        optimiser.step()
        assert bool((conv.weight[before == 0] == 0).all())
    assert int((conv.weight == 0).sum()) == 216
    assert not torch.equal(conv.weight, before)


def test_loading_makes_the_mask_of_the_loaded_weights():
    conv, dense = layer(), nn.Conv2d(4, 8, 3)
    conv.load_state_dict(dense.state_dict())
    assert torch.equal(mask_of(conv).keep, magnitude_mask(dense.weight, 0.75))
    assert torch.equal(conv.weight != 0, mask_of(conv).keep)


def test_loading_a_checkpoint_of_a_pruned_layer_restores_its_mask():
    conv = layer()
    file = io.BytesIO()
    torch.save(conv.state_dict(), file)
    torch.manual_seed(5)
    fresh = nn.Conv2d(4, 8, 3)
    prune(fresh, 0.75)
    file.seek(0)
    fresh.load_state_dict(torch.load(file))
    assert torch.equal(fresh.weight, conv.weight)
    assert torch.equal(mask_of(fresh).keep, mask_of(conv).keep)


def test_loading_with_assign_is_masked_too():
    conv = layer()
    conv.load_state_dict(nn.Conv2d(4, 8, 3).state_dict(), assign=True)
    assert int((conv.weight == 0).sum()) == 216


def test_unprune_lets_go_of_every_weight():
    conv = layer()
    unprune(conv)
    conv.weight.data.fill_(1)
    assert int((conv.state_dict()["weight"] == 0).sum()) == 0
    assert mask_of(conv) is None


def test_pruning_again_with_less_sparsity_frees_weights():
    conv = layer()
    prune(conv, 0.5)
    assert int((~mask_of(conv).keep).sum()) == 144
    conv.weight.data.fill_(1)
    assert int((conv.state_dict()["weight"] == 0).sum()) == 144
