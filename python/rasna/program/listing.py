"""``print(program)``: an aligned table of the layers, with totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import isa

if TYPE_CHECKING:
    from .program import Program

# heading, key of the layer, right-aligned
_COLUMNS = (
    ("layer", "name", False),
    ("operation", "operation", False),
    ("input", "input_shapes", False),
    ("output", "output_shape", False),
    ("weights", "weights", True),
    ("non-zero", "nonzeros", True),
    ("cycles", "cycles", True),
    ("bytes", "bytes", True),
    ("instr.", "num_instructions", True),
    ("mapping", "mapping", False),
)
_TOTALS = ("weights", "nonzeros", "cycles", "bytes", "num_instructions")


def program_text(program: Program) -> str:
    """The text of ``print(program)``."""
    lines = [
        f"Program for {program.target} (configuration {program.config_hash}, "
        f"ISA {program.isa_version}, compiler {program.compiler_version or 'unknown'})",
        *(f"input   {port}" for port in program.inputs),
        *(f"output  {port}" for port in program.outputs),
        *(f"host    {step}" for step in program.host_steps),
        f"memory  program {_bytes(program.words.size)}, input {_bytes(program.input_words)}, "
        f"output {_bytes(program.output_words)}, scratch {_bytes(program.scratch_words)} bytes",
    ]
    if program.host_steps:
        lines.append(f"returns {', '.join(program.results)}")
    if program.layers:
        lines += ["", *_table(program.layers)]
    return "\n".join(lines)


def _bytes(words: int) -> str:
    return f"{words * isa.WORD_BYTES:,}"


def _table(layers: list[dict[str, Any]]) -> list[str]:
    rows = [[heading for heading, _, _ in _COLUMNS]]
    rows += [[_cell(layer.get(key)) for _, key, _ in _COLUMNS] for layer in layers]
    totals = {key: sum(layer.get(key) or 0 for layer in layers) for key in _TOTALS}
    totals["name"] = "total"
    rows.append([_cell(totals.get(key)) for _, key, _ in _COLUMNS])
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, (_, _, right) in zip(row, widths, _COLUMNS, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    rule = "-" * max(map(len, lines))
    return [lines[0], rule, *lines[1:-1], rule, lines[-1]]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (list, tuple)):
            return " ".join(_cell(v) for v in value)
        return "x".join(map(str, value))
    return str(value)
