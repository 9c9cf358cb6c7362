"""Neighbours of the kinds in test_kinds.py: models as people write them, to the simulator."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import OrderedDict

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.nn.utils import parametrizations, prune

import rasna
from tests.compile.support import Net, check, compiled, sample, settle
from tests.messages import refuses
from tests.networks.check import objects, outputs_of


def through(model: nn.Module, *inputs: torch.Tensor) -> None:
    """Tuned eval, golden's self-check and the simulator agree; float is not far away."""
    check(model, *inputs, least_db=20)
    tuned = copy.deepcopy(model).train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rasna.tune(tuned, sp=0, chpad=False, strategy="all").eval()
    program = rasna.compile(tuned, *inputs, channel_last=False, target="tiny")
    with torch.no_grad():
        want = outputs_of(tuned(*inputs))
    with program.to_runtime(objects("tiny")[0]) as runtime:
        runtime.selfcheck()
        got = outputs_of(runtime(*inputs, channel_last=False))
    assert all(np.array_equal(a, b) for a, b in zip(want, got, strict=True))


CONVOLUTIONS = {
    **{f"kernel {k}": (nn.Conv2d(2, 3, k, padding=k // 2), (13, 12)) for k in range(1, 12)},
    **{f"{c} channels": (nn.Conv2d(c, 5, 3, padding=1), (4, 5)) for c in (1, 3, 17, 33, 100)},
    **{f"to {c} channels": (nn.Conv2d(3, c, 1), (3, 2)) for c in (1, 17, 33, 100)},
    "one pixel": (nn.Conv2d(3, 4, 3, padding=1), (1, 1)),
    "output smaller than the padding": (nn.Conv2d(2, 2, 3, stride=5, padding=4), (2, 3)),
    "padding beyond the map": (nn.Conv2d(2, 3, 5, padding=4), (2, 2)),
    "same, kernel 4, dilated": (nn.Conv2d(2, 3, 4, padding="same", dilation=2), (7, 6)),
    "17 x 31": (nn.Conv2d(8, 8, (3, 1), stride=(2, 1)), (17, 31)),
    "depth multiplier": (nn.Conv2d(8, 16, 3, groups=8), (6, 5)),
    "stride 4, kernel 1": (nn.Conv2d(3, 4, 1, stride=4), (9, 10)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_through_the_whole_chain(name):
    layer, size = CONVOLUTIONS[name]
    through(settle(nn.Sequential(copy.deepcopy(layer))), sample(2, layer.in_channels, *size))


def norm(gamma: float, var: float) -> nn.Module:
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()))
    with torch.no_grad():
        model[1].weight.fill_(gamma)
        model[1].running_var.fill_(var)
    return model


NORMS = {
    "gamma 0": norm(0.0, 1.0),
    "gamma -1": norm(-1.0, 1.0),
    "tiny variance": norm(1.0, 1e-12),
    "huge variance": norm(1.0, 1e8),
    "first": settle(nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3))),
    "behind pooling": settle(nn.Sequential(nn.MaxPool2d(2), nn.BatchNorm2d(3), nn.Conv2d(3, 2, 1))),
    "twice": settle(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.BatchNorm2d(4))),
    "two for one layer, behind a branch": settle(
        Net(lambda m, x: m.a(m.c(x)) + m.b(m.c(x)), c=nn.Conv2d(3, 4, 1), a=nn.BatchNorm2d(4),
            b=nn.BatchNorm2d(4))),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_batch_norm_of_all_kinds(name):
    through(copy.deepcopy(NORMS[name]), sample(4, 3, 6, 6))


class OldTutorial(nn.Module):
    """Iterates over sizes, as the PyTorch tutorial did for years."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.fc1 = nn.Linear(6 * 4 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = x.view(-1, self.num_flat_features(x))
        return self.fc1(x)

    def num_flat_features(self, x):
        num_features = 1
        for size in x.size()[1:]:
            num_features *= size
        return num_features


def test_sizes_may_be_iterated_over():
    through(settle(OldTutorial()), sample(4, 1, 12, 12))


def _weight_norm(model):
    model[0] = nn.utils.weight_norm(model[0])


def _pruned(model):
    prune.l1_unstructured(model[0], "weight", 0.5)


REWRITTEN = {
    "torch.fx": fx.symbolic_trace,
    "weight_norm with hooks": _weight_norm,
    "weight_norm": lambda m: parametrizations.weight_norm(m[0]),
    "spectral_norm": lambda m: parametrizations.spectral_norm(m[0]),
    "torch's pruning": _pruned,
    "stubs": lambda m: nn.Sequential(
        torch.ao.quantization.QuantStub(), m, torch.ao.quantization.DeQuantStub()
    ),
    "channels-last weights": lambda m: m.to(memory_format=torch.channels_last),
    "pickled": lambda m: pickle.loads(pickle.dumps(m)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REWRITTEN)
def test_models_that_tools_have_rewritten(name):
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()))
    made = REWRITTEN[name](model)
    check((made if type(made) in (nn.Sequential, fx.GraphModule) or "Graph" in str(type(made))
           else model).eval(), sample(4, 3, 6, 6))  # fmt: skip


class Held(nn.Module):
    """Modules in a dict, weights in a list, a property, an alias, a plain tensor attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Conv2d(3, 3, 1), "b": nn.Conv2d(3, 3, 3, padding=1)})
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(3, 3, 1, 1)) for _ in range(2)])
        self.alias = self.layers["a"]
        self.offset = torch.randn(3, 1, 1)
        self.register_buffer("mask", torch.tensor([True, False, True]).view(1, 3, 1, 1))

    @property
    def head(self):
        return self.alias

    def forward(self, x):
        for key in self.layers:
            x = self.layers[key](input=x)
        for weight in self.weights:
            x = F.relu(F.conv2d(x, weight))
        result = OrderedDict()
        result["masked"] = x * self.mask + self.offset
        result["head"] = self.head(x)
        return result


