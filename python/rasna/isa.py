"""The Rasna instruction set: the one place where it is written by hand.

Opcodes, instruction fields, record layouts, the register map, error codes and the
constants of the program image live here as data. ``scripts/generate.py`` turns them
into ``hls/isa.h``, ``rtl/isa.svh`` and ``docs/isa.md``; a test fails when a
generated file is out of date. Nothing here knows the size of a target.

This module is pure Python: it imports neither torch nor numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

ISA_VERSION = 2

WORD_BYTES = 8  # one map word: 8 pixels of one row of one channel
INSTRUCTION_WORDS = 8  # every instruction is 64 bytes
DENSE_CODES_PER_WORD = 8
SPARSE_CODES_PER_WORD = 5
SPARSE_CODE_BITS = 12
SPARSE_RUN_MAX = 15
MIN_TABLE_ENTRIES = 16  # so that one step never wraps twice (run <= 15)
CHANNEL_RECORD_WORDS = 2
CURVE_ENTRIES = 256  # one byte for every value of a byte
CURVE_WORDS = CURVE_ENTRIES // WORD_BYTES
PRODUCT_BITS = 9  # of an operand of PRODUCT in the accumulator, signed


class Opcode(IntEnum):
    """What an instruction does. One line of meaning each is in INSTRUCTIONS."""

    END = 0
    FILL = 1
    LOAD = 2
    STORE = 3
    TABLE = 4
    TAPS = 5
    MOVE = 6
    CURVE = 7


class Segment(IntEnum):
    """Memory regions of the host, each with a base register. Word addressed."""

    PROGRAM = 0
    INPUT = 1
    OUTPUT = 2
    SCRATCH = 3


class Func(IntEnum):
    """How TAPS combines a tap with the accumulator."""

    MAC = 0
    MAX = 1
    PRODUCT = 2


class Encoding(IntEnum):
    """How the codes of a tap list are packed into 64-bit words."""

    DENSE = 0
    SPARSE = 1


@dataclass(frozen=True)
class Field:
    """A named bit field: ``word`` of the instruction, lowest ``bit``, width ``bits``."""

    name: str
    word: int
    bit: int
    bits: int
    signed: bool
    doc: str

    @property
    def lo(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def hi(self) -> int:
        return (1 << (self.bits - (1 if self.signed else 0))) - 1


def _layout(*specs: tuple) -> tuple[Field, ...]:
    """Place fields one after another; none crosses a 64-bit word."""
    fields, at = [], 0
    for name, bits, doc in specs:
        signed = bits < 0
        width = abs(bits)
        if at % 64 + width > 64:
            at += 64 - at % 64
        if name:
            fields.append(Field(name, at // 64, at % 64, width, signed, doc))
        at += width
    if at > 64 * INSTRUCTION_WORDS:
        raise ValueError(f"an instruction has {at} bits, at most {64 * INSTRUCTION_WORDS} fit")
    return tuple(fields)


_OPCODE = ("opcode", 8, "operation")

# Where a produced word goes: shared by TAPS and LOAD.
_DESTINATION = (
    ("out_base", 16, "first word of the destination tensor in every slice"),
    ("out_channel_step", 16, "words from one channel to the next"),
    ("out_row_step", 16, "words from one local row to the next"),
    ("out_rows", 16, "rows that a destination stripe owns"),
    ("out_halo_top", 16, "halo rows above the owned rows of every destination stripe"),
    ("out_local_rows", 16, "rows that a destination stripe stores, halo included"),
    ("out_row", -16, "added to the row number to give the destination row"),
    ("out_height", 16, "rows of the whole map; used when circular_rows is 1"),
)

INSTRUCTIONS: dict[Opcode, tuple[str, tuple[Field, ...]]] = {
    Opcode.END: ("end of the program", _layout(_OPCODE)),
    Opcode.FILL: (
        "write `fill` into `num_blocks` blocks of `num_words` words, in every slice",
        _layout(
            _OPCODE,
            ("fill", 8, "byte that is written"),
            ("stripes_log2", 3, "log2 of the number of stripes of the tensor that lives there"),
            ("out_base", 16, "first word of the first block"),
            ("num_words", 16, "words of a block"),
            ("num_blocks", 16, "number of blocks"),
            ("block_step", 16, "words from one block to the next"),
        ),
    ),
    Opcode.LOAD: (
        "read rows of words from memory and write each into every slice whose stripe holds it",
        _layout(
            _OPCODE,
            ("circular_rows", 1, "1: destination rows are taken modulo out_height"),
            ("out_stripes_log2", 3, "log2 of the number of destination stripes"),
            ("segment", 2, "memory segment that is read"),
            ("last_lanes", 4, "valid bytes of the last word of a row, 1 to 8"),
            ("fill", 8, "byte for the lanes behind them"),
            ("out_split", 1, "1: even and odd bytes of a row go to halves of two words"),
            ("num_channels", 16, "channels"),
            ("num_rows", 16, "rows of a channel that are read"),
            ("num_words", 16, "words of a row"),
            *_DESTINATION,
            ("dram_addr", 32, "first word in the segment"),
            ("dram_channel_step", 32, "words from one channel to the next in memory"),
            ("dram_row_step", 16, "words from one row to the next in memory"),
            ("out_phase_step", 16, "words from where even bytes go to where odd bytes go"),
        ),
    ),
    Opcode.STORE: (
        "write rows of words from the slices that own them to memory",
        _layout(
            _OPCODE,
            ("stripes_log2", 3, "log2 of the number of stripes of the source tensor"),
            ("segment", 2, "memory segment that is written"),
            ("num_channels", 16, "channels"),
            ("num_rows", 16, "rows of a channel that are written, from row 0 of stripe 0 on"),
            ("num_words", 16, "words of a row"),
            ("src_base", 16, "first word of the source tensor in every slice"),
            ("src_channel_step", 16, "words from one channel to the next"),
            ("src_row_step", 16, "words from one local row to the next"),
            ("src_rows", 16, "rows that a stripe owns"),
            ("src_halo_top", 16, "halo rows above the owned rows of every stripe"),
            ("dram_addr", 32, "first word in the segment"),
            ("dram_channel_step", 32, "words from one channel to the next in memory"),
            ("dram_row_step", 16, "words from one row to the next in memory"),
        ),
    ),
    Opcode.TABLE: (
        "load the offset table, one entry per word of the program segment",
        _layout(
            _OPCODE,
            ("num_entries", 16, "entries, at most the table size of the target"),
            ("stream_addr", 32, "first word in the program segment"),
        ),
    ),
    Opcode.TAPS: (
        "accumulate tap lists over tiles of 8 pixels, requantize, write the words",
        _layout(
            _OPCODE,
            ("func", 2, "0 MAC: acc += w*x; 1 MAX: acc = max(acc, x) where w is not 0; 2 PRODUCT"),
            ("acc_init", 1, "0: accumulators start at the bias; 1: at the accumulator memory"),
            ("acc_keep", 1, "0: requantize and write; 1: keep in the accumulator memory"),
            ("list_shared", 1, "1: the list of channel 0 serves every channel"),
            ("encoding", 1, "0 dense: 8 codes per word; 1 sparse: 5 codes of 12 bits"),
            ("circular_rows", 1, "1: destination rows are taken modulo out_height"),
            ("stripes_log2", 3, "log2 of the number of stripes of the source tensor"),
            ("out_stripes_log2", 3, "log2 of the number of destination stripes"),
            ("ib", 5, "bits of the saturated intermediate value, 12 to 24"),
            ("last_lanes", 4, "valid bytes of the last word of a row, 1 to 8"),
            ("fill", 8, "byte for the lanes behind them"),
            ("curve", 1, "1: every requantized byte is replaced by its entry of the curve"),
            ("out_split", 1, "1: even and odd bytes of a row go to halves of two words"),
            ("drain_log2", 2, "log2 of the words that are drained at the same time"),
            ("", 2, ""),  # skip_taps
            ("", 1, ""),  # skip_signed
            ("table_entries", 16, "entries of the offset table in use, 16 or more"),
            ("group_step", -16, "bytes added to the offset when the position wraps"),
            ("num_channels", 16, "output channels"),
            ("tile_rows", 16, "rows that every source stripe computes"),
            ("tile_words", 16, "words of an output row"),
            ("src_row_step", 16, "bytes from the source vector of one row to the next"),
            ("src_word_step", 16, "bytes from the source vector of one word to the next"),
            ("row_first", 16, "first output row that is written"),
            ("row_limit", 16, "first output row that is not written any more"),
            ("acc_base", 16, "first entry of the accumulator memory"),
            *_DESTINATION,
            ("clamp_lo", -16, "lowest output value"),
            ("clamp_hi", -16, "highest output value"),
            ("stream_addr", 32, "first word of the channel records in the program segment"),
            ("stream_words", 32, "words of the channel records and lists"),
            ("out_phase_step", 16, "words from where even bytes go to where odd bytes go"),
            ("", 16, ""),  # skip_base
            ("", 16, ""),  # skip_channel_step
            ("", 16, ""),  # skip_row_step
        ),
    ),
    Opcode.MOVE: (
        "assemble words out of masked vectors of the same slice, in every slice",
        _layout(
            _OPCODE,
            ("fill", 8, "byte for lanes that no entry gives"),
            ("stripes_log2", 3, "log2 of the number of stripes of source and destination"),
            ("table_entries", 16, "entries of the offset table in use"),
            ("num_channels", 16, "channels"),
            ("num_rows", 16, "local rows"),
            ("num_words", 16, "steps along the row"),
            ("src_base", 16, "byte address of the source vector of the first step"),
            ("src_channel_step", 16, "bytes from one channel to the next"),
            ("src_row_step", 16, "bytes from one row to the next"),
            ("src_word_step", 16, "bytes from one step to the next"),
            ("out_base", 16, "word address of the destination of the first step"),
            ("out_channel_step", 16, "words from one channel to the next"),
            ("out_row_step", 16, "words from one row to the next"),
            ("out_word_step", 16, "words from one step to the next"),
        ),
    ),
    Opcode.CURVE: (
        "load the curve, 256 bytes in 32 words of the program segment",
        _layout(
            _OPCODE,
            ("stream_addr", 32, "first word in the program segment"),
        ),
    ),
}

# Opcodes that are followed by a stream, from the program segment's word ``stream_addr`` on:
# the field that counts its words, or their number.
STREAMS: dict[Opcode, str | int] = {
    Opcode.TABLE: "num_entries",
    Opcode.TAPS: "stream_words",
    Opcode.CURVE: CURVE_WORDS,
}

# Opcodes that leave the map memory as it is. Any other, an unknown one too, may write it.
KEEPS_MAP = frozenset({Opcode.END, Opcode.STORE, Opcode.TABLE, Opcode.CURVE})

TABLE_ENTRY = _layout(
    ("offset", -16, "byte offset of the vector"),
    ("lane_mask", 8, "bit p: lane p takes part"),
    ("is_signed", 1, "1: bytes are int8; 0: uint8"),
    ("last", 1, "MOVE only. 1: write the assembled word after this entry"),
    ("", 6, ""),
    ("out_offset", -16, "MOVE only. words added to the destination address"),
)

CHANNEL_RECORD = _layout(
    ("bias", -32, "start value of the accumulators"),
    ("src_base", 16, "byte address of the source vector of row 0, word 0, position 0"),
    ("num_codes", 16, "codes of the list"),
    ("multiplier", 16, "M, 1 to 32767"),
    ("shift", 8, "s, 1 to 31"),
    ("pre_shift", 8, "r, 0 to 31"),
    ("out_channel", 16, "channel number in the destination tensor"),
    ("list_words", 16, "words of the list that follow this record"),
)

REGISTERS: tuple[tuple[str, int, str, str], ...] = (
    ("CONTROL", 0x00, "rw",
     "bit 0 start (self-clearing), bit 1 soft reset, bit 2 interrupt enable"),
    ("STATUS", 0x04, "r", "bit 0 idle, bit 1 done, bit 2 interrupt pending, bits 15:8 error code"),
    ("ERROR_PC", 0x08, "r", "number of the instruction that ended with an error"),
    ("IRQ_CLEAR", 0x0C, "w", "writing 1 clears the pending interrupt"),
    ("ISA_VERSION", 0x10, "r", "ISA version of the machine"),
    ("CONFIG_HASH", 0x14, "r", "first 32 bits of the configuration hash"),
    ("PROGRAM_BASE_LO", 0x20, "rw", "byte address of the program segment, low half"),
    ("PROGRAM_BASE_HI", 0x24, "rw", "high half"),
    ("INPUT_BASE_LO", 0x28, "rw", "byte address of the input segment, low half"),
    ("INPUT_BASE_HI", 0x2C, "rw", "high half"),
    ("OUTPUT_BASE_LO", 0x30, "rw", "byte address of the output segment, low half"),
    ("OUTPUT_BASE_HI", 0x34, "rw", "high half"),
    ("SCRATCH_BASE_LO", 0x38, "rw", "byte address of the scratch segment, low half"),
    ("SCRATCH_BASE_HI", 0x3C, "rw", "high half"),
    ("CYCLES_LO", 0x40, "r", "cycles of the last run, low half"),
    ("CYCLES_HI", 0x44, "r", "high half"),
)

REGISTER_SPAN_BYTES = 0x1000  # of the address range that a block design gives the registers
IP_VLNV = "rasna:rasna:rasna_accelerator:1.0"  # vendor, library, name, version of the IP


class Error(IntEnum):
    """Error codes of the machine and of the C ABI; 0 is success."""

    OK = 0
    BAD_OPCODE = 1
    BAD_FIELD = 2
    MAP_RANGE = 3
    ACC_RANGE = 4
    TABLE_RANGE = 5
    LIST_RANGE = 6
    STREAM_RANGE = 7
    DRAM_RANGE = 8
    NO_END = 9
    BAD_ARGUMENT = 10
    NO_PROGRAM = 11
    NO_MEMORY = 12
    BUS = 13
    TIMEOUT = 14


ERROR_TEXT: dict[Error, str] = {
    Error.OK: "no error",
    Error.BAD_OPCODE: "unknown opcode",
    Error.BAD_FIELD: "a field holds a value that the ISA forbids",
    Error.MAP_RANGE: "an address lies outside the map memory",
    Error.ACC_RANGE: "an index lies outside the accumulator memory",
    Error.TABLE_RANGE: "an index lies outside the offset table",
    Error.LIST_RANGE: "a tap list is longer than half of the list memory",
    Error.STREAM_RANGE: "a stream does not match its instruction or leaves the program",
    Error.DRAM_RANGE: "an address lies outside its memory segment",
    Error.NO_END: "the program has no END instruction",
    Error.BAD_ARGUMENT: "an argument of the call is not valid",
    Error.NO_PROGRAM: "no program is loaded",
    Error.NO_MEMORY: "not enough memory",
    Error.BUS: "the memory bus answered with an error",
    Error.TIMEOUT: "the run took longer than allowed",
}


def has_stream(opcode: int) -> bool:
    """True if words of the program segment belong to the instruction."""
    return opcode in STREAMS


def stream_length(opcode: int, fields: Mapping[str, int]) -> int:
    """Words of the stream of an instruction with these fields; 0 for opcodes without one."""
    length = STREAMS.get(Opcode(opcode), 0)
    return fields[length] if isinstance(length, str) else length


def writes_map(opcode: int) -> bool:
    """True unless the opcode is known to leave the map memory as it is."""
    return opcode not in KEEPS_MAP


def _insert(words: list[int], field: Field, value: int, what: str) -> None:
    if not field.lo <= value <= field.hi:
        raise ValueError(
            f"{what}: field {field.name} holds {field.lo} to {field.hi}, {value} was given"
        )
    words[field.word] |= (value & ((1 << field.bits) - 1)) << field.bit


def _extract(words: list[int] | tuple[int, ...], field: Field) -> int:
    value = (int(words[field.word]) >> field.bit) & ((1 << field.bits) - 1)
    if field.signed and value >> (field.bits - 1):
        value -= 1 << field.bits
    return value


def pack(fields: tuple[Field, ...], num_words: int, what: str, /, **values: int) -> list[int]:
    """Pack named values into ``num_words`` 64-bit words; missing fields are 0.

    Raises ValueError for an unknown name or a value outside its field.
    """
    by_name = {f.name: f for f in fields}
    words = [0] * num_words
    for name, value in values.items():
        if name not in by_name:
            raise ValueError(f"{what} has no field {name}; it has {', '.join(by_name)}")
        _insert(words, by_name[name], int(value), what)
    return words


def unpack(fields: tuple[Field, ...], words) -> dict[str, int]:
    """The inverse of :func:`pack`: a dict of all fields."""
    return {f.name: _extract(words, f) for f in fields}


def encode(opcode: Opcode, /, **values: int) -> list[int]:
    """One instruction as a list of INSTRUCTION_WORDS unsigned 64-bit integers."""
    fields = INSTRUCTIONS[opcode][1]
    return pack(fields, INSTRUCTION_WORDS, opcode.name, opcode=int(opcode), **values)


def decode(words) -> tuple[Opcode, dict[str, int]]:
    """Opcode and fields of one instruction. Raises ValueError for an unknown opcode."""
    number = int(words[0]) & 0xFF
    if number not in {int(o) for o in Opcode}:
        raise ValueError(f"opcode {number} is not one of {', '.join(o.name for o in Opcode)}")
    opcode = Opcode(number)
    values = unpack(INSTRUCTIONS[opcode][1], words)
    del values["opcode"]
    return opcode, values
