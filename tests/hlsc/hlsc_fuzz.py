"""Random programs against g++, with random memory latency, stalls and initial values.

    python tests/hlsc/fuzz.py --count 200 --seed 1

A failing program's message ends with the command that repeats just that one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import hlsc_bench as bench  # noqa: E402
import hlsc_harness as harness  # noqa: E402
import hlsc_programs as programs  # noqa: E402
from hlsc import HlsError, Options  # noqa: E402

CHAINS = 4


def repeat_command(seed: int) -> str:
    """How to run one program again, keeping its files."""
    return f"python tests/hlsc/fuzz.py --count 1 --seed {seed} --keep build/fuzz"


def check(seeds: list[int], out_dir: Path, cache: Path, sets: int = 6, mutate=None) -> str:
    """Compile, build and run one source with a chain per seed; "" if hardware and software agree,
    else what happened.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    source = out_dir / "program.cpp"
    source.write_text(programs.program(seeds))
    options = Options(clock_ns=[3.3, 5.0, 10.0][seeds[0] % 3], check_dependences=True)
    try:
        harness.compile_to(source, "core", out_dir, options)
    except HlsError as error:
        return f"REFUSED {error}"
    if mutate:
        mutate(out_dir / "core.sv")
    text = bench.bench("core", programs.arguments(len(seeds)), limit=2_000_000)
    try:
        program = harness.build(source, "core", text, out_dir, cache)
    except harness.ToolError as error:
        return f"BUILD {error}"
    done = harness.run([program, sets, seeds[0] + 1], check=False)
    last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
    if done.returncode == 0 and last[0].startswith("EQUAL"):
        return ""
    return done.stdout.strip()[-600:] + done.stderr.strip()[-200:]


def run(
    first: int, count: int, work: Path, keep: bool = False, chains: int = CHAINS, out=None
) -> list[tuple[int, str]]:
    """Check programs ``first`` .. ``first + count - 1``; returns [(seed, message)] of the failures,
    one chain each.
    """
    out = out or sys.stdout
    failures: list[tuple[int, str]] = []
    cache = work / "runtime"
    for start in range(first, first + count, chains):
        seeds = list(range(start, min(start + chains, first + count)))
        began = time.perf_counter()
        message = check(seeds, work / f"p{start}", cache)
        found = [(seeds[0], message)] if message else []
        if message and len(seeds) > 1:  # find out which chain it was
            singles = [(s, check([s], work / f"p{start}_{s}", cache)) for s in seeds]
            found = [(s, m) for s, m in singles if m] or [
                (start, f"only together ({seeds}): {message}")
            ]
        failures += found
        for seed, text in found:
            print(f"seed {seed}: {text}\n  repeat: {repeat_command(seed)}", file=out)
        if not keep and not message:
            shutil.rmtree(work / f"p{start}")
        print(
            f"seeds {seeds[0]}..{seeds[-1]}: {'FAIL' if message else 'equal'} "
            f"({time.perf_counter() - began:.1f} s)",
            file=out,
            flush=True,
        )
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=re.sub(r"\n.*", "", __doc__))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=Path, help="keep sources, RTL and programs in this directory"
    )
    parser.add_argument("--chains", type=int, default=CHAINS, help="programs per build")
    args = parser.parse_args()
    print(f"seed {args.seed}, {args.count} programs")
    if args.keep:
        failures = run(args.seed, args.count, args.keep, keep=True, chains=args.chains)
    else:
        with tempfile.TemporaryDirectory() as work:
            failures = run(args.seed, args.count, Path(work), chains=args.chains)
    print(f"{args.count - len(failures)} of {args.count} programs equal")
    return 1 if failures else 0
