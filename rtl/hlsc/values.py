"""Names of values in time: which wire or register holds an operand in a given cycle, and the
registers this needs.
"""

from __future__ import annotations

from .errors import HlsError
from .ir import Const, Function, Inst
from .verilog import clean, expression, literal, low, vector

_REBUILT = frozenset(["zext", "sext"])  # cheaper to repeat where they are used than to register


def registers_operands(inst: Inst) -> bool:
    """A multiplication of several cycles: registers before it and behind it, as in a DSP block."""
    return inst.op == "mul" and inst.latency > 1


class Values:
    """Answers "what is this operand called in this cycle", and collects declarations and register
    updates.

    ``declarations`` and ``assigns`` are lines of the module; ``updates`` are lines of its clocked
    block, which runs only while the process does not stall, and so are ``delays``: registers that
    nothing else sets. These lie in blocks of their own, because synthesis takes time that grows
    with the square of a block.
    """

    def __init__(self, function: Function):
        self.function = function
        self.declarations: list[str] = []
        self.assigns: list[str] = []
        self.updates: list[str] = []
        self.delays: list[str] = []
        self.names: dict[Inst, str] = {}
        self.kept: dict[Inst, str] = {}  # registers of straight-line values, live-outs of loops
        self.delayed: dict[tuple, str] = {}
        self.states: set[str] = set()
        self.num_register_bits = 0
        self.block_names = {n: f"{k}_{clean(n)}" for k, n in enumerate(function.blocks)}

    # ------------------------------------------------------------------ names
    def name(self, inst: Inst) -> str:
        if inst not in self.names:
            self.names[inst] = f"{clean(inst.name)}_{len(self.names)}"
        return self.names[inst]

    def active(self, block, time: int) -> str:
        """The signal that says: this block executes its cycle ``time`` now."""
        name = self.block_names[block.name]
        if block.loop:
            return f"pv_{name}[{time}]" if block.num_cycles > 1 else f"pv_{name}"
        state = f"S_{name}_{time}"
        if state not in self.states:
            self.states.add(state)
            self.declarations.append(f"wire on_{state} = state_reg == {state};")
        return f"on_{state}"

    def register(self, name: str, width: int) -> None:
        self.declarations.append(f"logic {vector(width)}{name};")
        self.num_register_bits += width

    # ------------------------------------------------------------------ values
    @staticmethod
    def base(inst: Inst) -> int:
        """The cycle in which the result's wire is valid."""
        if inst.op == "ld":
            return inst.time + inst.latency
        return inst.time + 1 if registers_operands(inst) else inst.time

    def at(self, operand, block, time: int | None) -> str:
        """The operand's name in cycle ``time`` of ``block``; with block None, after everything has
        settled.
        """
        if isinstance(operand, Const):
            return literal(operand.value, operand.width)
        if operand.op == "arg":
            return f"arg_{clean(operand.name)}"
        if operand.op in _REBUILT:
            return self._rebuilt(operand, block, time)
        if operand.block is not block or block is None:
            return self._kept(operand)
        if operand.op == "phi":
            if not block.loop or time == operand.time:
                return f"r_{self.name(operand)}"
            return self._delay(operand, f"r_{self.name(operand)}", operand.time, time)
        base = self.base(operand)
        if time < base:
            raise HlsError(
                operand.loc,
                f"internal: {operand} is read in cycle {time} of {block.name}, before it is ready",
            )
        if time == base:
            return f"w_{self.name(operand)}"
        if block.loop:
            return self._delay(operand, f"w_{self.name(operand)}", base, time)
        return self._kept(operand)

    def _rebuilt(self, inst: Inst, block, time) -> str:
        source = self.at(inst.args[0], block if inst.block is block else None, time)
        key = (inst, source)
        if key not in self.delayed:
            name = self.delayed[key] = f"e_{self.name(inst)}_{len(self.delayed)}"
            self.declarations.append(
                f"wire {vector(inst.width)}{name} = {expression(inst, [source])};"
            )
        return self.delayed[key]

    def _delay(self, inst: Inst, source: str, start: int, time: int) -> str:
        """The value of a loop's operation, ``time - start`` cycles later."""
        for cycle in range(start + 1, time + 1):
            key = (inst, cycle)
            if key not in self.delayed:
                self.delayed[key] = f"p{cycle}_{self.name(inst)}"
                self.register(self.delayed[key], inst.width)
                self.delays.append(f"{self.delayed[key]} <= {source};")
            source = self.delayed[key]
        return source

    def _kept(self, inst: Inst) -> str:
        """A register with the value for other blocks, and for later cycles of a straight-line
        block.
        """
        if inst.op == "phi" and not inst.block.loop:
            return f"r_{self.name(inst)}"
        if inst not in self.kept:
            name = self.kept[inst] = f"k_{self.name(inst)}"
            self.register(name, inst.width)
            wire = ("r_" if inst.op == "phi" else "w_") + self.name(inst)
            first = self.base(inst)
            last = max(first, inst.time + inst.latency - 1)
            source = wire if last == first else self._delay(inst, wire, first, last)
            self.updates.append(f"if ({self.active(inst.block, last)}) {name} <= {source};")
        return self.kept[inst]

    def narrow(self, operand, width: int, block, time: int | None) -> str:
        """The low ``width`` bits of an operand."""
        if isinstance(operand, Const):
            return literal(operand.value, width)
        return low(self.at(operand, block, time), operand.width, width)
