"""What every runtime does with arrays, on the golden machine: no shared object is needed."""

import warnings

import numpy as np
import pytest

from rasna.errors import (
    ClosedError,
    RasnaTypeError,
    RasnaValueError,
    SelfCheckError,
)
from rasna.golden import dequantize, quantize, run_program
from rasna.graph import FixedPoint
from rasna.runtime import BaseRuntime
from tests.messages import refuses
from tests.program.samples import S8, U8, conv_sample, identity_program

U4 = FixedPoint(4, 0, False)
SHAPE = (3, 5, 11)  # C, H, W
HWC = (5, 11, 3)


class GoldenRuntime(BaseRuntime):
    """Runs on the golden machine; counts its calls."""

    calls = 0

    def _run_words(self, words):
        self.calls += 1
        program = self.program
        return np.array([
            run_program(program.words, w, program.output_words, program.scratch_words,
                        program.target)
            for w in words
        ])

    def close(self):
        self._closed = True


@pytest.fixture(scope="module")
def identity():
    """One map in, the same out; type S8."""
    return GoldenRuntime(identity_program([("x", SHAPE, S8)]))


@pytest.fixture
def image():
    return np.random.default_rng(0).uniform(-9, 9, HWC).astype(np.float32)


def real(x, type=S8):
    return dequantize(quantize(x, type), type)


def test_floats_in_real_units_come_back_quantised(identity, image):
    y = identity(image)
    assert y.dtype == np.float32 and y.shape == HWC and y.flags.c_contiguous
    assert (y == real(image)).all()


def test_batches_have_any_length(identity, image):
    for length in (0, 1, 2, 7):
        x = np.stack([image + i for i in range(length)]) if length else np.zeros((0, *HWC))
        y = identity(x)
        assert y.shape == (length, *HWC) and y.dtype == np.float32
        assert (y == real(x)).all()


def test_a_batch_of_one_keeps_its_dimension(identity, image):
    assert identity(image[None]).shape == (1, *HWC)
    assert identity(image).shape == HWC


def test_channel_first_arrays(identity, image):
    x = image.transpose(2, 0, 1)
    y = identity(x, channel_last=False)
    assert y.shape == SHAPE and y.flags.c_contiguous
    assert (y == real(x)).all()
    assert (identity(x[None], channel_last=False) == real(x)[None]).all()


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "int64", "int8", "uint8", "int32", "uint16", "bool", ">f4"]
)
def test_any_real_dtype(identity, dtype):
    x = np.random.default_rng(1).integers(0, 8, HWC).astype(dtype)
    assert (identity(x) == real(x.astype(np.float64))).all()


def test_strides_and_read_only_arrays(identity, image):
    wide = np.repeat(image, 2, axis=1)
    wide.flags.writeable = False
    views = [wide[:, ::2], np.asfortranarray(image), image[::-1][::-1], image[..., ::-1][..., ::-1]]
    for view in views:
        before = view.copy()
        assert (identity(view) == real(image)).all()
        assert (view == before).all()


def test_lists_are_arrays(identity, image):
    assert (identity(image.tolist()) == real(image)).all()


def test_torch_tensors_without_importing_torch(identity, image):
    torch = pytest.importorskip("torch")
    tensors = [
        torch.from_numpy(image),
        torch.from_numpy(image).double().requires_grad_(),
        torch.from_numpy(image).permute(2, 0, 1).contiguous().permute(1, 2, 0),
    ]
    for tensor in tensors:
        assert (identity(tensor) == real(image)).all()
    rounded = torch.from_numpy(image).bfloat16()
    assert (identity(rounded) == real(rounded.float().numpy())).all()
    batch = torch.from_numpy(image).permute(2, 0, 1)[None].to(memory_format=torch.channels_last)
    assert (identity(batch, channel_last=False)[0] == real(image).transpose(2, 0, 1)).all()


def test_results_never_change_later(identity, image):
    first = identity(image)
    kept = first.copy()
    second = identity(image + 1)
    assert (first == kept).all() and (first != second).any()
    second[:] = 0
    assert (identity(image) == kept).all()


def test_a_result_shares_no_memory_with_the_input(identity):
    x = np.zeros(HWC, np.int8)
    y = identity(x, normalize=False)
    y[:] = 5
    assert not np.shares_memory(x, y) and (x == 0).all()


