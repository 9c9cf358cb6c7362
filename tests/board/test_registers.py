"""The register driver alone: what it writes and reads, and in which order."""

from __future__ import annotations

import pytest

from rasna import isa
from rasna.errors import BoardTimeoutError, RuntimeObjectError, TargetMismatchError
from rasna.runtime import board_machine
from rasna.runtime.board_machine import BoardMachine, Status
from rasna.targets import TARGETS

BASES = (0x1000, 0x2_0000_2000, 0x3000, 0x4000)
TINY = TARGETS["tiny"]


class Registers:
    """Scripted registers: ``status`` is what reads of STATUS give, the last one for ever."""

    def __init__(self, *status: int, **values: int) -> None:
        self.status = list(status)
        self.values = {"ISA_VERSION": isa.ISA_VERSION, **values}
        self.log: list[tuple[str, int]] = []
        self.names = {offset: name for name, offset, _, _ in isa.REGISTERS}

    def read(self, offset: int) -> int:
        name = self.names[offset]
        if name == "STATUS":
            return self.status.pop(0) if len(self.status) > 1 else self.status[0]
        return self.values.get(name, 0)

    def write(self, offset: int, value: int) -> None:
        self.log.append((self.names[offset], value))
        if (self.names[offset], value) == ("CONTROL", 2) and "after_reset" in self.__dict__:
            self.status = [self.after_reset]

    def machine(self) -> BoardMachine:
        return BoardMachine(self.read, self.write, "a.bit")


def test_a_run_sets_all_bases_before_it_starts():
    registers = Registers(0, 0, 3, CYCLES_LO=5, CYCLES_HI=1)
    assert registers.machine().run(BASES, 1) == (1 << 32) + 5
    assert registers.log == [
        ("PROGRAM_BASE_LO", 0x1000), ("PROGRAM_BASE_HI", 0),
        ("INPUT_BASE_LO", 0x2000), ("INPUT_BASE_HI", 2),
        ("OUTPUT_BASE_LO", 0x3000), ("OUTPUT_BASE_HI", 0),
        ("SCRATCH_BASE_LO", 0x4000), ("SCRATCH_BASE_HI", 0),
        ("CONTROL", 1),
    ]  # fmt: skip


def test_the_bases_are_written_again_after_a_reset():
    registers = Registers(3)
    machine = registers.machine()
    machine.run(BASES, 1)
    registers.log.clear()
    machine.run(BASES, 1)
    assert registers.log == [("CONTROL", 1)]
    machine.reset()
    registers.log.clear()
    machine.run(BASES, 1)
    assert len(registers.log) == 9


def test_values_are_plain_integers_as_pynq_demands():
    import numpy as np

    kinds = set()
    registers = Registers(3)
    machine = BoardMachine(registers.read, lambda _, value: kinds.add(type(value)), "a.bit")
    machine.run(tuple(np.uint64(b) for b in BASES), 1)
    assert kinds == {int}


@pytest.mark.parametrize("code", [code for code in isa.Error if code])
def test_an_error_is_decoded(code):
    registers = Registers(3 | code << 8, ERROR_PC=7)
    with pytest.raises(RuntimeObjectError) as caught:
        registers.machine().run(BASES, 1)
    assert str(caught.value) == (
        f"a.bit: instruction 7: {isa.ERROR_TEXT[code]} (error code {int(code)})"
    )


def test_an_unknown_error_code_is_still_reported():
    with pytest.raises(RuntimeObjectError, match="this version of rasna does not know"):
        Registers(3 | 200 << 8).machine().run(BASES, 1)


def test_a_hang_is_a_timeout_with_the_status_decoded_and_a_soft_reset():
    registers = Registers(0, ERROR_PC=12)
    registers.after_reset = 1
    with pytest.raises(TimeoutError) as caught:
        registers.machine().run(BASES, 0.01)
    assert isinstance(caught.value, BoardTimeoutError) and caught.value.recovered
    assert str(caught.value) == (
        "a.bit: the run was not done after 0.01 s; STATUS: running, not done, interrupt not "
        "pending, error code 0 (no error); ERROR_PC: instruction 12; the machine was reset and "
        "can be used again"
    )
    assert registers.log[-1] == ("CONTROL", 2)


def test_a_soft_reset_that_does_not_help_is_said(monkeypatch):
    monkeypatch.setattr(board_machine, "_RESET_SECONDS", 0.01)
    with pytest.raises(BoardTimeoutError, match="a soft reset did not help") as caught:
        Registers(0).machine().run(BASES, 0.01)
    assert not caught.value.recovered


def test_an_interrupt_from_the_keyboard_leaves_the_machine_idle():
    class Interrupted(Registers):
        def read(self, offset):
            if self.names[offset] == "STATUS" and self.log[-1] == ("CONTROL", 1):
                raise KeyboardInterrupt
            return super().read(offset)

    registers = Interrupted(1)
    with pytest.raises(KeyboardInterrupt):
        registers.machine().run(BASES, 1)
    assert registers.log[-1] == ("CONTROL", 2)


def test_the_identity_of_a_program_that_fits_is_accepted():
    registers = Registers(1, CONFIG_HASH=int(TINY.config_hash[:8], 16))
    registers.machine().check_identity("tiny", isa.ISA_VERSION, TINY.config_hash)


def test_another_target_is_refused_with_both_named():
    registers = Registers(1, CONFIG_HASH=int(TINY.config_hash[:8], 16))
    with pytest.raises(TargetMismatchError) as caught:
        registers.machine().check_identity(
            "kv260", isa.ISA_VERSION, TARGETS["kv260"].config_hash
        )
    assert str(caught.value) == (
        f"the Program is for target kv260 (configuration {TARGETS['kv260'].config_hash[:8]}), "
        f"the accelerator of a.bit is tiny (configuration {TINY.config_hash[:8]}); compile with "
        'target="tiny"'
    )


def test_an_unknown_configuration_is_refused():
    with pytest.raises(TargetMismatchError, match="a target that this version of rasna does not"):
        machine = Registers(1, CONFIG_HASH=1).machine()
        machine.check_identity("tiny", isa.ISA_VERSION, TINY.config_hash)


def test_another_isa_version_is_refused_with_both_named():
    registers = Registers(1, ISA_VERSION=9)
    with pytest.raises(TargetMismatchError) as caught:
        registers.machine().check_identity("tiny", isa.ISA_VERSION, TINY.config_hash)
    assert "has ISA version 2, the accelerator of a.bit has 9" in str(caught.value)


def test_every_state_has_words():
    text = str(Status(False, True, True, 13, 3))
    assert text == (
        "STATUS: running, done, interrupt pending, error code 13 (the memory bus answered with "
        "an error); ERROR_PC: instruction 3"
    )
