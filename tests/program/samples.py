"""Small Programs made by hand for the tests of Program and the runtimes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rasna import isa
from rasna.assembler import ProgramBuilder
from rasna.encoding import channel_records, encode_lists, join_stream, table_entries
from rasna.graph import Conv, FixedPoint, Padding, Port, QuantGraph, Requant, Tensor
from rasna.isa import Opcode, Segment
from rasna.program import Program

S8 = FixedPoint(8, 4, True)
U8 = FixedPoint(8, 8, False)


def identity_program(
    ports: list[tuple[str, tuple[int, ...], FixedPoint]], structure=0, target="tiny",
    channel_last=True,
) -> Program:
    """Every input is also an output: LOAD and STORE only. A port is (name, shape, type)."""
    tensors, infos = {}, []
    for name, shape, type in ports:
        full = shape if len(shape) == 3 else (int(np.prod(shape)), 1, 1)
        tensors[name] = Tensor(name, full, type)
        infos.append(Port(name, name, shape))
    builder, at = ProgramBuilder(), 0
    for tensor in tensors.values():
        channels, rows, width = tensor.shape
        words = -(-width // 8)
        size = dict(num_channels=channels, num_rows=rows, num_words=words, dram_addr=at,
                    dram_channel_step=rows * words, dram_row_step=words)
        builder.add(
            Opcode.LOAD, segment=Segment.INPUT, last_lanes=width - 8 * (words - 1), **size,
            out_channel_step=rows * words, out_row_step=words, out_rows=rows,
            out_local_rows=rows,
        )
        builder.add(
            Opcode.STORE, segment=Segment.OUTPUT, **size, src_channel_step=rows * words,
            src_row_step=words, src_rows=rows,
        )
        at += channels * rows * words
    graph = QuantGraph(tensors, infos, infos, [], structure)
    return Program.from_graph(graph, target, builder.words(), 0, [], channel_last)


@dataclass
class ConvSample:
    """Two convolutions on tiny: the graph and the Program made from it by hand."""

    graph: QuantGraph
    program: Program


def conv_sample(seed: int = 0) -> ConvSample:
    """x (2, 4, 8) → 3x3 convolution, 3 channels → 1x1 convolution, 2 channels.

    Two stripes of two rows on two copies. The padded map of x has rows of 3 words, pixels in
    the middle one, and one halo row on either side.
    """
    graph = _conv_graph(np.random.default_rng(seed))
    builder = ProgramBuilder()
    row, channel = 3, 12
    builder.add(Opcode.FILL, stripes_log2=1, num_words=2 * channel, num_blocks=1)
    builder.add(
        Opcode.LOAD, out_stripes_log2=1, segment=Segment.INPUT, last_lanes=8, num_channels=2,
        num_rows=4, num_words=1, out_base=1, out_channel_step=channel, out_row_step=row,
        out_rows=2, out_halo_top=1, out_local_rows=4, dram_channel_step=4, dram_row_step=1,
    )
    offsets = [8 * row * ky + kx for ky in range(3) for kx in range(3)]
    _conv_taps(builder, graph.ops[0], offsets, 8 * channel, src_base=7, row=row, out_base=60)
    _conv_taps(builder, graph.ops[1], [0], 8 * 2, src_base=8 * 60, row=1, out_base=80)
    builder.add(
        Opcode.STORE, stripes_log2=1, segment=Segment.OUTPUT, num_channels=2, num_rows=4,
        num_words=1, src_base=80, src_channel_step=2, src_row_step=1, src_rows=2,
        dram_channel_step=4, dram_row_step=1,
    )
    layers = [
        dict(name="conv1", operation="Conv 3x3", input_shapes=[(2, 4, 8)],
             output_shape=(3, 4, 8), weights=54, nonzeros=np.int64(27), cycles=100, bytes=512,
             first_instruction=0, num_instructions=4, mapping="2 stripes x 2 copies",
             output="y1"),
        dict(name="conv2", operation="Conv 1x1", input_shapes=[(3, 4, 8)],
             output_shape=(2, 4, 8), weights=6, nonzeros=6, cycles=1200, bytes=64,
             first_instruction=4, num_instructions=3, mapping="2 stripes x 2 copies",
             output="y2"),
    ]
    program = Program.from_graph(graph, "tiny", builder.words(), 0, layers, selfcheck_seed=5)
    return ConvSample(graph, program)


def _conv_graph(rng: np.random.Generator) -> QuantGraph:
    def conv(name, source, output, weight, padding, pre_shift):
        count = weight.shape[0]
        full = np.ones(count, np.int32)
        return Conv(
            name, [source], output, weight=weight, padding=padding,
            bias=rng.integers(-50, 50, count).astype(np.int32),
            requant=Requant(full * pre_shift, full * 3, full * 2, -128, 127),
        )

    first = rng.integers(-127, 128, (3, 2, 3, 3)).astype(np.int8)
    first[rng.random(first.shape) < 0.5] = 0
    second = rng.integers(1, 128, (2, 3, 1, 1)).astype(np.int8)
    tensors = {
        "x": Tensor("x", (2, 4, 8), S8),
        "y1": Tensor("y1", (3, 4, 8), FixedPoint(8, 2, True)),
        "y2": Tensor("y2", (2, 4, 8), FixedPoint(8, 3, True)),
    }
    ops = [
        conv("conv1", "x", "y1", first, Padding(1, 1, 1, 1), 6),
        conv("conv2", "y1", "y2", second, Padding(), 5),
    ]
    return QuantGraph(
        tensors, [Port("x", "x", (2, 4, 8))], [Port("y2", "y2", (2, 4, 8))], ops
    )


def _conv_taps(
    builder: ProgramBuilder, op: Conv, offsets: list[int], channel_bytes: int, *,
    src_base: int, row: int, out_base: int,
) -> None:
    """TABLE and TAPS of a convolution on two stripes of two rows of one word."""
    count, channels = op.weight.shape[:2]
    flat = op.weight.reshape(count, channels, -1)
    padded = np.zeros((count, channels, isa.MIN_TABLE_ENTRIES), np.int8)
    padded[:, :, : flat.shape[2]] = flat
    n, position = np.nonzero(padded.reshape(count, -1))
    starts = np.searchsorted(n, np.arange(count + 1))
    words, word_starts, num_codes = encode_lists(
        padded.reshape(count, -1)[n, position], position, starts, isa.Encoding.SPARSE
    )
    records = channel_records(
        bias=op.bias, src_base=src_base, num_codes=num_codes, list_words=np.diff(word_starts),
        multiplier=op.requant.multiplier, shift=op.requant.shift,
        pre_shift=op.requant.pre_shift, out_channel=np.arange(count),
    )
    table = offsets + [0] * (isa.MIN_TABLE_ENTRIES - len(offsets))
    builder.add(Opcode.TABLE, table_entries(offset=table, is_signed=1))
    builder.add(
        Opcode.TAPS, join_stream(records, words, word_starts), encoding=isa.Encoding.SPARSE,
        stripes_log2=1, out_stripes_log2=1, ib=17, last_lanes=8,
        table_entries=isa.MIN_TABLE_ENTRIES, group_step=channel_bytes, num_channels=count,
        tile_rows=2, tile_words=1, src_row_step=8 * row, src_word_step=8, row_limit=4,
        out_base=out_base, out_channel_step=2, out_row_step=1, out_rows=2, out_local_rows=2,
        clamp_lo=-128, clamp_hi=127,
    )
