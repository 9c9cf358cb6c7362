"""Local clean-up: folding, value numbering with reuse of loads, removal of what nothing uses.

The optimiser did the real work; this pass tidies up what address arithmetic, predicates and
narrowing add.
"""

from __future__ import annotations

from .ir import EFFECTS, PURE, Const, Function, Inst, Undefined

_COMMUTATIVE = frozenset("add mul and or xor smin smax umin umax".split())
_SHIFTS = frozenset("shl lshr ashr".split())
_MAX_AMOUNTS = 6  # a shift by one of so many constants is taken apart


def simplify(function: Function) -> None:
    """Fold, number and clean until the next pass; linear in the number of operations."""
    _Numbering(function).run()
    remove_dead(function)


def evaluate(op: str, width: int, args: list[Const], aux) -> int | None:
    """The value of a pure operation on constants (None if this function does not know it)."""
    a = args[0].value
    b = args[1].value if len(args) > 1 else 0
    if op in ("add", "sub", "mul", "and", "or", "xor"):
        return {"add": a + b, "sub": a - b, "mul": a * b, "and": a & b, "or": a | b, "xor": a ^ b}[
            op
        ]
    if op in ("shl", "lshr", "ashr"):
        if b >= width:
            return 0
        return {"shl": a << b, "lshr": a >> b, "ashr": args[0].signed >> b}[op]
    if op in ("zext", "trunc"):
        return a
    if op == "sext":
        return args[0].signed
    if op == "slice":
        return a >> aux
    if op == "icmp":
        return int(compare(aux, args[0], args[1]))
    if op == "select":
        return args[1].value if a else args[2].value
    if op in ("smin", "smax"):
        return (min if op == "smin" else max)(args[0].signed, args[1].signed)
    if op in ("umin", "umax"):
        return (min if op == "umin" else max)(a, b)
    if op == "concat":
        total, at = 0, 0
        for piece in args:
            total |= piece.value << at
            at += piece.width
        return total
    return None


def compare(cc: str, a: Const, b: Const) -> bool:
    x, y = (a.signed, b.signed) if cc[0] == "s" else (a.value, b.value)
    return {"eq": x == y, "ne": x != y, "gt": x > y, "ge": x >= y, "lt": x < y, "le": x <= y}[
        cc[-2:]
    ]


def fold(inst: Inst):
    """A simpler operand that equals the result, or None; may rewrite the instruction in place."""
    args, op = inst.args, inst.op
    if op == "select" and any(isinstance(a, Undefined) for a in args[1:]):
        return args[2] if isinstance(args[1], Undefined) else args[1]
    if op in PURE and all(isinstance(a, Const) for a in args) and not (op == "mul" and inst.aux):
        value = evaluate(op, inst.width, args, inst.aux)
        if value is not None:
            return Const(value, inst.width)
    handler = _FOLDS.get(op)
    return handler(inst) if handler else None


def _fold_cast(inst: Inst):
    source = inst.args[0]
    if source.width == inst.width:
        return source
    if isinstance(source, Const):
        return None
    if inst.op == "trunc":
        if source.op in ("zext", "sext"):
            inner = source.args[0]
            if inner.width == inst.width:
                return inner
            inst.op, inst.args = ("trunc" if inner.width > inst.width else source.op), [inner]
        elif source.op == "trunc":
            inst.args = [source.args[0]]
        elif source.op == "slice":
            inst.op, inst.args, inst.aux = "slice", [source.args[0]], source.aux
        elif source.op == "concat" and source.args[0].width == inst.width:
            return source.args[0]
    elif source.op == inst.op or (inst.op == "sext" and source.op == "zext"):
        inst.op, inst.args = source.op, [source.args[0]]
    return None


def _fold_slice(inst: Inst):
    source, low = inst.args[0], inst.aux
    if source.width == inst.width:
        return source
    if isinstance(source, Const):
        return None
    if source.op == "slice":
        inst.args, inst.aux = [source.args[0]], low + source.aux
    elif source.op == "concat":
        at = 0
        for piece in source.args:
            if at <= low and low + inst.width <= at + piece.width:
                if piece.width == inst.width:
                    return piece
                inst.args, inst.aux = [piece], low - at
                return None
            at += piece.width
    elif source.op in ("zext", "sext"):
        inner = source.args[0]
        if low + inst.width <= inner.width:
            if inner.width == inst.width:
                return inner
            inst.args = [inner]
        elif source.op == "zext" and low >= inner.width:
            return Const(0, inst.width)
    return None


