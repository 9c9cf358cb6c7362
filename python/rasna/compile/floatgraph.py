"""The float graph: a captured model before quantisation, as plain data.

Nodes are in execution order and named after the FX nodes they come from. Parameters
are references by path (:class:`Param`), resolved against a live module when they are
needed (:func:`fetch`), so that one graph serves a model, its deep copies and its later
weights. Shapes never contain the batch dimension. This module computes nothing:
``execute.py`` runs a graph, ``lower.py`` turns it into integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
import torch

from ..graph import Padding
from ..structure import Structure

UNBOUNDED = (-math.inf, math.inf)


@dataclass(frozen=True)
class Where:
    """Where a node comes from: FX node name, module path and source line of the user's model."""

    node: str
    path: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        text = " ".join(part for part in (self.node, self.path and f"({self.path})") if part)
        line = f"{self.file}:{self.line}" if self.file else ""
        return ", ".join(part for part in (text, line) if part)


# ---- references to tensors of the model -------------------------------------------------


@dataclass(frozen=True)
class Param:
    """A parameter, buffer or tensor attribute of the model: ``layer1.0.conv1.weight``."""

    path: str


@dataclass(frozen=True, eq=False)
class Const:
    """A tensor that the model's forward creates by itself."""

    value: torch.Tensor


@dataclass(frozen=True, eq=False)
class Derived:
    """A function of references only, as ``self.mean.view(1, 3, 1, 1)``: computed when fetched."""

    function: Callable
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)


Ref = Param | Const | Derived


def fetch(root: torch.nn.Module, ref: Ref | Any) -> Any:
    """The live value behind a reference; anything that is not a reference is returned as it is."""
    if isinstance(ref, Param):
        path, _, name = ref.path.rpartition(".")
        return getattr(root.get_submodule(path), name)
    if isinstance(ref, Const):
        return ref.value
    if isinstance(ref, Derived):
        kwargs = {key: fetch(root, value) for key, value in ref.kwargs.items()}
        return ref.function(*fetch(root, ref.args), **kwargs)
    if isinstance(ref, (tuple, list)):
        return type(ref)(fetch(root, item) for item in ref)
    return ref


# ---- steps: y = a*x + b per channel ------------------------------------------------------


@dataclass(frozen=True)
class BatchNorm:
    """Normalisation with running statistics; ``path`` is the module's, empty for F.batch_norm."""

    mean: Ref
    var: Ref
    weight: Ref | None
    bias: Ref | None
    eps: float
    path: str = ""


@dataclass(frozen=True)
class Arithmetic:
    """One scalar or per-channel operand v. kind: add x+v, sub x-v, rsub v-x, mul x*v, div x/v."""

    kind: str
    operand: float | Ref


Step = BatchNorm | Arithmetic


# ---- operations --------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """Positional input number ``index`` of the model."""

    index: int


@dataclass(frozen=True)
class Conv:
    """2-d convolution, then the ``steps``, then the ``clamp``. padding_mode: zeros or circular.

    before: steps on the input's channels, where they can be folded into the weights. fixed: the
    weights are not learned, as those of an interpolation; they have 8 bits, whatever ``wb`` is.
    """

    weight: Ref
    bias: Ref | None
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    padding: Padding = Padding()
    padding_mode: str = "zeros"
    steps: tuple[Step, ...] = ()
    clamp: tuple[float, float] = UNBOUNDED
    before: tuple[Step, ...] = ()
    fixed: bool = False


@dataclass(frozen=True)
class ConvTranspose:
    """As torch.nn.ConvTranspose2d, then the ``steps``, then the ``clamp``.

    weight: (IC, OC/groups, KH, KW), or (IC, OC/groups, K) of one row.
    """

    weight: Ref
    bias: Ref | None
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    output_padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    steps: tuple[Step, ...] = ()
    clamp: tuple[float, float] = UNBOUNDED

    before = ()  # as of Conv: never folded


@dataclass(frozen=True)
class Linear:
    """Matrix product with a feature vector, then the ``steps``, then the ``clamp``.

    before: steps on the input's features, as of Conv.
    """

    weight: Ref
    bias: Ref | None
    steps: tuple[Step, ...] = ()
    clamp: tuple[float, float] = UNBOUNDED
    before: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Affine:
    """Per-channel or scalar a*x + b: the ``steps`` one after another, then the ``clamp``."""

    steps: tuple[Step, ...]
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class Sum:
    """sum of coefficients[i] * inputs[i]; inputs of shape (C, 1, 1) are broadcast."""

    coefficients: tuple[float, ...]
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class Clamp:
    """min(max(x, lo), hi): ReLU is (0, inf)."""

    clamp: tuple[float, float]


