"""Partial models: until= names the module or node whose result is computed (until.py)."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rasna
from rasna.errors import CompileError, RasnaTypeError, RasnaValueError
from tests.compile.support import evaluate, sample, settle, snr_db
from tests.messages import refuses


class Tower(nn.Module):
    """A trunk that compiles, a head that does not, one module used twice, one not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.layer1 = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(inplace=True))
        self.layer2 = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())
        self.relu = nn.ReLU()
        self.aux = nn.Linear(4, 2)
        self.spare = nn.Conv2d(3, 3, 1)
        self.alias = self.layer2

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.layer1(x)
        side = torch.sigmoid(self.aux(x.mean((2, 3))))
        x = self.layer2(x)
        x = self.relu(x - 0.5)
        if side.sum() > 0:
            x = F.gelu(x)
        return torch.softmax(x.mean((2, 3)), 1), side


def compiled(model, x, until, **options):
    return rasna.compile(model, x, channel_last=False, target="tiny", until=until, **options)


def quant(model, x, until):
    from rasna.compile.pipeline import quantize_model
    from rasna.compile.settings import Settings

    return quantize_model(model, [x], Settings(), until).quant_graph


def value_at(model, x, path):
    kept = []
    hook = model.get_submodule(path).register_forward_hook(lambda m, a, y: kept.append(y.clone()))
    with torch.no_grad():
        model(x)
    hook.remove()
    return kept[0].numpy()


@pytest.mark.parametrize("until", ["conv1", "layer1", "layer1.0", "layer2", "alias", "aux"])
def test_the_result_is_the_output_of_the_module(until):
    model, x = settle(Tower()), sample(4, 3, 6, 6)
    graph = quant(model, x, until)
    (got,) = evaluate(graph, x)
    assert snr_db(value_at(model, x, until), got) > 28
    assert compiled(model, x, until).outputs[0].shape == got.shape[1:]


def test_an_fx_node_is_named_as_in_messages():
    model, x = settle(Tower()), sample(4, 3, 6, 6)
    (got,) = evaluate(quant(model, x, "sub"), x)
    assert snr_db(value_at(model, x, "layer2") - 0.5, got) > 28


def test_several_names_give_a_tuple():
    program = compiled(settle(Tower()), sample(4, 3, 6, 6), ["layer1", "layer2"])
    assert [port.shape for port in program.outputs] == [(4, 6, 6)] * 2
    assert program.structure == {"tuple": [0, 1]}


def test_a_module_with_several_results_keeps_their_structure():
    class Two(nn.Module):
        def forward(self, x):
            return {"a": x + 1, "b": (x * 2,)}

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.two = Two()

        def forward(self, x):
            return torch.sigmoid(self.two(x)["a"])

    program = compiled(Model().eval(), sample(4, 3, 6, 6), "two")
    assert program.structure == {"dict": {"a": 0, "b": {"tuple": [1]}}}


def test_an_inplace_operation_behind_the_module_does_not_reach_back():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 1)

        def forward(self, x):
            return torch.sigmoid(self.conv(x).relu_())

    model, x = settle(Model()), sample(4, 3, 6, 6)
    (got,) = evaluate(quant(model, x, "conv"), x)
    assert got.min() < -0.1


def test_the_same_program_as_the_trunk_alone():
    model, x = settle(Tower()), sample(4, 3, 6, 6)
    trunk = nn.Sequential(model.conv1, model.relu, model.layer1, model.layer2).eval()
    whole = rasna.compile(trunk, x, channel_last=False, target="tiny")
    part = compiled(model, x, "layer2")
    assert np.array_equal(whole.words, part.words)


def test_a_tuned_model_keeps_its_own_eval():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU())
    x = sample(4, 3, 8, 8)
    rasna.tune(model, sp=0, ab=6, strategy="all", chpad=False).eval()
    program = compiled(model, x, "1")
    assert program.inputs[0].type.bits == 6
    with torch.no_grad():
        assert model(x).shape == (4, 4, 4, 4)


