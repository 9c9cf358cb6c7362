"""The registers of one accelerator on a board: identify, start, wait, reset.

Offsets come from ``rasna.isa.REGISTERS``. Nothing here knows of pynq: the machine is given two
functions that read and write a 32-bit register.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .. import isa
from ..errors import BoardTimeoutError, RuntimeObjectError, TargetMismatchError
from ..targets import TARGETS

OFFSETS = {name: offset for name, offset, _, _ in isa.REGISTERS}
SEGMENTS = ("PROGRAM", "INPUT", "OUTPUT", "SCRATCH")  # in the order of isa.Segment
CONTROL_START, CONTROL_SOFT_RESET = 1, 2
STATUS_IDLE, STATUS_DONE, STATUS_INTERRUPT, STATUS_ERROR_BIT = 1, 2, 4, 8

_SPIN_SECONDS = 0.002  # most runs are over by then; sleeping would add to their latency
_SLEEP_SECONDS = 0.0005
_RESET_SECONDS = 0.5  # the ports finish what they began; a bus that lives needs microseconds


@dataclass(frozen=True)
class Status:
    """The STATUS and ERROR_PC registers, decoded."""

    idle: bool
    done: bool
    interrupt: bool
    error_code: int
    error_pc: int

    @property
    def error_text(self) -> str:
        """The error code in words, "no error" for 0."""
        try:
            return isa.ERROR_TEXT[isa.Error(self.error_code)]
        except ValueError:
            return "a code that this version of rasna does not know"

    def __str__(self) -> str:
        state = "idle" if self.idle else "running"
        return (
            f"STATUS: {state}, {'done' if self.done else 'not done'}, interrupt "
            f"{'pending' if self.interrupt else 'not pending'}, error code {self.error_code} "
            f"({self.error_text}); ERROR_PC: instruction {self.error_pc}"
        )


class BoardMachine:
    """One accelerator, addressed through its registers. Calls must not overlap.

    Parameters
    ----------
    read : function of a register's byte offset; returns its 32 bits
    write : function of a byte offset and a value
    where : what messages call it, for example the path of the bitstream
    """

    def __init__(
        self, read: Callable[[int], int], write: Callable[[int, int], None], where: str
    ) -> None:
        self._read, self._write, self.where = read, write, where
        self._bases: tuple[int, ...] = ()

    def read(self, name: str) -> int:
        """A register by its name in the ISA."""
        return int(self._read(OFFSETS[name]))

    def write(self, name: str, value: int) -> None:
        """Write a register by its name in the ISA."""
        self._write(OFFSETS[name], int(value))

    def check_identity(self, target: str, isa_version: int, config_hash: str) -> None:
        """Compare the identification registers with what a Program was compiled for.

        Raises TargetMismatchError with both named.
        """
        version, found = self.read("ISA_VERSION"), f"{self.read('CONFIG_HASH'):08x}"
        if version != isa_version:
            raise TargetMismatchError(
                f"the Program has ISA version {isa_version}, the accelerator of {self.where} has "
                f"{version}; compile the model again or build the bitstream again"
            )
        if found != config_hash[:8]:
            names = [t.name for t in TARGETS.values() if t.config_hash[:8] == found]
            name = names[0] if names else "a target that this version of rasna does not know"
            advice = f'compile with target="{name}"' if names else "build the bitstream again"
            raise TargetMismatchError(
                f"the Program is for target {target} (configuration {config_hash[:8]}), the "
                f"accelerator of {self.where} is {name} (configuration {found}); {advice}"
            )

    def status(self) -> Status:
        """Read STATUS and ERROR_PC."""
        value = self.read("STATUS")
        return Status(
            bool(value & STATUS_IDLE), bool(value & STATUS_DONE), bool(value & STATUS_INTERRUPT),
            value >> STATUS_ERROR_BIT & 0xFF, self.read("ERROR_PC"),
        )

    def run(self, bases: tuple[int, ...], timeout_seconds: float) -> int:
        """Run the program once; returns its cycles.

        bases : byte addresses of the segments, in the order of SEGMENTS.

        Raises
        ------
        BoardTimeoutError (a TimeoutError) when the machine is not done in time. A soft reset was
        tried then; ``recovered`` of the error says whether the machine answers again.
        RuntimeObjectError when it reports an error.
        """
        try:
            self._set_bases(bases)
            self.write("CONTROL", CONTROL_START)
            if not self._wait_for(STATUS_DONE, timeout_seconds):
                self._time_out(timeout_seconds)
        except BaseException as error:
            if not isinstance(error, BoardTimeoutError):
                self.reset()  # an interrupt from the keyboard: leave the machine idle
            raise
        status = self.status()
        if status.error_code:
            raise RuntimeObjectError(
                f"{self.where}: instruction {status.error_pc}: {status.error_text} "
                f"(error code {status.error_code})"
            )
        return self.read("CYCLES_LO") | self.read("CYCLES_HI") << 32

    def _set_bases(self, bases: tuple[int, ...]) -> None:
        bases = tuple(int(base) for base in bases)  # pynq takes no NumPy integers
        if bases == self._bases:
            return
        for name, base in zip(SEGMENTS, bases, strict=True):
            self.write(f"{name}_BASE_LO", base & 0xFFFFFFFF)
            self.write(f"{name}_BASE_HI", base >> 32)
        self._bases = bases

    def _wait_for(self, bit: int, timeout_seconds: float) -> bool:
        """Poll STATUS until the bit is set: closely at first, then in naps."""
        start = time.monotonic()
        while not self.read("STATUS") & bit:
            passed = time.monotonic() - start
            if passed > timeout_seconds:
                return bool(self.read("STATUS") & bit)
            if passed > _SPIN_SECONDS:
                time.sleep(_SLEEP_SECONDS)
        return True

    def _time_out(self, timeout_seconds: float) -> None:
        status = self.status()
        recovered = self.reset()
        outcome = (
            "the machine was reset and can be used again" if recovered
            else "a soft reset did not help"
        )
        error = BoardTimeoutError(
            f"{self.where}: the run was not done after {timeout_seconds:g} s; {status}; {outcome}"
        )
        error.recovered = recovered
        raise error

    def reset(self) -> bool:
        """Soft reset; returns whether the machine is idle after it."""
        self._bases = ()
        self.write("CONTROL", CONTROL_SOFT_RESET)
        return self._wait_for(STATUS_IDLE, _RESET_SECONDS)
