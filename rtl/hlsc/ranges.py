"""Value ranges: for every operation the smallest and largest signed value that it can have.

A forward fixpoint with widening. Values that stay in a loop (or go down a branch) are refined by
its condition.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from .ir import Const, Function, Inst

_MAX_GROWTH = 8
_INVERSE = {
    "eq": "ne",
    "ne": "eq",
    "slt": "sge",
    "sge": "slt",
    "sgt": "sle",
    "sle": "sgt",
    "ult": "uge",
    "uge": "ult",
    "ugt": "ule",
    "ule": "ugt",
}
_SWAPPED = {
    "eq": "eq",
    "ne": "ne",
    "slt": "sgt",
    "sgt": "slt",
    "sle": "sge",
    "sge": "sle",
    "ult": "ugt",
    "ugt": "ult",
    "ule": "uge",
    "uge": "ule",
}


def full(width: int) -> tuple[int, int]:
    """Every signed value of a width."""
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def bits_needed(lo: int, hi: int) -> tuple[int, bool]:
    """(bits, signed) of the narrowest type that holds a range."""
    if lo >= 0:
        return max(1, hi.bit_length()), False
    return max(hi.bit_length(), (-lo - 1).bit_length()) + 1, True


class Ranges:
    """Ranges of one function; call the object with an operand."""

    def __init__(self, function: Function):
        self.function = function
        self.known: dict[Inst, tuple[int, int]] = {}
        self.growth: dict[Inst, int] = {}
        self.thresholds = self._thresholds()
        changed, sweeps = True, 0
        while changed:
            changed = any([self._sweep(block) for block in function.blocks.values()])
            sweeps += 1
            if sweeps > 200:
                self.known.clear()
                break

    def __call__(self, operand) -> tuple[int, int]:
        if isinstance(operand, Const):
            return operand.signed, operand.signed
        return self.known.get(operand) or full(operand.width)

    def _thresholds(self) -> list[int]:
        """Constants that conditions compare with: where growing ranges pause."""
        out = {0, -1}
        for block in self.function.blocks.values():
            for inst in block.insts:
                if inst.op == "icmp":
                    for arg in inst.args:
                        if isinstance(arg, Const):
                            out |= {arg.signed - 1, arg.signed, arg.signed + 1}
        return sorted(out)

    def _sweep(self, block) -> bool:
        changed = False
        for inst in block.insts:
            if not inst.width:
                continue
            old = self.known.get(inst)
            if inst.op == "phi":
                new = self._phi(inst, block)
            elif any(
                isinstance(a, Inst) and a.width and a.op != "arg" and a not in self.known
                for a in inst.args
            ):
                continue
            else:
                new = _transfer(inst, [self(a) for a in inst.args])
            if new is None or new == old:
                continue
            if old:
                new = self._widen(inst, old, (min(old[0], new[0]), max(old[1], new[1])))
            if new != old:
                self.known[inst], changed = new, True
        return changed

    def _widen(self, inst: Inst, old, new):
        count = self.growth[inst] = self.growth.get(inst, 0) + 1
        if inst.op != "phi" and count < 64:
            return new
        lo, hi = full(inst.width)
        if count > _MAX_GROWTH:
            return (lo if new[0] < old[0] else new[0], hi if new[1] > old[1] else new[1])
        if new[1] > old[1]:
            at = bisect_left(self.thresholds, new[1])
            new = (new[0], min(hi, self.thresholds[at]) if at < len(self.thresholds) else hi)
        if new[0] < old[0]:
            at = bisect_right(self.thresholds, new[0]) - 1
            new = (max(lo, self.thresholds[at]) if at >= 0 else lo, new[1])
        return new

    def _phi(self, inst: Inst, block):
        total = None
        for source, value in inst.incoming.items():
            if isinstance(value, Inst) and value.op != "arg" and value not in self.known:
                continue
            lo, hi = self(value)
            lo, hi = self._refine(value, lo, hi, source, block)
            if lo > hi:
                continue
            if lo < full(inst.width)[0] or hi > full(inst.width)[1]:
                return full(inst.width)  # the phi takes the low bits of a wider value
            total = (lo, hi) if total is None else (min(lo, total[0]), max(hi, total[1]))
        return total

    def _refine(self, value, lo: int, hi: int, source: str, block):
        """Narrow a value on the edge ``source`` -> ``block`` by the branch condition."""
        if isinstance(value, Const):
            return lo, hi
        if source == "latch":
            return _assume(value, lo, hi, block.term.cond, True, self, 6)
        term = self.function.blocks[source].term
        if term.kind == "cbr" and term.targets[0] != term.targets[1]:
            return _assume(value, lo, hi, term.cond, term.targets[0] == block.name, self, 6)
        if term.kind == "loop":
            return _assume(value, lo, hi, term.cond, False, self, 6)
        return lo, hi


def _assume(value, lo, hi, cond, truth: bool, ranges, depth: int):
    """Range of ``value`` given that ``cond`` is ``truth``."""
    if isinstance(cond, Const) or depth == 0:
        return lo, hi
    if cond.op == "xor" and cond.width == 1 and isinstance(cond.args[1], Const):
        return _assume(
            value, lo, hi, cond.args[0], truth ^ bool(cond.args[1].value), ranges, depth - 1
        )
    if (cond.op == "and" and truth or cond.op == "or" and not truth) and cond.width == 1:
        for part in cond.args:
            lo, hi = _assume(value, lo, hi, part, truth, ranges, depth - 1)
        return lo, hi
    if cond.op != "icmp":
        return lo, hi
    cc = cond.aux if truth else _INVERSE[cond.aux]
    if cond.args[0] is value:
        other = cond.args[1]
    elif cond.args[1] is value:
        other, cc = cond.args[0], _SWAPPED[cc]
    else:
        return lo, hi
    return _clip(lo, hi, cc, *ranges(other))


def _clip(lo, hi, cc, other_lo, other_hi):
    if cc[0] == "u":
        if cc in ("ult", "ule") and other_lo >= 0:  # then the value is not negative either
            return max(lo, 0), min(hi, other_hi - (cc == "ult"))
        if lo < 0 or other_lo < 0:
            return lo, hi
    if cc == "eq":
        return max(lo, other_lo), min(hi, other_hi)
    if cc == "ne":
        if other_lo == other_hi == hi:
            hi -= 1
        elif other_lo == other_hi == lo:
            lo += 1
        return lo, hi
    kind = cc[1:]
    if kind in ("lt", "le"):
        return lo, min(hi, other_hi - (kind == "lt"))
    return max(lo, other_lo + (kind == "gt")), hi


def _transfer(inst: Inst, a: list[tuple[int, int]]) -> tuple[int, int]:
    """Range of a result from the ranges of its operands."""
    width, op = inst.width, inst.op
    lo, hi = full(width)
    result = None
    if op == "sext":
        result = a[0]
    elif op == "zext":
        result = a[0] if a[0][0] >= 0 else (0, (1 << inst.args[0].width) - 1)
    elif op == "trunc":
        result = a[0]
    elif op == "slice":
        result = (a[0][0] >> inst.aux, a[0][1] >> inst.aux)
    elif op == "add":
        result = (a[0][0] + a[1][0], a[0][1] + a[1][1])
    elif op == "sub":
        result = (a[0][0] - a[1][1], a[0][1] - a[1][0])
    elif op == "mul" and not inst.aux:
        products = [x * y for x in a[0] for y in a[1]]
        result = (min(products), max(products))
    elif op in ("and", "or", "xor"):
        result = _logic(op, a)
    elif op == "shl" and isinstance(inst.args[1], Const) and inst.args[1].value < width:
        by = inst.args[1].value
        result = (a[0][0] << by, a[0][1] << by)
    elif op == "lshr" and a[0][0] >= 0:
        result = (0, a[0][1])
    elif op == "ashr":
        result = (min(a[0][0], 0), max(a[0][1], 0)) if a[0][0] < 0 else (0, a[0][1])
    elif op == "select":
        result = (min(a[1][0], a[2][0]), max(a[1][1], a[2][1]))
    elif op == "smin":
        result = (min(a[0][0], a[1][0]), min(a[0][1], a[1][1]))
    elif op == "smax":
        result = (max(a[0][0], a[1][0]), max(a[0][1], a[1][1]))
    elif op in ("umin", "umax") and a[0][0] >= 0 and a[1][0] >= 0:
        pick = min if op == "umin" else max
        result = (pick(a[0][0], a[1][0]), pick(a[0][1], a[1][1]))
    if result is None or result[0] < lo or result[1] > hi:
        return lo, hi
    return result


def _logic(op: str, a):
    """And, or, xor: by the bits that non-negative operands can have."""
    if op == "and":
        bounds = [r[1] for r in a if r[0] >= 0]
        if bounds:
            return 0, min(bounds)
    if a[0][0] >= 0 and a[1][0] >= 0:
        return 0, (1 << max(a[0][1].bit_length(), a[1][1].bit_length())) - 1
    bits = max(bits_needed(*r)[0] + (r[0] >= 0) for r in a)
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
