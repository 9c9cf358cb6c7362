"""What lies behind the registers of a simulated board: the verilated top, or a model of it.

Both have ``memory`` (uint8, at address BASE_ADDRESS), ``read`` and ``write`` of registers and
``configure``, which is what loading a bitstream does.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int32, c_uint32, c_uint64, c_void_p

import numpy as np

from rasna import isa
from rasna.errors import RuntimeObjectError
from rasna.runtime.library import Context, open_library
from rasna.targets import get_target

BASE_ADDRESS = 0x1000_0000
NAMES = {offset: name for name, offset, _, _ in isa.REGISTERS}
ACCESS = {name: access for name, _, access, _ in isa.REGISTERS}
START, SOFT_RESET, IRQ_ENABLE = 1, 2, 4

_BOARD_FUNCTIONS = {
    "rasna_board_create": (c_void_p, [c_void_p, c_uint64, c_uint64, c_uint64]),
    "rasna_board_destroy": (None, [c_void_p]),
    "rasna_board_text": (c_char_p, [c_void_p]),
    "rasna_board_set_bus": (None, [c_void_p, c_uint32, c_uint64, c_uint64, c_uint64]),
    "rasna_board_configure": (c_int32, [c_void_p]),
    "rasna_board_write": (c_int32, [c_void_p, c_uint32, c_uint32]),
    "rasna_board_read": (c_int32, [c_void_p, c_uint32, c_void_p]),
    "rasna_board_step": (c_int32, [c_void_p, c_uint64]),
}


class RtlMachine:
    """The verilated accelerator. Every poll of a register lets ``reads_per_poll`` more pass."""

    def __init__(self, path: str, memory_bytes: int = 1 << 24, seed: int = 0) -> None:
        self.memory = np.zeros(memory_bytes, np.uint8)
        self.reads_per_poll = 300
        self._library = ctypes.CDLL(path)
        for name, (result, arguments) in _BOARD_FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self._board = self._library.rasna_board_create(
            self.memory.ctypes.data, BASE_ADDRESS, memory_bytes, seed
        )
        assert self._board, "the verilated board cannot be made"

    def _check(self, code: int) -> None:
        assert code == 0, self._library.rasna_board_text(self._board).decode()

    def set_bus(self, latency_cycles=30, stall_seed=0, error_at=0, hang_at=0) -> None:
        """How the memory behaves from the next run on."""
        self._library.rasna_board_set_bus(
            self._board, latency_cycles, stall_seed, error_at, hang_at
        )

    def configure(self) -> None:
        self._check(self._library.rasna_board_configure(self._board))

    def write(self, offset: int, value: int) -> None:
        self._check(self._library.rasna_board_write(self._board, offset, value))

    def read(self, offset: int) -> int:
        value = c_uint32()
        if NAMES.get(offset) == "STATUS":
            self._check(self._library.rasna_board_step(self._board, self.reads_per_poll))
        self._check(self._library.rasna_board_read(self._board, offset, byref(value)))
        return value.value

    def __del__(self) -> None:
        if getattr(self, "_board", None):
            self._library.rasna_board_destroy(self._board)


class ModelMachine:
    """Registers in Python over a functional ``.so``: fast, for every target.

    hang: what happens to the next runs. "run": they never end, until a soft reset; "bus": not
    even a soft reset helps, until the bitstream is loaded again; "dead": nothing helps.
    """

    def __init__(self, path: str, target: str, memory_bytes: int = 1 << 24) -> None:
        self.memory = np.zeros(memory_bytes, np.uint8)
        self.target = get_target(target)
        self.isa_version = isa.ISA_VERSION
        self.config_hash = int(self.target.config_hash[:8], 16)
        self.hang = ""
        self.polls_per_run = 2  # STATUS is read so often before a run is done
        self.num_runs = 0
        self._context = Context(open_library(path))
        self.stuck = ""
        self._clear()

    def _clear(self) -> None:
        self.registers = {name: 0 for name in ACCESS}
        self.polls_left, self.finished, self.error, self.error_pc = 0, False, 0, 0
        self.running = False

    def configure(self) -> None:
        if self.stuck != "dead":
            self.stuck = ""
            self._clear()

    def read(self, offset: int) -> int:
        name = NAMES.get(offset)
        if name == "STATUS":
            self._poll()
            idle = not self.running and not self.stuck
            return int(idle) | self.finished << 1 | self.error << 8
        if name == "ISA_VERSION":
            return self.isa_version
        if name == "CONFIG_HASH":
            return self.config_hash
        if name == "ERROR_PC":
            return self.error_pc
        return self.registers.get(name, 0) if name in ACCESS and ACCESS[name] != "w" else 0

    def write(self, offset: int, value: int) -> None:
        name = NAMES.get(offset)
        if name == "CONTROL":
            self._control(value)
        elif name in ACCESS and ACCESS[name] == "rw":
            self.registers[name] = value

    def _control(self, value: int) -> None:
        if value & SOFT_RESET:
            self.running = self.finished = False
            self.error = self.error_pc = 0
            if self.stuck == "run":
                self.stuck = ""
        elif value & START and not self.running and not self.stuck:
            self.finished, self.error, self.error_pc = False, 0, 0
            self.running, self.polls_left = True, self.polls_per_run
            self.stuck = self.hang
            self.num_runs += 1

    def _poll(self) -> None:
        if not self.running or self.stuck:
            return
        self.polls_left -= 1
        if self.polls_left <= 0:
            self.error, self.error_pc = self._execute()
            self.running, self.finished = False, True

    def _base(self, segment: str) -> int:
        return self.registers[f"{segment}_BASE_LO"] | self.registers[f"{segment}_BASE_HI"] << 32

    def _words_behind(self, segment: str) -> np.ndarray:
        """All memory from the base of a segment on, as words."""
        first = self._base(segment) - BASE_ADDRESS
        assert 0 <= first < self.memory.size and first % 8 == 0, f"{segment} at {first:#x}"
        return self.memory[first:].view(np.uint64)

    def _execute(self) -> tuple[int, int]:
        """Run the program that the bases point to; error code and instruction number."""
        code, num_program = decode_until_end(self._words_behind("PROGRAM"))
        words = self._words_behind("PROGRAM")[:num_program].copy()
        sizes = [segment_words(code, s) for s in isa.Segment if s != isa.Segment.PROGRAM]
        inputs = self._words_behind("INPUT")[: sizes[0]].copy()
        outputs = np.zeros((1, sizes[1]), np.uint64)
        try:
            self._context.load(words, *sizes)
            self._context.run(inputs[None], outputs)
        except RuntimeObjectError:
            handle, pointer = self._context.library.handle, self._context._pointer
            return handle.rasna_error_code(pointer), handle.rasna_error_instruction(pointer)
        written = written_words(code, outputs.size)
        self._words_behind("OUTPUT")[: outputs.size][written] = outputs[0][written]
        self.registers["CYCLES_LO"] = 100 * len(code)
        return 0, len(code) - 1


def decode_until_end(words: np.ndarray) -> tuple[list, int]:
    """Instructions up to END, and the words of the program with its streams."""
    code, size = [], 0
    for first in range(0, words.size, isa.INSTRUCTION_WORDS):
        opcode, fields = isa.decode(words[first : first + isa.INSTRUCTION_WORDS].tolist())
        code.append((opcode, fields))
        size = max(size, first + isa.INSTRUCTION_WORDS, _stream_end(opcode, fields))
        if opcode == isa.Opcode.END:
            return code, size
    raise AssertionError("the program has no END")


def _stream_end(opcode, fields) -> int:
    return fields.get("stream_addr", 0) + isa.stream_length(opcode, fields)


def _rows(fields) -> np.ndarray:
    """First word of every row of a LOAD or STORE."""
    channels = np.arange(fields["num_channels"]) * fields["dram_channel_step"]
    rows = np.arange(fields["num_rows"]) * fields["dram_row_step"]
    return fields["dram_addr"] + (channels[:, None] + rows).reshape(-1)


def segment_words(code: list, segment: isa.Segment) -> int:
    """Words of a segment that the instructions reach."""
    ends = [
        int(_rows(fields).max()) + fields["num_words"]
        for opcode, fields in code
        if opcode in (isa.Opcode.LOAD, isa.Opcode.STORE) and fields["segment"] == segment
    ]
    return max(ends, default=0)


def written_words(code: list, count: int) -> np.ndarray:
    """Mask (count,) of the words of OUTPUT that STORE instructions write."""
    mask = np.zeros(count, bool)
    for opcode, fields in code:
        if opcode == isa.Opcode.STORE and fields["segment"] == isa.Segment.OUTPUT:
            mask[_rows(fields)[:, None] + np.arange(fields["num_words"])] = True
    return mask
