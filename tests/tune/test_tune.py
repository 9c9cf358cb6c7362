"""rasna.tune on whole models: what it changes, what it leaves, and what it refuses."""

import copy
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rasna
from rasna.tune.prune import mask_of
from tests.messages import refuses
from tests.models.zoo import build, sample


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


def sparsity(weight) -> float:
    return float((weight == 0).float().mean())


def pruned(model) -> list[str]:
    return [name for name, layer in model.named_modules() if mask_of(layer) is not None]


def step(model, optimiser, *inputs):
    optimiser.zero_grad()
    model(*inputs).float().square().mean().backward()
    optimiser.step()


def test_it_returns_the_model_and_keeps_parameters_keys_and_buffers():
    model = build("digits")
    keys, parameters = list(model.state_dict()), list(model.parameters())
    buffers = [name for name, _ in model.named_buffers()]
    assert rasna.tune(model) is model
    assert list(model.state_dict()) == keys
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert [name for name, _ in model.named_buffers()] == buffers


def test_auto_leaves_the_first_convolution_depthwise_and_linear_layers_dense():
    assert pruned(rasna.tune(build("digits"))) == ["conv2", "conv3"]
    ds_cnn = rasna.tune(build("ds_cnn"), sp=0.5)
    pointwise = [n for n, m in ds_cnn.named_modules() if isinstance(m, nn.Conv2d)][2::2]
    assert pruned(ds_cnn) == pointwise and len(pointwise) == 4


def test_all_prunes_every_layer():
    model = rasna.tune(build("ds_cnn"), sp=0.75, strategy="all")
    layers = [n for n, m in model.named_modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    assert pruned(model) == layers
    for name in layers:
        assert abs(sparsity(model.get_submodule(name).weight) - 0.75) < 0.01, name


def test_the_first_convolution_is_the_first_that_runs():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.second = nn.Conv2d(4, 4, 3)
            self.first = nn.Conv2d(1, 4, 3)
            self.unused = nn.Conv2d(4, 4, 3)

        def forward(self, x):
            return self.second(self.first(x))

    assert pruned(rasna.tune(Net())) == ["second"]


def test_a_weight_that_a_dense_layer_shares_stays_dense_and_others_share_their_mask():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.Conv2d(4, 4, 3, padding=1) for _ in range(3))
            self.b.weight = self.a.weight
            self.d = nn.Conv2d(4, 4, 3, padding=1)
            self.d.weight = self.c.weight

        def forward(self, x):
            return self.d(self.c(self.b(self.a(x))))

    model = rasna.tune(Net())
    assert pruned(model) == ["c", "d"]
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(3):
        step(model, optimiser, torch.randn(4, 4, 6, 6))
    assert abs(sparsity(model.c.weight) - 0.8) < 0.01 and model.d.weight is model.c.weight
    assert sparsity(model.a.weight) == 0


def test_chpad_false_leaves_the_padding_alone():
    model = rasna.tune(build("digits"), chpad=False)
    assert model.conv1.padding_mode == "zeros"
    assert rasna.tune(model).conv1.padding_mode == "circular"
    assert rasna.tune(model, chpad=False).conv1.padding_mode == "zeros"


def test_a_layer_that_would_wrap_more_than_once_warns_in_the_first_forward_only():
    model = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool2d(4), nn.Conv2d(2, 2, 7, 1, 3))
    rasna.tune(model)
    x = torch.randn(4, 1, 8, 8)
    with pytest.warns(UserWarning) as warned:
        model(x)
    assert [str(w.message) for w in warned] == [
        "tune: circular padding would wrap more than once in 2 (zeros, map (2, 2)); "
        "these layers keep their padding mode"
    ]
    assert warned[0].filename == __file__  # the user's line, behind PyTorch's own frames
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(x)
        model.eval()(x)
    assert [model[0].padding_mode, model[2].padding_mode] == ["circular", "zeros"]


def test_auto_warns_when_it_prunes_nothing():
    with pytest.warns(UserWarning) as warned:
        rasna.tune(build("mlp"))
    assert [str(w.message) for w in warned] == [
        "tune: no weight is pruned, because strategy 'auto' leaves the first convolution, "
        "depthwise convolutions and linear layers dense; use strategy='all' to prune them"
    ]
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rasna.tune(build("mlp"), sp=0)
        rasna.tune(build("mlp"), strategy="all")


