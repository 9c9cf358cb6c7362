"""The arguments of compile: models, samples, modes (samples.py)."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import rasna
from rasna.compile.samples import check_mode, check_samples, to_cpu_float32, unwrap
from rasna.errors import CompileError, RasnaTypeError, RasnaValueError
from tests.compile.support import Net, sample, settle
from tests.messages import refuses, whole

# ---- samples


@pytest.mark.parametrize(
    "x",
    [
        np.arange(24, dtype=np.uint8).reshape(1, 2, 3, 4),
        np.arange(24, dtype=np.float16).reshape(1, 2, 3, 4),
        np.arange(24.0).reshape(1, 2, 3, 4).tolist(),
        torch.arange(24).reshape(1, 2, 3, 4),
        torch.arange(24.0, requires_grad=True).reshape(1, 2, 3, 4),
        torch.arange(24.0, dtype=torch.float64).reshape(1, 2, 3, 4),
    ],
    ids=["uint8", "float16", "list", "int64", "grad", "double"],
)
def test_samples_become_float32_in_nchw_order(x):
    (last,) = check_samples([x], True)
    assert last.shape == (1, 4, 2, 3) and last.dtype == torch.float32
    assert last[0, 1, 0, 2] == 9  # element (y 0, x 2, channel 1)
    (first,) = check_samples([x], False)
    assert first.shape == (1, 2, 3, 4) and first[0, 1, 0, 2] == 14


def test_feature_vectors_and_strided_arrays():
    x = np.arange(40.0).reshape(4, 10)[:, ::2]
    (got,) = check_samples([x], True)
    assert got.is_contiguous() and got[1].tolist() == [10, 12, 14, 16, 18]


def test_sequences_have_their_channels_last_or_second():
    x = np.arange(24.0).reshape(2, 4, 3)
    (last,), (second,) = check_samples([x], True), check_samples([x], False)
    assert last.is_contiguous() and last.shape == (2, 3, 4)
    assert last[1, 2].tolist() == [14, 17, 20, 23]
    assert second.shape == (2, 4, 3) and second[1, 2].tolist() == [18, 19, 20]


ADDS_CHANNELS = {
    "unsqueeze": lambda m, x: m.conv(x.unsqueeze(1)),
    "getitem": lambda m, x: m.conv(x[:, None]),
    "view": lambda m, x: m.conv(x.view(-1, 1, 20, 8) if x.shape[1] == 20 else
                                x.view(-1, 1, 8, 20)),
}  # fmt: skip


@pytest.mark.parametrize("name", ADDS_CHANNELS)
def test_samples_to_which_the_model_adds_channels_have_none_last(name):
    model = settle(Net(ADDS_CHANNELS[name], conv=nn.Conv2d(1, 4, 3)))
    x = torch.randn(4, 20, 8)
    with pytest.raises(CompileError) as error:
        rasna.compile(model, x, target="tiny")
    (problem,) = error.value.problems
    assert whole(str(problem)) == (
        f"{name}, test_samples.py:N: the model adds the channels of input x here, so "
        "that none can be last in its samples (batch, 20, 8); pass channel_last=False to compile "
        "and to the runtime, which leaves the dimensions in the order of the model"
    )
    program = rasna.compile(model, x, channel_last=False, target="tiny")
    assert program.inputs[0].shape == (20, 8)


def test_sequences_with_channels_last_are_no_maps_without_channels():
    for function in (lambda m, x: m.conv(x), lambda m, x: m.conv(x).unsqueeze(1)):
        model = settle(Net(function, conv=nn.Conv1d(8, 4, 3)))
        assert rasna.compile(model, torch.randn(4, 20, 8), target="tiny").inputs[0].shape == (8, 20)


def test_samples_are_copies():
    x = torch.ones(2, 3)
    (got,) = check_samples([x], True)
    got.zero_()
    assert x.all()


NAN = torch.tensor([[1.0, float("nan")], [float("inf"), 2.0]])
WRONG = {
    "none": ((), True, "compile needs one sample array per model input, none was given"),
    "rank 5": (
        (np.zeros((2, 8, 8, 3, 1)),), True,
        "sample 0 must be (batch, H, W, C), (batch, L, C) or (batch, features), its shape is "
        "(2, 8, 8, 3, 1); add the batch dimension if it is missing",
    ),
    "rank 1, channel first": (
        (np.zeros(3),), False,
        "sample 0 must be (batch, C, H, W), (batch, C, L) or (batch, features), its shape is (3,); "
        "add the batch dimension if it is missing",
    ),
    "empty": ((np.zeros((0, 3)),), True, "sample 0 is empty, its shape is (0, 3)"),
    "NaN": (
        (torch.ones(2, 2), NAN), True,
        "sample 1 holds 2 values that are NaN or infinite in float32; remove them",
    ),
    "too large": (
        (np.full((1, 2), 1e300),), True,
        "sample 0 holds 2 values that are NaN or infinite in float32; remove them",
    ),
    "text": (
        (np.array([["a"]]),), True, "sample 0 must be an array of real numbers, its dtype is <U1",
    ),
    "complex": (
        (torch.ones(2, 2, dtype=torch.complex64),), True,
        "sample 0 must be an array of real numbers, its dtype is complex",
    ),
    "different batches": (
        (np.ones((2, 3)), np.ones((4, 3))), True,
        "all samples must have the same batch size, their batch sizes are 2, 4",
    ),
    "flag": ((np.ones((2, 3)),), "yes", "channel_last must be True or False, 'yes' was given"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_samples(name):
    samples, channel_last, message = WRONG[name]
    with pytest.raises((RasnaTypeError, RasnaValueError)) as error:
        check_samples(samples, channel_last)
    assert str(error.value) == message


# ---- models


def test_wrappers_are_taken_off():
    model = nn.Linear(2, 2)
    assert unwrap(nn.DataParallel(model)) is model
    assert unwrap(model) is model


def test_a_compiled_module_is_taken_off():
    model = nn.Linear(2, 2)
    try:
        compiled = torch.compile(model)
    except RuntimeError as error:
        pytest.skip(f"PyTorch {torch.__version__}: {error}")
    assert unwrap(compiled) is model


def test_what_is_no_module():
    with pytest.raises(RasnaTypeError) as error:
        unwrap(nn.Linear)
    assert str(error.value) == "the model must be a torch.nn.Module, type was given"


@pytest.mark.filterwarnings("ignore")
def test_scripted_modules_are_refused():
    with refuses(
        RasnaTypeError,
        "the model is a TorchScript module, whose source cannot be traced; give the nn.Module "
        "that it was made from",
    ):
        unwrap(torch.jit.script(nn.Linear(2, 2)))


def test_training_mode_is_refused():
    with pytest.raises(CompileError) as error:
        check_mode(nn.Sequential(nn.Linear(2, 2)))
    assert str(error.value) == "the model is in training mode; call model.eval() first"
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2))).eval()
    model[1][0].train()
    with pytest.raises(CompileError) as error:
        check_mode(model)
    assert str(error.value) == (
        "1.0: in training mode within a model in eval mode; "
        "call model.eval() on the whole model first"
    )


def test_weights_without_values_are_refused():
    with refuses(
        CompileError,
        "the model cannot be compiled, 2 problems:\n"
        "  weight: is on the meta device and has no values; load it first\n"
        "  bias: is on the meta device and has no values; load it first",
    ):
        check_mode(nn.Linear(2, 2, device="meta").eval())
    model = nn.Linear(2, 2).eval()
    model.weight.data[0, 1] = float("nan")
    with pytest.raises(CompileError) as error:
        check_mode(model)
    assert str(error.value) == (
        "weight: 1 of 4 values are NaN or infinite; repair the training or the checkpoint"
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_dtypes_are_copied_to_float32(dtype):
    model = nn.Linear(2, 2).to(dtype)
    plain = to_cpu_float32(model)
    assert plain is not model and plain.weight.dtype == torch.float32
    assert model.weight.dtype == dtype
    assert torch.equal(plain.weight, model.weight.float())


def test_a_float32_model_is_used_as_it_is():
    model = nn.Linear(2, 2)
    assert to_cpu_float32(model) is model
    assert sample(1, 2).shape == (1, 2)


# ---- layouts that the shape leaves open


AMBIGUOUS = {
    "sequence": (
        (4, 16, 16),
        "sample 0: the shape (4, 16, 16) does not tell which dimension holds the channels; it is "
        "read as (batch, L, C). Pass channel_last=True if that is right, channel_last=False for "
        "(batch, C, L)",
    ),
    "map": (
        (4, 8, 5, 8),
        "sample 0: the shape (4, 8, 5, 8) does not tell which dimension holds the channels; it is "
        "read as (batch, H, W, C). Pass channel_last=True if that is right, channel_last=False "
        "for (batch, C, H, W)",
    ),
}


def identity(shape: tuple[int, ...]) -> nn.Module:
    kind = nn.Conv1d if len(shape) == 3 else nn.Conv2d
    return nn.Sequential(kind(shape[-1], 2, 1)).eval()


@pytest.mark.parametrize("name", AMBIGUOUS)
@pytest.mark.parametrize("function", [rasna.compile, rasna.check])
def test_a_shape_that_fits_both_layouts_is_asked_about(name, function):
    shape, message = AMBIGUOUS[name]
    with pytest.warns(UserWarning) as found:
        function(identity(shape), torch.randn(shape))
    assert [str(w.message) for w in found] == [message]
    assert found[0].filename == __file__


@pytest.mark.parametrize("shape", [(4, 16, 16), (4, 8, 5, 8)])
@pytest.mark.parametrize("channel_last", [True, False])
def test_nothing_is_asked_where_the_argument_is_given(shape, channel_last):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rasna.compile(identity(shape), torch.randn(shape), channel_last=channel_last)
        rasna.compile(identity(shape), torch.randn(shape), channel_last)


@pytest.mark.parametrize("shape", [(4, 16, 15), (4, 8, 8, 5), (4, 1, 1), (4, 16)])
def test_nothing_is_asked_about_other_shapes(shape):
    model = nn.Linear(16, 2) if len(shape) == 2 else identity(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rasna.compile(model.eval(), torch.randn(shape))
