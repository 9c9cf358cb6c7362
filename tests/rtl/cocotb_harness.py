"""Builds a module with Verilator for cocotb, runs its bench and reads the results.

The bench's tests count themselves: a run with fewer results than the file has tests, or with none, fails.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rtl_harness import unavailable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BENCHES = HERE / "benches"  # on sys.path, see conftest.py
# The first two are empty in the package's makefile. The models in Python take most of the time.
MAKEFLAGS = ("CFG_CXXFLAGS_PCH_I=-include CFG_LDLIBS_THREADS=-pthread "
             "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1")
VERILATOR_FLAGS = ("--cc", "--exe", "--build", "-j", "2", "--vpi", "-Wno-fatal", "-O3", "--quiet",
                   "--x-assign", "unique", "--x-initial", "unique", "--assert",
                   "--output-split", "20000", "--prefix", "Vtop", "--timescale", "1ns/1ps")


def cocotb_environment() -> dict[str, str]:
    """Environment for building and running; skips the test (fails it in CI) without the tools."""
    import build_rtl

    for package in ("cocotb_tools", "cocotbext.axi"):
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            found = None
        if found is None:
            unavailable(f"{package} is not installed: pip install cocotb cocotbext-axi")
    try:
        environment = build_rtl.verilator_environment()
    except build_rtl.BuildError as error:
        unavailable(str(error))
    launcher = " OBJCACHE=ccache" if shutil.which("ccache") else ""
    return {**environment, "MAKEFLAGS": MAKEFLAGS + launcher}


def build(top: str, sources: list[Path], folder: Path, environment: dict[str, str],
          parameters: dict[str, object] | None = None, waves: bool = False,
          defines: Sequence[str] = ()) -> Path:
    """Verilate ``top`` into ``folder``/build; returns the executable.

    What cocotb's runner builds, with only the top's signals public: it makes all of them so, which
    takes minutes for the kernel.
    """
    import cocotb_tools.config as config

    main = config.share_dir / "lib" / "verilator" / "verilator.cpp"
    link = f"-Wl,-rpath,{config.libs_dir} -L{config.libs_dir} -lcocotbvpi_verilator"
    command = [
        "verilator", *VERILATOR_FLAGS, "--public-depth", "1", "--top-module", top, "-o", top,
        "--Mdir", str(folder / "build"), "-LDFLAGS", link, f"-I{ROOT / 'rtl'}",
        *(f"-G{name}={value}" for name, value in (parameters or {}).items()),
        *(f"-D{name}" for name in defines), *(["--trace-vcd"] if waves else []), str(main), *map(str, sources),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "build" / top


def run_bench(top: str, bench: str, folder: Path, environment: dict[str, str],
              waves: bool = False, decorator: str = "bench_test", **extra: str) -> None:
    """Run all tests of tests/rtl/benches/<bench>.py on the executable; they must be good."""
    from cocotb_tools.runner import get_runner

    before, results = dict(os.environ), folder / "results.xml"
    os.environ.update(environment)
    try:
        get_runner("verilator").test(
            hdl_toplevel=top, hdl_toplevel_lang="verilog", test_module=bench, test_dir=folder,
            build_dir=folder / "build", waves=waves, results_xml=str(results), extra_env=extra,
        )
    except SystemExit:
        pass  # what failed is in the results
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert results.exists(), "the simulation ended before its tests did: see the output above"
    tests = re.findall(rf"^@{decorator}\b", (BENCHES / f"{bench}.py").read_text(), re.M)
    check_results(results.read_text(), len(tests))


def check_results(text: str, expected: int) -> None:
    """AssertionError unless ``expected`` tests (at least one) have run and all are good."""
    assert text.count("<testcase") == expected > 0, f"{expected} tests expected:\n{text}"
    assert "<failure" not in text and "<error" not in text, text
    assert "<skipped" not in text, text
