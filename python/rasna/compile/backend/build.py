"""Builds a Program from a quantised graph: places tensors, lowers operation by operation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rasna import isa
from rasna.errors import CompileError
from rasna.graph import AnyOp, AvgPool, Gather, Product, QuantGraph, Select, Sum
from rasna.targets import Target

from .average_lower import AverageLowering
from .emitter import Emitter
from .gather_lower import GatherLowering, smallest_words
from .geometry import Geometry, Region, row_words
from .join import Join, find_joins, view
from .memory import FirstFit, OutOfMap, more_room
from .plan import Limits, Planner, plan_window
from .residency import (
    Resident,
    can_read,
    halo_cycles,
    reading_cycles,
    split_geometries,
    wanted_geometries,
    window_of,
)
from .select_lower import FIXED_WORDS, SelectLowering, can_write, words_of_channel
from .source import HostTensor, SourceLoader
from .sum_lower import SumLowering
from .window_lower import Sink, WindowLowering, emit_copy, emit_store


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
    """Host tensors that a tensor lives in, and the number of its last reader.

    is_view: ``scratch`` is a part of another tensor's, which frees it.
    """

    hosts: list[HostTensor] = field(default_factory=list)
    scratch: HostTensor | None = None
    is_view: bool = False
    last_use: int = -1


class SplitSpilled(Exception):
    """Tensor ``name`` is to be spilled but lies in split rows, which STORE cannot read."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} lies in split rows and would have to be stored")
        self.name = name


