"""Eval of a tuned model, before and after compile, in copies, checkpoints and wrappers."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rasna
from rasna.compile.pipeline import flatten_outputs, quantize_model
from rasna.compile.settings import settings_of
from rasna.golden import layers
from rasna.golden.host import run_steps
from rasna.graph import QuantGraph
from rasna.structure import nest
from tests.messages import refuses
from tests.models.zoo import build, sample
from tests.random_models import random_model

X = sample("digits", 8)[0]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


def freeze(model, *samples) -> QuantGraph:
    """What rasna.compile does with a tuned model, without the back end."""
    model._rasna_tune.prepare(samples)
    graph = quantize_model(model, list(samples), settings_of(model)).quant_graph
    model._rasna_tune.freeze(graph)
    return graph


def golden(graph: QuantGraph, samples, image: int):
    """Outputs of the golden model for one image, as float arrays in the model's structure."""
    kinds = [graph.tensors[port.tensor].type for port in graph.inputs]
    integers = [
        layers.quantize(np.asarray(x[image]), kind) for x, kind in zip(samples, kinds, strict=True)
    ]
    values = layers.evaluate(graph, integers)
    outputs = {
        p.name: layers.dequantize(values[p.tensor], graph.tensors[p.tensor].type).reshape(
            1, *p.shape
        )
        for p in graph.outputs
    }
    found = run_steps(graph.host_steps, graph.results, outputs)
    return nest(graph.structure, [array[0] for array in found])


def assert_equals_golden(model, graph, samples, images, case):
    got = flatten_outputs(model(*samples))
    for image in images:
        want = flatten_outputs(golden(graph, samples, image))
        for g, w in zip(got, want, strict=True):
            assert g.shape[1:] == w.shape, case
            assert (g[image].numpy() == w).all(), case


def train(model, *inputs, steps=1):
    optimiser = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    model.train()
    for _ in range(steps):
        optimiser.zero_grad()
        outputs = [y for y in flatten_outputs(model(*inputs)) if y.requires_grad]  # no indices
        if outputs:
            sum(y.float().square().mean() for y in outputs).backward()
        optimiser.step()
    return model.eval()


# ---- bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("block", range(8))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_eval_after_compile_equals_the_golden_model_on_random_models(block):
    for seed in range(5 * block, 5 * block + 5):
        model, samples, info = random_model(seed)
        strategy = "all" if seed % 2 else "auto"
        bits = {name: info[name] for name in ("sp", "ab", "wb", "ib")}
        rasna.tune(model, **bits, strategy=strategy, chpad=seed % 3 > 0)
        if seed % 2:
            train(model, *samples)
        graph = freeze(model.eval(), *samples)
        again = f"seed {seed}: python -m pytest tests/tune/test_state.py -k random_models"
        assert_equals_golden(model, graph, samples, (0, 3), again)


