"""Collect everything that is wrong with a model, and say it all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import CompileError
from .floatgraph import Where

SUPPORTED = (
    "supported are Conv2d, Conv1d, Linear, BatchNorm, ReLU, ReLU6, Hardtanh, clamp, LeakyReLU, "
    "PReLU, Hardsigmoid, max and average pooling, mean over H and W, cat, chunk and shuffles of "
    "channels, nearest upsampling, pixel shuffle, flatten, Dropout, add, sub and scalar or "
    "per-channel arithmetic"
)

_OUTSIDE = "end the compiled model before it and apply it in PyTorch"
_RELU = "use ReLU or ReLU6 and fine-tune"

# Remedies by lower-case name of a function, method or module.
_REMEDIES: dict[str, str] = {
    **dict.fromkeys(
        ("sigmoid", "tanh", "softmax", "log_softmax", "logsoftmax", "softmax2d", "argmax",
         "normalize", "topk", "softmin", "logsigmoid", "lstm", "gru", "rnn", "lstmcell", "grucell",
         "multiheadattention", "scaled_dot_product_attention", "embedding", "matmul", "bmm",
         "einsum", "bilinear", "exp", "log", "sqrt", "rsqrt", "pow", "square", "sin", "cos", "std",
         "var", "norm", "sort", "argmin", "where", "grid_sample"),
        _OUTSIDE,
    ),
    **dict.fromkeys(
        ("gelu", "silu", "mish", "elu", "selu", "celu", "softplus", "rrelu"),
        _RELU,
    ),
    "hardswish": f"it multiplies two computed values; {_RELU}",
    **dict.fromkeys(
        ("convtranspose1d", "conv_transpose1d", "convtranspose2d", "conv_transpose2d"),
        f"{_OUTSIDE}, or compile the parts before and after it separately",
    ),
    **dict.fromkeys(
        ("stack", "vstack", "dstack"), "join along the channels with torch.cat(…, 1)",
    ),
    **dict.fromkeys(
        ("pad", "zeropad2d", "circularpad2d", "constantpad2d", "reflectionpad2d"),
        "use the padding argument of the convolution or pooling behind it",
    ),
    **dict.fromkeys(
        ("groupnorm", "layernorm", "instancenorm2d", "group_norm", "layer_norm",
         "instance_norm", "localresponsenorm"),
        "use BatchNorm2d, whose running statistics are constants",
    ),
    "item": "keep the computation on tensors",
    "tolist": "keep the computation on tensors",
    "numpy": "keep the computation on tensors",
}


def remedy_for(name: str) -> str:
    """What to do instead of the operation ``name``."""
    return _REMEDIES.get(name.lower(), SUPPORTED)


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
