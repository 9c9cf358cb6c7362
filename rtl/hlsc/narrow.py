"""Narrowing: every operation is computed in as few bits as its users look at and its range needs.

Two facts meet here: demanded bits (backwards: nobody looks at the high bits) and ranges (forwards:
the high bits are copies of the sign). An operation that shrinks is followed by an extension back to
its old width, which costs nothing and folds into its users.
"""

from __future__ import annotations

from .ir import EFFECTS, Const, Function, Inst
from .ranges import Ranges, bits_needed

_LOW = frozenset(
    "add sub and or xor select phi".split()
)  # low result bits depend on equally low operand bits
_ORDER = frozenset("smin smax umin umax".split())


def narrow(function: Function) -> None:
    """Shrink operations in place; :func:`hlsc.simplify.simplify` should follow."""
    _Narrowing(function, Ranges(function), demanded_bits(function)).run()


def demanded_bits(function: Function) -> dict[Inst, int]:
    """For every operation how many of its low bits can matter."""
    demand: dict[Inst, int] = {}
    stack: list[Inst] = []

    def need(operand, bits: int) -> None:
        if isinstance(operand, Inst):
            bits = min(bits, operand.width)
            if demand.get(operand, 0) < bits:
                demand[operand] = bits
                stack.append(operand)

    for block in function.blocks.values():
        need(block.term.cond, 1 << 30)
        for inst in block.insts:
            if inst.op in EFFECTS:
                for operand in inst.operands():
                    need(operand, operand.width)
    while stack:
        inst = stack.pop()
        bits = demand[inst]
        for operand, num in _demands(inst, bits):
            need(operand, num)
    return demand


def _demands(inst: Inst, bits: int):
    """[(operand, low bits needed)] if the low ``bits`` of the result are needed."""
    op, args = inst.op, inst.args
    if op == "phi":
        return [(v, bits) for v in inst.incoming.values()]
    if op == "select":
        return [(args[0], 1), (args[1], bits), (args[2], bits)]
    if op == "and" and isinstance(args[1], Const):
        return [(args[0], min(bits, args[1].value.bit_length()))]
    if op in ("add", "sub", "and", "or", "xor", "trunc", "zext", "sext"):
        return [(a, bits) for a in args]
    if op == "mul":
        return [(a, bits if not inst.aux else a.width) for a in args]
    if op == "shl" and isinstance(args[1], Const):
        return [(args[0], max(1, bits - args[1].value))]
    if op == "slice":
        return [(args[0], inst.aux + bits)]
    if op == "concat":
        out, at = [], 0
        for piece in args:
            if at < bits:
                out.append((piece, min(piece.width, bits - at)))
            at += piece.width
        return out
    return [(a, a.width) for a in inst.operands()]