class WithSuper(nn.Conv2d):
    def forward(self, x):
        return F.relu(super().forward(x))


class ResidualSequential(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Decorated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)

    @torch.no_grad()
    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return self.conv(x) + 1


@pytest.mark.parametrize(
    "model",
    [Held(), WithSuper(3, 4, 3), ResidualSequential(nn.Conv2d(3, 3, 3, padding=1)), Decorated()],
    ids=lambda model: type(model).__name__,
)
def test_ways_to_hold_modules_and_tensors(model):
    check(settle(model), sample(4, 3, 6, 6))


def test_a_branch_that_the_samples_leave_dead_wakes_up():
    """A dead ReLU's type comes from zeros; other inputs saturate, and nothing wraps."""
    model = settle(nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU(), nn.Conv2d(1, 1, 1)))
    with torch.no_grad():
        model[0].weight.fill_(1.0)
        model[0].bias.fill_(-100.0)
        model[2].weight.fill_(1.0)
        model[2].bias.fill_(0.5)
    program = rasna.compile(model, torch.randn(4, 4, 4, 1), target="tiny")
    with program.to_runtime(objects("tiny")[0]) as runtime:
        quiet, loud = runtime(np.zeros((1, 4, 4, 1))), runtime(np.full((1, 4, 4, 1), 3.0))
    assert np.allclose(quiet, 0.5, atol=0.02) and (loud >= quiet).all()


UNREADABLE = {
    "lazy": (lambda: nn.Sequential(nn.LazyConv2d(4, 3)),
             "0.weight: is lazy and has no values; run the model once before compiling"),
    "sparse": (lambda: Net(lambda m, x: F.linear(x.flatten(1), m.w), w=torch.eye(48).to_sparse()),
               "w: is a tensor of layout torch.sparse_coo; call to_dense() on it"),
    "meta": (lambda: nn.Conv2d(3, 4, 1, device="meta"),
             "weight: is on the meta device and has no values; load it first"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREADABLE)
def test_weights_that_cannot_be_read_are_named(name):
    build, message = UNREADABLE[name]
    report = rasna.check(build().eval(), sample(2, 3, 4, 4), channel_last=False)
    assert str(report.problems[0]) == message


def test_a_dict_with_numbers_as_keys_is_refused_once():
    with pytest.raises(rasna.CompileError) as error:
        compiled(Net(lambda m, x: {0: x + 1}).eval(), sample(2, 3, 4, 4))
    assert str(error.value) == (
        "output: an output that is a dict with keys that are no strings is not supported; "
        "return computed tensors in tuples, lists, dicts, named tuples or dataclasses only"
    )


def test_state_that_changes_in_forward_is_noticed():
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    with refuses(
        rasna.CompileError,
        "output mul: the model gives values that differ by N compared with its traced "
        "operations; possible causes are random numbers or state that changes in forward; remove "
        "them before compiling",
    ):
        compiled(Counting().eval(), sample(2, 3, 4, 4))


def test_tuning_in_the_middle_of_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 2))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, weight_decay=0.1)
    x, y = torch.randn(16, 1, 5, 5), torch.randint(0, 2, (16,))

    def step() -> float:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    for _ in range(5):
        step()
    rasna.tune(model, sp=0.5, strategy="all")
    losses = [step() for _ in range(10)]
    rasna.tune(model, sp=0.75, strategy="all")
    losses += [step() for _ in range(10)]
    assert losses[-1] < losses[0]
    zeros = float((model[3].weight == 0).float().mean())
    assert abs(zeros - 0.75) < 0.01
    through_eval = model.eval()(x)
    program = rasna.compile(model, x, channel_last=False, target="tiny")
    with program.to_runtime(objects("tiny")[0]) as runtime:
        assert np.array_equal(runtime(x, channel_last=False), model(x).detach().numpy())
    assert through_eval.shape == (16, 2)
