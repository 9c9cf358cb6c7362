"""Random programs against g++, with random memory latency, stalls and initial values.

    python tests/hlsc/fuzz.py --count 200 --seed 1

A failing program's message ends with the command that repeats just that one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
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


def run_batch(seeds: list[int], work: Path, keep: bool) -> tuple[list[tuple[int, str]], str]:
    """Check one build's programs; its failures, one chain each, and what to print about it."""
    began, lines, first = time.perf_counter(), [], seeds[0]
    cache = work / "runtime"
    message = check(seeds, work / f"p{first}", cache)
    found = [(first, message)] if message else []
    if message and len(seeds) > 1:  # find out which chain it was
        singles = [(s, check([s], work / f"p{first}_{s}", cache)) for s in seeds]
        found = [(s, m) for s, m in singles if m] or [
            (first, f"only together ({seeds}): {message}")
        ]
    lines += [f"seed {seed}: {text}\n  repeat: {repeat_command(seed)}" for seed, text in found]
    if not keep and not message:
        shutil.rmtree(work / f"p{first}")
    state = "FAIL" if message else "equal"
    lines.append(f"seeds {first}..{seeds[-1]}: {state} ({time.perf_counter() - began:.1f} s)")
    return found, "\n".join(lines)


def run(
    first: int, count: int, work: Path, keep: bool = False, chains: int = CHAINS, out=None,
    jobs: int = 1,
) -> list[tuple[int, str]]:
    """Check programs ``first`` .. ``first + count - 1``; returns [(seed, message)] of the failures,
    one chain each.
    """
    out = out or sys.stdout
    last = first + count
    batches = [list(range(s, min(s + chains, last))) for s in range(first, last, chains)]
    failures: list[tuple[int, str]] = []
    if jobs > 1:
        harness.runtime_objects(work / "runtime")  # before two processes would make it
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            done = [pool.submit(run_batch, seeds, work, keep) for seeds in batches]
            results = (future.result() for future in done)
            for found, text in results:
                failures += found
                print(text, file=out, flush=True)
        return failures
    for seeds in batches:
        found, text = run_batch(seeds, work, keep)
        failures += found
        print(text, file=out, flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=re.sub(r"\n.*", "", __doc__))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=Path, help="keep sources, RTL and programs in this directory"
    )
    parser.add_argument("--chains", type=int, default=CHAINS, help="programs per build")
    parser.add_argument("--jobs", type=int, default=1, help="builds at the same time")
    args = parser.parse_args()
    if args.count < 1 or args.chains < 1 or args.jobs < 1:
        parser.error("--count, --chains and --jobs must be at least 1")
    print(f"seed {args.seed}, {args.count} programs")
    options = {"chains": args.chains, "jobs": args.jobs}
    if args.keep:
        failures = run(args.seed, args.count, args.keep, keep=True, **options)
    else:
        with tempfile.TemporaryDirectory() as work:
            failures = run(args.seed, args.count, Path(work), **options)
    print(f"{args.count - len(failures)} of {args.count} programs equal")
    return 1 if failures else 0
