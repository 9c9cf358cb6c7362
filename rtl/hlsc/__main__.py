"""Command line: ``python -m hlsc source.cpp --top name --out directory``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .driver import Options, compile_source, write_result
from .errors import HlsError


def main(argv: list[str] | None = None) -> int:
    """Compile one source; 0 on success, 1 if the source is refused or a loop misses its II (with
    --strict-ii).
    """
    parser = argparse.ArgumentParser(prog="hlsc", description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--top", required=True, help='the extern "C" dataflow function')
    parser.add_argument(
        "--out", type=Path, default=Path("."), help="directory for <top>.sv and <top>.json"
    )
    parser.add_argument("-I", dest="include_dirs", type=Path, action="append", default=[])
    parser.add_argument("-D", dest="defines", action="append", default=[])
    parser.add_argument(
        "--clock-ns", type=float, default=5.0, help="clock period that operations are scheduled for"
    )
    parser.add_argument(
        "--deadlock-cycles",
        type=int,
        default=4096,
        help="idle cycles until simulation reports a deadlock",
    )
    parser.add_argument(
        "--strict-ii", action="store_true", help="a loop that misses its II is an error"
    )
    parser.add_argument(
        "--keep-ir", type=Path, help="directory for the LLVM IR before and after opt"
    )
    parser.add_argument(
        "--check-dependences",
        action="store_true",
        help="simulation stops if a dependence pragma promises too much",
    )
    args = parser.parse_args(argv)
    options = Options(
        args.include_dirs,
        args.defines,
        args.clock_ns,
        args.deadlock_cycles,
        args.keep_ir,
        args.check_dependences,
    )
    try:
        result = compile_source(args.source, args.top, options)
    except HlsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    missed = report_loops(result)
    verilog, _ = write_result(result, args.out)
    print(f"wrote {verilog} ({len(result.verilog.splitlines())} lines)")
    return 1 if missed and args.strict_ii else 0


def report_loops(result) -> int:
    """Print one line per pipelined loop; returns how many miss their II."""
    missed = 0
    for loop in result.loops():
        text = f"{loop['location']}: {loop['process']}: II={loop['ii']} "
        text += f"depth={loop['depth']} ops={loop['num_ops']}"
        if loop["ii"] > loop["target_ii"]:
            missed += 1
            text += f"; warning: II={loop['target_ii']} was asked for; {loop['why']}"
        print(text)
    return missed


if __name__ == "__main__":
    sys.exit(main())
