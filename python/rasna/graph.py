"""The quantised graph: what a model means in integers, before it is mapped to a target.

The front end (torch) makes a :class:`QuantGraph`; the torch evaluator behind
``rasna.tune``, the layer form of the golden model and the back end all read it. It is
plain data over NumPy arrays and imports no torch.

A tensor is C x H x W integers of one fixed-point type; the batch dimension never
appears. A feature vector of F numbers is a tensor of F x 1 x 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .structure import Structure


@dataclass(frozen=True)
class FixedPoint:
    """value = integer * 2**-frac, integer of ``bits`` bits (2 to 8), two's complement if signed."""

    bits: int
    frac: int
    signed: bool

    @property
    def lo(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def hi(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    @property
    def dtype(self) -> np.dtype:
        """int8 or uint8: how one integer is stored."""
        return np.dtype(np.int8 if self.signed else np.uint8)

    def __str__(self) -> str:
        return f"{'s' if self.signed else 'u'}{self.bits}.{self.frac}"


@dataclass(frozen=True)
class Tensor:
    """A quantised tensor: ``shape`` is (channels, height, width)."""

    name: str
    shape: tuple[int, int, int]
    type: FixedPoint

    @property
    def num_elems(self) -> int:
        c, h, w = self.shape
        return c * h * w


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of one value as a table behind a requantisation.

    name: in the user's words. values: int16 (256,), integers of the output's type; entry i is for
    the result whose low 8 bits are i.
    """

    name: str
    values: np.ndarray


@dataclass
class Requant:
    """Per-channel requantisation, see docs/numerics.md.

    t = saturate(acc >> pre_shift, ib);  y = clamp((t*multiplier + 2**(shift-1)) >> shift, lo, hi)

    pre_shift, multiplier, shift: int32 arrays of one entry per output channel,
    0 <= pre_shift <= 31, 1 <= multiplier <= 32767, 1 <= shift <= 31; 12 <= ib <= 24.
    curve: what y goes through; lo and hi are those of the type in front of it, then.
    """

    pre_shift: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    lo: int
    hi: int
    ib: int = 17
    curve: Curve | None = None


@dataclass(frozen=True)
class Padding:
    """Rows and columns added on each side, in pixels (0 or more)."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


@dataclass
class Op:
    """Common part. ``source`` says for messages where it comes from in the user's model.

    Arrays of the operations below are required; they default to None only because a field
    with a default precedes them.
    """

    name: str
    inputs: list[str]
    output: str
    source: str = ""


@dataclass
class Conv(Op):
    """acc = bias + sum(weight * x), then requantise. Linear layers and per-channel affines too.

    weight: int8 (OC, IC/groups, KH, KW), in +-127; bias: int32 (OC,).
    Output height = (H + top + bottom - dilation*(KH-1) - 1) // stride + 1, width alike.
    padding_mode: "zeros" or "circular". A Linear on a flattened C x H x W tensor is a
    Conv with a KH x KW = H x W kernel without padding.
    """

    weight: np.ndarray = None  # type: ignore[assignment]
    bias: np.ndarray = None  # type: ignore[assignment]
    requant: Requant = None  # type: ignore[assignment]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    padding: Padding = Padding()
    padding_mode: str = "zeros"


@dataclass
class Sum(Op):
    """acc = bias + sum over inputs i of coefficients[i] * x_i, element by element, then requantise.

    All inputs have the output's shape, or shape (C, 1, 1) and are broadcast over H and W.
    The same tensor may appear more than once. coefficients: integers, at most 1024 in
    magnitude (larger than 127: several taps). bias: int32 (C,). With one input this is a
    change of type.
    """

    coefficients: list[int] = field(default_factory=list)
    bias: np.ndarray = None  # type: ignore[assignment]
    requant: Requant = None  # type: ignore[assignment]


@dataclass
class Product(Sum):
    """y = clamp((x*g + 2**(shift-1)) >> shift, lo, hi), then the curve; x, g: the two inputs.

    Shapes are those of a Sum. The machine sums x + 512*g and takes the two apart, so that
    coefficients are [1, 512] and bias is 0; of ``requant`` only shift, lo, hi and curve count.
    """


@dataclass
class MaxPool(Op):
    """Maximum over a window, clamped to lo..hi (a following ReLU or clamp, in the same type).

    Padded positions never win. ``out_hw`` is explicit, so that ceil_mode needs no rule here:
    windows may reach beyond the padded input on the bottom and right; what lies outside
    does not count. Every window holds at least one real pixel.
    """

    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: Padding = Padding()
    out_hw: tuple[int, int] = (1, 1)
    lo: int = -128
    hi: int = 255


@dataclass
class AvgPool(Op):
    """acc = sum of a window, then requantised by the entry of the window.

    rows[i] = (first, limit): input rows of output row i; columns alike; never empty. ``requant``
    has one entry per distinct window: ``requant_index[i, j]`` (int, OH x OW) chooses it for
    output pixel (i, j). It is the same for all channels.
    """

    rows: list[tuple[int, int]] = field(default_factory=list)
    columns: list[tuple[int, int]] = field(default_factory=list)
    requant: Requant = None  # type: ignore[assignment]
    requant_index: np.ndarray = None  # type: ignore[assignment]


@dataclass
class Select(Op):
    """Channels of the inputs in other places: cat, slices, shuffles, nearest upsampling.

    All inputs have H x W pixels; their channels, one input behind the other, are numbered from
    0 on. channels: int (OC, RH, RW) of such numbers:
    out[c, y*RH + i, x*RW + j] = pixel (y, x) of channel ``channels[c, i, j]``, requantised (the
    accumulator is the pixel). channels[c, i] lie in one input. ``requant`` has one entry per input.
    """

    channels: np.ndarray = None  # type: ignore[assignment]
    requant: Requant = None  # type: ignore[assignment]


@dataclass
class Gather(Op):
    """Pixels in other places: pads, crops, steps and flips, maps joined along height or width.

    The inputs, all of the output's type, lie one behind the other along ``axis`` (1: height,
    2: width) and agree in the other two sizes. channels, rows, columns: int arrays of the
    output's sizes, numbers in what is joined so:
    out[c, y, x] = joined[channels[c], rows[y], columns[x]], or ``fill`` (an integer of the type)
    where one of the three is -1, clamped to lo..hi.
    """

    channels: np.ndarray = None  # type: ignore[assignment]
    rows: np.ndarray = None  # type: ignore[assignment]
    columns: np.ndarray = None  # type: ignore[assignment]
    axis: int = 1
    fill: int = 0
    lo: int = -128
    hi: int = 255


AnyOp = Conv | Sum | Product | MaxPool | AvgPool | Select | Gather


@dataclass(frozen=True)
class Port:
    """An input or output as the user sees it.

    shape: without the batch dimension, in PyTorch's order: (C, H, W), or any shape with the
    same number of elements in the same (NCHW) order, as (F,) after flatten.
    """

    name: str
    tensor: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class HostStep:
    """A step behind the accelerator, which the runtime computes in NumPy (``golden/host.py``).

    Attributes
    ----------
    name, kind : str
    source : str
        Name of the output port, or of the step before, that it reads.
    shape : tuple of int
        Of the result, without the batch, in PyTorch's order.
    dtype : "float32" or "int64"
    channels : bool
        Whether dimension 1 of the result (batch first) holds channels, so that it is the last one
        of a user with ``channel_last``.
    attributes : dict
        Arguments of the kind.
    """

    name: str
    kind: str
    source: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    channels: bool = True
    attributes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        arguments = "".join(f", {key}={value}" for key, value in self.attributes.items())
        sizes = "x".join(map(str, self.shape)) or "1"
        return f"{self.name} {sizes} {self.dtype} = {self.kind}({self.source}{arguments})"


@dataclass
class QuantGraph:
    """Operations in execution order; every tensor is written by one operation or is an input.

    outputs: what the accelerator computes. host_steps: what is made of it in NumPy, in order.
    results: what the model returns, names of outputs and steps; without steps the outputs.

    structure: how the results are nested: an int (index into ``results``) or containers of the
    same, see ``rasna.structure``. classes: the user's classes of the records in it, by
    ``structure.record_key``, for results in the process of the model; no file holds them.
    """

    tensors: dict[str, Tensor]
    inputs: list[Port]
    outputs: list[Port]
    ops: list[AnyOp]
    structure: Structure = 0
    classes: dict[tuple, type] = field(default_factory=dict)
    host_steps: list[HostStep] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.host_steps and not self.results:
            self.results = [port.name for port in self.outputs]
