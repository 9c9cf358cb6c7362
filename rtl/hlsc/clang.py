"""The two outside tools, both of LLVM 19: clang (C++ to LLVM IR) and opt with a pass list of our
own. Where they are is looked up in :mod:`hlsc.llvm`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import llvm
from .errors import HlsError

INCLUDE_DIR = Path(__file__).resolve().parent.parent / "include"

PRELUDE = (
    'extern "C" { void __hls_pipeline(int, int); void __hls_array(const void *, int, int, int); '
    "void __hls_dependence(const void *, int, int); void __hls_stream_depth(const void *, int); }"
)

_COMMON = ["-x", "c++", "-std=c++17", "-D__HLSC__=1", "-fno-exceptions", "-fno-rtti"]

_TO_IR = [
    "-O2",
    "-Xclang",
    "-disable-llvm-passes",
    "-gline-tables-only",
    "-fdebug-compilation-dir=/nowhere",  # file names stay as they were given
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-builtin",
    "-fno-threadsafe-statics",
    "-fno-discard-value-names",
    "-ffp-contract=off",
    "-Wno-unknown-pragmas",
    "-Wno-pass-failed",
    "-S",
    "-emit-llvm",
]

# Never default<O2>: no promotion of memory out of loops, no partial redundancy elimination, no
# widening of induction variables. Loops unroll only where the source asks for it. Two rounds of
# unrolling: the second one sees local arrays that the first one dissolved.
_CLEAN = "early-cse,simplifycfg,instcombine<no-verify-fixpoint>"
_UNROLL = (
    "loop-simplify,lcssa,loop(loop-rotate<header-duplication>,loop-simplifycfg),simplifycfg,"
    "instcombine<no-verify-fixpoint>,loop(indvars,loop-deletion,loop-unroll-full),sroa"
)
PASSES = (
    f"module(always-inline),function(sroa,{_CLEAN},{_UNROLL},{_CLEAN},{_UNROLL},early-cse,gvn<no-pre;no-load-pre>,"
    "instcombine<no-verify-fixpoint>,simplifycfg,bdce,aggressive-instcombine,instcombine<no-verify-fixpoint>,"
    "correlated-propagation,sroa,"
    "simplifycfg<no-switch-to-lookup;no-hoist-common-insts;no-sink-common-insts;speculate-blocks>,"
    "bdce,adce,instcombine<no-verify-fixpoint>,simplifycfg,loop-simplify,lcssa)"
)

_OPT = [
    "-disable-licm-promotion",
    "-indvars-widen-indvars=false",
    "-unroll-full-max-count=16384",
    "-unroll-max-iteration-count-to-analyze=0",
    "-pragma-unroll-threshold=10000000",
    "-pragma-unroll-full-max-iterations=16384",
]


def _run(command: list[str], what: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HlsError(None, f"{what}\n{done.stderr.strip()}")
    return done.stdout


def preprocess(source: Path, include_dirs: list[Path], defines: list[str]) -> str:
    """Expand macros and includes; ``_Pragma`` operators become pragma lines."""
    includes = [f"-I{d}" for d in [*include_dirs, INCLUDE_DIR]]
    return _run(
        [*llvm.find().clang, *_COMMON, "-E", *includes, *[f"-D{d}" for d in defines], str(source)],
        "the preprocessor refused the source:",
    )


def to_llvm(text: str) -> str:
    """Compile preprocessed C++ to unoptimised LLVM IR text."""
    return _run(
        [*llvm.find().clang, *_COMMON, *_TO_IR, "-", "-o", "-"],
        "clang refused the source:",
        PRELUDE + "\n" + text,
    )


def optimize(ir_text: str) -> str:
    """Run the pass list; the result is what :mod:`hlsc.llparse` reads."""
    return _run(
        [*llvm.find().opt, "-S", f"-passes={PASSES}", *_OPT, "-", "-o", "-"],
        "opt failed:",
        ir_text,
    )
