"""docs/support.md, written from the cases and what the compiler says of each."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

from rasna.compile.pipeline import Compiled, quantize_model
from rasna.compile.settings import Settings
from rasna.errors import CompileError
from tests.support.cases import SECTIONS, Case, model_of

HEADER = """# Support matrix

Which operations compile, in which spellings, and why others do not. Written by `make generate`
from what the compiler says; `make lint` notices when it is out of date. **Every row is a test**:
supported ones have to agree with PyTorch within the bound that [numerics.md](numerics.md)
describes, refused ones have to say exactly what the row says, with FX node and source line.

The operation of a row reads an input of the model. Behind other layers the same message says,
instead of "apply it to the input in PyTorch", where to end the compiled model: `until='conv2'`.

To run a row: `pytest tests/support -k NAME` with the name in its last column. `x` and `y` are
inputs, other letters parameters.
"""
TABLE = "| operation | | code | | reason, and what to do | test |\n|---|---|---|---|---|---|\n"


@dataclass(frozen=True)
class Row:
    """A case and the verdict: reason and remedy are empty where it is supported."""

    case: Case
    reason: str = ""
    remedy: str = ""


def compile_case(case: Case) -> Compiled:
    """The case through the compiler; raises CompileError where it is refused."""
    model, samples = model_of(case)
    return quantize_model(model, samples, Settings())


def row_of(case: Case) -> Row:
    """What the compiler says of a case. Several problems: the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile_case(case)
        except CompileError as error:
            first = error.problems[0]
            return Row(case, first.reason, first.remedy)
    return Row(case)


def page() -> str:
    """The text of docs/support.md."""
    text = HEADER
    for title, cases in SECTIONS.items():
        rows = [row_of(case) for case in cases]
        count = sum(not row.reason for row in rows)
        text += f"\n## {title}\n\n{count} of {len(rows)} rows are supported.\n\n"
        text += TABLE + "".join(_line(row) for row in rows)
    return text


def why(reason: str, remedy: str) -> str:
    """A refusal as messages word it."""
    return f"{reason}; {remedy}"


def _line(row: Row) -> str:
    case = row.case
    verdict = "refused" if row.reason else "yes"
    reason = why(row.reason, row.remedy) if row.reason else ""
    attribute = "" if case.attribute == case.code else case.attribute
    cells = [case.operation, attribute, f"`{case.code}`", verdict, reason, f"`{case.name}`"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def read_verdicts(text: str) -> dict[str, tuple[str, str]]:
    """Name of every row of a page to (verdict, reason and remedy)."""
    found = {}
    for line in text.splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 6 and cells[5].startswith("`"):
            found[cells[5].strip("`")] = (cells[3], cells[4].replace("\\|", "|"))
    return found
