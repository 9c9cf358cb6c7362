"""Compiles the simulators.

One object runs on every processor of its architecture: the inner loops are compiled several
times, each with its own flags, and chosen at run time. Nothing but a C++ compiler is needed.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..errors import BuildError
from .compilers import Compiler, host_compiler
from .files import locked, source_hash

COMMON_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fwrapv", "-fopenmp-simd",
                "-Wall", "-Wextra", "-Wno-unknown-pragmas",
                # g++ 12 sees uninitialised values in its own AVX-512 header and in hls/
                "-Wno-unknown-warning-option", "-Wno-maybe-uninitialized")  # fmt: skip
SANITIZE_FLAGS = ("-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
                  "-fno-sanitize-recover=undefined")  # fmt: skip
SHARED_SOURCES = ("abi.cpp", "validate.cpp")
BODY_SOURCES = ("bodies.cpp", "body_plain.cpp", "body_avx2.cpp", "body_vnni.cpp", "body_neon.cpp",
                "processor.cpp")  # fmt: skip
FAST_SOURCES = ("fast_machine.cpp", "taps_plan.cpp", "taps_run.cpp", "quads.cpp", *BODY_SOURCES)
EXACT_SOURCES = ("exact_machine.cpp",)
EMULATE_AVX512 = "-DRASNA_EMULATE_AVX512"  # of a test build, which no AVX-512 code may enter
X86_FLAGS = {
    "body_avx2.cpp": ("-mavx2",),
    "body_vnni.cpp": ("-mavx2", "-mavx512f", "-mavx512vl", "-mavx512vnni"),
}


def _source_root() -> Path:
    """The folder of sim/ and hls/: a part of the wheel, or the repository."""
    installed = Path(__file__).parent / "sources"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[3]


ROOT = _source_root()


def flags_of(
    source: str, flags: list[str] | tuple[str, ...], machine: str | None = None
) -> tuple[str, ...]:
    """Processor flags of one source file. ``flags``: those of all files."""
    machine = machine or platform.machine()
    if machine in ("x86_64", "AMD64"):
        of_source = X86_FLAGS.get(source, ())
        return of_source[:1] if EMULATE_AVX512 in flags else of_source
    return ("-mfpu=neon",) if machine == "armv7l" else ()


def run(command: list[str]) -> None:
    """Run a compiler; what it warns about goes to stderr. Raises BuildError."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"this command failed:\n  {' '.join(command)}\n{done.stderr.strip()}")
    if done.stderr:
        print(done.stderr, file=sys.stderr, end="")


def _sources(exact: bool) -> list[str]:
    return [*SHARED_SOURCES, *(EXACT_SOURCES if exact else FAST_SOURCES)]


def object_key(exact: bool, text: str) -> str:
    """A hash over everything in this package that an object is made of, and ``text``."""
    headers = [p for p in (ROOT / "sim").glob("*.h") if not p.name.startswith("rtl_")]
    inputs = [*headers, *(ROOT / "hls").glob("*.h"), *(ROOT / "sim" / s for s in _sources(exact))]
    return source_hash([*inputs, Path(__file__)], text)


def make_object(
    compiler: Compiler,
    target: str,
    result: Path,
    exact: bool = False,
    sanitize: bool = False,
    flags: tuple[str, ...] = (),
) -> None:
    """Compile and link one object at ``result``; a reader finds a whole file or none.

    target: a name of rasna.targets. exact: the object over hls/exact_run.h. sanitize: with address
    and undefined-behaviour checks. flags: more compiler flags. Raises BuildError.
    """
    info = f"{compiler.description} {compiler.machine} {'sanitize' if sanitize else 'O3'}"
    all_flags = [
        *COMMON_FLAGS, f"-DRASNA_TARGET_{target.upper().replace('-', '_')}",
        *(SANITIZE_FLAGS if sanitize else ()), *flags, f'-DRASNA_BUILD_INFO="{info}"',
    ]  # fmt: skip
    strip = SANITIZE_FLAGS if sanitize else ("-s",)
    # beside the result, because a rename is atomic within one file system only
    with tempfile.TemporaryDirectory(prefix="rasna-", dir=result.parent) as work:
        made = str(Path(work) / result.name)
        objects = _compile_all(compiler, _sources(exact), all_flags, work)
        run([*compiler.command, *objects, "-shared", *strip, "-o", made])
        os.replace(made, result)


def _compile_all(
    compiler: Compiler, sources: list[str], flags: list[str], work: str
) -> list[str]:
    """Compile every source of sim/ into ``work``; returns the object files."""

    def compile_one(source: str) -> str:
        into = str(Path(work) / f"{source}.o")
        own = flags_of(source, flags, compiler.machine)
        run([*compiler.command, *flags, *own, "-c", str(ROOT / "sim" / source), "-o", into])
        return into

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(compile_one, sources))


def build(
    target: str,
    out: Path,
    exact: bool = False,
    sanitize: bool = False,
    cxx: str | None = None,
    flags: tuple[str, ...] = (),
    suffix: str = "",
) -> Path:
    """Build one object and return its path; nothing is done when no source has changed.

    target: a name of rasna.targets. out: directory, made when missing. exact: the object over
    hls/exact_run.h. sanitize: with address and undefined-behaviour checks, for the tests.
    flags, suffix: more compiler flags and an ending of the name, for test builds.
    Raises BuildError.
    """
    compiler = host_compiler(cxx or os.environ.get("CXX"))
    name = f"rasna-{target}{'-exact' if exact else ''}{'-sanitize' if sanitize else ''}{suffix}.so"
    result = out / name
    key = object_key(exact, " ".join([*compiler.command, compiler.description, compiler.machine,
                                      target, str(sanitize), *flags]))
    stamp = out / "obj" / f"{name}.stamp"
    stamp.parent.mkdir(parents=True, exist_ok=True)
    with locked(out / "obj" / f"{name}.lock"):
        if result.exists() and stamp.exists() and stamp.read_text() == key:
            print(f"{result} is up to date")
            return result
        print(f"building {result} ({compiler.description} {compiler.machine})", flush=True)
        make_object(compiler, target, result, exact, sanitize, flags)
        stamp.write_text(key)
    return result
