"""Fewer pipeline registers: operations of a pipelined loop move to later cycles where that shortens
lifetimes.

Scheduling is as soon as possible, so a value that is ready early but needed late would be carried
through many stages. An operation moves to the cycle before its first user (a phi: to the cycle of
its first user) if the bits that its result is carried less outweigh the bits that its operands are
carried more. Then it moves into the very cycle of its first user where the delays of that cycle
leave room. Depth, II and all constraints stay as they are.
"""

from __future__ import annotations

from collections import defaultdict

from .ir import PURE, Const, Inst

_MAX_PASSES = 6
_EXTENSIONS = frozenset(["zext", "sext"])  # rebuilt at every use, never registered


def sink(block, deps, ports, times, budget_ns: float) -> int:
    """Move operations of a scheduled loop; returns how many moved."""
    return _Sinking(block, deps, ports, times, budget_ns).run()


class _Sinking:
    def __init__(self, block, deps, ports, times, budget_ns: float):
        self.block, self.ports, self.times, self.ii = block, ports, times, block.loop.ii
        self.budget, self.chaining = budget_ns, False
        self.here = set(block.insts)
        self.uses: dict[Inst, list[Inst]] = defaultdict(list)  # value -> operations that read it
        self.reads: dict[
            Inst, list[Inst]
        ] = {}  # operation -> values of this block, extensions looked through
        self.latches: dict[Inst, list[Inst]] = defaultdict(
            list
        )  # value -> phis that take it for the next iteration
        self.after = defaultdict(list)  # src -> [(dst, delay, distance)]
        for dep in deps:
            self.after[dep.src].append((dep.dst, dep.delay, dep.distance))
        self.slots = {(p, i.time % self.ii): i for i, p in ports.items() if p}
        for inst in block.insts:
            self.connect(inst)

    def connect(self, inst: Inst) -> None:
        if inst.op in _EXTENSIONS:
            return
        if inst.op == "phi":
            value = self.source(inst.incoming["latch"])
            if value is not None:
                self.latches[value].append(inst)
            self.reads[inst] = []
            return
        sources = dict.fromkeys(s for s in map(self.source, inst.operands()) if s is not None)
        self.reads[inst] = list(sources)
        for value in sources:
            self.uses[value].append(inst)

    def source(self, operand) -> Inst | None:
        """The value behind extensions, if it is computed in this block."""
        while isinstance(operand, Inst) and operand.op in _EXTENSIONS and operand in self.here:
            operand = operand.args[0]
        return operand if isinstance(operand, Inst) and operand in self.here else None

    def run(self) -> int:
        total = self.passes()
        self.chaining = True
        total += self.passes()
        self.settle_extensions()
        return total

    def passes(self) -> int:
        """Move until nothing moves; all of it is undone if that saves no register."""
        total, before = 0, self.register_bits()
        places = {i: (i.time, i.ready_ns) for i in self.block.insts}
        slots = dict(self.slots)
        movable = [i for i in self.block.insts if self.movable(i)]
        for _ in range(_MAX_PASSES):
            moved = sum(self.try_move(inst) for inst in reversed(movable))
            total += moved
            if not moved:
                break
        if self.register_bits() < before:
            return total
        for inst, place in places.items():
            inst.time, inst.ready_ns = place
        self.slots = slots
        return 0

    def register_bits(self) -> int:
        """Bits of all values carried from cycle to cycle."""
        total = 0
        for value in self.reads:
            last = max((u.time for u in self.uses[value]), default=0)
            last = max([last, *(phi.time for phi in self.latches[value])])
            total += (
                max(0, last - (value.time if value.op != "ld" else self.ready(value))) * value.width
            )
        return total

    @staticmethod
    def movable(inst: Inst) -> bool:
        if inst.op == "ld":
            return inst.pred is None
        if inst.op == "select" and any(isinstance(a, Const) and not a.value for a in inst.args[1:]):
            return False  # the register behind it does this by its reset
        return inst.op == "phi" or (inst.op in PURE and inst.op not in _EXTENSIONS)

    @staticmethod
    def ready(inst: Inst) -> int:
        """The first cycle in which the result can be read."""
        return inst.time + inst.latency

    def latest(self, inst: Inst) -> int:
        """The last cycle that breaks no constraint; unless chaining, users read the result from a
        register.
        """
        if inst.op == "phi":
            gap = 0
        elif self.chaining:
            gap = inst.latency
        else:
            gap = inst.latency + 1 if inst.op == "ld" else max(inst.latency, 1)
        bounds = [u.time - gap for u in self.uses[inst]]
        bounds += [phi.time + self.ii - 1 - inst.latency for phi in self.latches[inst]]
        bounds += [
            dst.time + self.ii * distance - delay for dst, delay, distance in self.after[inst]
        ]
        if self.source(self.block.term.cond) is inst:
            bounds.append(self.ii - 1 - inst.latency)
        return min(bounds, default=inst.time)

    def last_use(self, value: Inst, without: Inst) -> int:
        """The last cycle in which somebody other than ``without`` reads a value."""
        last = self.ready(value)
        for user in self.uses[value]:
            if user is not without and user.time > last:
                last = user.time
        for phi in self.latches[value]:
            if phi.time > last:
                last = phi.time
        return last

    def gain(self, inst: Inst, target: int) -> float:
        """Estimated register bits saved by a move; users of one operand are expected to move
        together.
        """
        saved = (target - inst.time) * inst.width
        if inst.op == "phi":
            value = self.source(inst.incoming["latch"])
            held = self.ready(value) if value is not None else inst.time
            return saved - max(0, target - max(held, inst.time)) * inst.width
        for value in self.reads[inst]:
            alone = len(self.uses[value]) == 1 and not self.latches[value]
            if alone and self.movable(value):
                continue  # it will follow
            last = self.last_use(value, inst)
            saved -= (
                (max(0, target - last) - max(0, inst.time - last))
                * value.width
                / len(self.uses[value])
            )
        return saved

    def try_move(self, inst: Inst) -> bool:
        if not self.uses[inst] and not self.latches[inst]:
            return False
        target = self.latest(inst)
        if target <= inst.time or self.gain(inst, target) <= 0:
            return False
        port = self.ports[inst]
        old, new = (port, inst.time % self.ii), (port, target % self.ii)
        if port is not None and new != old and new in self.slots:
            return False
        before, inst.time = inst.time, target
        if not self.settle(inst):
            inst.time = before
            return False
        if port is not None:
            self.slots.pop(old, None)
            self.slots[new] = inst
        return True

    def settle(self, moved: Inst) -> bool:
        """Delays of the cycle that an operation moved to, along all that chains behind it. False,
        and nothing has changed: they do not fit.
        """
        before: dict[Inst, float] = {}
        work = [moved]
        while work:
            inst = work.pop()
            start = max(
                (s.ready_ns for s in self.reads[inst] if self.ready(s) == inst.time), default=0.0
            )
            delay_ns, latency, ready_ns = self.times[inst]
            if inst.op == "phi":
                start = 0.0
            if start > 0 and start + delay_ns > self.budget:
                for other, old in before.items():
                    other.ready_ns = old
                return False
            settled = ready_ns if latency else start + delay_ns
            if inst is not moved and settled == inst.ready_ns:
                continue
            before.setdefault(inst, inst.ready_ns)
            inst.ready_ns = settled
            work += [u for u in self.uses[inst] if u.time == self.ready(inst)]
        return True

    def settle_extensions(self) -> None:
        """An extension is ready when its source is."""
        for inst in self.block.insts:
            if inst.op in _EXTENSIONS:
                value = inst.args[0]
                if isinstance(value, Inst) and value in self.here:
                    inst.time, inst.latency = self.ready(value), 0
