"""Joins without copies: who writes straight into the channels that a cat gives its result.

A Select that only places whole inputs one behind the other (cat) needs no instruction for an
input whose type is that of the result: the operation before it writes to these channels. Here
is which inputs these are; where the joined tensor lies is for the builder to say. Channels of one
row each that become the rows of a map lie in memory as that map does, and are written in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rasna.graph import QuantGraph, Select

from .source import HostTensor


@dataclass
class Join:
    """A Select some of whose inputs are written in place.

    parts: name of such an input to its first channel in the result. rest: what must be copied,
    as the first channel of a run in the result and the Select that makes the run.
    """

    number: int
    op: Select
    parts: dict[str, int] = field(default_factory=dict)
    rest: list[tuple[int, Select]] = field(default_factory=list)

    @property
    def stacks_rows(self) -> bool:
        """Whether the input is the result, in another shape."""
        return self.op.channels.shape[1] > 1

    @property
    def copied(self) -> set[str]:
        """Inputs of which some channels are copied."""
        return {name for _, op in self.rest for name in op.inputs}


def find_joins(graph: QuantGraph) -> dict[str, Join]:
    """Output of every Select with inputs that can be written in place to its Join.

    An input is written in place once: what is joined twice is copied the second time.
    """
    made = {op.output for op in graph.ops}
    joins: dict[str, Join] = {}
    taken: set[str] = set()
    for number, op in enumerate(graph.ops):
        if not isinstance(op, Select):
            continue
        join = Join(number, op)
        if stacks_rows(graph, op):
            name = op.inputs[0]
            if name in made and name not in taken and _same(graph, op, 0):
                taken.add(name)
                joins[op.output] = replace(join, parts={name: 0})
            continue
        if op.channels.shape[1:] != (1, 1):
            continue
        placed = np.zeros(len(op.channels), bool)
        at = 0
        for k, name in enumerate(op.inputs):
            count = graph.tensors[name].shape[0]
            first = _place(op.channels.ravel(), at, count)
            at += count
            if first is None or name not in made or name in taken or not _same(graph, op, k):
                continue
            join.parts[name] = first
            placed[first : first + count] = True
            taken.add(name)
        if join.parts:
            sizes = [graph.tensors[name].shape[0] for name in op.inputs]
            join.rest = [(a, _part(op, sizes, a, b)) for a, b in _runs(placed)]
            joins[op.output] = join
    return joins


def stacks_rows(graph: QuantGraph, op: Select) -> bool:
    """Whether all channels of one input, of one row each, become rows in their order."""
    count, height, _ = graph.tensors[op.inputs[0]].shape
    rows, columns = op.channels.shape[1:]
    return (
        (height, columns) == (1, 1) and rows > 1 and len(op.inputs) == 1
        and np.array_equal(op.channels.ravel(), np.arange(count))
    )


def view(host: HostTensor, first: int, shape: tuple[int, int, int]) -> HostTensor:
    """A tensor of this shape that lies in another one in host memory, from channel ``first`` on."""
    return HostTensor(host.segment, host.addr + first * host.channel_words, shape)


def _place(channels: np.ndarray, first: int, count: int) -> int | None:
    """Where the channels first … first+count-1 of the inputs lie in the result, in this order."""
    starts = np.flatnonzero(channels == first)
    for at in starts:
        if np.array_equal(channels[at : at + count], np.arange(first, first + count)):
            return int(at)
    return None


def _part(op: Select, sizes: list[int], first: int, limit: int) -> Select:
    """The Select of some output channels, with only the inputs that they come from."""
    numbers = op.channels[first:limit].ravel()
    starts = np.cumsum([0, *sizes])
    of = np.searchsorted(starts, numbers, side="right") - 1
    used = np.unique(of)
    moved = np.zeros(len(sizes), np.int64)
    moved[used] = np.cumsum([0, *[sizes[k] for k in used[:-1]]])
    r = op.requant
    requant = replace(
        r, pre_shift=r.pre_shift[used], multiplier=r.multiplier[used], shift=r.shift[used]
    )
    return replace(
        op, inputs=[op.inputs[k] for k in used], requant=requant,
        channels=(numbers - starts[of] + moved[of]).reshape(-1, 1, 1),
    )  # fmt: skip


def _same(graph: QuantGraph, op: Select, k: int) -> bool:
    """Whether input ``k`` keeps its integers: the type of the result, and no narrower limits."""
    type_, out = graph.tensors[op.inputs[k]].type, graph.tensors[op.output].type
    return type_ == out and op.requant.lo <= out.lo and op.requant.hi >= out.hi


def _runs(placed: np.ndarray) -> list[tuple[int, int]]:
    """(first, limit) of every run of channels that are not placed."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], placed, [True]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