def test_packed_integers_in_and_out():
    for type in (S8, U8):
        runtime = GoldenRuntime(identity_program([("x", SHAPE, type)]))
        x = np.random.default_rng(0).integers(type.lo, type.hi + 1, HWC).astype(type.dtype)
        y = runtime(x, normalize=False)
        assert y.dtype == runtime.program.outputs[0].dtype == type.dtype
        assert (y == x).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64", "bool"])
def test_packed_integers_must_have_the_very_dtype(identity, dtype):
    with pytest.raises(RasnaTypeError) as caught:
        identity(np.zeros(HWC, dtype), normalize=False)
    assert str(caught.value) == (
        "input x: normalize=False needs int8 (program.inputs[i].dtype), "
        f"{dtype} was given; convert it, or pass real numbers with normalize=True"
    )


def test_packed_integers_must_fit_narrow_types():
    runtime = GoldenRuntime(identity_program([("x", (4,), U4)]))
    with pytest.raises(RasnaValueError) as caught:
        runtime(np.array([0, 3, 16, 1], np.uint8), normalize=False)
    assert str(caught.value) == (
        "input x: integers of type u4.0 are 0 to 15, 0 to 16 were given"
    )


def test_values_beyond_the_type_saturate(identity):
    x = np.full(HWC, 1e300)
    x[0] = -1e300
    y = identity(x, normalize=True)
    assert (y[1:] == 127 / 16).all() and (y[0] == -8).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(identity, image, bad):
    x = image.copy()
    x[0, :2, 1] = bad
    with pytest.raises(RasnaValueError) as caught:
        identity(x)
    assert str(caught.value) == (
        "input x: 2 of 165 values are NaN or infinite; only finite numbers can be quantised"
    )


WRONG_SHAPES = [
    ((4, 3, 5, 11), True, "; it looks like BCHW: pass channel_last=False"),
    ((3, 5, 11), True, "; it looks like BCHW: pass channel_last=False"),
    ((4, 5, 11, 3), False, "; it looks like BHWC: pass channel_last=True"),
    ((5, 11), True, "; 3 or 4 dimensions are needed, not 2"),
    ((1, 1, 5, 11, 3), True, "; 3 or 4 dimensions are needed, not 5"),
    ((5, 11, 4), True, ""),
    ((), True, "; 3 or 4 dimensions are needed, not 0"),
]


@pytest.mark.parametrize("shape, channel_last, hint", WRONG_SHAPES)
def test_wrong_shapes_say_what_is_needed(identity, shape, channel_last, hint):
    needed = HWC if channel_last else SHAPE
    order = "HWC" if channel_last else "CHW"
    with pytest.raises(RasnaValueError) as caught:
        identity(np.zeros(shape), channel_last=channel_last)
    assert str(caught.value) == (
        f"input x: shape (batch, {needed[0]}, {needed[1]}, {needed[2]}) or {needed} is needed "
        f"(B{order} or {order}), {shape} was given{hint}"
    )


@pytest.mark.parametrize(
    "value, message",
    [
        ("text", "floats or integers are needed, str was given"),
        (None, "floats or integers are needed, NoneType was given"),
        (np.zeros(HWC, complex), "floats or integers are needed, an array of complex128 was given"),
        (np.array([object()]), "floats or integers are needed, an array of object was given"),
    ],
)
def test_wrong_dtypes_are_refused(identity, value, message):
    with refuses(RasnaTypeError, f"input x: {message}"):
        identity(value)


def test_lists_of_different_lengths_are_refused_with_numpys_own_words(identity):
    with pytest.raises(ValueError) as own:
        np.asarray([[1], [2, 3]])
    with refuses(RasnaTypeError, f"input x: is not a rectangular array: {own.value}"):
        identity([[1], [2, 3]])


def test_the_number_of_inputs_is_checked(identity, image):
    with pytest.raises(RasnaTypeError) as caught:
        identity(image, image)
    assert str(caught.value) == "the model takes 1 inputs (x), 2 were given"


def test_feature_vectors():
    runtime = GoldenRuntime(identity_program([("f", (6,), S8)]))
    x = np.arange(12).reshape(2, 6) / 4
    for channel_last in (True, False):
        assert (runtime(x, channel_last=channel_last) == x).all()
        assert (runtime(x[1], channel_last=channel_last) == x[1]).all()
    with pytest.raises(RasnaValueError) as caught:
        runtime(np.zeros((2, 7)))
    assert str(caught.value) == (
        "input f: shape (batch, 6) or (6,) is needed, (2, 7) was given"
    )