@pytest.mark.parametrize("name", ["lenet5", "resnet8", "ds_cnn", "mlp", "siamese"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_eval_after_compile_equals_the_golden_model_on_networks(name):
    model, samples = rasna.tune(build(name)), sample(name, 4)
    graph = freeze(train(model, *samples), *samples)
    assert_equals_golden(model, graph, samples, (0, 3), name)


def test_one_flipped_weight_is_seen_by_the_comparison():
    model = rasna.tune(build("digits")).eval()
    graph = freeze(model, X)
    op = graph.ops[-1]
    op.weight = op.weight.copy()
    op.weight[0, 0] ^= 64
    wrong = golden(graph, [X], 0)
    model._rasna_tune.freeze(quantize_model(model, [X], settings_of(model)).quant_graph)
    assert not (model(X)[0].numpy() == wrong).all()


@pytest.mark.parametrize("size", [1, 3, 200])
def test_eval_does_not_depend_on_the_batch(size):
    model = rasna.tune(build("digits")).eval()
    freeze(model, X)
    x = torch.randn(size, 1, 8, 8)
    want = torch.cat([model(x[i : i + 1]) for i in range(size)])
    assert torch.equal(model(x), want) and model(x).dtype == torch.float32


# ---- before compile, and after an edit ----------------------------------------------------


def test_eval_before_compile_uses_the_types_of_training():
    model = train(rasna.tune(build("digits")), X, steps=3)
    types = dict(model._rasna_tune.observers.types)
    a = model(X)
    model(100 * X)
    assert all(model._rasna_tune.observers.types[name] == kind for name, kind in types.items())
    assert torch.equal(model(X), a)


def test_eval_without_training_observes_its_first_batch():
    model = rasna.tune(build("digits"), sp=0, chpad=False).eval()
    got = model(X)
    with torch.no_grad():
        want = type(model).forward(model, X)
    assert float((got - want).square().mean() / want.square().mean()) < 0.01
    model(100 * X)
    assert torch.equal(model(X), got)


def test_compile_freezes_the_types_that_its_samples_choose():
    model = train(rasna.tune(build("digits")), X)
    freeze(model, 16 * X)
    kind = model._rasna_tune.observers.types["x"]
    before = model(X)
    assert kind.frac < 4
    freeze(model, X)
    assert not torch.equal(model(X), before)


EDITS = {
    "in place": lambda m: m.conv2.weight.detach().mul_(0.5),
    "data": lambda m: m.conv2.weight.data.mul_(0.5),
    "buffer": lambda m: m.bn1.running_mean.add_(1.0),
    "load": lambda m: m.load_state_dict(build("digits", seed=7).state_dict()),
    "training": lambda m: train(m, X),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_after_compile_is_seen_by_eval(name):
    model = rasna.tune(build("digits")).eval()
    freeze(model, X)
    before = model(X)
    EDITS[name](model)
    after = model(X)
    assert not torch.equal(after, before)
    graph = freeze(model, X)
    assert_equals_golden(model, graph, [X], (0,), name)


def test_undoing_an_edit_brings_the_frozen_bits_back():
    model = rasna.tune(build("digits")).eval()
    freeze(model, 4 * X)
    before = model(X)
    weight = model.conv2.weight.detach().clone()
    model.conv2.weight.data.mul_(2)
    assert not torch.equal(model(X), before)
    model.conv2.weight.data.copy_(weight)
    assert torch.equal(model(X), before)


def test_eval_takes_another_size_of_map():
    model = rasna.tune(build("digits")).eval()
    freeze(model, X)
    before = model(X)
    assert model(torch.randn(2, 1, 12, 10)).shape == (2, 10)
    assert torch.equal(model(X), before)


# ---- structure of inputs and outputs ------------------------------------------------------


class _TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)

    def forward(self, image, other=None):
        y = self.conv(image)
        if other is not None:
            y = y + other
        return {"map": y, "pair": (F.relu(y), [image])}


def test_outputs_keep_their_structure_and_inputs_may_be_named():
    model = rasna.tune(_TwoInputs(), strategy="all")
    x, other = torch.randn(3, 1, 5, 6), torch.randn(3, 2, 5, 6)
    for training in (True, False):
        y = model.train(training)(x, other=other)
        assert list(y) == ["map", "pair"] and isinstance(y["pair"], tuple)
        assert isinstance(y["pair"][1], list) and y["pair"][1][0].shape == x.shape
        assert y["map"].shape == other.shape
        assert not torch.equal(model(x)["map"], y["map"])


# ---- copies and checkpoints ---------------------------------------------------------------


def saved_and_loaded(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "torch.save": saved_and_loaded,
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_copy_computes_the_same_and_lives_by_itself(name, compiled):
    model = train(rasna.tune(build("digits")), X)
    if compiled:
        freeze(model, X)
    want = model(X)
    twin = COPIES[name](model)
    assert twin.forward.model is twin
    assert torch.equal(twin(X), want)
    train(twin, X)
    assert not torch.equal(twin(X), want) and torch.equal(model(X), want)
    assert float((twin.conv2.weight == 0).float().mean()) > 0.79


def test_a_copy_holds_no_values_of_the_data():
    model = train(rasna.tune(build("digits")), X)
    assert model._rasna_tune.observers._seen
    assert not copy.deepcopy(model)._rasna_tune.observers._seen


def test_a_checkpoint_goes_into_a_freshly_tuned_model():
    model = train(rasna.tune(build("digits")), X, steps=2)
    fresh = rasna.tune(build("digits", seed=9))
    fresh.load_state_dict(model.state_dict())
    a, b = freeze(model, X), freeze(fresh.eval(), X)
    assert torch.equal(model(X), fresh(X)) and a.tensors == b.tensors
    train(fresh, X)
    assert torch.equal(fresh.conv2.weight == 0, model.conv2.weight == 0)


def test_a_checkpoint_goes_into_a_plain_model():
    model = train(rasna.tune(build("digits"), chpad=False, sp=0.5), X)
    plain = build("digits", seed=9)
    plain.load_state_dict(model.state_dict())
    want, got = plain(X), model(X)
    assert float(((want - got).square().mean() / want.square().mean()).detach()) < 0.01


# ---- wrappers -----------------------------------------------------------------------------


def test_averaged_model():
    model = rasna.tune(build("digits"))
    average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    for _ in range(3):
        train(model, X)
        average.update_parameters(model)
    average.eval()
    assert average(X).shape == (8, 10)
    assert torch.equal(average.module.conv2.weight == 0, model.conv2.weight == 0)


def test_torch_compile():
    model = rasna.tune(build("digits"))
    compiled = torch.compile(model, backend="eager")
    train(compiled, X, steps=2)
    assert torch.equal(compiled(X), model(X))


def test_distributed_data_parallel_with_one_process(tmp_path):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        model = rasna.tune(build("digits"))
        wrapped = nn.parallel.DistributedDataParallel(model)
        train(wrapped, X, steps=2)
        assert torch.equal(wrapped(X), model(X))
        assert float((model.conv2.weight == 0).float().mean()) > 0.79
    finally:
        torch.distributed.destroy_process_group()


def test_autocast_trains_and_does_not_change_eval():
    model = rasna.tune(build("digits"))
    with torch.autocast("cpu", torch.bfloat16):
        train(model, X)
        under = model(X)
    assert torch.equal(under, model(X))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_float_types(dtype):
    model = rasna.tune(build("digits")).to(dtype)
    train(model, X.to(dtype))
    graph = freeze(model, X)
    assert_equals_golden(model, graph, [X], (0,), str(dtype))
    assert model(X.to(dtype)).dtype == torch.float32


def test_functional_call_trains_other_parameters():
    model = rasna.tune(build("digits")).train()
    others = {n: p.detach().clone().requires_grad_() for n, p in model.named_parameters()}
    torch.func.functional_call(model, others, (X,)).sum().backward()
    assert others["conv2.weight"].grad.any() and model.conv2.weight.grad is None


def test_eval_refuses_nan_and_names_the_input():
    model = rasna.tune(build("digits")).eval()
    model(X)
    with refuses(ValueError, "input x: 1 values are NaN or infinite"):
        bad = X.clone()
        bad[0, 0, 0, 0] = float("nan")
        model(bad)
