"""Random networks on all implementations, with a table of what they covered.

    python tests/networks/fuzz.py [--count 10000] [--seed 0] [--jobs 2] [--targets tiny,pynq-z2]

Network number i has the seed ``seed + i``; a failure prints the command that repeats it alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import torch

from rasna.targets import TARGETS
from tests.networks.check import Result, check_network, cpu_bodies

MINIMUM = 5  # cases of every required attribute, in a run of 500 networks: 100 in 10,000

# Tags of the models (tests/random_models.py) and of the programs (check.program_tags).
ATTRIBUTES = {
    "stride > 1": tuple(f"conv.stride={s}{n}" for s in (2, 3) for n in ("", " non-square")),
    "dilation": ("conv.dilation=2",),
    "groups": ("conv.groups=many", "conv.groups=depthwise"),
    "depthwise": ("conv.groups=depthwise",),
    "circular": ("conv.padding_mode=circular",),
    "ceil_mode": ("max_pool.ceil_mode=True",),
    "cat": ("cat",),
    "cat of a tensor twice": ("cat.repeated",),
    "upsampling": ("upsample",),
    "moved channels": (
        "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "slice", "halves",
    ),
    "leaky and others": tuple(
        f"activation.{kind}" for kind in
        ("F.leaky_relu", "slope 0.2", "negative slope", "hardsigmoid", "nn.LeakyReLU", "nn.PReLU",
         "nn.PReLU channels")
    ),
    "conv1d": ("conv1d",),
    "padding by pixels": ("conv.padding_mode=reflect", "conv.padding_mode=replicate"),
    "pads": ("pad.constant", "pad.reflect", "pad.replicate", "pad.circular"),
    "crops, steps, flips": ("part.slice", "part.flip", "part.roll", "part.narrow", "part.chunk"),
    "cat of pixels": ("join",),
    "transposed convolution": ("transposed",),
    "linear interpolation": ("bilinear",),
    "pool1d": ("pool1d",),
    "other shapes": ("vector as map", "map as sequence"),
    "row tiles": ("row tiles",),
    "input-channel passes": ("passes",),
    "split lists": ("split lists",),
    "split rows by LOAD": ("split rows of LOAD",),
    "split rows by TAPS": ("split rows of TAPS",),
    "dense lists": ("dense lists",),
    "sparse lists": ("sparse lists",),
}


def required(targets: list[str]) -> dict[str, tuple[str, ...]]:
    """Attributes that every run must cover: those above, every mapping, every body."""
    table = dict(ATTRIBUTES)
    for name in targets:
        stripes = 1
        while stripes <= TARGETS[name].slices:
            table[f"{name}: {stripes} stripes"] = (f"{name} {stripes} stripes",)
            stripes *= 2
    for body in cpu_bodies(Path()):
        table[f"body {body}"] = (f"body {body}",)
    return table


def _start() -> None:
    torch.set_num_threads(1)


def run(count: int, seed: int, jobs: int, targets: list[str], progress: bool = False):
    """Results of ``count`` networks, in order of their seeds."""
    work = partial(check_network, targets=targets)
    seeds = range(seed, seed + count)
    results: list[Result] = []
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(jobs, _start) as pool:
        for result in pool.imap(work, seeds, chunksize=4):
            results.append(result)
            if result.failure:
                print(f"seed {result.seed}: {result.failure}\n  repeat: "
                      f"python tests/networks/fuzz.py --count 1 --seed {result.seed}", flush=True)
            if progress and len(results) % 100 == 0:
                rate = len(results) / (time.monotonic() - start)
                print(f"{len(results)} of {count}, {rate:.1f} per second", flush=True)
    return results


def coverage(results: list[Result], targets: list[str]) -> dict[str, int]:
    """Networks that covered each required attribute."""
    return {
        name: sum(not r.failure and not r.tags.isdisjoint(alternatives) for r in results)
        for name, alternatives in required(targets).items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--targets", default="tiny,pynq-z2")
    args = parser.parse_args()
    targets = args.targets.split(",")
    print(f"seed {args.seed}, {args.count} networks, targets {', '.join(targets)}")
    results = run(args.count, args.seed, args.jobs, targets, progress=True)
    for name, number in coverage(results, targets).items():
        print(f"  {name:28} {number:6}")
    graphs = sum(r.is_graph for r in results)
    refused = sum(r.refused for r in results)
    wrong = sum(bool(r.failure) and not r.refused for r in results)
    print(f"{len(results)} networks, {graphs} of them graphs, {refused} refused, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
