"""Simulation-only checks of promises: a dependence that a pragma denies must not happen.

The pragma lets the scheduler issue an access of a later iteration before one of an earlier
iteration. The check compares their addresses in the cycle of the earlier iteration's access, and
stops the simulation if they are equal.
"""

from __future__ import annotations

from collections import defaultdict

from .deps import carried_distance
from .values import Values


def check_dependences(values: Values, block, enable) -> list[str]:
    """Lines of a clocked block; ``enable(inst, time)`` is the condition that an access runs, seen
    from a later cycle.
    """
    lines: list[str] = []
    buckets: dict = defaultdict(list)
    for inst in block.insts:
        if inst.op in ("ld", "st") and inst.aux.memory.array.name in block.loop.dependences:
            buckets[inst.aux.memory.name, inst.aux.bank].append(inst)
    for accesses in buckets.values():
        for src in accesses:
            for dst in accesses:
                if "st" in (src.op, dst.op) and carried_distance(src.aux, dst.aux, {}) is not None:
                    lines += _pair(values, block, src, dst, enable)
    return lines


def _pair(values: Values, block, src, dst, enable) -> list[str]:
    """``src`` of iteration i must come before ``dst`` of iteration i + d, but is scheduled behind
    it for some d.
    """
    lines, delay, ii = [], int(src.op == "st"), block.loop.ii
    distance = 1
    while dst.time + distance * ii < src.time + delay:
        time = src.time - distance * ii
        if time >= 0:
            condition = " & ".join(
                [
                    enable(src, src.time),
                    enable(dst, time),
                    f"({values.at(src.args[0], block, src.time)} == "
                    f"{values.at(dst.args[0], block, time)})",
                ]
            )
            array = src.aux.memory.array.label
            text = (
                f"hlsc: {block.loop.location}: array '{array}': iterations {distance} apart do "
                f"depend on each other (lines {_line(src)} and {_line(dst)})"
            )
            lines.append(f'if (!stall & {condition}) $fatal(1, "{text}");')
        distance += 1
    return lines


def _line(inst) -> str:
    return str(inst.loc.line) if inst.loc else "?"
