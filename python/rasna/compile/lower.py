"""From the float graph and types to the quantised graph.

Reshapes vanish here: a node's *logical* shape is what the user's model sees, its tensor's
shape is how it is stored, with the same elements in the same order. A Linear on a
flattened map is a convolution with a kernel as large as the map.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from .. import graph as qg
from ..graph import FixedPoint, Padding, QuantGraph, Tensor
from . import floatgraph as fg
from . import lower_moves as moves
from . import lower_pointwise as pointwise
from . import lower_transposed as transposed
from .execute import layer_parameters, per_channel
from .problems import Problems, Refusal
from .quantize import clamp_limits
from .settings import Settings
from .weights import (
    FIXED_BITS,
    Quantized,
    plan_sum,
    quantize_affine,
    quantize_average,
    quantize_convolution,
    quantize_sum,
)

MAX_FLATTEN = 4096  # features of a flatten that needs an operation of its own


def lower(
    graph: fg.FloatGraph, root: torch.nn.Module, types: dict[str, FixedPoint], settings: Settings
) -> QuantGraph:
    """The quantised graph of a simplified float graph.

    Parameters
    ----------
    graph : after :func:`rasna.compile.passes.simplify`
    root : the module that the graph's references belong to
    types : type of every node's output, see :func:`rasna.compile.calibrate.choose_types`
    settings : bits of weights and intermediates

    Raises
    ------
    CompileError
        With one line per node that has no integer form.
    """
    problems = Problems()
    with torch.no_grad():
        result = _Lowering(graph, root, types, settings, problems).run()
    problems.raise_if_any()
    return result


class _Lowering:
    """``tensor_of`` maps the name of a float node to the name of the tensor that holds it."""

    def __init__(self, graph, root, types, settings: Settings, problems: Problems) -> None:
        self.float = graph
        self.root = root
        self.types = types
        self.settings = settings
        self.problems = problems
        self.quant = QuantGraph({}, [], [], [], graph.structure, graph.classes)
        self.tensor_of: dict[str, str] = {}
        self.made: dict[tuple, str] = {}  # conversions that exist already

    def run(self) -> QuantGraph:
        for node in self.float.nodes.values():
            try:
                self._node(node)
            except Refusal as refusal:
                self.problems.add(node.where, refusal.what, refusal.remedy)
                self._tensor(node, _stored_shape(node.shape), self.types[node.name])
        self._outputs()
        return self.quant

    def _node(self, node: fg.Node) -> None:
        handlers = {
            fg.Input: self._input,
            fg.Conv: self._conv,
            fg.ConvTranspose: partial(transposed.lower, self),
            fg.Linear: self._linear,
            fg.Affine: self._affine,
            fg.Sum: self._sum,
            fg.Clamp: self._clamp,
            fg.MaxPool: self._max_pool,
            fg.AvgPool: self._avg_pool,
            fg.Reshape: self._reshape,
            fg.Concat: partial(moves.concat, self),
            fg.Select: partial(moves.select, self),
            fg.Gather: partial(moves.gather, self),
            fg.Unshuffle: partial(moves.unshuffle, self),
            fg.Leaky: partial(moves.leaky, self),
            fg.Curve: partial(pointwise.curve, self),
            fg.Product: partial(pointwise.product, self),
            fg.Host: lambda node: None,  # see _outputs
        }
        handlers[type(node.op)](node)

    # ---- tensors

    def _tensor(self, node: fg.Node, shape: tuple[int, ...], type: FixedPoint) -> str:
        channels, height, width = shape
        self.quant.tensors[node.name] = Tensor(node.name, (channels, height, width), type)
        self.tensor_of[node.name] = node.name
        return node.name

    def _stored(self, name: str) -> Tensor:
        """The tensor of a float node, however it is stored."""
        return self.quant.tensors[self.tensor_of[name]]

    def _as_logical(self, name: str) -> Tensor:
        """The tensor of a float node stored in its logical shape, converted if necessary."""
        stored, logical = self._stored(name), self.float.nodes[name].shape
        wanted = _stored_shape(logical)
        if stored.shape == wanted:
            return stored
        if stored.num_elems > MAX_FLATTEN:
            raise Refusal(
                f"a map of shape {stored.shape} that is used with the shape {logical} "
                f"is not supported",
                "keep (channels, height, width) until a linear layer or the output",
            )
        node = self.float.nodes[name]
        if stored.shape[1:] != (1, 1):
            stored = self._flatten(stored, node)
        return stored if wanted[1:] == (1, 1) else moves.unflatten(self, stored, wanted, node)

    def _flatten(self, stored: Tensor, node: fg.Node) -> Tensor:
        """(C, H, W) to (C*H*W, 1, 1): a convolution that picks one pixel per output channel."""
        key = ("flatten", stored.name)
        if key not in self.made:
            features = stored.num_elems
            identity = np.eye(features).reshape(features, *stored.shape)
            made = quantize_convolution(
                identity, np.zeros(features), stored.type, stored.type, fg.UNBOUNDED, self.settings
            )
            name = self._extra_name(f"{stored.name}_flat")
            self.quant.tensors[name] = Tensor(name, (features, 1, 1), stored.type)
            self._append_conv(name, stored.name, name, str(node.where), made)
            self.made[key] = name
        return self.quant.tensors[self.made[key]]

    def _extra_name(self, name: str) -> str:
        while name in self.quant.tensors or name in self.float.nodes:
            name += "_"
        return name

    def _append_conv(self, name, source, output, where, made: Quantized, **attributes) -> None:
        self.quant.ops.append(
            qg.Conv(
                name, [source], output, where, weight=made.weight, bias=made.bias,
                requant=made.requant, **attributes,
            )  # fmt: skip
        )

    # ---- operations

    def _input(self, node: fg.Node) -> None:
        shape = _stored_shape(self._input_shape(node))
        self._tensor(node, shape, self.types[node.name])
        self.quant.inputs.append(qg.Port(node.name, node.name, node.shape))

    def _input_shape(self, node: fg.Node) -> tuple[int, ...]:
        """Inputs that are no maps and that the model only reads as one are stored as that map."""
        readers = [self.float.nodes[name] for name in self.float.users()[node.name]]
        shapes = {reader.shape for reader in readers}
        if len(shapes) == 1 and all(isinstance(r.op, fg.Reshape) for r in readers):
            shape = shapes.pop()
            if len(node.shape) < 3 and len(shape) == 3:
                return shape
        return node.shape

    def _reshape(self, node: fg.Node) -> None:
        self.tensor_of[node.name] = self.tensor_of[node.inputs[0]]

    def _conv(self, node: fg.Node) -> None:
        op, source = node.op, self._as_logical(node.inputs[0])
        weight, factor, bias = (p.numpy() for p in layer_parameters(self.root, op))
        settings = replace(self.settings, wb=FIXED_BITS) if op.fixed else self.settings
        made = quantize_convolution(
            weight, bias, source.type, self.types[node.name], op.clamp, settings, factor
        )
        self._tensor(node, node.shape, self.types[node.name])
        self._append_conv(
            node.name, source.name, node.name, str(node.where), made, stride=op.stride,
            dilation=op.dilation, groups=op.groups, padding=op.padding,
            padding_mode=op.padding_mode,
        )  # fmt: skip

    def _linear(self, node: fg.Node) -> None:
        op, source = node.op, self._stored(node.inputs[0])
        weight, factor, bias = (p.numpy() for p in layer_parameters(self.root, op))
        weight = weight.reshape(len(weight), *source.shape)
        made = quantize_convolution(
            weight, bias, source.type, self.types[node.name], op.clamp, self.settings, factor
        )
        self._tensor(node, (len(weight), 1, 1), self.types[node.name])
        self._append_conv(node.name, source.name, node.name, str(node.where), made)

    def _affine(self, node: fg.Node) -> None:
        op, source = node.op, self._stored(node.inputs[0])
        a, b = (p.numpy() for p in per_channel(self.root, op.steps, node.shape[0]))
        if source.shape[0] != node.shape[0]:
            if len({*a}) == 1 and len({*b}) == 1:  # a scalar: any shape will do
                a, b = np.full(source.shape[0], a[0]), np.full(source.shape[0], b[0])
            else:
                source = self._as_logical(node.inputs[0])
        made = quantize_affine(
            a, b, source.type, self.types[node.name], op.clamp, self.settings.ib
        )
        self._tensor(node, source.shape, self.types[node.name])
        self._append_conv(
            node.name, source.name, node.name, str(node.where), made, groups=source.shape[0]
        )

    def _sum(self, node: fg.Node) -> None:
        sources = [self._stored(name) for name in node.inputs]
        if len({s.shape for s in sources}) > 1:
            sources = [self._as_logical(name) for name in node.inputs]
        self._append_sum(node, sources, list(node.op.coefficients), node.op.clamp)

    def _clamp(self, node: fg.Node) -> None:
        self._append_sum(node, [self._stored(node.inputs[0])], [1.0], node.op.clamp)

    def _append_sum(self, node, sources: list[Tensor], coefficients, clamp) -> None:
        acc_frac, terms = plan_sum([s.type.frac for s in sources], coefficients)
        sources = [
            source if term.frac == source.type.frac else self._coarser(source, term.frac, node)
            for source, term in zip(sources, terms, strict=True)
        ]
        shape = max((s.shape for s in sources), key=math.prod)
        made = quantize_sum(
            acc_frac, terms, [s.type for s in sources], shape[0], self.types[node.name], clamp,
            self.settings.ib,
        )  # fmt: skip
        self._tensor(node, shape, self.types[node.name])
        self.quant.ops.append(
            qg.Sum(
                node.name, [s.name for s in sources], node.name, str(node.where),
                coefficients=[t.coefficient for t in terms], bias=made.bias, requant=made.requant,
            )  # fmt: skip
        )

    def _coarser(self, source: Tensor, frac: int, node: fg.Node) -> Tensor:
        """``source`` with fewer fraction bits, for a sum with a much coarser operand."""
        return self._retyped(source, replace(source.type, frac=frac), node, "_coarse")

    def _retyped(self, source: Tensor, type: FixedPoint, node: fg.Node, suffix: str) -> Tensor:
        """``source`` in another type, by an operation of its own."""
        key = ("type", source.name, type)
        if key not in self.made:
            acc_frac, terms = plan_sum([source.type.frac], [1.0])
            made = quantize_sum(
                acc_frac, terms, [source.type], source.shape[0], type, fg.UNBOUNDED,
                self.settings.ib,
            )  # fmt: skip
            name = self._extra_name(f"{source.name}{suffix}")
            self.quant.tensors[name] = Tensor(name, source.shape, type)
            self.quant.ops.append(
                qg.Sum(
                    name, [source.name], name, str(node.where), coefficients=[1],
                    bias=made.bias, requant=made.requant,
                )  # fmt: skip
            )
            self.made[key] = name
        return self.quant.tensors[self.made[key]]

    def _max_pool(self, node: fg.Node) -> None:
        op, source = node.op, self._as_logical(node.inputs[0])
        self._tensor(node, node.shape, source.type)
        (ph, pw), (lo, hi) = op.padding, clamp_limits(source.type, op.clamp)
        self.quant.ops.append(
            qg.MaxPool(
                node.name, [source.name], node.name, str(node.where), kernel=op.kernel,
                stride=op.stride, dilation=op.dilation, padding=Padding(ph, ph, pw, pw),
                out_hw=(node.shape[1], node.shape[2]), lo=lo, hi=hi,
            )  # fmt: skip
        )

    def _avg_pool(self, node: fg.Node) -> None:
        op, source = node.op, self._as_logical(node.inputs[0])
        counts = [np.array([limit - first for first, limit in w]) for w in (op.rows, op.columns)]
        windows = np.stack(
            [np.outer(*counts), np.outer(op.row_divisors, op.column_divisors)], axis=-1
        )
        distinct, index = np.unique(windows.reshape(-1, 2), axis=0, return_inverse=True)
        try:
            made = quantize_average(
                distinct[:, 0], distinct[:, 1], source.type, self.types[node.name], op.clamp,
                self.settings.ib,
            )  # fmt: skip
        except OverflowError as error:
            raise Refusal(
                str(error), "make the map smaller first, as with nn.AvgPool2d(2)"
            ) from error
        self._tensor(node, node.shape, self.types[node.name])
        self.quant.ops.append(
            qg.AvgPool(
                node.name, [source.name], node.name, str(node.where), rows=list(op.rows),
                columns=list(op.columns), requant=made.requant,
                requant_index=np.asarray(index, np.int64).reshape(windows.shape[:2]),
            )  # fmt: skip
        )

    # ---- outputs

    def _outputs(self) -> None:
        """Ports of what the accelerator computes, and the host steps behind them."""
        self.taken = {port.name for port in self.quant.inputs}
        self.quant.results = []
        ports: dict[str, str] = {}  # float node to what holds it
        hosts = [n for n in self.float.outputs if isinstance(self.float.nodes[n].op, fg.Host)]
        for name in self.float.outputs:
            if name not in hosts:
                ports[name] = self._port(name)
            self.quant.results.append(ports.get(name, name))
        for name in dict.fromkeys(hosts):  # behind, so that they share the ports of outputs
            step = self._host_step(name, ports)
            self.quant.results = [step if r == name else r for r in self.quant.results]

    def _free_name(self, name: str) -> str:
        """The FX node's name for a port or step, with what makes it the only one."""
        free = self.float.nodes[name].where.node or name
        free = name if free in self.taken else free
        while free in self.taken:
            free += "_out"
        self.taken.add(free)
        return free

    def _port(self, name: str) -> str:
        port = qg.Port(self._free_name(name), self.tensor_of[name], self.float.nodes[name].shape)
        self.quant.outputs.append(port)
        return port.name

    def _host_step(self, name: str, made: dict[str, str]) -> str:
        """The name of the step of a float node; it and what it reads are made where necessary."""
        node = self.float.nodes[name]
        if name not in made and not isinstance(node.op, fg.Host):
            made[name] = self._port(name)
        elif name not in made:
            source = self._host_step(node.inputs[0], made)
            op, made[name] = node.op, self._free_name(name)
            self.quant.host_steps.append(
                qg.HostStep(
                    made[name], op.kind, source, node.shape, str(op.dtype).partition(".")[2],
                    op.channels, dict(op.attributes),
                )  # fmt: skip
            )
        return made[name]


def _stored_shape(logical: tuple[int, ...]) -> tuple[int, int, int]:
    """(C, H, W) as it is, (C, L) as one row; everything else as features."""
    if len(logical) == 3:
        return (logical[0], logical[1], logical[2])
    if len(logical) == 2:
        return (logical[0], 1, logical[1])
    return (math.prod(logical), 1, 1)
