#!/usr/bin/env python3
"""Build the shared-library runtime objects out of sim/ and hls/.

build/rasna-<target>.so        fast functional simulator
build/rasna-<target>-exact.so  the same program on the HLS step functions (--exact)

One object runs on every processor of its architecture: the inner loops are compiled several
times, each with its own flags, and chosen at run time. Nothing but a C++ compiler is needed.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from rasna.targets import DEFAULT_TARGET, TARGETS  # noqa: E402

CANDIDATES = ("g++", "clang++", *(f"g++-{v}" for v in range(15, 7, -1)),
              *(f"clang++-{v}" for v in range(21, 6, -1)))
MIN_GNU, MIN_CLANG = 8, 7  # C++17 and the AVX-512 VNNI intrinsics
COMMON_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fwrapv", "-fopenmp-simd",
                "-Wall", "-Wextra", "-Wno-unknown-pragmas",
                # g++ 12 sees uninitialised values in its own AVX-512 header and in hls/
                "-Wno-unknown-warning-option", "-Wno-maybe-uninitialized")
SANITIZE_FLAGS = ("-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
                  "-fno-sanitize-recover=undefined")
SHARED_SOURCES = ("abi.cpp", "validate.cpp")
BODY_SOURCES = ("bodies.cpp", "body_plain.cpp", "body_avx2.cpp", "body_vnni.cpp", "body_neon.cpp")
FAST_SOURCES = ("fast_machine.cpp", "taps_plan.cpp", "taps_run.cpp", "quads.cpp", *BODY_SOURCES)
EXACT_SOURCES = ("exact_machine.cpp",)
EMULATE_AVX512 = "-DRASNA_EMULATE_AVX512"  # of a test build, which no AVX-512 code may enter
X86_FLAGS = {
    "body_avx2.cpp": ("-mavx2",),
    "body_vnni.cpp": ("-mavx2", "-mavx512f", "-mavx512vl", "-mavx512vnni"),
}


class BuildError(Exception):
    """What is missing and what to do, in a sentence."""


def compiler_version(command: str) -> tuple[str, int] | None:
    """("g++" or "clang++", major version) of a compiler, or None when it does not run."""
    try:
        text = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    clang = re.search(r"clang version (\d+)", text)
    if clang:
        return "clang++", int(clang.group(1))
    gnu = re.search(r"\b(\d+)\.\d+(?:\.\d+)?\b", text)
    return ("g++", int(gnu.group(1))) if gnu else None


def find_compiler(wanted: str | None) -> tuple[str, str]:
    """A command and a description of the first compiler that is new enough.

    wanted: the only candidate (option --cxx or the environment variable CXX).
    Raises BuildError that names what was found and what is needed.
    """
    found = []
    for command in [wanted] if wanted else CANDIDATES:
        path = shutil.which(command)
        version = compiler_version(path) if path else None
        if version is None:
            continue
        kind, major = version
        if major >= (MIN_CLANG if kind == "clang++" else MIN_GNU):
            return path, f"{kind} {major}"
        found.append(f"{command} is {kind} {major}")
    what = "; ".join(found) if found else f"no {wanted or 'g++ or clang++'} was found on PATH"
    raise BuildError(
        f"a C++17 compiler is needed, g++ {MIN_GNU} or clang++ {MIN_CLANG} or newer, but {what}; "
        "install one (for example the package g++) or give its name with --cxx"
    )


def source_hash(paths: list[Path], text: str) -> str:
    """A hash over file contents and the options of the build."""
    digest = hashlib.sha256(text.encode())
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def flags_of(source: str, flags: list[str]) -> tuple[str, ...]:
    """Processor flags of one source file. ``flags``: those of all files."""
    machine = platform.machine()
    if machine in ("x86_64", "AMD64"):
        of_source = X86_FLAGS.get(source, ())
        return of_source[:1] if EMULATE_AVX512 in flags else of_source
    return ("-mfpu=neon",) if machine == "armv7l" else ()


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"this command failed:\n  {' '.join(command)}\n{done.stderr.strip()}")
    if done.stderr:
        print(done.stderr, file=sys.stderr, end="")


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
    compiler, description = find_compiler(cxx or os.environ.get("CXX"))
    name = f"rasna-{target}{'-exact' if exact else ''}{'-sanitize' if sanitize else ''}{suffix}.so"
    result = out / name
    of_target = f"-DRASNA_TARGET_{target.upper().replace('-', '_')}"
    all_flags = [*COMMON_FLAGS, of_target, *(SANITIZE_FLAGS if sanitize else ()), *flags]
    info = f"{description} {platform.machine()} {'sanitize' if sanitize else 'O3'}"
    sources = [*SHARED_SOURCES, *(EXACT_SOURCES if exact else FAST_SOURCES)]
    headers = [p for p in (ROOT / "sim").glob("*.h") if not p.name.startswith("rtl_")]
    inputs = [*headers, *(ROOT / "hls").glob("*.h"), *(ROOT / "sim" / s for s in sources)]
    key = source_hash([*inputs, Path(__file__)], " ".join([compiler, info, *all_flags]))
    stamp = out / "obj" / f"{name}.stamp"
    stamp.parent.mkdir(parents=True, exist_ok=True)
    with locked(out / "obj" / f"{name}.lock"):
        if result.exists() and stamp.exists() and stamp.read_text() == key:
            print(f"{result} is up to date")
            return result
        print(f"building {result} ({info})", flush=True)
        with tempfile.TemporaryDirectory(dir=out / "obj") as work:
            all_flags.append(f'-DRASNA_BUILD_INFO="{info}"')
            made = str(Path(work) / name)
            objects = compile_all(compiler, sources, all_flags, work)
            strip = SANITIZE_FLAGS if sanitize else ("-s",)
            run([compiler, *objects, "-shared", *strip, "-o", made])
            os.replace(made, result)
        stamp.write_text(key)
    return result


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process builds an object at a time; the others find it up to date."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_all(compiler: str, sources: list[str], flags: list[str], work: str) -> list[str]:
    """Compile every source of sim/ into ``work``; returns the object files."""
    def compile_one(source: str) -> str:
        into = str(Path(work) / f"{source}.o")
        own = flags_of(source, flags)
        run([compiler, *flags, *own, "-c", str(ROOT / "sim" / source), "-o", into])
        return into

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(compile_one, sources))


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
