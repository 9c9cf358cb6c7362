"""Index arithmetic as a constant plus a sum of coefficient times value.

Sums are exact modulo 2^32, which is enough for every address of an on-chip memory: an index inside
of its array is determined by its low bits. Extensions of values narrower than 32 bits are looked
through only if nothing can wrap.
"""

from __future__ import annotations

from collections.abc import Callable

from .ir import Const, Inst

EXACT_BITS = 32


def unsigned_max(operand, depth: int = 8) -> int:
    """An upper bound of the operand read as an unsigned number."""
    if isinstance(operand, Const):
        return operand.value
    full = (1 << operand.width) - 1
    if depth == 0 or operand.op is None:
        return full
    args = operand.args
    if operand.op == "zext":
        return unsigned_max(args[0], depth - 1)
    if operand.op == "trunc":
        return min(full, unsigned_max(args[0], depth - 1))
    if operand.op == "and":
        return min(unsigned_max(args[0], depth - 1), unsigned_max(args[1], depth - 1))
    if operand.op == "select":
        return max(unsigned_max(args[1], depth - 1), unsigned_max(args[2], depth - 1))
    bound = full
    if operand.op == "add" or (operand.op == "or" and operand.aux == "disjoint"):
        bound = unsigned_max(args[0], depth - 1) + unsigned_max(args[1], depth - 1)
    elif operand.op == "mul":
        bound = unsigned_max(args[0], depth - 1) * unsigned_max(args[1], depth - 1)
    elif operand.op == "shl" and isinstance(args[1], Const):
        bound = unsigned_max(args[0], depth - 1) << args[1].value
    elif operand.op == "lshr" and isinstance(args[1], Const):
        return unsigned_max(args[0], depth - 1) >> args[1].value
    return bound if bound <= full else full


def trailing_zeros(operand) -> int:
    """Low bits that are always 0."""
    if isinstance(operand, Const) or operand.op is None:
        return 0
    if operand.op == "and" and isinstance(operand.args[1], Const) and operand.args[1].value:
        mask = operand.args[1].value
        return max((mask & -mask).bit_length() - 1, trailing_zeros(operand.args[0]))
    if operand.op == "shl" and isinstance(operand.args[1], Const):
        return min(operand.args[1].value, operand.width - 1)
    return trailing_zeros(operand.args[0]) if operand.op == "zext" else 0


def expand(operand, halve: Callable[[Inst, int], Inst]) -> tuple[int, dict[Inst, int]]:
    """(constant, {value: coefficient}) of an index; ``halve(v, n)`` makes the value v >> n, whose
    low bits are known 0.
    """
    terms: dict[Inst, int] = {}
    constant = _expand(operand, 1, terms, 24)
    for value in [v for v in terms if trailing_zeros(v)]:
        zeros = trailing_zeros(value)
        part = halve(value, zeros)
        terms[part] = terms.get(part, 0) + (terms.pop(value) << zeros)
    return constant, {v: k for v, k in terms.items() if k}


def _expand(operand, scale: int, terms: dict, depth: int) -> int:
    if isinstance(operand, Const):
        return scale * operand.signed
    if depth and _transparent(operand):
        args = operand.args
        if operand.op in ("add", "or"):
            return _expand(args[0], scale, terms, depth - 1) + _expand(
                args[1], scale, terms, depth - 1
            )
        if operand.op == "sub":
            return _expand(args[0], scale, terms, depth - 1) + _expand(
                args[1], -scale, terms, depth - 1
            )
        if operand.op == "mul":
            return _expand(args[0], scale * args[1].signed, terms, depth - 1)
        if operand.op == "shl":
            return _expand(args[0], scale << args[1].value, terms, depth - 1)
        return _expand(args[0], scale, terms, depth - 1)
    terms[operand] = terms.get(operand, 0) + scale
    return 0


def _transparent(inst: Inst) -> bool:
    """May the sum be continued through this operation?"""
    op, args = inst.op, inst.args
    if op in ("mul", "shl") and not isinstance(args[1], Const):
        return False
    if op == "or" and inst.aux != "disjoint":
        return False
    if op in ("add", "sub", "mul", "shl", "or"):
        return inst.width >= EXACT_BITS or (op != "sub" and _cannot_wrap(inst))
    if op == "trunc":
        return inst.width >= EXACT_BITS
    if op == "zext":
        return args[0].width >= EXACT_BITS or _cannot_wrap(args[0])
    if op == "sext":
        source = args[0]
        return source.width >= EXACT_BITS or (
            _cannot_wrap(source) and unsigned_max(source) < 1 << (source.width - 1)
        )
    return False


def _cannot_wrap(inst) -> bool:
    """A narrow sum or product whose exact value fits, so that its terms can be taken apart."""
    if isinstance(inst, Const):
        return inst.signed >= 0
    if inst.op == "shl" and isinstance(inst.args[1], Const):
        return unsigned_max(inst.args[0]) << inst.args[1].value < 1 << inst.width
    if inst.op == "mul" and isinstance(inst.args[1], Const):
        return (
            unsigned_max(inst.args[0]) * inst.args[1].value < 1 << inst.width
            and inst.args[1].signed >= 0
        )
    if inst.op == "add" or (inst.op == "or" and inst.aux == "disjoint"):
        if any(isinstance(a, Const) and a.signed < 0 for a in inst.args):
            return False
        return unsigned_max(inst.args[0]) + unsigned_max(inst.args[1]) < 1 << inst.width
    return False
