"""Arguments of tune: every valid range, and the whole message for what is not."""

import pytest
import torch
from torch import nn

from rasna.errors import RasnaError
from rasna.tune.settings import Settings, check_arguments
from tests.messages import refuses

DEFAULTS = {"sp": 0.8, "ab": 8, "wb": 8, "ib": 17, "chpad": True, "strategy": "auto"}


def check(model=None, **changes):
    model = nn.Conv2d(1, 1, 1) if model is None else model
    return check_arguments(model, **{**DEFAULTS, **changes})


def test_defaults():
    assert check() == Settings(0.8, 8, 8, 17, True, "auto")


@pytest.mark.parametrize(
    "changes",
    [{"sp": 0}, {"sp": 0.0}, {"sp": 0.99}, {"ab": 2}, {"ab": 8}, {"wb": 2}, {"ib": 12}]
    + [{"ib": 24}, {"chpad": False}, {"strategy": "all"}],
)  # fmt: skip
def test_the_ends_of_every_range_are_accepted(changes):
    ((name, value),) = changes.items()
    assert getattr(check(**changes), name) == value


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"sp": 1}, ValueError, "sp (fraction of zero weights) must be 0 <= sp < 1, 1 was given"),
        ({"sp": -1}, ValueError, "sp (fraction of zero weights) must be 0 <= sp < 1, -1 was given"),
        (
            {"sp": float("nan")},
            ValueError,
            "sp (fraction of zero weights) must be 0 <= sp < 1, nan was given",
        ),
        (
            {"sp": "0.5"},
            TypeError,
            "sp (fraction of zero weights) must be a number with 0 <= sp < 1, '0.5' was given",
        ),
        (
            {"sp": True},
            TypeError,
            "sp (fraction of zero weights) must be a number with 0 <= sp < 1, True was given",
        ),
        ({"ab": 1}, ValueError, "ab (bits of an activation) must be 2 to 8, 1 was given"),
        ({"ab": 9}, ValueError, "ab (bits of an activation) must be 2 to 8, 9 was given"),
        ({"wb": 16}, ValueError, "wb (bits of a weight) must be 2 to 8, 16 was given"),
        (
            {"wb": 4.0},
            TypeError,
            "wb (bits of a weight) must be an integer from 2 to 8, 4.0 was given",
        ),
        (
            {"ib": 11},
            ValueError,
            "ib (bits of an intermediate value) must be 12 to 24, 11 was given",
        ),
        (
            {"ib": 25},
            ValueError,
            "ib (bits of an intermediate value) must be 12 to 24, 25 was given",
        ),
        ({"chpad": 1}, TypeError, "chpad must be True or False, 1 was given"),
        ({"strategy": "al"}, ValueError, "strategy must be 'auto' or 'all', 'al' was given"),
        ({"strategy": []}, ValueError, "strategy must be 'auto' or 'all', [] was given"),
    ],
)
def test_other_values_are_refused_with_what_is_allowed(changes, kind, message):
    with pytest.raises(kind) as error:
        check(**changes)
    assert str(error.value) == f"tune: {message}"
    assert isinstance(error.value, RasnaError)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (torch.zeros(2), "tune: model must be a torch.nn.Module, Tensor was given"),
        (
            nn.Conv2d,
            "tune: model must be a torch.nn.Module object, the class Conv2d was given; "
            "make an object of it first",
        ),
        (
            nn.DataParallel(nn.Conv2d(1, 1, 1)),
            "tune: the model is wrapped by DataParallel; tune the plain model first and wrap it "
            "afterwards",
        ),
    ],
)
def test_what_is_no_plain_module_is_refused(model, message):
    with pytest.raises(RasnaError) as error:
        check(model)
    assert str(error.value) == message


def test_a_compiled_module_is_refused():
    with refuses(
        RasnaError,
        "tune: the model is wrapped by torch.compile; tune the plain model first and wrap it "
        "afterwards",
    ):
        check(torch.compile(nn.Conv2d(1, 1, 1)))
