"""Scheduling: which cycle every operation issues in.

Blocks are list-scheduled. Pipelined loops are modulo-scheduled: operations go as early as operands,
chaining delays and ports allow; a violated loop-carried constraint raises the earliest cycle of its
target, and the walk is repeated until nothing moves. If that cannot end, the initiation interval
grows by one.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from .deps import channel, dependences
from .dsp import sums_of_products
from .errors import HlsError
from .ir import BLOCKING, Const, Function, Inst
from .sink import sink
from .timing import DSP_ADD_NS, timing

_MAX_II = 128
_MAX_RAISES = 40


def schedule(function: Function, budget_ns: float) -> None:
    """Schedule all blocks of a process."""
    for block in function.blocks.values():
        for inst in block.insts:
            inst.block = block
        _Scheduler(block, budget_ns).run()


def port_of(inst: Inst):
    """The resource that an operation occupies for one cycle, None if it has its own."""
    if inst.op in ("ld", "st"):
        memory = inst.aux.memory
        if memory.is_registers or memory.array.is_rom:
            return None
        return (inst.op, memory.name, inst.aux.bank)
    return channel(inst) if inst.op in BLOCKING else None


def port_name(port) -> str:
    """For messages."""
    kind = {"ld": "read port", "st": "write port"}.get(port[0])
    if kind:
        bank = "".join(f"[{k}]" for k in port[2])
        return f"{kind} of array {port[1]}{' bank ' + bank if bank else ''}"
    return f"{port[0]} of argument {port[1]}"


class _Scheduler:
    def __init__(self, block, budget_ns: float):
        self.block, self.budget = block, budget_ns
        self.loop = block.loop
        self.insts = block.insts
        self.here = set(self.insts)
        deps = dependences(block)
        self.forward = defaultdict(list)
        for dep in deps:
            if dep.distance == 0:
                self.forward[dep.dst].append((dep.src, dep.delay))
        self.carried = [d for d in deps if d.distance]
        self.deps = deps
        self.ports = {i: port_of(i) for i in self.insts}
        self._speculate()
        self.times = {i: timing(i, budget_ns) for i in self.insts}
        self._use_dsp_adders()
        self.why = ""

    def _speculate(self) -> None:
        """Loads run unconditionally unless their bank has more loads than cycles; then conditions
        share the port.
        """
        if not self.loop:
            return
        count = Counter(p for i, p in self.ports.items() if p and i.op == "ld")
        for inst, port in self.ports.items():
            if inst.op == "ld" and (port is None or count[port] <= self.loop.target_ii):
                inst.asked, inst.pred, inst.guard = inst.pred, None, None

    def _use_dsp_adders(self) -> None:
        """A sum of a product takes the last register of the product's DSP block."""
        if not self.loop:
            return
        sums = sums_of_products(self.insts, lambda i: self.times[i][1] > 2)
        for add, product in sums.items():
            delay_ns, latency, ready_ns = self.times[product]
            self.times[product] = (delay_ns, latency - 1, ready_ns)
            self.times[add] = (DSP_ADD_NS, 1, 0.0)

    def run(self) -> None:
        if not self.loop:
            self.place(0)
            self.block.num_cycles = max([1] + [i.time + max(i.latency, 0) + 1 for i in self.insts])
            return
        ii = max(self.loop.target_ii, self._resource_ii())
        while not self.relax(ii):
            ii += 1
            if ii > _MAX_II:
                raise HlsError(self.loop.location, f"the loop cannot be pipelined ({self.why})")
        self.loop.ii, self.loop.num_ops = ii, len(self.insts)
        sink(self.block, self.deps, self.ports, self.times, self.budget)
        self.loop.depth = self.block.num_cycles = max(
            [ii] + [i.time + i.latency + 1 for i in self.insts]
        )
        self.loop.why = self.why if ii > self.loop.target_ii else ""

    def _resource_ii(self) -> int:
        """Lower bound from ports whose operations are all unconditional."""
        count = Counter(p for i, p in self.ports.items() if p and i.guard is None)
        worst = max(count.items(), key=lambda t: t[1], default=(None, 1))
        if worst[1] > self.loop.target_ii:
            self.why = f"{worst[1]} uses of the {port_name(worst[0])} per iteration"
        return worst[1]

    # ------------------------------------------------------------------ one loop, one II
    def relax(self, ii: int) -> bool:
        earliest: dict[Inst, int] = {}
        raises: Counter = Counter()
        phis = [(p, p.incoming["latch"]) for p in self.insts if p.op == "phi"]
        while True:
            if not self.place(ii, earliest):
                return False
            moved = False
            for phi, value in phis:
                if isinstance(value, Inst) and value in self.here:
                    need = value.time + value.latency + 1 - ii
                    if need > phi.time:
                        why = f"recurrence through '{phi.name.split('.')[0]}'"
                        self.raise_to(phi, need, earliest, raises, why)
                        moved = True
            for dep in self.carried:
                need = dep.src.time + dep.delay - ii * dep.distance
                if need > dep.dst.time:
                    self.raise_to(dep.dst, need, earliest, raises, self.reason(dep))
                    moved = True
            if not moved:
                return self.exit_in_time(ii)
            if raises and max(raises.values()) > _MAX_RAISES:
                return False

    def raise_to(self, inst, need, earliest, raises, why) -> None:
        """The next walk may place ``inst`` in cycle ``need`` at the earliest."""
        earliest[inst] = need
        raises[inst] += 1
        if raises[inst] > 3:
            self.why = why

    def exit_in_time(self, ii: int) -> bool:
        """The stay condition must be known when the next iteration starts."""
        cond = self.block.term.cond
        if isinstance(cond, Inst) and cond in self.here and cond.time + cond.latency > ii - 1:
            self.why = "the exit condition is known too late"
            return False
        return True

    @staticmethod
    def reason(dep) -> str:
        if dep.src.op in BLOCKING:
            return f"order of accesses of argument {dep.src.aux['port']}"
        lines = (
            f" (lines {dep.src.loc.line} and {dep.dst.loc.line})"
            if dep.src.loc and dep.dst.loc
            else ""
        )
        return (
            f"dependence between iterations through array '{dep.src.aux.memory.array.label}'{lines}"
        )

    # ------------------------------------------------------------------ one walk
    def place(self, ii: int, earliest=None) -> bool:
        """Give every operation its cycle; False: a port has no free slot. ``ii`` 0: no wrapping."""
        used: dict = defaultdict(list)
        earliest, here, forward, times, ports, budget = (
            earliest or {},
            self.here,
            self.forward,
            self.times,
            self.ports,
            self.budget,
        )
        for inst in self.insts:
            delay_ns, latency, ready_ns = times[inst]
            time, offset = earliest.get(inst, 0), 0.0
            if inst.op != "phi":
                for operand in inst.operands():
                    if operand.__class__ is Const or operand not in here:
                        continue
                    ready = operand.time + operand.latency
                    if ready > time:
                        time, offset = ready, operand.ready_ns
                    elif ready == time and operand.ready_ns > offset:
                        offset = operand.ready_ns
                for source, delay in forward.get(inst, ()):
                    if source.time + delay > time:
                        time, offset = source.time + delay, 0.0
            if offset + delay_ns > budget and offset > 0:
                time, offset = time + 1, 0.0
            port = ports[inst]
            if port is not None:
                free = self.free_slot(used, port, inst, time, ii)
                if free is None:
                    self.why = f"too many uses of the {port_name(port)} per iteration"
                    return False
                if free != time:
                    time, offset = free, 0.0
                used[port, time % ii if ii else time].append(inst)
            inst.time, inst.latency = time, latency
            inst.ready_ns = ready_ns if latency else offset + delay_ns
        return True

    def free_slot(self, used, port, inst: Inst, time: int, ii: int) -> int | None:
        guards = self.loop.bdd if self.loop else None
        for step in range(ii or 1 << 30):
            slot = used[port, (time + step) % ii if ii else time + step]
            if all(self.can_share(guards, other, inst, time + step) for other in slot):
                return time + step
        return None

    @staticmethod
    def can_share(guards, other: Inst, inst: Inst, time: int) -> bool:
        """Two operations that exclude each other in the same iteration and cycle share a port."""
        return (
            guards is not None and other.time == time and guards.exclusive(other.guard, inst.guard)
        )