def _fold_logic(inst: Inst):
    a, b = inst.args
    if isinstance(a, Const):
        inst.args = [b, a]
        a, b = b, a
    ones = (1 << inst.width) - 1
    if a is b:
        return Const(0, inst.width) if inst.op == "xor" else a
    if not isinstance(b, Const):
        return None
    if b.value == 0:
        return b if inst.op == "and" else a
    if b.value == ones and inst.op != "xor":
        return a if inst.op == "and" else b
    if inst.op == "xor" and isinstance(a, Inst) and a.op == "xor" and isinstance(a.args[1], Const):
        other = Const(a.args[1].value ^ b.value, inst.width)
        if other.value == 0:
            return a.args[0]
        inst.args = [a.args[0], other]
    if inst.op == "and" and b.value & (b.value + 1) == 0 and inst.width > 1:
        low = Inst("trunc", b.value.bit_length(), [a], loc=inst.loc, name=inst.name + ".m")
        inst.op, inst.args = "zext", [low]
        inst.aux = None
        return ("before", low)
    return None


def _fold_arith(inst: Inst):
    a, b = inst.args
    if isinstance(a, Const) and inst.op != "sub" and not inst.aux:
        inst.args = [b, a]
        a, b = b, a
    if not isinstance(b, Const) or inst.aux:
        return None
    if b.value == 0:
        return b if inst.op == "mul" else a
    if inst.op == "mul" and b.value & (b.value - 1) == 0:
        if b.value == 1:
            return a
        inst.op, inst.args = "shl", [a, Const(b.value.bit_length() - 1, inst.width)]
    return None


def _fold_shift(inst: Inst):
    amount = inst.args[1]
    if not isinstance(amount, Const):
        return None
    if amount.value == 0:
        return inst.args[0]
    if amount.value >= inst.width and inst.op != "ashr":
        return Const(0, inst.width)
    if inst.op in ("lshr", "ashr") and amount.value < inst.width:
        part = Inst(
            "slice",
            inst.width - amount.value,
            [inst.args[0]],
            aux=amount.value,
            loc=inst.loc,
            name=inst.name + ".h",
        )
        inst.op, inst.args, inst.aux = ("zext" if inst.op == "lshr" else "sext"), [part], None
        return ("before", part)
    return None


def _fold_select(inst: Inst):
    cond, a, b = inst.args
    if isinstance(cond, Const):
        return a if cond.value else b
    if a is b or (isinstance(a, Const) and a == b):
        return a
    if inst.width == 1 and isinstance(a, Const) and isinstance(b, Const):
        if a.value:
            return cond
        inst.op, inst.args = "xor", [cond, Const(1, 1)]
    return None


def _fold_concat(inst: Inst):
    return inst.args[0] if len(inst.args) == 1 else None


_FOLDS = {
    "zext": _fold_cast,
    "sext": _fold_cast,
    "trunc": _fold_cast,
    "slice": _fold_slice,
    "concat": _fold_concat,
    "and": _fold_logic,
    "or": _fold_logic,
    "xor": _fold_logic,
    "add": _fold_arith,
    "sub": _fold_arith,
    "mul": _fold_arith,
    "shl": _fold_shift,
    "lshr": _fold_shift,
    "ashr": _fold_shift,
    "select": _fold_select,
}


def _num_amounts(operand) -> int:
    """How many constants a tree of selects chooses from; more than any limit if it is none."""
    if isinstance(operand, Const):
        return 1
    if operand.op != "select":
        return _MAX_AMOUNTS + 1
    return sum(map(_num_amounts, operand.args[1:]))


