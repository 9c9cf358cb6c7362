#!/usr/bin/env python3
"""Build the shared-library runtime objects out of sim/ and hls/.

build/rasna-<target>.so        fast functional simulator
build/rasna-<target>-exact.so  the same program on the HLS step functions (--exact)

How they are built is in python/rasna/simbuild/, which rasna.simulator uses too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from rasna.errors import BuildError
from rasna.simbuild import (  # noqa: F401 (for the scripts and tests beside this one)
    EMULATE_AVX512,
    FAST_SOURCES,
    MIN_CLANG,
    MIN_GNU,
    ROOT,
    SHARED_SOURCES,
    X86_FLAGS,
    build,
    find_compiler,
    flags_of,
    locked,
    run,
    source_hash,
)
from rasna.targets import DEFAULT_TARGET, TARGETS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default=DEFAULT_TARGET, choices=sorted(TARGETS))
    parser.add_argument("--exact", action="store_true", help="the object over the HLS functions")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="directory (build)")
    parser.add_argument("--sanitize", action="store_true", help="with run-time checks, for tests")
    parser.add_argument("--cxx", help="the C++ compiler (default: $CXX, else the first found)")
    options = parser.parse_args(arguments)
    try:
        build(options.target, options.out, options.exact, options.sanitize, options.cxx)
    except (BuildError, OSError) as error:
        print(f"build_sim.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
