"""Collect everything that is wrong with a model, and say it all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import CompileError
from .floatgraph import Where

OUTSIDE = "end the compiled model before it and apply it in PyTorch"
"""The remedy for what stays in PyTorch; capture says where to end (:func:`ended_before`)."""

AT_INPUT = "apply it to the input in PyTorch and compile what follows"

_NORM = "use nn.BatchNorm2d, whose running statistics are constants, and train it again"
_DTYPE = "leave it out: the compiler chooses the types of all tensors"
_NUMBER = "keep the computation on tensors"

# Remedies by lower-case name of a function, method or module. Other names: OUTSIDE.
_REMEDIES: dict[str, str] = {
    "glu": "use a * torch.sigmoid(b) of the halves a, b = x.chunk(2, 1)",
    **dict.fromkeys(
        ("lppool1d", "lppool2d", "lp_pool1d", "lp_pool2d"),
        "it takes powers and roots; use nn.AvgPool2d or nn.MaxPool2d and train it again",
    ),
    "select": "use x[:, 2] for channel 2 and so on",
    "unbind": "use x[:, 0], x[:, 1] and so on",
    **dict.fromkeys(
        ("movedim", "moveaxis"),
        "only channels can be moved; give and take channel-last arrays with channel_last=True "
        "instead",
    ),
    **dict.fromkeys(
        ("repeat", "tile"),
        "use torch.cat([x, x], 1) for channels, and F.interpolate(x, size=(height, width)) where "
        "the map is one pixel",
    ),
    "repeat_interleave": "use F.interpolate(x, scale_factor=2), which repeats pixels",
    **dict.fromkeys(("half", "double", "bfloat16"), _DTYPE),
    **dict.fromkeys(
        ("vstack", "dstack"), "join along the channels with torch.cat(…, 1)",
    ),
    **dict.fromkeys(
        ("groupnorm", "layernorm", "instancenorm2d", "group_norm", "layer_norm",
         "instance_norm", "localresponsenorm", "local_response_norm", "instancenorm1d",
         "rmsnorm", "rms_norm"),
        _NORM,
    ),
    **dict.fromkeys(("item", "tolist", "numpy"), _NUMBER),
}


def remedy_for(name: str) -> str:
    """What to do instead of the operation ``name``."""
    return _REMEDIES.get(name.lower().strip("_"), OUTSIDE)


def first_line(error: BaseException, limit: int = 200) -> str:
    """The first line of what another library says, cut at ``limit`` characters."""
    return shorten(str(error), limit) or type(error).__name__


def shorten(text: str, limit: int = 200) -> str:
    """The first line of a text, cut at ``limit`` characters."""
    line = (text.splitlines() or [""])[0]
    return line if len(line) <= limit else line[: limit - 3] + "..."


def ended_before(remedy: str, until: Sequence[str] | None) -> str:
    """A remedy whose OUTSIDE names the place.

    until: what to pass as ``until=`` so that the model ends there; none if only inputs of the
    model come before it; None where it is not known.
    """
    if until is None:
        return remedy
    if not until:
        return remedy.replace(OUTSIDE, AT_INPUT)
    name = repr(until[0]) if len(until) == 1 else repr(list(until))
    place = f"end the compiled model before it, until={name}, and apply it in PyTorch"
    return remedy.replace(OUTSIDE, place)


@dataclass(frozen=True)
class Problem:
    """One thing that cannot be compiled.

    Attributes
    ----------
    place : str
        Where, as messages say it: ``conv2 (layer1.0.conv2), net.py:31``. Empty for the whole model.
    reason, remedy : str
        What is not possible, and what to do instead.
    node, path, file, line : str, str, str, int
        FX node, path of the module, file name and line of the user's source; empty or 0 where
        there is none.
    """

    place: str
    reason: str
    remedy: str
    node: str = ""
    path: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        start = f"{self.place}: " if self.place else ""
        return f"{start}{self.reason}; {self.remedy}"


class Problems:
    """A list of complaints that ends in one :class:`CompileError`."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def __len__(self) -> int:
        return len(self.found)

    @property
    def lines(self) -> list[str]:
        """The text of every problem."""
        return [str(problem) for problem in self.found]

    def add(self, where: Where | str, what: str, remedy: str) -> None:
        """``where: what; remedy``; the same one is kept once."""
        if isinstance(where, Where):
            problem = Problem(
                str(where), what, remedy, where.node, where.path, where.file, where.line
            )
        else:
            problem = Problem(where, what, remedy)
        if str(problem) not in self.lines:
            self.found.append(problem)

    def extend(self, others: Iterable[Problem]) -> None:
        """Add what is not there yet."""
        self.found += [p for p in others if str(p) not in self.lines]

    def text(self) -> str:
        """One line per problem, with a heading if there are several."""
        if len(self.found) == 1:
            return self.lines[0]
        heading = f"the model cannot be compiled, {len(self.found)} problems:"
        return "\n  ".join([heading, *self.lines])

    def raise_if_any(self) -> None:
        """Raise CompileError with all lines, if there are any."""
        if self.found:
            raise CompileError(self.text(), tuple(self.found))


def problems_of(error: CompileError) -> tuple[Problem, ...]:
    """The problems of an error; one made from its text if it carries none."""
    if error.problems:
        return error.problems
    place, colon, rest = str(error).partition(": ")
    if not colon or " " in place:  # a sentence with a colon in it
        place, rest = "", str(error)
    reason, _, remedy = rest.rpartition("; ")
    return (Problem(place, reason or rest, remedy if reason else "change the model"),)


class Refusal(Exception):
    """Raised inside an operator handler: what is not supported and what to do instead."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