TWO = [("a", (2, 3, 4), S8), ("b", (5,), U8)]


def test_several_inputs_and_nested_outputs():
    structure = {"dict": {"pair": {"tuple": [1, 0]}, 7: {"list": [0]}}}
    runtime = GoldenRuntime(identity_program(TWO, structure))
    a, b = np.ones((2, 3, 4, 2)), np.full((2, 5), 0.25)
    result = runtime(a, b)
    assert list(result) == ["pair", 7]
    assert isinstance(result["pair"], tuple) and isinstance(result[7], list)
    assert (result["pair"][0] == b).all() and (result["pair"][1] == a).all()
    single = runtime(a[0], b[0])
    assert single["pair"][0].shape == (5,) and single[7][0].shape == (3, 4, 2)


def test_several_inputs_must_agree_about_the_batch():
    runtime = GoldenRuntime(identity_program(TWO))
    with pytest.raises(RasnaValueError) as caught:
        runtime(np.ones((2, 3, 4, 2)), np.ones((3, 5)))
    assert str(caught.value) == (
        "all inputs must have the same batch: a (2, 3, 4, 2), b (3, 5)"
    )
    with refuses(
        RasnaValueError,
        "all inputs or none must have a batch dimension: a (2, 3, 4, 2), b (5,)",
    ):
        runtime(np.ones((2, 3, 4, 2)), np.ones(5))


def test_ambiguous_lengths_are_read_as_no_batch_when_the_shape_fits():
    runtime = GoldenRuntime(identity_program([("x", (2, 2, 2), S8)]))
    assert runtime(np.zeros((2, 2, 2))).shape == (2, 2, 2)


def test_a_closed_runtime_says_so(image):
    with GoldenRuntime(identity_program([("x", SHAPE, S8)])) as runtime:
        runtime(image)
    for use in (lambda: runtime(image), runtime.selfcheck):
        with refuses(ClosedError, "this runtime is closed; make a new one with program.to_runtime"):
            use()


def test_selfcheck_accepts_the_right_and_names_a_wrong_output():
    runtime = GoldenRuntime(conv_sample().program)
    runtime.selfcheck()
    runtime.program.selfcheck_expected[3] ^= np.uint64(1)
    with refuses(
        SelfCheckError,
        f"{runtime!r} differs from the expected output in 1 of 8 words, first in output y2, "
        "word 3; this kind of object cannot tell which layer differs first",
    ):
        runtime.selfcheck()
    runtime.program.selfcheck_expected = None
    with refuses(RasnaValueError, "the Program has no self-check; compile the model again"):
        runtime.selfcheck()


def test_long_batches_run_in_few_calls():
    runtime = GoldenRuntime(identity_program([("x", (1,), S8)]))
    x = np.arange(300).reshape(300, 1) % 100 / 16
    assert (runtime(x) == x).all()
    assert runtime.calls < 60


# ---- layouts that the shape leaves open


@pytest.mark.parametrize(
    "shape, order, given",
    [((7, 7), "BLC", "BCL"), ((6, 6, 6), "BHWC", "BCHW")],
)
def test_a_layout_that_compile_was_told_otherwise_is_asked_about(shape, order, given):
    runtime = GoldenRuntime(identity_program([("x", shape, S8)], channel_last=False))
    needed = (*shape[1:], shape[0])
    with pytest.warns(UserWarning) as found:
        runtime(np.zeros(needed))
    assert [str(w.message) for w in found] == [
        f"input x: the shape {needed} does not tell which dimension holds the channels; it is "
        f"read as {order}, while the samples of this program were {given}. Pass "
        f"channel_last=True or channel_last=False"
    ]
    assert found[0].filename == __file__


@pytest.mark.parametrize("shape", [(7, 7), (6, 6, 6)])
def test_nothing_is_asked_where_the_layout_is_given_or_the_same(shape):
    needed = np.zeros((*shape[1:], shape[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = GoldenRuntime(identity_program([("x", shape, S8)], channel_last=False))
        other(needed, channel_last=True)
        other(needed, channel_last=False)
        GoldenRuntime(identity_program([("x", shape, S8)]))(needed)
        GoldenRuntime(identity_program([("x", (5, 7), S8)], channel_last=False))(np.zeros((7, 5)))
