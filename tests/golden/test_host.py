"""Host steps (golden/host.py) are PyTorch's within float32 rounding, indices exactly."""

import numpy as np
import pytest
import torch

from rasna.compile.execute import HOST
from rasna.golden.host import INDICES, KINDS, run_step, run_steps
from rasna.graph import HostStep

SHAPES = [(10,), (5, 7), (3, 4, 6)]


def attributes_of(kind: str, shape: tuple[int, ...]) -> list[dict]:
    axes = range(1, len(shape) + 1)
    return {
        "softmax": [{"axis": a} for a in axes],
        "log_softmax": [{"axis": a} for a in axes],
        "argmax": [{"axis": a, "keepdim": k} for a in axes for k in (False, True)],
        "argmin": [{"axis": a, "keepdim": k} for a in axes for k in (False, True)],
        "normalize": [{"axis": a, "eps": 1e-12} for a in axes],
        "scale": [{"factor": -0.3, "offset": 0.7}],
        "reshape": [{"shape": (int(np.prod(shape)),)}],
        "take": [{"channels": (2, 0, 2)}],
    }.get(kind, [{}])


def values(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Integers of 8 bits over 16: some are equal, some are 0, as in outputs."""
    integers = np.random.default_rng(seed).integers(-128, 128, (6, *shape))
    return (integers / 16).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_step_gives_what_pytorch_gives(kind, shape):
    x = values(shape, seed=len(shape))
    for attributes in attributes_of(kind, shape):
        want = HOST[kind](torch.from_numpy(x), **attributes)
        result = KINDS[kind].shape(shape, **attributes)
        dtype = "int64" if kind in INDICES else "float32"
        step = HostStep("y", kind, "x", result, dtype, True, attributes)
        got = run_step(step, x)
        assert got.dtype == dtype and got.shape[1:] == result == tuple(want.shape[1:])
        if kind in INDICES:
            assert np.array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=3e-7)
        assert KINDS[kind].accepts(attributes, shape)


@pytest.mark.parametrize("kind", ["exp", "log", "softmax", "sigmoid", "tanh", "softplus"])
def test_a_step_is_right_at_the_ends_of_the_range(kind):
    x = np.array([[0.0, -0.0, 1e-30, 88.0, 100.0, -100.0, 200.0, -1e4, 1e4, -1.0]], np.float32)
    attributes = attributes_of(kind, (10,))[0]
    want = HOST[kind](torch.from_numpy(x), **attributes).numpy()
    got = run_step(HostStep("y", kind, "x", (10,), "float32", True, attributes), x)
    finite = np.isfinite(want)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.array_equal(got[~finite & ~np.isnan(want)], want[~finite & ~np.isnan(want)])
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-6, atol=1e-37)


def test_equal_values_give_the_first_index():
    x = np.array([[1, 3, 3, 0, 0]], np.float32)
    for kind, index in (("argmax", 1), ("argmin", 3)):
        step = HostStep("y", kind, "x", (), "int64", False, {"axis": 1, "keepdim": False})
        assert run_step(step, x).tolist() == [index]


def test_steps_follow_one_another_and_leave_their_inputs_alone():
    x = values((4,), seed=1)
    before = x.copy()
    steps = [
        HostStep("p", "softmax", "x", (4,), "float32", True, {"axis": 1}),
        HostStep("q", "scale", "p", (4,), "float32", True, {"factor": 2.0, "offset": -1.0}),
        HostStep("i", "argmax", "q", (), "int64", False, {"axis": 1, "keepdim": False}),
    ]
    q, i, same = run_steps(steps, ["q", "i", "x"], {"x": x})
    assert np.array_equal(i, x.argmax(1)) and same is x and np.array_equal(x, before)
    np.testing.assert_allclose(q, 2 * torch.softmax(torch.from_numpy(x), 1) - 1, atol=3e-7)