def test_tuning_twice_replaces_the_first_settings():
    model = rasna.tune(build("digits"), sp=0.9, strategy="all", ab=4)
    rasna.tune(model, sp=0.5)
    assert pruned(model) == ["conv2", "conv3"] and model._rasna_tune.ab == 8
    assert int((~mask_of(model.conv2).keep).sum()) == model.conv2.weight.numel() // 2
    model.eval()(sample("digits")[0])


def test_frozen_parameters_stay_frozen_and_are_pruned():
    model = build("digits")
    model.conv2.weight.requires_grad_(False)
    rasna.tune(model).train()
    before = model.conv2.weight.clone()
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)
    step(model, optimiser, sample("digits", 8)[0])
    assert model.conv2.weight.grad is None and torch.equal(model.conv2.weight, before)
    assert abs(sparsity(before) - 0.8) < 0.01


# ---- what is refused ------------------------------------------------------------------------


def test_a_model_without_a_layer_is_refused():
    with pytest.raises(rasna.TuneError) as error:
        rasna.tune(nn.Sequential(nn.ReLU(), nn.MaxPool2d(2)))
    assert str(error.value) == (
        "tune: Sequential has no convolution or Linear layer that its forward uses; "
        "there is nothing to prune or to quantise"
    )


class _Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1)

    def forward(self, x):
        y = self.conv(x)
        return y if y.sum() > 0 else -y


def test_control_flow_on_values_is_refused_with_its_line():
    with refuses(
        rasna.CompileError,
        "test_tune.py:N: control flow on the value of a tensor is not supported; decide on "
        "constants of the module (self.…), or end the compiled model before it",
    ):
        rasna.tune(_Branches())


def test_an_operation_that_cannot_be_compiled_is_refused_in_the_first_forward():
    model = rasna.tune(nn.Sequential(nn.Conv2d(1, 2, 3), nn.LPPool2d(2, 1), nn.Conv2d(2, 2, 3)))
    with refuses(
        rasna.CompileError,
        "_1 (1): LPPool2d is not supported; it takes powers and roots; use nn.AvgPool2d or "
        "nn.MaxPool2d and train it again",
    ):
        model(torch.randn(2, 1, 8, 8))


def test_lazy_and_parametrised_layers_are_refused_by_name():
    with refuses(rasna.TuneError, "tune: 0 is lazy; run the model once, then tune it"):
        rasna.tune(nn.Sequential(nn.LazyConv2d(2, 3)))
    with refuses(
        rasna.TuneError, "tune: 0 is on the meta device; load its weights, then tune it"
    ):
        rasna.tune(nn.Sequential(nn.Linear(3, 3, device="meta")))
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
    with refuses(
        rasna.TuneError,
        "tune: the weight of 0 is parametrised; call "
        "torch.nn.utils.parametrize.remove_parametrizations(layer, 'weight') first",
    ):
        rasna.tune(nn.Sequential(layer))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            torch.zeros(8),
            "input 0 of a tuned model must be (batch, channels, height, width), (batch, channels, "
            "length) or (batch, features), its shape is (8,)",
        ),
        ([1.0], "input 0 of a tuned model must be a tensor, list was given"),
    ],
)
def test_wrong_inputs_are_named(x, message):
    with refuses(rasna.RasnaError, message):
        rasna.tune(build("digits"))(x)


# ---- training -------------------------------------------------------------------------------

OPTIMISERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_pruned_weights_stay_zero_in_parameters_and_state_dict(name):
    model = build("digits").train()
    optimiser = OPTIMISERS[name](model.parameters())
    x = sample("digits", 8)[0]
    step(model, optimiser, x)  # momentum from before
    rasna.tune(model)
    keep = mask_of(model.conv2).keep
    for _ in range(3):
        before = model.conv2.weight.detach().clone()
        step(model, optimiser, x)
        assert not model.conv2.weight[~keep].any()
        assert not model.state_dict()["conv2.weight"][~keep].any()
        assert not torch.equal(before, model.conv2.weight)


def test_batch_norm_trains_with_batch_statistics():
    model = rasna.tune(build("digits"), chpad=False).train()
    x = sample("digits", 16, seed=3)[0] * 3
    model(x)
    before = model.bn1.running_mean.clone(), int(model.bn1.num_batches_tracked)
    seen = []
    model.bn1.register_forward_pre_hook(lambda m, args: seen.append(args[0].mean((0, 2, 3))))
    model(x)
    assert len(seen) == 1 and int(model.bn1.num_batches_tracked) == before[1] + 1
    want = 0.9 * before[0] + 0.1 * seen[0]
    assert torch.allclose(model.bn1.running_mean, want, atol=1e-5)


