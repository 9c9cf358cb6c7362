"""Builds a Program from a quantised graph: places tensors, lowers operation by operation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rasna import isa
from rasna.errors import CompileError
from rasna.graph import AnyOp, AvgPool, Conv, MaxPool, QuantGraph, Sum
from rasna.targets import Target

from .average_lower import AverageLowering
from .emitter import Emitter
from .memory import FirstFit, OutOfMap
from .plan import Limits, plan_window
from .source import HostTensor
from .sum_lower import SumLowering
from .window import conv_window, pool_window
from .window_lower import Sink, WindowLowering, emit_copy


@dataclass
class Image:
    """The result of the back end, before it becomes a Program.

    words: program image, uint64. segment_words: size of INPUT, OUTPUT, SCRATCH.
    inputs, outputs: word offset of every port in its segment. layers: the per-layer table.
    """

    words: np.ndarray
    segment_words: dict[isa.Segment, int]
    inputs: list[int]
    outputs: list[int]
    layers: list[dict]
    cycles: int


@dataclass
class _Lifetime:
    """Host tensors that a tensor lives in, and the number of its last reader."""

    hosts: list[HostTensor] = field(default_factory=list)
    scratch: HostTensor | None = None
    last_use: int = -1


class Builder:
    def __init__(self, graph: QuantGraph, target: Target) -> None:
        self.graph, self.target = graph, target
        self.emitter = Emitter(target)
        self.map = FirstFit(target.map_words)
        self.guard = self.map.allocate(1)  # masked vectors may reach a few bytes below a region
        self.scratch = FirstFit()
        self.live = {name: _Lifetime() for name in graph.tensors}
        self.layers: list[dict] = []

    def build(self) -> Image:
        inputs = self._place_ports(self.graph.inputs, isa.Segment.INPUT)
        outputs = self._place_ports(self.graph.outputs, isa.Segment.OUTPUT)
        for number, op in enumerate(self.graph.ops):
            for name in op.inputs:
                self.live[name].last_use = number
        self._copy_inputs()
        for number, op in enumerate(self.graph.ops):
            self._lower(number, op)
        sizes = {
            isa.Segment.INPUT: self._port_words(self.graph.inputs),
            isa.Segment.OUTPUT: self._port_words(self.graph.outputs),
            isa.Segment.SCRATCH: self.scratch.peak,
        }
        return Image(
            self.emitter.image(), sizes, inputs, outputs, self.layers, sum(self.emitter.cycles)
        )

    def _host(self, name: str, segment: isa.Segment, addr: int) -> HostTensor:
        return HostTensor(segment, addr, self.graph.tensors[name].shape)

    def _port_words(self, ports) -> int:
        return sum(self._host(p.tensor, isa.Segment.INPUT, 0).num_words for p in ports)

    def _place_ports(self, ports, segment: isa.Segment) -> list[int]:
        offsets, at = [], 0
        for port in ports:
            host = self._host(port.tensor, segment, at)
            self.live[port.tensor].hosts.append(host)
            offsets.append(at)
            at += host.num_words
        return offsets

    def _copy_inputs(self) -> None:
        """Outputs that are inputs themselves: copied row by row through the map memory."""
        for port in self.graph.inputs:
            hosts = self.live[port.tensor].hosts
            sinks = [h for h in hosts if h.segment == isa.Segment.OUTPUT]
            if sinks:
                source = next(h for h in hosts if h.segment == isa.Segment.INPUT)
                start = len(self.emitter)
                self._copy(port.tensor, source, sinks)
                self._record(f"copy_{port.name}", "Copy", [port.tensor], port.tensor, start, "")

    def _copy(self, name: str, source: HostTensor, sinks: list[HostTensor]) -> None:
        emit_copy(self.emitter, self.map, source, sinks, self.graph.tensors[name].shape)

    def _sink(self, number: int, name: str) -> Sink:
        live = self.live[name]
        sinks = [h for h in live.hosts if h.segment == isa.Segment.OUTPUT]
        if live.last_use > number:
            words = self._host(name, isa.Segment.SCRATCH, 0).num_words
            addr = self.scratch.allocate(words)
            live.scratch = self._host(name, isa.Segment.SCRATCH, addr)
            sinks.append(live.scratch)
        return Sink(sinks)

    def _source(self, name: str) -> HostTensor:
        live = self.live[name]
        if live.scratch is not None:
            return live.scratch
        return next(h for h in live.hosts if h.segment == isa.Segment.INPUT)

    def _lower(self, number: int, op: AnyOp) -> None:
        start = len(self.emitter)
        sink = self._sink(number, op.output)
        if sink.hosts:
            mapping = self._emit(op, sink)
            self._record(op.name, type(op).__name__, op.inputs, op.output, start, mapping, op)
        for name in set(op.inputs):
            live = self.live[name]
            if live.last_use == number and live.scratch is not None:
                self.scratch.release(live.scratch.addr)

    def _emit(self, op: AnyOp, sink: Sink) -> str:
        tensors = self.graph.tensors
        limits = Limits(self.map.largest_gap())
        out = tensors[op.output]
        try:
            if isinstance(op, Sum):
                sources = {n: self._source(n) for n in op.inputs}
                lowering = SumLowering(
                    self.emitter, self.map, op, tensors, sources, sink, limits
                )
                lowering.run()
                return lowering.describe()
            source = tensors[op.inputs[0]]
            host = self._source(op.inputs[0])
            if isinstance(op, AvgPool):
                lowering = AverageLowering(
                    self.emitter, self.map, op, source, out, host, sink, limits
                )
                lowering.run()
                return lowering.describe()
            make = {Conv: conv_window, MaxPool: pool_window}[type(op)]
            window = make(op, source, out)
            plan = plan_window(window, self.target, limits)
            WindowLowering(self.emitter, self.map, window, plan, host, sink).run()
            return plan.describe(window, self.target)
        except OutOfMap as e:
            raise CompileError(
                f"{op.name}: {e.needed_words} words of map memory are needed at once in every "
                f"slice, target {self.target.name} has {e.free_words} left; use a smaller layer "
                "or a larger target"
            ) from None

    def _record(self, name, operation, inputs, output, start, mapping, op=None) -> None:
        tensors = self.graph.tensors
        weights = getattr(op, "weight", None)
        streams = sum(
            f.get("stream_words", 0) for _, f in self.emitter.instructions[start:]
        )
        self.layers.append(
            dict(
                name=name,
                operation=operation,
                inputs=[list(tensors[n].shape) for n in inputs],
                output=list(tensors[output].shape),
                output_type=str(tensors[output].type),
                weights=0 if weights is None else int(weights.size),
                non_zeros=0 if weights is None else int(np.count_nonzero(weights)),
                cycles=int(sum(self.emitter.cycles[start:])),
                bytes=streams * isa.WORD_BYTES,
                first_instruction=start,
                num_instructions=len(self.emitter) - start,
                mapping=mapping,
            )
        )


def build_image(graph: QuantGraph, target: Target) -> Image:
    """Lower a quantised graph for a target. Raises CompileError when a layer cannot fit."""
    return Builder(graph, target).build()
