"""Time the 3x3 layers of ResNet-20 on the fast functional object, against PyTorch fp32.

    python tests/sim/bench_layers.py [--target pynq-z2] [--sparsity 0.8] [--bodies plain,avx2]

One thread, batch 1, random weights, unsigned activations; the best of many runs. PyTorch is
optional. The layers are mapped by hand as the compiler does: one row per stripe.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import build_sim
import numpy as np
import sim_harness as harness

from rasna import encoding, isa
from rasna.isa import Opcode

LAYERS = ((16, 32), (32, 16), (64, 8), (512, 4))  # channels in and out, height and width


def conv_program(channels: int, width: int, sparsity: float, rng, repeats: int, signed: int = 0):
    """LOAD, `repeats` times the same 3x3 convolution, STORE; (program words, segment words)."""
    stripes_log2 = width.bit_length() - 1
    row_words = width // 8 + 1 if width >= 8 else 2
    words = -(-width // 8)
    channel_words = 3 * row_words
    in_channels = min(channels, 64)
    src = 1
    out = src + in_channels * channel_words + 1
    out_channels_stored = min(channels, (1024 - out) // channel_words)
    destination = dict(
        out_channel_step=channel_words, out_row_step=row_words, out_rows=1, out_halo_top=1,
        out_local_rows=3,
    )
    offsets = [
        c * channel_words * 8 + ky * row_words * 8 + kx - 1
        for c in range(2) for ky in range(3) for kx in range(3)
    ]
    table = encoding.table_entries(
        offset=np.array(offsets), is_signed=np.full(len(offsets), signed)
    )
    weights = rng.normal(0, 32, (channels, in_channels * 9)).clip(-127, 127).round().astype(np.int8)
    cut = np.quantile(np.abs(weights), sparsity)
    weights[np.abs(weights) <= cut] = 0 if sparsity else weights[np.abs(weights) <= cut]
    n, positions = np.nonzero(weights)
    starts = np.searchsorted(n, np.arange(channels + 1))
    lists, word_starts, num_codes = encoding.encode_lists(
        weights[n, positions], positions, starts, isa.Encoding.SPARSE
    )
    records = encoding.channel_records(
        bias=0, src_base=src * 8, num_codes=num_codes, multiplier=1, shift=10, pre_shift=0,
        out_channel=np.arange(channels) % out_channels_stored, list_words=np.diff(word_starts),
    )
    stream = encoding.join_stream(records, lists, word_starts)
    num_instructions = 5 + repeats
    table_addr = num_instructions * 8
    stream_addr = table_addr + len(table)
    taps = isa.encode(
        Opcode.TAPS, encoding=1, stripes_log2=stripes_log2, out_stripes_log2=stripes_log2, ib=17,
        last_lanes=min(width, 8), table_entries=len(table), group_step=2 * channel_words * 8,
        num_channels=channels, tile_rows=1, tile_words=words, src_row_step=row_words * 8,
        src_word_step=8, row_limit=width, out_base=out, clamp_hi=255, stream_addr=stream_addr,
        stream_words=len(stream), **destination,
    )
    load = isa.encode(
        Opcode.LOAD, out_stripes_log2=stripes_log2, segment=1, last_lanes=min(width, 8),
        num_channels=in_channels, num_rows=width, num_words=words, out_base=src,
        dram_channel_step=width * words, dram_row_step=words, **destination,
    )
    store = isa.encode(
        Opcode.STORE, stripes_log2=stripes_log2, segment=2, num_channels=out_channels_stored,
        num_rows=width, num_words=words, src_base=out, src_channel_step=channel_words,
        src_row_step=row_words, src_rows=1, src_halo_top=1,
        dram_channel_step=width * words, dram_row_step=words,
    )
    instructions = [
        *isa.encode(Opcode.FILL, stripes_log2=stripes_log2, num_words=1024, num_blocks=1),
        *load, *isa.encode(Opcode.TABLE, num_entries=len(table), stream_addr=table_addr),
        *taps * repeats, *store, *isa.encode(Opcode.END),
    ]
    program = np.concatenate([np.array(instructions, np.uint64), table, stream])
    num_macs = int(num_codes.sum()) * width * width
    sizes = in_channels * width * words, out_channels_stored * width * words
    return program, sizes, num_macs


def best_seconds(function, seconds: float = 0.4) -> float:
    best, stop = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < stop:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def torch_seconds(channels: int, width: int) -> float | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    layer = torch.nn.Conv2d(min(channels, 64), channels, 3, padding=1)
    x = torch.randn(1, min(channels, 64), width, width)
    with torch.inference_mode():
        layer(x)
        return best_seconds(lambda: layer(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default="pynq-z2")
    parser.add_argument("--sparsity", type=float, default=0.8)
    parser.add_argument("--bodies", default="plain,avx2")
    parser.add_argument("--signed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    library = harness.open_library(build_sim.build(options.target, harness.ROOT / "build"))
    for channels, width in LAYERS:
        plain = torch_seconds(channels, width)
        for body in options.bodies.split(","):
            seconds = []
            for repeats in (1, 9):  # the difference is free of LOAD, STORE and the call
                program, (inputs, outputs), macs = conv_program(
                    channels, width, options.sparsity, rng, repeats, options.signed
                )
                with harness.Context(library, body=body) as context:
                    context.load(program, inputs, outputs)
                    x = rng.integers(0, 2**63, inputs, np.uint64)
                    seconds.append(best_seconds(partial(context.run, x)))
            layer = (seconds[1] - seconds[0]) / 8
            text = f"{channels:4} channels {width:3}x{width:<3} {body:6} {layer * 1e6:8.1f} us "
            text += f"{macs / layer / 1e9:6.1f} GMAC/s on non-zeros"
            if plain:
                text += f"  PyTorch fp32 {plain * 1e6:8.1f} us: x{plain / layer:.2f}"
            print(text, flush=True)


if __name__ == "__main__":
    main()
