"""rasna.compile as users call it: arguments, Program, and its instructions against the graph."""

import numpy as np
import pytest
import torch
from torch import nn

import rasna
from rasna.compile.backend import build_image
from rasna.errors import CompileError, RasnaTypeError
from rasna.targets import get_target
from tests.compile.support import compiled, sample, settle
from tests.messages import refuses
from tests.networks.check import objects


def net() -> nn.Module:
    return settle(
        nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(36, 5),
        )  # fmt: skip
    )


def bhwc(x: torch.Tensor) -> np.ndarray:
    return x.permute(0, 2, 3, 1).numpy()


def test_channel_last_is_the_default_and_both_orders_give_the_same_program():
    x = sample(2, 3, 6, 6)
    last = rasna.compile(net(), bhwc(x), target="tiny")
    first = rasna.compile(net(), x, channel_last=False, target="tiny")
    third = rasna.compile(net(), x, False, target="tiny")
    assert np.array_equal(last.words, first.words)
    assert np.array_equal(last.words, third.words)
    assert last.inputs[0].shape == (3, 6, 6) and last.outputs[0].shape == (5,)


def test_the_program_is_the_quantised_graph_for_the_target():
    x = sample(2, 3, 6, 6)
    program = rasna.compile(net(), bhwc(x), target="tiny")
    image = build_image(compiled(net(), x), get_target("tiny"))
    assert program.target == "tiny"
    assert np.array_equal(program.words, image.words)


def test_wrappers_and_double_models_compile():
    x = bhwc(sample(2, 3, 6, 6))
    words = rasna.compile(net(), x, target="tiny").words
    for model in (torch.compile(net()), nn.DataParallel(net()).eval(), net().double()):
        assert np.array_equal(rasna.compile(model, x, target="tiny").words, words)


def test_wrong_arguments():
    x = bhwc(sample(2, 3, 6, 6))
    with pytest.raises(CompileError) as error:
        rasna.compile(net().train(), x)
    assert str(error.value) == (
        "Sequential cannot be compiled for pynq-z2, 1 problem:\n"
        "  the model is in training mode; call model.eval() first"
    )
    with refuses(RasnaTypeError, "compile needs one sample array per model input, none was given"):
        rasna.compile(net())
    with refuses(
        ValueError, "target 'pink' is unknown; the targets are tiny, small, pynq-z2, kv260"
    ):
        rasna.compile(net(), x, target="pink")
    with refuses(
        CompileError,
        "Sequential cannot be compiled for pynq-z2, 1 problem:\n"
        "  _0 (0): PyTorch cannot compute this for inputs of the shapes (2, 6, 6, 3) (Given "
        "groups=1, weight of size [4, 3, 3, 3], expected input[2, 6, 6, 3] to have 3 "
        "channels, but got 6 channels instead); the 3 channels that it needs come last in "
        "the samples: pass channel_last=True\n"
        "5 of 6 operations can be compiled\n"
        "to split the model:\n"
        "  PyTorch: _0 (0)\n"
        "  compile: 5 operations, _1 (1) to _5 (5), as a module of its own",
    ):
        rasna.compile(net(), x, channel_last=False)


def test_a_tuned_model_carries_its_bits_and_is_frozen():
    x = sample(4, 3, 6, 6)
    model = rasna.tune(net().train(), sp=0.5, ab=5, wb=4, ib=20, strategy="all")
    model(x)
    program = rasna.compile(model.eval(), bhwc(x), target="tiny")
    assert program.inputs[0].type.bits == 5
    graph = model._rasna_tune._frozen[1]
    assert {t.type.bits for t in graph.tensors.values()} == {5}
    assert {op.requant.ib for op in graph.ops if hasattr(op, "requant")} == {20}


class Normalized(nn.Module):
    """Bytes of photographs to mean 0 and deviation 1, then one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([123.7, 116.3, 103.5]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([58.4, 57.1, 57.4]).view(3, 1, 1))
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)

    def forward(self, x):
        return self.conv((x - self.mean) / self.std)


@pytest.mark.parametrize("target, size", [("tiny", 101), ("pynq-z2", 101), ("pynq-z2", 224)])
def test_photographs_of_usual_sizes_are_normalised_by_the_program(target, size):
    generator = np.random.default_rng(0)
    photos = generator.integers(0, 256, (1, size, size, 3), np.uint8)
    program = rasna.compile(settle(Normalized()), photos, target=target)
    assert str(program.inputs[0].type) == "u8.0"
    with program.to_runtime(objects(target)[0]) as runtime:
        runtime.selfcheck()
        direct = runtime(photos, normalize=False)
        assert np.array_equal(direct * np.float32(2.0 ** -program.outputs[0].type.frac),
                              runtime(photos))  # fmt: skip