def test_every_stored_tensor_is_on_its_grid_in_training():
    model = rasna.tune(build("digits"), ab=4).train()
    y = model(sample("digits", 8)[0])
    kind = model._rasna_tune.observers.types["fc"]
    integers = y * 2.0**kind.frac
    assert torch.equal(integers, integers.round()) and kind.bits == 4
    assert kind.lo <= integers.min() and integers.max() <= kind.hi
    assert set(model._rasna_tune.observers.types) == {"x", "conv1", "conv2", "conv3", "add",
                                                      "mean", "fc"}  # fmt: skip


def test_gradients_reach_inputs_and_all_kept_weights():
    model = rasna.tune(build("digits")).train()
    x = sample("digits", 32)[0].requires_grad_()
    F.cross_entropy(model(x), torch.arange(32) % 10).backward()
    assert x.grad.any()
    assert not model.conv2.weight.grad[~mask_of(model.conv2).keep].any()
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.any(), name


def test_a_residual_block_whose_last_gamma_is_zero_can_learn():
    model = build("resnet8")
    for block in model.layers:
        nn.init.zeros_(block.bn2.weight)
    rasna.tune(model).train()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        step(model, optimiser, sample("resnet8", 4)[0])
    assert all(block.bn2.weight.any() for block in model.layers)
    assert all(block.conv2.weight.grad.any() for block in model.layers)


def test_dropout_drops_in_training_and_not_in_eval():
    model = nn.Sequential(nn.Conv2d(1, 8, 1), nn.Dropout(0.5), nn.ReLU(), nn.Conv2d(8, 1, 1))
    rasna.tune(model, sp=0)
    x = torch.randn(4, 1, 4, 4)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


def test_the_first_forward_disturbs_neither_random_numbers_nor_statistics():
    plain = build("digits").train()
    tuned = rasna.tune(copy.deepcopy(plain), sp=0, chpad=False)
    x = sample("digits", 8)[0]
    state = torch.get_rng_state()
    tuned(x)
    assert torch.equal(torch.get_rng_state(), state)
    plain(x)
    assert int(tuned.bn1.num_batches_tracked) == int(plain.bn1.num_batches_tracked)
    assert torch.allclose(tuned.bn1.running_var, plain.bn1.running_var, rtol=0.05)


def test_two_forwards_before_one_backward():
    model = rasna.tune(build("digits")).train()
    x = sample("digits", 8)[0]
    (model(x).sum() + model(2 * x).sum()).backward()
    assert model.conv1.weight.grad.any()


def test_training_computes_nearly_what_the_plain_model_does():
    plain = build("resnet8")
    tuned = rasna.tune(copy.deepcopy(plain), sp=0, chpad=False)
    x = sample("resnet8", 16)[0]
    want, got = plain.train()(x), tuned.train()(x)
    assert float(((got - want).square().mean() / want.square().mean()).detach()) < 0.01
    y = torch.arange(16) % 10
    F.cross_entropy(want, y).backward()
    F.cross_entropy(got, y).backward()
    a, b = plain.layers[0].conv1.weight.grad.flatten(), tuned.layers[0].conv1.weight.grad.flatten()
    assert float(F.cosine_similarity(a, b, dim=0)) > 0.9


def test_fine_tuning_recovers_the_accuracy_of_the_dense_model():
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)

    def fit(model, epochs, rate):
        optimiser = torch.optim.AdamW(model.parameters(), rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=21 * epochs)
        model.train()
        for _ in range(epochs):
            for rows in torch.randperm(1300).split(64):
                optimiser.zero_grad()
                F.cross_entropy(model(x[rows]), y[rows]).backward()
                optimiser.step()
                schedule.step()
        model.eval()
        with torch.no_grad():
            return float((model(x[1300:]).argmax(1) == y[1300:]).float().mean())

    model = build("digits")
    dense = fit(model, 4, 5e-3)
    sparse = fit(rasna.tune(model, chpad=False), 4, 5e-3)
    assert dense > 0.9 and sparse > dense - 0.03, (dense, sparse)
    assert abs(sparsity(model.conv2.weight) - 0.8) < 0.01
