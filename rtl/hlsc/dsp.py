"""What a DSP block adds to its product: such a sum needs no adder of its own.

A DSP block has registers behind operands, product and sum. A product of three cycles whose only
use is one addition leaves the last register to the sum, which then is there in the same cycle as
the product would have been.
"""

from __future__ import annotations

from collections import defaultdict

from .ir import Const, Function, Inst

_SUM_BITS = 48
_WIDENING = frozenset(["zext", "sext"])
_CUTS = frozenset(["trunc", "slice"])


def uses_of(insts) -> dict[Inst, list[Inst]]:
    """The operations that read a value; a phi and a predicate read it as well."""
    uses: dict[Inst, list[Inst]] = defaultdict(list)
    for inst in insts:
        others = [inst.asked] + list(inst.incoming.values() if inst.incoming else ())
        for operand in [*inst.operands(), *others]:
            if isinstance(operand, Inst):
                uses[operand].append(inst)
    return uses


def share_sums(function: Function) -> None:
    """``product + 2**k`` has the product's bits below k: who reads only those takes them from the
    sum, so that the product has one use.
    """
    for block in function.blocks.values():
        uses, here = uses_of(block.insts), set(block.insts)
        for inst in list(block.insts):
            if inst.op != "add" or not isinstance(inst.args[1], Const):
                continue
            product, value = inst.args[0], inst.args[1].value
            others = [u for u in uses.get(product, ()) if u is not inst]
            if not others or product.op != "mul" or product not in here:
                continue
            same = value.bit_length() - 1 if value & (value - 1) == 0 else 0
            if all(u.op in _CUTS and _end(u) <= same for u in others):
                block.insts.remove(inst)
                block.insts.insert(block.insts.index(product) + 1, inst)
                for cut in others:
                    cut.args[0] = inst


def _end(cut: Inst) -> int:
    """The first bit of its operand that a trunc or slice does not take."""
    return cut.width + (cut.aux if cut.op == "slice" else 0)


def sums_of_products(insts: list[Inst], is_slow) -> dict[Inst, Inst]:
    """{addition: product} for all that a DSP block can do by itself. ``is_slow`` tells for a
    product whether it takes the registers of a DSP block.
    """
    uses, found = uses_of(insts), {}
    for product in insts:
        if product.op != "mul" or not is_slow(product):
            continue
        value = product
        while len(uses[value]) == 1 and uses[value][0].op in _WIDENING:
            value = uses[value][0]
        users = uses[value]
        if len(users) != 1 or users[0].op != "add" or users[0].width > _SUM_BITS:
            continue
        if users[0] not in found and users[0].args[0] is not users[0].args[1]:
            found[users[0]] = product
    return found