class _Numbering:
    """One walk over every block: fold, then reuse an equal earlier value of the same block."""

    def __init__(self, function: Function):
        self.function = function
        self.replaced: dict = {}

    def get(self, operand):
        while operand in self.replaced:
            operand = self.replaced[operand]
        return operand

    def run(self) -> None:
        for block in self.function.blocks.values():
            self.seen: dict = {}
            self.epoch: dict = {}
            self.out: list[Inst] = []
            for inst in block.insts:
                self.visit(inst)
            block.insts = self.out
        self.function.replace(self.replaced)

    def visit(self, inst: Inst) -> None:
        inst.args = [self.get(a) for a in inst.args]
        if inst.op == "phi":
            self.phi(inst)
            return
        if inst.pred is not None:
            inst.pred = self.get(inst.pred)
            if isinstance(inst.pred, Const):
                if not inst.pred.value and inst.op in EFFECTS:
                    if inst.width:
                        self.replaced[inst] = Const(0, inst.width)
                    return
                inst.pred = None if inst.pred.value else inst.pred
        if inst.op in _SHIFTS and 2 <= _num_amounts(inst.args[1]) <= _MAX_AMOUNTS:
            self.split_shift(inst)
        if inst.op == "icmp":
            self.test_of_a_bit(inst)
        for _ in range(8):
            before = inst.op
            result = fold(inst)
            if isinstance(result, tuple):
                self.visit(result[1])
                inst.args = [self.get(a) for a in inst.args]
            elif result is not None:
                self.replaced[inst] = result
                return
            elif inst.op == before:
                break
        key = self.key(inst)
        if key is not None:
            if key in self.seen:
                first = self.replaced[inst] = self.seen[key]
                if first.pred is not inst.pred:
                    first.pred = first.guard = None  # a load shared by two conditions always runs
                return
            self.seen[key] = inst
        if inst.op == "st":
            self.store(inst)
        self.out.append(inst)

    def test_of_a_bit(self, inst: Inst) -> None:
        """``(x & 2**k) != 0`` is bit k of x: a wire, no comparison."""
        masked, zero = inst.args
        if inst.aux not in ("eq", "ne") or not isinstance(masked, Inst) or masked.op != "and":
            return
        mask = masked.args[1]
        if not isinstance(mask, Const) or not isinstance(zero, Const) or zero.value:
            return
        if mask.value & (mask.value - 1) or not mask.value:
            return
        value, bit = masked.args[0], mask.value.bit_length() - 1
        picked = self.function.make("slice", 1, [value], aux=bit, loc=inst.loc)
        picked.block = inst.block
        self.visit(picked)
        picked = self.get(picked)
        inst.op, inst.args = "xor", [picked, Const(int(inst.aux == "eq"), 1)]
        inst.aux = None

    def split_shift(self, inst: Inst) -> None:
        """A shift by one of a few constants selects among what is shifted: wires, no shifter."""
        value, amount = inst.args
        shifted = []
        for choice in amount.args[1:]:
            shift = self.function.make(inst.op, inst.width, [value, choice], loc=inst.loc)
            shift.block = inst.block
            self.visit(shift)
            shifted.append(self.get(shift))
        inst.op, inst.aux, inst.args = "select", None, [amount.args[0], *shifted]

    def phi(self, inst: Inst) -> None:
        """A phi takes the low bits of its operands: look through extensions."""
        for source, value in inst.incoming.items():
            value = self.get(value)
            while (
                isinstance(value, Inst)
                and value.op in ("zext", "sext", "trunc")
                and value.args[0].width >= inst.width
            ):
                value = self.get(value.args[0])
            inst.incoming[source] = value
        self.out.append(inst)

    def key(self, inst: Inst):
        if inst.op in PURE:
            args = tuple(inst.args)
            if inst.op in _COMMUTATIVE and not (inst.op == "mul" and inst.aux):
                # equal constants are different objects: they come behind the values
                args = tuple(sorted(args, key=lambda a: (isinstance(a, Const), id(a))))
            return (
                inst.op,
                inst.width,
                args,
                inst.aux if inst.op in ("icmp", "slice", "mul") else None,
            )
        if inst.op == "ld":
            return (
                "ld",
                inst.aux.memory.name,
                inst.aux.bank,
                tuple(inst.args),
                self.version(inst.aux),
            )
        return None

    def version(self, access):
        """Changes with every store that may write what this access reads."""
        name, _ = key = access.key
        return (
            self.epoch.get(key, 0),
            self.epoch.get((name, "any"), 0),
            self.epoch.get((name, "all"), 0) if key[1] is None else 0,
        )

    def store(self, inst: Inst) -> None:
        name, which = key = inst.aux.key
        self.epoch[key] = self.epoch.get(key, 0) + 1
        if inst.aux.memory.is_registers:
            extra = (name, "any") if which is None else (name, "all")
            self.epoch[extra] = self.epoch.get(extra, 0) + 1


def remove_dead(function: Function) -> None:
    """Keep what an effect or a branch needs."""
    live, stack = set(), []
    for block in function.blocks.values():
        if isinstance(block.term.cond, Inst):
            stack.append(block.term.cond)
        stack.extend(i for i in block.insts if i.op in EFFECTS)
    while stack:
        inst = stack.pop()
        if inst in live:
            continue
        live.add(inst)
        operands = inst.operands() if not inst.incoming else inst.incoming.values()
        stack.extend(a for a in operands if isinstance(a, Inst) and a not in live)
    for block in function.blocks.values():
        block.insts = [i for i in block.insts if i in live]