class _Narrowing:
    def __init__(self, function: Function, ranges: Ranges, demand: dict[Inst, int]):
        self.function, self.ranges, self.demand = function, ranges, demand
        self.replaced: dict = {}
        self.memo: dict = {}

    def run(self) -> None:
        for block in self.function.blocks.values():
            self.out: list[Inst] = []
            self.memo = {}
            for inst in block.insts:
                self.visit(inst)
            phis = [i for i in self.out if i.op == "phi"]
            block.insts = phis + [i for i in self.out if i.op != "phi"]
        self.function.replace(self.replaced)
        for block in self.function.blocks.values():
            for inst in block.insts:
                inst.args = [a.inst if isinstance(a, _Hold) else a for a in inst.args]

    def visit(self, inst: Inst) -> None:
        if inst.op in _LOW or inst.op in _ORDER or inst.op in ("mul", "slice", "shl"):
            bits, signed = self.target(inst)
            if bits < inst.width:
                self.shrink(inst, bits, signed)
                return
        if inst.op == "mul" and not inst.aux:
            self.shrink_factors(inst, inst.width)
        elif inst.op == "icmp":
            self.shrink_compare(inst)
        self.out.append(inst)

    def target(self, inst: Inst) -> tuple[int, bool]:
        """(bits, signed) that are enough for the result."""
        bits, signed = bits_needed(*self.ranges(inst))
        wanted = self.demand.get(inst, 1)
        if inst.op in _ORDER:
            bits = max([bits] + [bits_needed(*self.ranges(a))[0] for a in inst.args])
            if any(self.ranges(a)[0] < 0 for a in inst.args) or inst.op[0] == "s":
                bits = max([bits] + [_signed_bits(self.ranges(a)) for a in inst.args])
                if inst.op[0] == "u":
                    return inst.width, False
            return min(bits, inst.width), inst.op[0] == "s"
        if inst.op == "shl" and not isinstance(inst.args[1], Const):
            return inst.width, False
        return (wanted, False) if wanted < bits else (bits, signed)

    def whole(self, operand):
        """The operand in its old width, if it has shrunk already."""
        return self.replaced.get(operand, operand)

    def cast(self, operand, bits: int):
        """The low ``bits`` of an operand."""
        operand = self.whole(operand)
        if operand.width == bits:
            return operand
        if isinstance(operand, Const):
            return Const(operand.value, bits)
        key = (operand, bits)
        if key not in self.memo:
            self.memo[key] = self.function.make("trunc", bits, [operand], loc=operand.loc)
            self.out.append(self.memo[key])
        return self.memo[key]

    def shrink(self, inst: Inst, bits: int, signed: bool) -> None:
        """Compute in ``bits``; a phi takes the low bits of its operands by itself."""
        old_width, op = inst.width, inst.op
        wide = self.function.make("sext" if signed else "zext", old_width, [inst], loc=inst.loc)
        inst.width = bits
        if op == "phi":
            inst.incoming = {
                source: Const(v.value, bits) if isinstance(v, Const) else v
                for source, v in inst.incoming.items()
            }
        elif op == "select":
            inst.args = [inst.args[0], self.cast(inst.args[1], bits), self.cast(inst.args[2], bits)]
        elif op == "mul":
            self.shrink_factors(inst, bits)
        elif op == "shl":
            amount = inst.args[1].value
            inst.args = [self.cast(inst.args[0], bits), Const(amount, 32)]
            if amount >= bits:
                inst.op, inst.args = "and", [inst.args[0], Const(0, bits)]
        elif op != "slice":
            inst.args = [self.cast(a, bits) for a in inst.args]
        self.out.append(inst)
        self.out.append(wide)
        self.replaced[inst] = wide
        wide.args = [_Hold(inst)]

    def shrink_factors(self, inst: Inst, bits: int) -> None:
        """A product: each factor in its own range's bits, with a flag how to extend it."""
        signs, args = [], []
        for factor in inst.args:
            num, signed = bits_needed(*self.ranges(factor))
            num = min(num, bits, self.whole(factor).width)
            args.append(self.cast(factor, num))
            signs.append(signed)
        inst.args, inst.aux = args, tuple(signs)

    def shrink_compare(self, inst: Inst) -> None:
        a, b = (self.ranges(x) for x in inst.args)
        cc, width = inst.aux, self.whole(inst.args[0]).width
        if a[0] >= 0 and b[0] >= 0:
            bits = max(bits_needed(*a)[0], bits_needed(*b)[0])
            cc = cc if cc in ("eq", "ne") else "u" + cc[1:]
        elif cc[0] != "u":
            bits = max(_signed_bits(a), _signed_bits(b))
        else:
            return
        if bits < width:
            inst.args, inst.aux = [self.cast(x, bits) for x in inst.args], cc


class _Hold:
    """Keeps the operand of an extension out of the replacement of its own source."""

    __slots__ = ("inst",)

    def __init__(self, inst):
        self.inst = inst


def _signed_bits(bounds) -> int:
    num, signed = bits_needed(*bounds)
    return num if signed else num + 1
