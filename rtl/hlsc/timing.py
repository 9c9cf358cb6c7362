"""Delay model: how long an operation takes, in nanoseconds of a mid-range FPGA, and in how many
cycles.

The figures are estimates for scheduling only; they decide where registers go, never what is
computed.
"""

from __future__ import annotations

from .errors import HlsError
from .ir import Const, Inst

USABLE = (
    0.84  # share of the clock period that operations may fill; the rest is setup time and routing
)
DSP_ADD_NS = 1.8  # the adder of a DSP block, between two of its registers
_FREE = frozenset("zext sext trunc slice concat phi".split())


def timing(inst: Inst, budget_ns: float) -> tuple[float, int, float]:
    """(combinational ns, latency in cycles, ns after the clock edge at which a registered result is
    ready).
    """
    op, args = inst.op, inst.args
    if op in _FREE:
        return 0.0, 0, 0.0
    if op in ("and", "or", "xor"):
        if inst.aux == "disjoint" or isinstance(args[1], Const):  # absorbed by what follows
            return 0.0, 0, 0.0
        return 0.4, 0, 0.0
    if op in ("add", "sub"):
        return 0.7 + 0.02 * inst.width, 0, 0.0
    if op == "icmp":
        if _is_sign(inst):
            return 0.0, 0, 0.0
        return 0.7 + 0.015 * args[0].width, 0, 0.0
    if op == "select":
        return 0.5, 0, 0.0
    if op in ("smin", "smax", "umin", "umax"):
        return 1.2 + 0.015 * inst.width, 0, 0.0
    if op in ("shl", "lshr", "ashr"):
        return (0.0 if isinstance(args[1], Const) else 0.35 * inst.width.bit_length()), 0, 0.0
    if op == "mul":
        return _multiply(inst, budget_ns)
    if op == "ld":
        return _load(inst)
    if op in ("rd", "mrd"):
        return 0.8, 0, 0.0
    if op in ("st", "wr", "out", "mrq", "mwq", "mwr", "mwb"):
        return 0.4, 0, 0.0
    raise HlsError(inst.loc, f"internal: no delay for {op}")


def _is_sign(inst: Inst) -> bool:
    """A comparison that is the top bit of its operand."""
    limit = {"slt": 0, "sge": 0, "sgt": -1, "sle": -1}.get(inst.aux)
    other = inst.args[1]
    return limit is not None and isinstance(other, Const) and other.signed == limit


def _multiply(inst: Inst, budget_ns: float) -> tuple[float, int, float]:
    """A product is registered. Wide ones get the three registers of a DSP block: operands, product
    and result.
    """
    widest = max(a.width for a in inst.args)
    total_ns = 3.0 if widest <= 18 else 4.0 + 0.15 * max(0, widest - 25)
    if widest <= 18 and total_ns <= budget_ns:
        return total_ns, 1, 0.0
    cycles = 3
    while (cycles - 1) * budget_ns < total_ns:
        cycles += 1
    return 0.4, cycles, 0.0


def _load(inst: Inst) -> tuple[float, int, float]:
    memory = inst.aux.memory
    if not memory.is_registers:
        return 0.8, 1, 1.0
    if isinstance(inst.args[0], Const):
        return 0.3, 0, 0.0
    return 0.3 + 0.35 * memory.addr_bits, 0, 0.0