WRONG = {
    "unknown": (
        "layer3",
        "until='layer3' is neither a module nor an FX node of Tower; "
        "did you mean 'layer2' or 'layer1' or 'layer2.1'?",
    ),
    "the last part of a path": (
        "0",
        "until='0' is neither a module nor an FX node of Tower; "
        "did you mean 'layer1.0' or 'layer2.0'?",
    ),
    "nothing like it": (
        "backbone",
        "until='backbone' is neither a module nor an FX node of Tower; "
        "give one of 'conv1', 'relu', 'layer1', 'aux', 'layer2'",
    ),
    "not called": (
        "spare",
        "until='spare' is a module that the forward of Tower does not call; "
        "give one of 'conv1', 'relu', 'layer1', 'aux', 'layer2'",
    ),
    "called twice": (
        "relu",
        "until='relu': the module is called 2 times; "
        "give the node of one of the calls: relu, relu_1",
    ),
    "empty": (
        "",
        "until='' is neither a module nor an FX node of Tower; "
        "give one of 'conv1', 'relu', 'layer1', 'aux', 'layer2'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_names(name):
    until, message = WRONG[name]
    for function in (rasna.compile, rasna.check):
        with pytest.raises(RasnaValueError) as error:
            function(settle(Tower()), sample(2, 3, 6, 6), channel_last=False, until=until)
        assert str(error.value) == message


@pytest.mark.parametrize("until", [3, [], [1], {"conv1"}])
def test_wrong_types(until):
    with pytest.raises(RasnaTypeError) as error:
        compiled(settle(Tower()), sample(2, 3, 6, 6), until)
    assert str(error.value) == (
        "until must be a module path or the name of an FX node, or a list of them, "
        f"{until!r} was given"
    )


def test_what_is_not_supported_before_the_cut_is_reported():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.LPPool2d(2, 1)
            self.conv = nn.Conv2d(3, 4, 1)

        def forward(self, x):
            return torch.softmax(self.conv(self.act(x)), 1)

    with pytest.raises(CompileError) as error:
        compiled(settle(Model()), sample(2, 3, 4, 4), "conv")
    assert [p.node for p in error.value.problems] == ["act"]


def test_a_trace_that_ends_before_the_cut_says_why():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 1)

        def forward(self, x):
            for row in x:
                x = row
            return self.conv(x)

    with refuses(
        CompileError,
        "Model cannot be compiled for tiny, 1 problem:\n"
        "  test_until.py:N: iterating over a traced tensor is not supported; loop over a constant "
        "number of times or over modules",
    ) as error:
        compiled(settle(Model()), sample(2, 3, 4, 4), "conv")
    assert error.value.problems[0].line == Model.forward.__code__.co_firstlineno + 1


def test_hooks_on_the_way_are_compiled_or_noticed():
    model, x = settle(Tower()), sample(4, 3, 6, 6)
    model.layer1.register_forward_hook(lambda m, a, y: y * 2)  # traced as the rest
    (got,) = evaluate(quant(model, x, "layer2"), x)
    assert snr_db(value_at(model, x, "layer2"), got) > 28
    model.conv1.register_forward_hook(lambda m, a, y: y * 2)  # of a layer: not traced
    for until, output in (("layer2", "layer2_0"), ("sub", "sub")):
        with refuses(
            CompileError,
            "Tower cannot be compiled for tiny, 1 problem:\n"
            f"  output {output}: the model gives values that differ by N compared with its traced "
            "operations; possible causes are hooks or a replaced forward of conv1, layer1; remove "
            "them before compiling",
        ):
            compiled(model, x, until)
    model = settle(Tower())
    model.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
    with refuses(
        CompileError,
        "Tower cannot be compiled for tiny, 1 problem:\n"
        "  the model: hooks or a replaced forward cannot be checked with until='sub', which is no "
        "module; remove them, or give a module path",
    ):
        compiled(model, x, "sub")
    with refuses(
        CompileError,
        "Tower cannot be compiled for tiny, 1 problem:\n"
        "  output layer2_0: the model gives values that differ by N compared with its traced "
        "operations; possible causes are hooks or a replaced forward of the model; remove them "
        "before compiling",
    ):
        compiled(model, x, "layer2")


def test_random_numbers_before_a_node_are_noticed():
    class Model(nn.Module):
        def forward(self, x):
            return torch.sigmoid((x + torch.rand(1)) * 2)

    with refuses(
        CompileError,
        "Model cannot be compiled for tiny, 1 problem:\n"
        "  output add: the model gives values that differ by N compared with its traced "
        "operations; possible causes are random numbers or state that changes in forward; remove "
        "them before compiling",
    ):
        compiled(Model().eval(), sample(2, 3, 4, 4), "mul")
