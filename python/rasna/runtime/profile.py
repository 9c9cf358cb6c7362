"""Cycles per layer: what the compiler estimated beside what a run on RTL took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import isa
from ..cycles import instruction_cycles
from ..targets import get_target

if TYPE_CHECKING:
    from ..program import Program


@dataclass(frozen=True)
class LayerCycles:
    """One layer. estimated, measured: cycles of all its instructions for one image."""

    name: str
    operation: str
    num_instructions: int
    estimated: int
    measured: int


@dataclass(frozen=True)
class Profile:
    """Cycles of one image, layer by layer; ``print`` shows them as a table.

    Attributes
    ----------
    target : name of the target
    layers : rows in program order; the last one is the END instruction, "start and end"
    """

    target: str
    layers: tuple[LayerCycles, ...]

    @property
    def estimated(self) -> int:
        """Cycles of all layers by the formulas of docs/hardware.md."""
        return sum(layer.estimated for layer in self.layers)

    @property
    def measured(self) -> int:
        """Cycles of all layers as the RTL counted them."""
        return sum(layer.measured for layer in self.layers)

    def __str__(self) -> str:
        total = LayerCycles(
            "total", "", sum(n.num_instructions for n in self.layers), self.estimated, self.measured
        )
        width = max(len(layer.name) for layer in (*self.layers, total))
        lines = [f"{'layer':{width}}  operation  instr.   estimated    measured  difference"]
        for layer in (*self.layers, total):
            difference = ""  # a join that copies nothing has no instruction and takes no cycle
            if layer.estimated:
                difference = f"{100 * (layer.measured / layer.estimated - 1):+9.1f}%"
            row = (
                f"{layer.name:{width}}  {layer.operation:9}  {layer.num_instructions:6}  "
                f"{layer.estimated:10,}  {layer.measured:10,}  {difference}"
            )
            lines.append(row.rstrip())
        clock = get_target(self.target).clock_mhz
        lines.append(f"{self.measured / clock / 1000:.3f} ms at the {clock} MHz of {self.target}")
        return "\n".join(lines)


def make_profile(program: Program, counters: Sequence[int]) -> Profile:
    """Sum the cycles of instructions (``RuntimeCSim.counters``) up by the program's layers."""
    rows = []
    for layer in program.layers:
        first, count = layer["first_instruction"], layer["num_instructions"]
        rows.append(
            LayerCycles(
                layer["name"], layer["operation"], count, layer["cycles"],
                sum(counters[first : first + count]),
            )
        )
    end = instruction_cycles(isa.Opcode.END, {}, program.target)
    rows.append(LayerCycles("start and end", "", 1, end, counters[-1]))
    return Profile(program.target, tuple(rows))
