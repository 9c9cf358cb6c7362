"""Scales of a model in training: learned now and then, by the compiler's own type rules.

The types of stored tensors are chosen anew in steps 0, 1, 2, 4, 8, …, then every
``INTERVAL`` steps, from a sample of the values of the last few such steps. Between them
a training step pays for the quantisation only. Only the types (no values) are kept in copies.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from torch import nn

from ..compile import floatgraph as fg
from ..compile.calibrate import fronts, nonnegative_nodes, product_type, type_for
from ..compile.quantize import choose_weight_scale, clamp_limits, weight_limit
from ..compile.weights import FIXED_BITS
from ..graph import FixedPoint
from .settings import Settings

INTERVAL = 64  # steps between two choices of the types
SAMPLE = 4096  # values of a tensor that take part in one choice
MEMORY = 4  # choices whose values are remembered

Scale = tuple[float, int, int]


def _sample(y: torch.Tensor) -> torch.Tensor:
    """About SAMPLE values spread over a tensor, and its extremes. float32 on the CPU."""
    flat = y.detach().reshape(-1)
    stride = max(1, flat.numel() // SAMPLE) | 1  # odd: visits every column of a map
    lo, hi = torch.aminmax(flat)
    return torch.cat([flat[::stride], lo.reshape(1), hi.reshape(1)]).float().cpu()


class Observers:
    """Types of all stored tensors of one model, by the name of their node.

    Attributes
    ----------
    types : chosen so far; ``rasna.compile`` overwrites them.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.types: dict[str, FixedPoint] = {}
        self.nonnegative_inputs: dict[int, bool] = {}
        self.restart()

    def restart(self) -> None:
        """Choose all types anew, from the next step on."""
        self.steps, self._due, self._learning = 0, 0, False
        self._seen: dict[str, deque[torch.Tensor]] = {}
        self._scales: dict[str, Scale] = {}
        self._weight_scales: dict[str, torch.Tensor] = {}
        self._nonnegative: dict[str, bool] = {}
        self._fronts: dict[str, fg.Curve] = {}
        self._inputs: dict[str, list[str]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {k: self.__dict__[k] for k in ("settings", "types", "nonnegative_inputs")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.restart()

    def start_step(
        self, graph: fg.FloatGraph, root: nn.Module, inputs: tuple[torch.Tensor, ...]
    ) -> None:
        """Call before every training step."""
        self._learning = self.steps >= self._due
        if self._learning:
            self._due = self.steps + max(1, min(self.steps, INTERVAL))
            if self.steps <= INTERVAL:  # the model changes fast: what was seen is out of date
                self._seen.clear()
            for i, x in enumerate(inputs):
                positive = bool((x >= 0).all())
                self.nonnegative_inputs[i] = positive and self.nonnegative_inputs.get(i, True)
            known = [self.nonnegative_inputs[i] for i in range(len(inputs))]
            self._fronts = fronts(graph)
            self._inputs = {n.name: n.inputs for n in graph.nodes.values()}
            with torch.no_grad():
                self._nonnegative = nonnegative_nodes(graph, root, known)
        self.steps += 1

    def activation(self, node: fg.Node, y: torch.Tensor) -> Scale:
        """(integers per unit, lowest, highest integer) for the output of a node, clamp included."""
        scale = self._scales.get(node.name)
        if scale is None or self._learning:
            scale = self._scales[node.name] = self._learn(node, y)
        return scale

    def _learn(self, node: fg.Node, y: torch.Tensor) -> Scale:
        clamp = getattr(node.op, "clamp", fg.UNBOUNDED)
        seen = self._seen.setdefault(node.name, deque(maxlen=MEMORY))
        values = _sample(y).clamp_(*clamp)
        if bool(torch.isfinite(values).all()):  # a step that diverged teaches nothing
            seen.append(values)
        kind = self.types.get(node.name)
        if seen or kind is None:
            known = torch.cat(list(seen)) if seen else torch.zeros(1)
            nonnegative = self._nonnegative.get(node.name, False)
            kind = type_for(node.name, known, self.settings.ab, nonnegative, self._fronts)
        if isinstance(node.op, fg.Product):
            kind = self._product_type(node, kind)
        self.types[node.name] = kind
        lo, hi = clamp_limits(kind, clamp)
        return 2.0**kind.frac, lo, hi

    def _product_type(self, node: fg.Node, kind: FixedPoint) -> FixedPoint:
        """What the compiler makes of the type of a product: it depends on those of its operands."""
        operands = []
        for name in node.inputs:
            while name not in self.types and self._inputs.get(name):
                name = self._inputs[name][0]  # what keeps its input's type
            if name in self.types:
                operands.append(self.types[name])
        return product_type(kind, *operands) if len(operands) == 2 else kind

    def weight(self, node: fg.Node, weight: torch.Tensor) -> tuple[torch.Tensor, int]:
        """(integers per unit of the weight, largest integer) of a Conv or Linear.

        The compiler's choice for the layer's own weight, without what follows it: of one
        weight, training and compiler make the same integers. Shape (OC, 1, …), float32.
        """
        bits = FIXED_BITS if getattr(node.op, "fixed", False) else self.settings.wb
        scale = self._weight_scales.get(node.name)
        if scale is None or self._learning or scale.device != weight.device:
            scale = self._weight_scale(weight, bits)
            self._weight_scales[node.name] = scale
        return scale, weight_limit(bits)

    def _weight_scale(self, weight: torch.Tensor, bits: int) -> torch.Tensor:
        scale = choose_weight_scale(weight, bits)
        empty = ~weight.detach().flatten(1).any(1)
        if bool(empty.any()):  # zeros that may grow: the range of the others, or +-1
            known = scale[~empty]
            others = known.min() if len(known) else scale.new_tensor(weight_limit(bits))
            scale = torch.where(empty, others, scale)
        return scale.view(-1, *[1] * (weight.dim() - 1))
