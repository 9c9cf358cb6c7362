"""Random networks on the RTL of `tiny` under random stalls: equal to PyTorch and golden.

    python tests/rtl/rtl_networks.py [--count 200] [--seed 0] [--jobs 2]

Network number i has the seed ``seed + i``; a failure prints the command that repeats it alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import random
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / "networks"), str(ROOT / "scripts")]

import check
import torch

TARGET = "tiny"


def _coverage_of_networks():
    """tests/networks/fuzz.py, under a name that no other folder uses."""
    path = ROOT / "tests" / "networks" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("networks_fuzz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rtl_path() -> Path:
    return ROOT / "build" / f"rasna-{TARGET}-rtl.so"


def stall_options(seed: int) -> str:
    """Options of the object for one network: every fourth runs without stalls."""
    rng = random.Random(seed)
    latency = rng.choice((1, 4, 30, 30, 100))
    if seed % 4 == 0:
        return f"latency={latency}"
    percent = rng.choice((5, 20, 50, 80))
    return f"latency={latency},stall_seed={seed + 1},stall_percent={percent}"


def check_on_rtl(seed: int) -> check.Result:
    """check.check_network with the RTL as the only object."""
    os.environ["RASNA_RTL_OPTIONS"] = stall_options(seed)
    check.objects = lambda target: [rtl_path()]
    result = check.check_network(seed, [TARGET], bodies=[None])
    result.tags.add("stalls" if "stall_seed" in stall_options(seed) else "no stalls")
    return result


def _start() -> None:
    torch.set_num_threads(1)


def run(count: int, seed: int, jobs: int, progress: bool = False) -> list[check.Result]:
    """Results of ``count`` networks, in order of their seeds."""
    results, start = [], time.monotonic()
    with multiprocessing.get_context("spawn").Pool(jobs, _start) as pool:
        for result in pool.imap(check_on_rtl, range(seed, seed + count), chunksize=2):
            results.append(result)
            if result.failure:
                print(f"seed {result.seed}: {result.failure}\n  repeat: "
                      f"python tests/rtl/rtl_networks.py --count 1 --seed {result.seed}", flush=True)
            if progress and len(results) % 100 == 0:
                rate = len(results) / (time.monotonic() - start)
                print(f"{len(results)} of {count}, {rate:.1f} per second", flush=True)
    return results


def coverage(results: list[check.Result]) -> dict[str, int]:
    """Networks that covered each required attribute, opcode and kind of bus."""
    table = {
        name: alternatives for name, alternatives in _coverage_of_networks().required([TARGET]).items()
        if not name.startswith("body ")
    }
    for name in ("FILL", "LOAD", "STORE", "TABLE", "TAPS", "MOVE", "END", "stalls", "no stalls"):
        table[name] = (name,)
    return {
        name: sum(not r.failure and not r.tags.isdisjoint(tags) for r in results)
        for name, tags in table.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    if not rtl_path().exists():
        print(f"{rtl_path()} is not there; build it with: make sim-rtl-so TARGET={TARGET}")
        return 1
    print(f"seed {args.seed}, {args.count} networks on the RTL of {TARGET}")
    results = run(args.count, args.seed, args.jobs, progress=True)
    for name, number in coverage(results).items():
        print(f"  {name:28} {number:6}")
    refused = sum(r.refused for r in results)
    wrong = sum(bool(r.failure) and not r.refused for r in results)
    print(f"{len(results)} networks, {refused} refused, {wrong} wrong")
    return int(wrong > 0 or not results)


if __name__ == "__main__":
    sys.exit(main())