@dataclass(frozen=True)
class MaxPool:
    """As torch.nn.MaxPool2d, then the ``clamp``; the node's shape tells the output size."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    ceil_mode: bool
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class AvgPool:
    """y[i, j] = sum over rows[i] x columns[j] / (row_divisors[i] * column_divisors[j]).

    rows[i] = (first, limit) of the input rows of output row i; columns alike.
    """

    rows: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]
    row_divisors: tuple[float, ...]
    column_divisors: tuple[float, ...]
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class Concat:
    """The inputs one behind the other, then the ``clamp``.

    axis: 1 joins channels, 2 the height, 3 the width.
    """

    axis: int = 1
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True, eq=False)
class Select:
    """out[c, y*RH + i, x*RW + j] = in[channels[c, i, j], y, x], then the ``clamp``.

    channels: int array (OC, RH, RW). Slices, shuffles of channels, pixel shuffle and nearest
    upsampling; of a feature vector RH = RW = 1.
    """

    channels: np.ndarray
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True, eq=False)
class Gather:
    """out[c, y, x] = in[channels[c], rows[y], columns[x]], then the ``clamp``.

    channels, rows, columns: int arrays; where a number is -1 the pixel is ``fill``. Pads, crops,
    steps and flips of maps.
    """

    channels: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    fill: float = 0.0
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class Unshuffle:
    """As torch.nn.PixelUnshuffle: factor x factor pixels become as many channels."""

    factor: int
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class Leaky:
    """x where x >= 0, slope * x elsewhere, then the ``clamp``. slope: a number or one element."""

    slope: float | Ref
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class Curve:
    """A function of every element (:mod:`rasna.compile.curves`), then the ``clamp``."""

    function: tuple
    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class Product:
    """inputs[0] * inputs[1], then the ``clamp``; one of shape (C, 1, 1) is broadcast."""

    clamp: tuple[float, float] = UNBOUNDED


@dataclass(frozen=True)
class Reshape:
    """The same elements in the same (NCHW) order under the node's shape."""


@dataclass(frozen=True)
class Dropout:
    """Identity in eval; kept in the captured graph because training needs it."""

    p: float
    path: str = ""


@dataclass(frozen=True)
class Host:
    """A step behind the accelerator, as ``rasna.graph.HostStep``; only others like it read it.

    attributes: pairs of name and value.
    """

    kind: str
    attributes: tuple[tuple[str, Any], ...] = ()
    dtype: torch.dtype = torch.float32
    channels: bool = True


@dataclass(frozen=True)
class Opaque:
    """Something that is not supported, kept so that capture can go on and report the rest."""


FloatOp = (
    Input | Conv | ConvTranspose | Linear | Affine | Sum | Clamp | MaxPool | AvgPool | Concat
    | Select | Gather | Unshuffle | Leaky | Curve | Product | Reshape | Dropout | Host | Opaque
)


@dataclass
class Node:
    """One operation. inputs: names of nodes; shape: of the output, without the batch."""

    name: str
    op: Any  # a FloatOp; what it is, decides which attributes it has
    inputs: list[str]
    shape: tuple[int, ...]
    where: Where


@dataclass
class FloatGraph:
    """Nodes in execution order.

    outputs: names of nodes; structure, classes: how they are nested, as in
    ``rasna.graph.QuantGraph``.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    structure: Structure = 0
    classes: dict[tuple, type] = field(default_factory=dict)

    def add(self, node: Node) -> str:
        """Append a node and return its name."""
        self.nodes[node.name] = node
        return node.name

    def fresh_name(self, name: str) -> str:
        """``name`` or ``name_1``, ``name_2``, … : the first that no node has."""
        candidate, number = name, 0
        while candidate in self.nodes:
            number += 1
            candidate = f"{name}_{number}"
        return candidate

    def users(self) -> dict[str, list[str]]:
        """For every node, the names of those that read it (twice if they read it twice)."""
        result: dict[str, list[str]] = {name: [] for name in self.nodes}
        for node in self.nodes.values():
            for name in node.inputs:
                result[name].append(node.name)
        return result

    def only_user(self, name: str, users: dict[str, list[str]]) -> str | None:
        """The single reader of ``name``, None if there are more or it is also an output."""
        if name in self.outputs or len(users[name]) != 1:
            return None
        return users[name][0]

    def bypass(self, name: str) -> None:
        """Remove a node with one input; its readers read that input."""
        replacement = self.nodes.pop(name).inputs[0]
        for node in self.nodes.values():
            node.inputs = [replacement if i == name else i for i in node.inputs]
        self.outputs = [replacement if o == name else o for o in self.outputs]


def parameters(op: Any) -> list[str]:
    """Paths of all parameters that an operation (or step, or reference) refers to."""
    if isinstance(op, Param):
        return [op.path]
    if isinstance(op, Derived):
        op = [op.args, *op.kwargs.values()]
    if isinstance(op, (tuple, list)):
        return [path for item in op for path in parameters(item)]
    if is_dataclass(op):
        return parameters([getattr(op, f.name) for f in fields(op)])
    return []
