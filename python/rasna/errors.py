"""The exceptions of Rasna.

Every one derives from :class:`RasnaError`. Those that report a wrong argument or a wrong
file are ValueErrors too, so that generic code that catches ValueError keeps working.
"""

from __future__ import annotations

from . import isa


class RasnaError(Exception):
    """Base class of all errors that Rasna raises on purpose."""


class RasnaValueError(RasnaError, ValueError):
    """An argument has the right type and a wrong value."""


class RasnaTypeError(RasnaError, TypeError):
    """An argument has a wrong type."""


class RasnaFileError(RasnaError, ValueError):
    """A file is missing, damaged, not a Rasna file, or cannot be written."""


class TuneError(RasnaValueError):
    """A model or an argument that ``rasna.tune`` refuses."""


class CompileError(RasnaValueError):
    """A model that cannot be compiled; the message lists all problems at once.

    Attributes
    ----------
    problems : tuple of rasna.compile.problems.Problem
        The same as data: place, reason, remedy, FX node, module path, file, line.
    report : rasna.Report or None
        What ``rasna.check`` says about the model; None where only a part of the compiler ran.
    """

    def __init__(self, message: str, problems: tuple = (), report: object = None) -> None:
        super().__init__(message)
        self.problems = problems
        self.report = report


class TargetMismatchError(RasnaValueError):
    """A Program and a runtime object of different targets, ISA versions or configurations."""


class RuntimeObjectError(RasnaError):
    """A shared library that cannot be used as a runtime object, or that reported a failure."""


class BuildError(RasnaError):
    """A runtime object cannot be built: a tool is missing, or a compiler failed."""


class ClosedError(RasnaError):
    """A runtime was used after ``close()``."""


class NotOnBoardError(RasnaError):
    """Hardware was asked for where it is not available."""


class BoardTimeoutError(RasnaError, TimeoutError):
    """A run on a board was not done in time.

    Attributes
    ----------
    recovered : bool
        Whether the machine answers again, after a soft reset or loading its bitstream again.
    """

    recovered = False


class BoardMemoryError(RasnaError, MemoryError):
    """A board has too little contiguous memory."""


class SelfCheckError(RasnaError):
    """A runtime object gave other results than the golden model."""


class GoldenError(RasnaValueError):
    """The golden model refuses an instruction.

    Attributes
    ----------
    instruction : int or None
        Number of the instruction (its first word is ``8 * instruction``).
    field : str or None
        The field or record entry that is at fault.
    code : rasna.isa.Error or None
        What a machine that checks it would report; None where only the golden model
        notices (poison, overflow, order of reads and writes).
    """

    def __init__(
        self,
        message: str,
        instruction: int | None = None,
        field: str | None = None,
        code: isa.Error | None = None,
    ) -> None:
        super().__init__(message)
        self.instruction = instruction
        self.field = field
        self.code = code
