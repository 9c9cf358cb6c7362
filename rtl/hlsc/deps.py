"""Dependences that are not visible as operands: memories, streams and ports.

Accesses are bucketed by what they can conflict with (a bank, an element of a register file, a
stream, a port), so the pairs that are looked at stay within one bucket.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

from .ir import BLOCKING, Const, Inst


class Dep(NamedTuple):
    """``dst`` of iteration i + distance issues at least ``delay`` cycles after ``src`` of iteration
    i.
    """

    src: Inst
    dst: Inst
    delay: int
    distance: int


def dependences(block) -> list[Dep]:
    """All ordering constraints of a block; loop-carried ones if it is a pipelined loop."""
    deps: list[Dep] = []
    _memories(block, deps)
    _channels(block, deps)
    return deps


# ---------------------------------------------------------------------- memories
def _memories(block, deps: list[Dep]) -> None:
    buckets: dict = defaultdict(list)
    everywhere: dict = defaultdict(list)  # accesses of a register file by a run-time index
    for order, inst in enumerate(block.insts):
        if inst.op not in ("ld", "st") or inst.aux.memory.array.is_rom:
            continue
        name, which = inst.aux.key
        if which is None:
            everywhere[name].append((order, inst))
        else:
            buckets[name, which].append((order, inst))
    induction = _inductions(block)
    for (name, _), items in buckets.items():
        _bucket(
            block, sorted(items + everywhere.get(name, []), key=lambda t: t[0]), induction, deps
        )
    for items in everywhere.values():
        _bucket(block, items, induction, deps)


def _bucket(block, items, induction, deps: list[Dep]) -> None:
    stores = [item for item in items if item[1].op == "st"]
    if not stores:
        return
    for order_s, store in stores:
        for order, other in items:
            if other is store or (other.op == "st" and order < order_s):
                continue
            first, second = (store, other) if order_s < order else (other, store)
            _pair(block, first, second, induction, deps)
        if block.loop:
            _carried(block, store, store, induction, deps)


def _pair(block, first: Inst, second: Inst, induction, deps: list[Dep]) -> None:
    """``first`` comes before ``second`` in the program."""
    guards = block.loop.bdd if block.loop else None
    if _same_iteration(first.aux, second.aux) and not (
        guards and guards.exclusive(first.guard, second.guard)
    ):
        deps.append(Dep(first, second, 1 if first.op == "st" else 0, 0))
    if block.loop:
        _carried(block, first, second, induction, deps)
        _carried(block, second, first, induction, deps)


def _carried(block, src: Inst, dst: Inst, induction, deps: list[Dep]) -> None:
    distance = carried_distance(src.aux, dst.aux, induction)
    if distance is None:
        return
    declared = block.loop.dependences.get(src.aux.memory.array.name)
    if declared is not None:
        if declared == 0:
            return
        distance = max(distance, declared)
    deps.append(Dep(src, dst, 1 if src.op == "st" else 0, distance))


def _power_of_two_part(number: int) -> int:
    return number & -number


def _never_equal(a, b) -> bool:
    """Different residues modulo the power of two that divides all coefficients: never the same
    word.
    """
    difference = a.constant - b.constant
    step = _power_of_two_part(math.gcd(0, *(k for _, k in a.terms), *(k for _, k in b.terms)))
    modulus = min(step, 1 << a.memory.addr_bits) if step else 1 << a.memory.addr_bits
    return difference % modulus != 0


def _same_iteration(a, b) -> bool:
    """Can the two accesses of one iteration touch the same word?"""
    if a.terms == b.terms:
        return (a.constant - b.constant) % (1 << a.memory.addr_bits) == 0
    return not _never_equal(a, b)


def carried_distance(a, b, induction: dict) -> int | None:
    """Iterations (at least 1) from access ``a`` to a later access ``b`` of the same word; None:
    never.
    """
    if _never_equal(a, b):
        return None
    if a.terms == b.terms and len(a.terms) == 1:
        value, coef = a.terms[0]
        step = induction.get(value)
        if step:
            distance, rest = divmod(a.constant - b.constant, coef * step)
            return distance if rest == 0 and distance >= 1 else None
    return 1


def _inductions(block) -> dict[Inst, int]:
    """Phis of a loop that grow by the same constant in every iteration."""
    out: dict[Inst, int] = {}
    if not block.loop:
        return out
    for phi in block.insts:
        if phi.op != "phi":
            break
        step = phi.incoming.get("latch")
        while isinstance(step, Inst) and step.op in ("zext", "sext", "trunc"):
            step = step.args[0]
        if isinstance(step, Inst) and step.op == "add" and isinstance(step.args[1], Const):
            base = step.args[0]
            while isinstance(base, Inst) and base.op in ("zext", "sext", "trunc"):
                base = base.args[0]
            if base is phi:
                out[phi] = step.args[1].signed
    return out


# ---------------------------------------------------------------------- streams and ports
def channel(inst: Inst) -> tuple:
    """What a blocking operation occupies for its cycle."""
    return (inst.op, inst.aux["port"])


def _channels(block, deps: list[Dep]) -> None:
    last: dict = {}
    first: dict = {}
    guards = block.loop.bdd if block.loop else None
    writes: list[Inst] = []  # not yet followed by a later read
    reads: list[Inst] = []
    for inst in block.insts:
        if inst.op not in BLOCKING:
            continue
        key = channel(inst)
        group = last.setdefault(key, [])
        for other in group:
            if not (guards and guards.exclusive(other.guard, inst.guard)):
                deps.append(Dep(other, inst, 1, 0))
        group.append(inst)
        first.setdefault(key, inst)
        if inst.op in ("rd", "mrd", "mwb"):
            deps.extend(Dep(w, inst, 1, 0) for w in writes)
            reads.append(inst)
        else:
            deps.extend(Dep(r, inst, 0, 0) for r in reads)
            writes.append(inst)
    if block.loop:
        for group in last.values():
            deps.extend(Dep(a, b, 1, 1) for a in group for b in group)
        _answers(last, deps)


# An access that waits for what an earlier iteration asked for: were it an earlier stage of the
# pipeline, the stall would hold back the very request.
_ANSWERS = {"mrd": ("mrq",), "mwb": ("mwq", "mwr")}


def _answers(groups: dict, deps: list[Dep]) -> None:
    for (op, port), waiting in groups.items():
        for asked in _ANSWERS.get(op, ()):
            deps.extend(Dep(a, b, 1, 1) for a in groups.get((asked, port), []) for b in waiting)
