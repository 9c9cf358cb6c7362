"""What an operator handler may see of a capture and do to its graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import floatgraph as fg
from .operators import Value
from .problems import Refusal

REFERENCES = (fg.Param, fg.Const, fg.Derived)


class Context:
    """What a handler may use: the graph so far, the real result, the live tensors.

    Attributes
    ----------
    real : what PyTorch computed for the node (batch first).
    batch : the batch size of ``real``.
    training : True when captured for training.
    """

    def __init__(self, root: torch.nn.Module, batch: int, training: bool) -> None:
        self.root = root
        self.batch = batch
        self.training = training
        self.graph = fg.FloatGraph()
        self.real: Any = None
        self.where = fg.Where("")
        self.on_host_read: Callable[[str], None] = lambda name: None

    def add(
        self, op: fg.FloatOp, inputs: Sequence[Value], shape: Sequence[int], suffix: str = ""
    ) -> Value:
        """Append a node named after the current FX node. shape: without the batch.

        What the accelerator computes may not read a host step: ``on_host_read`` is told.
        """
        if not isinstance(op, fg.Host):
            for value in inputs:
                if self.is_host(value):
                    self.on_host_read(value.name)
        name = self.graph.fresh_name(self.where.node + suffix)
        shape = tuple(int(n) for n in shape)
        self.graph.add(fg.Node(name, op, [v.name for v in inputs], shape, self.where))
        return Value(name, shape)

    def value(self, name: str) -> Value:
        """The value of an existing node."""
        return Value(name, self.graph.nodes[name].shape)

    def real_shape(self) -> tuple[int, ...]:
        """The shape that PyTorch gave, without the batch."""
        return tuple(self.real.shape[1:])

    def is_host(self, value: Value) -> bool:
        """Whether a value is computed behind the accelerator."""
        return isinstance(self.graph.nodes[value.name].op, fg.Host)

    def tensor(self, ref: fg.Ref) -> torch.Tensor:
        """The live tensor behind a reference."""
        return torch.as_tensor(fg.fetch(self.root, ref))

    def number(self, value: Any) -> float:
        """A Python number, or a constant tensor of one element, as float."""
        if isinstance(value, REFERENCES) and self.tensor(value).numel() == 1:
            return float(self.tensor(value))
        if isinstance(value, (int, float)):
            return float(value)
        constant = isinstance(value, REFERENCES)
        given = f"a constant of shape {tuple(self.tensor(value).shape)}" if constant else str(value)
        raise Refusal(
            f"{given} where a number is needed is not supported",
            "use a number, or a constant of one element",
        )