class Builder:
    """Builds one image.

    copies: a joined tensor that the map memory could hold is copied together there instead of
    being written in place in host memory. plain: tensors that are not kept in split rows.
    """

    def __init__(
        self, graph: QuantGraph, target: Target, copies: bool = False,
        plain: frozenset[str] = frozenset(),
    ) -> None:
        self.graph, self.target, self.copies, self.plain = graph, target, copies, plain
        self.emitter = Emitter(target)
        self.map = FirstFit(target.map_words)
        self.guard = self.map.allocate(1)  # masked vectors may reach a few bytes below a region
        self.scratch = FirstFit()
        self.live = {name: _Lifetime() for name in graph.tensors}
        self.layers: list[dict] = []
        self.resident: dict[str, Resident] = {}
        self.loader = SourceLoader(self.emitter, self.map)
        self.estimates: dict[tuple[int, int], int | None] = {}
        self.windows = [window_of(op, graph.tensors) for op in graph.ops]
        self.joins = find_joins(graph)
        self.joined: dict[str, Join] = {}  # an input that is written in place, and where
        self.stored: dict[str, list[HostTensor]] = {}  # every place of what joins write

    def build(self) -> Image:
        inputs = self._place_ports(self.graph.inputs, isa.Segment.INPUT)
        outputs = self._place_ports(self.graph.outputs, isa.Segment.OUTPUT)
        for number, op in enumerate(self.graph.ops):
            for name in op.inputs:
                self.live[name].last_use = number
        self._choose_joins()
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
        try:
            emit_copy(self.emitter, self.map, source, sinks, self.graph.tensors[name].shape)
        except OutOfMap as e:
            raise CompileError(
                f"{name}: copying one row needs {e.needed_words} words of map memory in every "
                f"slice, target {self.target.name} has {e.free_words} left; "
                f"{more_room(self.target, e.needed_words)}"
            ) from None

    # Joins ------------------------------------------------------------------------------

    def _choose_joins(self) -> None:
        """Keep the joins that are written in place, and say which tensor is part of which."""
        for name, join in reversed(list(self.joins.items())):
            readers = self._readers(name, join.number)
            outputs = any(p.tensor == name for p in self.graph.outputs)
            needed = readers or outputs or name in self.joined
            if not needed or self.copies and self._has_choice(name, join):
                del self.joins[name]
                continue
            self.joined.update(dict.fromkeys(join.parts, join))
        for name, join in self.joins.items():  # what is joined may be read longer than the result
            uses = [self.live[n].last_use for n in (name, *join.parts)]
            self.live[name].last_use = max(uses)

    def _held_by(self, names: list[str]) -> set[str]:
        """Tensors, and those in whose memory they lie."""
        held = set(names)
        for name in names:
            while name in self.joined:
                name = self.joined[name].op.output
                held.add(name)
        return held

    def has_choice(self) -> bool:
        """Whether some join could lie in the map memory, too."""
        return any(self._has_choice(name, join) for name, join in self.joins.items())

    def _has_choice(self, name: str, join: Join) -> bool:
        return not join.stacks_rows and self.could_stay(name, self._readers(name, join.number))

    def could_stay(self, name: str, readers: list[int]) -> bool:
        """Whether the map memory could hold a tensor for its next reader."""
        if not readers:
            return False
        consumer, tensor = self.graph.ops[readers[0]], self.graph.tensors[name]
        wanted = wanted_geometries(consumer, self.windows[readers[0]], tensor, self.target, [])
        most = self.target.map_words - 1 - FIXED_WORDS
        return any(g.region_words(tensor.shape[0]) <= most for g in wanted)

    def _readers(self, name: str, number: int) -> list[int]:
        """Operations behind ``number`` that read a tensor, other than the join that it is in."""
        join = self.joined.get(name)
        return [
            i for i in range(number + 1, len(self.graph.ops))
            if name in self.graph.ops[i].inputs
            and not (join is not None and join.number == i and name not in join.copied)
        ]

    def _join_hosts(self, name: str, number: int) -> list[HostTensor]:
        """Every place in host memory that a tensor of a join has to be written to.

        They are chosen when its first part is made, and lie in those of the next join.
        """
        if name not in self.stored:
            live, join = self.live[name], self.joined.get(name)
            hosts = [h for h in live.hosts if h.segment == isa.Segment.OUTPUT]
            shape = self.graph.tensors[name].shape
            if join is not None:
                first = join.parts[name]
                hosts += [view(h, first, shape) for h in self._join_hosts(join.op.output, number)]
                live.scratch = next((h for h in hosts if h.segment == isa.Segment.SCRATCH), None)
                live.is_view = live.scratch is not None
            if name in self.joins and live.scratch is None:
                if self._readers(name, self.joins[name].number):
                    hosts.append(self._scratch(name))
            self.stored[name] = hosts
        return self.stored[name]

    def _join(self, number: int, op: Select) -> str:
        """Copy the channels of a join that nobody has written in place."""
        join, hosts = self.joins[op.output], self._join_hosts(op.output, number)
        for first, rest in join.rest:
            self._make_room(rest, None, self._places(rest, None))
            places = self._places(rest, None)
            limits = Limits(self.map.largest_gap(), self._geometry(places, rest.inputs[0]), False)
            places = {n: p if isinstance(p, Region) else self._source(n) for n, p in places.items()}
            sink = Sink([view(h, first, (len(rest.channels), *h.shape[1:])) for h in hosts])
            self._run(rest, None, places, sink, limits, self.graph.tensors)
        written = len(op.channels) - sum(len(rest.channels) for _, rest in join.rest)
        return f"{written} of {len(op.channels)} channels in place"

    # Host memory ------------------------------------------------------------------------

    def _scratch(self, name: str) -> HostTensor:
        """The tensor's place in SCRATCH; allocated when first asked for."""
        live = self.live[name]
        if live.scratch is None:
            words = self._host(name, isa.Segment.SCRATCH, 0).num_words
            live.scratch = self._host(name, isa.Segment.SCRATCH, self.scratch.allocate(words))
        return live.scratch

    def _source(self, name: str) -> HostTensor:
        """The tensor in host memory; a resident one is spilled first."""
        live = self.live[name]
        if name in self.resident:
            self._spill(name)
        if live.scratch is not None:
            return live.scratch
        return next(h for h in live.hosts if h.segment == isa.Segment.INPUT)

    def _spill(self, name: str) -> None:
        held = self.resident.pop(name)
        if self.live[name].scratch is None:
            if held.region.geometry.slot.split:
                raise SplitSpilled(name)
            height = self.graph.tensors[name].shape[1]
            emit_store(self.emitter, self._scratch(name), held.region, 0, height)
        self.map.release(held.block)

    # Operations -------------------------------------------------------------------------

    def _lower(self, number: int, op: AnyOp) -> None:
        start = len(self.emitter)
        live = self.live[op.output]
        outputs = [h for h in live.hosts if h.segment == isa.Segment.OUTPUT]
        if op.output in self.joined or op.output in self.joins:
            outputs = self._join_hosts(op.output, number)
        if outputs or live.last_use > number:
            mapping = self._emit(number, op, outputs)
            self._record(op.name, _operation(op), op.inputs, op.output, start, mapping, op)
        for name in self._held_by(op.inputs):
            if self.live[name].last_use == number:
                self._drop(name)

    def _drop(self, name: str) -> None:
        """Free what a tensor that nobody reads any more occupies."""
        if name in self.resident:
            self.map.release(self.resident.pop(name).block)
        if self.live[name].scratch is not None and not self.live[name].is_view:
            self.scratch.release(self.live[name].scratch.addr)

    def _emit(self, number: int, op: AnyOp, outputs: list[HostTensor]) -> str:
        try:
            return self._emit_with_residents(number, op, outputs)
        except OutOfMap as e:
            raise CompileError(
                f"{op.name}: {e.needed_words} words of map memory are needed at once in every "
                f"slice, target {self.target.name} has {e.free_words} left; "
                f"{more_room(self.target, e.needed_words)}"
            ) from None

    def _emit_with_residents(self, number: int, op: AnyOp, outputs: list[HostTensor]) -> str:
        if op.output in self.joins:
            return self._join(number, op)
        tensors = self.graph.tensors
        window = self.windows[number]
        places = self._places(op, window)
        self._make_room(op, window, places)
        places = self._places(op, window)
        sink = self._keep(number, op, window, places) or Sink(list(outputs))
        if sink.region is None and self._readers(op.output, number):
            if self.live[op.output].scratch is None:
                sink.hosts.append(self._scratch(op.output))
        limits = Limits(
            self.map.largest_gap(), self._geometry(places, op.inputs[0]), sink.region is not None,
            sink.region is not None and sink.region.geometry.slot.split,
        )
        places = {n: p if isinstance(p, Region) else self._source(n) for n, p in places.items()}
        if sink.region is not None:
            self.loader.prepare_sink(sink.region)
        mapping = self._run(op, window, places, sink, limits, tensors)
        if sink.region is not None:
            for host in outputs:
                emit_store(self.emitter, host, sink.region, 0, tensors[op.output].shape[1])
            self.loader.finish_sink(sink.region)
        return mapping

    def _run(self, op, window, places, sink, limits, tensors) -> str:
        first = op.inputs[0]
        if window is not None:
            plan = plan_window(window, self.target, limits)
            WindowLowering(self.emitter, self.map, window, plan, places[first], sink).run()
            return plan.describe(window, self.target)
        if isinstance(op, (Sum, Select, Gather)):
            kinds = {
                Sum: SumLowering, Product: SumLowering, Select: SelectLowering,
                Gather: GatherLowering,
            }  # fmt: skip
            lowering = kinds[type(op)](self.emitter, self.map, op, tensors, places, sink, limits)
        else:
            lowering = AverageLowering(
                self.emitter, self.map, op, tensors[first], tensors[op.output], places[first],
                sink, limits,
            )
        lowering.run()
        return lowering.describe()

    # Residency --------------------------------------------------------------------------

    def _places(self, op: AnyOp, window) -> dict[str, Region | None]:
        """The region of every input that can be read where it lies, None for the others."""
        tensors, places, shared = self.graph.tensors, {}, None
        for name in dict.fromkeys(op.inputs):
            places[name] = None
            held = self.resident.get(name)
            if held is None:
                continue
            g = held.region.geometry
            if not can_read(op, window, g, tensors[name], tensors[op.output]):
                continue
            if isinstance(op, Sum) and shared not in (None, g):
                continue
            places[name], shared = held.region, g
        return places

    @staticmethod
    def _geometry(places, name: str) -> Geometry | None:
        return places[name].geometry if places[name] is not None else None

    def _make_room(self, op: AnyOp, window, places) -> None:
        """Spill residents until the operation has a plan: bystanders first, then its inputs."""
        for name in op.inputs:
            if places[name] is None and name in self.resident:
                self._spill(name)
        while self.resident and not self._feasible(op, window, self._places(op, window), False):
            order = sorted(
                self.resident, key=lambda n: (n in op.inputs, -self._resident_words(n))
            )
            self._spill(order[0])

    def _resident_words(self, name: str) -> int:
        region = self.resident[name].region
        return region.geometry.region_words(region.num_channels)

    def _feasible(self, op: AnyOp, window, places, writes_resident: bool) -> bool:
        return self._own_cycles(op, window, places, writes_resident) is not None

    def _own_cycles(
        self, op, window, places, writes_resident: bool, writes_split: bool = False
    ) -> int | None:
        """Estimated cycles of the operation as memory is now; None if it does not fit.

        Element-wise operations and average pooling work channel by channel: some room is
        enough, and their cycles hardly depend on it.
        """
        gap = self.map.largest_gap()
        if window is None:
            shapes = [self.graph.tensors[n].shape for n in (*op.inputs, op.output)]
            if isinstance(op, Gather):
                needed = smallest_words(op, self.graph.tensors, writes_resident)
                return 0 if gap >= needed else None
            rows = 1 if isinstance(op, Sum) else max(s[1] for s in shapes)
            if isinstance(op, Select):
                loaded = [n for n in op.inputs if places[n] is None]
                whole = writes_resident or len(loaded) < len(op.inputs)
                needed = FIXED_WORDS + words_of_channel(
                    op, self.graph.tensors, loaded, None if whole else 1, writes_resident,
                    self.target.slices,
                )
                return 0 if gap >= needed else None
            needed = 16 + len(shapes) * rows * max(row_words(s[2]) for s in shapes)
            if isinstance(op, Sum) and any(places.values()):
                g = next(r for r in places.values() if r is not None).geometry
                needed = 16 + len(shapes) * (g.channel_words + g.slot.lead_words + 2)
            return 0 if gap >= needed else None
        g = self._geometry(places, op.inputs[0])
        plan = Planner(window, self.target, Limits(gap, g, writes_resident, writes_split)).best()
        return None if plan is None else plan.cycles

    def _keep(self, number: int, op: AnyOp, window, places) -> Sink | None:
        """Allocate the result in the map memory if that pays; None if it goes to the host."""
        name = op.output
        tensor = self.graph.tensors[name]
        readers = self._readers(name, number)
        if not readers:
            return None
        best = None
        for g, cycles in self._candidates(number, op, readers):
            if isinstance(op, AvgPool) and g.stripes != 1:
                continue
            if isinstance(op, Select) and not can_write(op, g):
                continue
            if best is not None and cycles >= best[0]:
                continue
            try:
                block = self.map.allocate(g.region_words(tensor.shape[0]))
            except OutOfMap:
                continue
            own = self._own_cycles(op, window, places, True, g.slot.split)
            self.map.release(block)
            cycles += self._crowding(number, readers, g.region_words(tensor.shape[0]))
            if own is not None and (best is None or own + cycles < best[0]):
                best = (own + cycles, g)
        if best is None or not self._pays(number, op, window, places, readers, best[0]):
            return None
        g = best[1]
        block = self.map.allocate(g.region_words(tensor.shape[0]))
        region = Region(g, block + g.slot.lead_words, 0, tensor.shape[0])
        self.resident[name] = Resident(region, block)
        return Sink([], region)

    def _crowding(self, number: int, readers: list[int], words: int) -> int:
        """Cycles that operations between the first and the last reader lose for want of memory."""
        lost = 0
        for i in range(readers[0] + 1, readers[-1]):
            if i in readers or self.windows[i] is None:
                continue
            free = self.target.map_words - 1
            with_it, without = (self._host_cycles(i, b) for b in (free - words, free))
            if with_it is None:
                return 1 << 40
            lost += with_it - without if without is not None else 0
        return lost

    def _host_cycles(self, number: int, budget: int) -> int | None:
        """Estimated cycles of a window operation that reads host memory, remembered."""
        key = (number, budget)
        if key not in self.estimates:
            self.estimates[key] = reading_cycles(self.windows[number], self.target, budget, None)
        return self.estimates[key]

    def _free_at(self, reader: int, number: int, without: int = 0) -> int:
        """Words that will be free for a later reader, as far as is known now."""
        live = sum(
            self._resident_words(n) for n in self.resident if self.live[n].last_use > number
            and n not in self.graph.ops[reader].inputs
        )
        inputs = sum(
            self._resident_words(n) for n in self.resident if n in self.graph.ops[reader].inputs
        )
        return self.target.map_words - 1 - live - inputs - without

    def _candidates(self, number: int, op: AnyOp, readers: list[int]):
        """(geometry, cycles of the readers and of the halo) for the result of ``op``."""
        reader = readers[0]
        consumer, window = self.graph.ops[reader], self.windows[reader]
        tensor = self.graph.tensors[op.output]
        if isinstance(consumer, Sum) and tensor.shape != self.graph.tensors[consumer.output].shape:
            return
        others = [
            self.resident[n].region.geometry for n in consumer.inputs
            if n in self.resident and self.graph.tensors[n].shape == tensor.shape
        ]
        wanted = wanted_geometries(consumer, window, tensor, self.target, others)
        for g in self._split_candidates(op, readers) + wanted:
            words = g.region_words(tensor.shape[0])
            budget = self._free_at(reader, number, words)
            if budget < 8:
                continue
            cycles = 0
            if window is not None:
                cycles = reading_cycles(window, self.target, budget, g)
                if cycles is None:
                    continue
            cycles += sum(self._later_cycles(i, number, g, words) for i in readers[1:])
            yield g, cycles + halo_cycles(g, tensor.shape[0])

    def _later_cycles(self, reader: int, number: int, g: Geometry | None, words: int) -> int:
        """Estimated cycles of a later reader of a tensor in ``g``; None: in host memory.

        0 where there is no estimate: operations that are no windows, and those that do not fit.
        """
        window = self.windows[reader]
        if window is None:
            return 0
        budget = self._free_at(reader, number, words)
        if g is not None and window.can_read(g):
            cycles = reading_cycles(window, self.target, budget, g)
            if cycles is not None:
                return cycles
        return self._host_cycles(reader, budget) or 0

    def _split_candidates(self, op: AnyOp, readers: list[int]) -> list[Geometry]:
        """Split geometries for the result of ``op``: it is never stored, and nobody else reads it.

        Average pooling, Select and Gather write words one by one, whose halves would not follow.
        """
        name = op.output
        is_output = any(p.tensor == name for p in self.graph.outputs)
        if name in self.plain or is_output or name in self.joined or name in self.joins:
            return []
        if isinstance(op, (AvgPool, Select, Gather)):
            return []
        return split_geometries([self.windows[i] for i in readers], self.target)

    def _pays(self, number, op, window, places, readers: list[int], cycles: int) -> bool:
        """Whether keeping the result is estimated to take fewer cycles than a round trip."""
        own = self._own_cycles(op, window, places, False)
        if own is None:
            return True
        reader = readers[0]
        if self.windows[reader] is None:
            return True
        later = self._host_cycles(reader, self._free_at(reader, number))
        if later is None:
            return True
        later += sum(self._later_cycles(i, number, None, 0) for i in readers[1:])
        return cycles < own + later

    def _record(self, name, operation, inputs, output, start, mapping, op=None) -> None:
        tensors = self.graph.tensors
        weights = getattr(op, "weight", None)
        streams = sum(
            f.get("stream_words", 0) for _, f in self.emitter.instructions[start:]
        )
        shape = tensors[output].shape
        self.layers.append(
            dict(
                name=name,
                operation=operation,
                output=output,
                input_shapes=[list(tensors[n].shape) for n in inputs],
                output_shape=list(shape),
                weights=0 if weights is None else int(weights.size),
                nonzeros=0 if weights is None else int(np.count_nonzero(weights)),
                macs=0 if weights is None else int(weights.size) * shape[1] * shape[2],
                cycles=int(sum(self.emitter.cycles[start:])),
                bytes=streams * isa.WORD_BYTES,
                first_instruction=start,
                num_instructions=len(self.emitter) - start,
                mapping=mapping,
            )
        )


def build_image(graph: QuantGraph, target: Target) -> Image:
    """Lower a quantised graph for a target. Raises CompileError when a layer cannot fit.

    Where joins have a choice, the image with fewer estimated cycles is taken.
    """
    builder, image = _build(graph, target)
    if builder.has_choice():
        image = min(image, _build(graph, target, copies=True)[1], key=lambda i: i.cycles)
    return image


def _build(graph: QuantGraph, target: Target, copies: bool = False) -> tuple[Builder, Image]:
    """An image in which what must be spilled after all is kept in plain rows from the start."""
    plain: frozenset[str] = frozenset()
    while True:
        builder = Builder(graph, target, copies, plain)
        try:
            return builder, builder.build()
        except SplitSpilled as spilled:
            plain |= {spilled.name}


def _operation(op: AnyOp) -> str:
    """What the listing calls it: ``Conv``, or ``Conv + silu`` with a curve behind it."""
    curve = getattr(getattr(op, "requant", None), "curve", None)
    return type(op).__name__ + (f" + {curve.name}" if curve is not None else "")
