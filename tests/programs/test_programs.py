"""The small programs of this folder on the golden model, and the assembler itself.

Other implementations run the same files: ``programs()`` lists them.
"""

from pathlib import Path

import numpy as np
import pytest

from rasna import isa
from rasna.assembler import ProgramBuilder, assemble, disassemble
from rasna.encoding import table_entries
from rasna.errors import RasnaValueError
from rasna.golden import run_program
from rasna.targets import get_target
from tests.golden.naive_machine import run_naive
from tests.messages import refuses
from tests.programs.random_programs import random_program

HERE = Path(__file__).resolve().parent


def programs() -> list[Path]:
    """The ``.rasm`` files, each with .input and .output directives."""
    return sorted(HERE.glob("*.rasm"))


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_program_gives_the_expected_words(path):
    case = assemble(path.read_text())
    assert case.outputs.size > 0
    arguments = (case.words, case.inputs, case.outputs.size, case.scratch_words)
    assert run_program(*arguments, case.target).tolist() == case.outputs.tolist()
    assert run_naive(*arguments, get_target(case.target)) == case.outputs.tolist()


def test_the_programs_use_every_opcode():
    used = set()
    for path in programs():
        lines = [line.split() for line in path.read_text().splitlines()]
        used |= {line[0] for line in lines if line and line[0] in isa.Opcode.__members__}
    assert used == set(isa.Opcode.__members__)


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_disassembled_programs_assemble_to_the_same_words(path):
    words = assemble(path.read_text()).words
    assert assemble(disassemble(words)).words.tolist() == words.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_disassembled_random_programs_assemble_to_the_same_words(seed):
    words = random_program(seed, "tiny")[0]
    assert assemble(disassemble(words)).words.tolist() == words.tolist()


@pytest.mark.parametrize(
    "text, message",
    [
        ("NOP", "line 1: 'NOP': 'NOP' is neither an opcode nor a directive nor a section"),
        ("END\nFILL num=3", "FILL has no field num; it has opcode, fill, stripes_log2, "
         "out_base, num_words, num_blocks, block_step"),
        ("FILL fill=300", "FILL: field fill holds 0 to 255, 300 was given"),
        ("FILL fill", "line 1: 'FILL fill': 'fill' is not of the form name=value"),
        ("TABLE stream=t", "TABLE stream=t: there is no such section"),
        ("CURVE stream=c\ncurve c\n 0 1 2", "curve c: 256 bytes of 0 to 255 are needed, "
         "3 numbers were given"),
        ("CURVE stream=c", "CURVE stream=c: there is no such section"),
        (".size 3", "line 1: '.size 3': the directives are .target, .scratch, .input and .output"),
        ("channels c\n taps 0:1", "line 2: 'taps 0:1': a record must come before its taps"),
    ],
)
def test_wrong_text_is_refused(text, message):
    with refuses(ValueError, message):
        assemble(text)


def test_a_program_without_end_is_not_disassembled():
    with refuses(RasnaValueError, "the program of 8 words has no END instruction"):
        disassemble(np.array([1] + [0] * 7, np.uint64))


def test_streams_that_are_cut_or_lie_are_not_disassembled():
    words = assemble("TABLE stream=t\nEND\ntable t\n offset=3\n offset=4").words
    with refuses(RasnaValueError, "TABLE: its stream leaves the program"):
        disassemble(words[:-1])
    words = assemble("TAPS stream=c\nEND\nchannels c\n bias=1\n taps 0:1 1:2").words
    _, fields = isa.decode(words[:8])
    at = fields["stream_addr"]
    record = isa.unpack(isa.CHANNEL_RECORD, words[at : at + isa.CHANNEL_RECORD_WORDS])
    record["num_codes"] += 100
    words[at : at + isa.CHANNEL_RECORD_WORDS] = isa.pack(
        isa.CHANNEL_RECORD, isa.CHANNEL_RECORD_WORDS, "", **record
    )
    with refuses(RasnaValueError, "channel 0: num_codes and list_words do not agree"):
        disassemble(words)


def test_equal_streams_are_stored_once():
    builder = ProgramBuilder()
    for shift in (0, 0, 1):
        builder.add(isa.Opcode.TABLE, table_entries(offset=np.arange(4) + shift))
    words = builder.words()
    addresses = [isa.decode(words[8 * i : 8 * i + 8])[1]["stream_addr"] for i in range(3)]
    assert addresses == [32, 32, 36]
    assert words.size == 40
