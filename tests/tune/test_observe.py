"""Learning of types in training: when, from what, and how weights are scaled."""

import pytest
import torch
from torch import nn

import rasna
from rasna.compile.pipeline import quantize_model
from rasna.compile.quantize import quantize_weight
from rasna.compile.settings import Settings
from rasna.tune import observe
from tests.models.zoo import build, sample


def test_types_are_chosen_often_at_first_and_then_every_64_steps(monkeypatch):
    monkeypatch.setattr(observe, "INTERVAL", 8)
    model = rasna.tune(build("digits")).train()
    observers, learned = model._rasna_tune.observers, []
    x = sample("digits", 4)[0]
    for step in range(30):
        model(x)
        if observers._learning:
            learned.append(step)
    assert learned == [0, 1, 2, 4, 8, 16, 24]


def test_types_follow_the_values_and_remember_the_last_choices(monkeypatch):
    monkeypatch.setattr(observe, "INTERVAL", 1)
    model = rasna.tune(build("digits")).train()
    x = sample("digits", 8)[0]
    fracs = []
    for scale in (1, 1, 16, 16, 16, 1, 1, 1, 1):
        model(scale * x)
        fracs.append(model._rasna_tune.observers.types["x"].frac)
    assert fracs[1] - fracs[4] == 4
    assert fracs[5] == fracs[6] == fracs[4]  # the large values are remembered …
    assert fracs[8] == fracs[1]  # … for four choices


def test_a_batch_with_nan_teaches_nothing():
    model = rasna.tune(build("digits")).train()
    x = sample("digits", 4)[0]
    model(x)
    types = dict(model._rasna_tune.observers.types)
    model(torch.full_like(x, float("nan")))
    assert {n: k.frac for n, k in model._rasna_tune.observers.types.items()} == {
        n: k.frac for n, k in types.items()
    }


def test_inputs_that_are_never_negative_are_unsigned():
    model = rasna.tune(build("digits")).train()
    x = sample("digits", 4)[0]
    model(x.abs())
    assert not model._rasna_tune.observers.types["x"].signed
    model(x)
    assert model._rasna_tune.observers.types["x"].signed


@pytest.mark.parametrize("wb", [2, 3, 5, 8])
def test_training_and_compiler_round_weights_to_the_same_integers(wb):
    """Before BatchNorm: at few bits, integers of the folded weights would be others."""
    model = rasna.tune(build("digits"), sp=0.5, wb=wb).train()
    for _ in range(3):
        model(sample("digits", 4)[0])
    (graph,) = model._rasna_tune._training.values()
    graph.observers.restart()
    scale, limit = graph.observers.weight(graph.graph.nodes["conv2"], model.conv2.weight)
    trained = quantize_weight(model.conv2.weight.detach(), scale, limit)
    compiled = quantize_model(model.eval(), sample("digits", 8), Settings(wb=wb)).quant_graph
    (op,) = [op for op in compiled.ops if op.name == "conv2"]
    assert limit == 2 ** (wb - 1) - 1
    assert op.weight.any() and (op.weight == trained.numpy()).all()


def test_rows_of_zeros_get_a_usable_scale():
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Conv2d(3, 3, 1))
    nn.init.zeros_(model[1].weight)
    model[0].weight.data[1] = 0
    rasna.tune(model, sp=0)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(4, 1, 6, 6)
    for _ in range(4):
        optimiser.zero_grad()
        (model(x) - 1).square().mean().backward()
        optimiser.step()
    assert model[1].weight.all() and model[0].weight[1].any()
