"""Schedules: II, depth and the reason of every loop of golden.cpp, its function on RTL, and lint of
what is generated.
"""

from __future__ import annotations

import hlsc_bench as bench
import pytest
from hlsc import Options, compile_source
from hlsc_harness import GOLDEN, HERE, LIBRARY, build, compile_to, lint, run, summary


def test_every_loop_has_its_ii_and_depth():
    assert summary(compile_source(GOLDEN, "core")) == (HERE / "golden" / "golden.txt").read_text()


def test_a_slower_clock_needs_fewer_stages():
    fast = compile_source(GOLDEN, "core", Options(clock_ns=3.3))
    slow = compile_source(GOLDEN, "core", Options(clock_ns=20.0))
    assert sum(x["depth"] for x in fast.loops()) > sum(x["depth"] for x in slow.loops())


def test_the_same_source_gives_the_same_text():
    assert compile_source(GOLDEN, "core").verilog == compile_source(GOLDEN, "core").verilog


def test_generated_verilog_is_lint_clean(tmp_path):
    compile_to(GOLDEN, "core", tmp_path)
    assert lint([tmp_path / "core.sv", *LIBRARY], "core") == ""


@pytest.mark.parametrize("module", [p.stem for p in LIBRARY])
def test_library_is_lint_clean(module):
    assert lint([*LIBRARY], module) == ""


@pytest.mark.parametrize("base_offset", [0, 8 * 37])
def test_rtl_equals_software_with_and_without_stalls(tmp_path, runtime_cache, base_offset):
    compile_to(GOLDEN, "core", tmp_path)
    arguments = ["port:src", "port:dst", "scalar:n"]
    text = bench.bench(
        "core", arguments, words=4096, max_n=1500, limit=4_000_000, offset=base_offset
    )
    program = build(GOLDEN, "core", text, tmp_path, runtime_cache, optimize="-O1")
    done = run([program, 6, 3], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("EQUAL")
    error = run(
        [program, 2, 3, 2], check=False
    )  # every response is SLVERR: RRESP of src, BRESP of dst
    assert error.stdout.strip() == "ERRORS 82", error.stdout + error.stderr
