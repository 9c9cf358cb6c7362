"""Program: what it knows, how it prints, how arrays lie in its segments."""

import numpy as np
import pytest

import rasna
from rasna.golden import evaluate, run_program
from rasna.graph import FixedPoint
from rasna.program import PortInfo, selfcheck_inputs
from rasna.program.ports import pack, unpack
from tests.messages import refuses
from tests.program.samples import S8, U8, conv_sample, identity_program

LISTING = """\
Program for tiny (configuration {hash}, ISA 2, compiler {version})
input   x 2x4x8 s8.4 (int8)
output  y2 2x4x8 s8.3 (int8)
memory  program {program}, input 64, output 64, scratch 0 bytes

layer  operation  input  output  weights  non-zero  cycles  bytes  instr.  mapping
-----------------------------------------------------------------------------------------------
conv1  Conv 3x3   2x4x8  3x4x8        54        27     100    512       4  2 stripes x 2 copies
conv2  Conv 1x1   3x4x8  2x4x8         6         6   1,200     64       3  2 stripes x 2 copies
-----------------------------------------------------------------------------------------------
total                                 60        33   1,300    576       7"""


def test_print_gives_an_aligned_table_with_totals():
    program = conv_sample().program
    text = LISTING.format(
        hash=program.config_hash, version=rasna.__version__,
        program=f"{program.words.size * 8:,}",
    )
    assert str(program) == text
    assert repr(program) == (
        f"<rasna.Program for tiny: 2 layers, 8 instructions, {program.words.size * 8:,} bytes>"
    )


def test_a_program_without_layers_prints_its_ports():
    program = identity_program([("a", (3,), U8)])
    lines = str(program).splitlines()
    assert lines[1:3] == ["input   a 3 u8.8 (uint8)", "output  a 3 u8.8 (uint8)"]
    assert len(lines) == 4


def test_the_handmade_program_computes_its_graph():
    sample = conv_sample()
    program = sample.program
    for seed in range(5):
        arrays = selfcheck_inputs(program.inputs, seed)
        words = pack(program.inputs, arrays, program.input_words)[0]
        output = run_program(program.words, words, program.output_words, 0, "tiny")
        expected = evaluate(sample.graph, arrays)["y2"]
        assert (unpack(program.outputs, output[None])[0][0] == expected).all()


def test_the_selfcheck_comes_from_the_layer_form():
    sample = conv_sample()
    program = sample.program
    arrays = selfcheck_inputs(program.inputs, 5)
    values = evaluate(sample.graph, arrays)
    assert program.selfcheck_seed == 5
    assert (unpack(program.outputs, program.selfcheck_expected[None])[0] == values["y2"]).all()
    checksums = [layer["checksum"] for layer in program.layers]
    assert len(set(checksums)) == 2 and all(0 <= c < 2**32 for c in checksums)


def test_selfcheck_inputs_are_the_same_everywhere():
    """Bits 40 and up of SplitMix64 from seed 0, whose published first values these are."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    unsigned = PortInfo("a", (3,), (3, 1, 1), U8)
    signed = PortInfo("b", (3,), (3, 1, 1), FixedPoint(4, 0, True))
    assert selfcheck_inputs([unsigned], 0)[0].tolist() == [
        [(bits >> 40) % 256 for bits in published]
    ]
    assert selfcheck_inputs([signed], 0)[0].tolist() == [
        [(bits >> 40) % 16 - 8 for bits in published]
    ]
    both = selfcheck_inputs([unsigned, unsigned], 0)
    assert both[0].tolist() != both[1].tolist()
    assert both[0].dtype == np.uint8 and selfcheck_inputs([signed], 0)[0].dtype == np.int8


def test_selfcheck_inputs_cover_the_whole_type():
    port = PortInfo("a", (4000,), (4000, 1, 1), FixedPoint(5, 0, True))
    assert set(selfcheck_inputs([port], 0)[0].ravel().tolist()) == set(range(-16, 16))


def test_words_of_a_port_are_rows_with_zero_lanes_behind():
    port = PortInfo("a", (2, 2, 3), (2, 2, 3), S8, word_offset=1)
    array = np.arange(-6, 6, dtype=np.int8).reshape(1, 2, 2, 3)
    words = pack([port], [array], 6)
    lanes = words.view(np.int8).reshape(6, 8)
    assert lanes[0].tolist() == [0] * 8 and lanes[5].tolist() == [0] * 8
    assert lanes[1].tolist() == [-6, -5, -4, 0, 0, 0, 0, 0]
    assert lanes[4].tolist() == [3, 4, 5, 0, 0, 0, 0, 0]
    assert (unpack([port], words)[0] == array).all()


@pytest.mark.parametrize("shape", [(3, 5, 17), (1, 1, 1), (7,), (2, 3)])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_unpack_is_the_inverse_of_pack(shape, batch):
    full = shape if len(shape) == 3 else (int(np.prod(shape)), 1, 1)
    ports = [PortInfo("a", shape, full, U8), PortInfo("b", shape, full, S8, 200)]
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(p.type.lo, p.type.hi + 1, (batch, *shape)).astype(p.dtype) for p in ports
    ]
    results = unpack(ports, pack(ports, arrays, 500))
    assert all((a == b).all() and a.dtype == b.dtype for a, b in zip(arrays, results, strict=True))
    assert results[0].shape == (batch, *shape)


def test_to_runtime_needs_a_path():
    with refuses(
        rasna.RasnaValueError,
        "to_runtime needs the path of a runtime object, int was given",
    ):
        conv_sample().program.to_runtime(3)
