"""Roots that are one layer, wrappers with ``*args``, and outputs in records: to the simulator."""

from __future__ import annotations

import collections
import copy
import pickle
from dataclasses import dataclass, fields, make_dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

import rasna
from tests.compile.support import Net, compiled, sample, settle
from tests.kinds.test_neighbours import through
from tests.messages import refuses
from tests.networks.check import objects

# ---- a root that is a leaf

LEAVES = {
    "linear": (nn.Linear(19, 10), (19,)),
    "convolution": (nn.Conv2d(3, 5, 3, padding=1), (3, 6, 7)),
    "1-d convolution": (nn.Conv1d(4, 6, 3, 2, 1), (4, 12)),
}


@pytest.mark.parametrize("name", LEAVES)
def test_a_layer_that_is_tuned_by_itself_trains_and_equals_the_runtime(name):
    layer, shape = LEAVES[name]
    model, x = copy.deepcopy(layer), sample(4, *shape)
    rasna.tune(model, sp=0.5, strategy="all")
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    model.train()(x).square().mean().backward()
    optimiser.step()
    program = rasna.compile(model.eval(), x, channel_last=False, target="tiny")
    with torch.no_grad(), program.to_runtime(objects("tiny")[0]) as runtime:
        want = model(x)
        assert np.array_equal(runtime(x, channel_last=False), want)
        plain = type(model).forward(model, x)
    assert float((want - plain).abs().max()) < 0.1 * float(plain.abs().max())
    twin = pickle.loads(pickle.dumps(model))
    assert torch.equal(twin(x), want)


def test_a_layer_with_the_wrong_input_is_refused_once():
    model = rasna.tune(nn.Linear(19, 10), strategy="all").eval()
    with refuses(
        rasna.CompileError,
        "linear: PyTorch cannot compute this for inputs of the shapes (2, 18) (mat1 and mat2 "
        "shapes cannot be multiplied (2x18 and 19x10)); check the samples and channel_last",
    ):
        model(torch.randn(3, 18))


def test_what_pytorch_says_is_cut_where_it_is_long():
    def forward(m, x):
        raise ValueError("many words " * 100)

    with pytest.raises(rasna.CompileError) as error:
        rasna.compile(Net(forward).eval(), sample(2, 3, 4, 4), channel_last=False)
    assert len(str(error.value)) < 400 and "many words..." in str(error.value)


def test_a_parametrised_root_has_a_name():
    with refuses(
        rasna.TuneError,
        "tune: the weight of the model (ParametrizedLinear) is parametrised; call "
        "torch.nn.utils.parametrize.remove_parametrizations(layer, 'weight') first",
    ):
        rasna.tune(parametrizations.weight_norm(nn.Linear(4, 3)))


# ---- wrappers


class Wrapper(nn.Module):
    """As many libraries write it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


class Pairs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x, y):
        return self.conv(x) - self.conv(y)


@pytest.mark.parametrize("wrap", [Wrapper, torch.optim.swa_utils.AveragedModel])
def test_wrappers_with_any_arguments_compile_and_tune(wrap):
    conv = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    through(settle(wrap(conv)), sample(4, 3, 6, 6))
    through(settle(wrap(Pairs())), sample(4, 3, 6, 6), sample(4, 3, 6, 6, seed=2))


def test_an_average_of_a_tuned_model_compiles_and_equals_it():
    model = rasna.tune(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), sp=0, strategy="all")
    average = torch.optim.swa_utils.AveragedModel(model)
    x = sample(4, 1, 6, 6)
    average.update_parameters(model)
    program = rasna.compile(average.eval(), x, channel_last=False, target="tiny")
    with program.to_runtime(objects("tiny")[0]) as runtime:
        assert np.array_equal(runtime(x, channel_last=False), average(x).detach())


# ---- records as outputs

Point = collections.namedtuple("Point", "map mean")


class Typed(NamedTuple):
    map: torch.Tensor
    mean: torch.Tensor | None = None


@dataclass
class Data:
    map: torch.Tensor
    mean: torch.Tensor | None = None


@dataclass
class Output(collections.OrderedDict):
    """As ModelOutput of transformers: a dict of the fields that are not None, and attributes."""

    map: torch.Tensor | None = None
    loss: torch.Tensor | None = None
    mean: torch.Tensor | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)


class Heads(nn.Module):
    def __init__(self, kind) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.kind = kind

    def forward(self, x):
        y = F.relu(self.conv(x))
        return self.kind(map=y, mean=y.mean((2, 3)))


@pytest.mark.parametrize("kind", [Point, Typed, Data, Output])
def test_a_record_stays_one(kind, tmp_path):
    x = sample(3, 3, 6, 6)
    model = rasna.tune(settle(Heads(kind)).train(), sp=0, strategy="all")
    assert type(model(x)) is kind
    program = rasna.compile(model.eval(), x, channel_last=False, target="tiny")
    want = model(x)
    assert type(want) is kind
    program.save(tmp_path / "model.rasna")
    program = rasna.load(tmp_path / "model.rasna")
    with program.to_runtime(objects("tiny")[0]) as runtime:
        got = runtime(x, channel_last=False)
    assert type(got).__name__ == kind.__name__
    again = pickle.loads(pickle.dumps(got))
    for record in (got, again):
        assert np.array_equal(record.map, want.map) and np.array_equal(record.mean, want.mean)
    if isinstance(want, tuple):
        assert got._fields == want._fields and got[1] is got.mean
        first, second = got
        assert second is got.mean
    if kind is Output:
        assert list(got) == list(want) == ["map", "mean"] and got["mean"] is got[1]
        assert got.to_tuple()[0] is got.map


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = Heads(Point)

    def forward(self, x):
        point = self.heads(x)
        return {"inner": Typed(point.map + 1), "all": [Data(point, point.mean), None]}


def test_records_lie_in_one_another_and_none_stays_none():
    x = sample(3, 3, 6, 6)
    model = settle(Nested())
    program = rasna.compile(model, x, channel_last=False, target="tiny")
    assert program.structure == {
        "dict": {
            "inner": {"namedtuple": ["Typed", {"map": 0, "mean": None}]},
            "all": {"list": [
                {"dataclass": ["Data", {
                    "map": {"namedtuple": ["Point", {"map": 1, "mean": 2}]}, "mean": 3,
                }]},
                None,
            ]},
        }
    }  # fmt: skip
    with program.to_runtime(objects("tiny")[0]) as runtime:
        got = runtime(x, channel_last=False)
    assert got["inner"].mean is None and got["all"][1] is None
    assert np.array_equal(got["all"][0].mean, got["all"][0].map.mean)


def test_until_a_module_that_returns_a_record_gives_its_tensors():
    x = sample(3, 3, 6, 6)
    for kind in (Point, Data):
        model = settle(nn.Sequential(Heads(kind)))
        program = rasna.compile(model, x, channel_last=False, target="tiny", until="0")
        assert [port.shape for port in program.outputs] == [(4, 4, 4), (4,)]


def test_a_record_with_names_that_a_file_cannot_hold_is_refused():
    Hidden = make_dataclass("Hidden", ["__map"])
    model = settle(Net(lambda m, x: Hidden(m.conv(x)), conv=nn.Conv2d(3, 4, 1)))
    with refuses(
        rasna.CompileError,
        "output: an output of the class Hidden is not supported; give the class and its fields "
        "names that do not begin with underscores",
    ):
        compiled(model, sample(2, 3, 4, 4))
