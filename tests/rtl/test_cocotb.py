"""rasna_accelerator of `tiny` under cocotb, with cocotbext-axi's models of host and memory.

WAVES=1 keeps a waveform in build/cocotb/build/dump.vcd.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import unavailable
from torch import nn

import rasna
from rasna import isa
from rasna.assembler import assemble
from rasna.program.ports import pack
from rasna.program.selfcheck import selfcheck_inputs
from rasna.targets import TARGETS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOP = "rasna_accelerator"
# The first two are empty in the package's makefile. The models in Python take most of the time.
MAKEFLAGS = ("CFG_CXXFLAGS_PCH_I=-include CFG_LDLIBS_THREADS=-pthread "
             "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1")
VERILATOR_FLAGS = ("--cc", "--exe", "--build", "-j", "2", "--vpi", "-Wno-fatal", "-O3", "--quiet",
                   "--x-assign", "unique", "--x-initial", "unique", "--assert",
                   "--output-split", "20000", "--prefix", "Vtop", "--timescale", "1ns/1ps")


def small_network() -> rasna.Program:
    """Two convolutions, pooling and a linear layer on 8x8 pixels: every kind of layer once."""
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
    )
    rasna.tune(model, sp=0.5)
    return rasna.compile(model.eval(), torch.randn(2, 1, 8, 8), channel_last=False, target="tiny")


def write_cases(path: Path) -> int:
    """The small programs and one whole network with its expected output; returns their number."""
    arrays, names = {}, []

    def add(name, program, inputs, scratch_words, expected):
        names.append(name)
        arrays.update({
            f"{name}_program": program, f"{name}_inputs": inputs,
            f"{name}_scratch": np.array(scratch_words), f"{name}_expected": expected,
        })

    for file in sorted((ROOT / "tests" / "programs").glob("*.rasm")):
        case = assemble(file.read_text())
        add(file.stem, case.words, case.inputs, case.scratch_words, case.outputs)
    program = small_network()
    inputs = selfcheck_inputs(program.inputs, program.selfcheck_seed)
    words = pack(program.inputs, inputs, program.input_words)[0]
    add("network", program.words, words, program.scratch_words, program.selfcheck_expected)
    np.savez(path, **arrays)
    return len(names)


@pytest.fixture(scope="module")
def runner(rtl_path):
    """cocotb's runner with the right verilator, and the sources of the accelerator."""
    import build_rtl

    for package in ("cocotb_tools", "cocotbext.axi"):
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            found = None
        if found is None:
            unavailable(f"{package} is not installed: pip install cocotb cocotbext-axi")
    from cocotb_tools.runner import get_runner

    kernel = rtl_path("tiny").parent / "rtl" / "tiny" / "rasna_top.sv"
    before = dict(os.environ)
    os.environ.update(build_rtl.verilator_environment(), MAKEFLAGS=MAKEFLAGS)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(HERE / "cocotb"), str(ROOT / "python"), *filter(None, sys.path)]
    )
    yield get_runner("verilator"), build_rtl.rtl_sources(kernel)
    os.environ.clear()
    os.environ.update(before)


def build_simulation(sources: list[Path], folder: Path, waves: bool) -> None:
    """What cocotb's runner builds, with only the top's signals public: it makes all of them so,
    which takes minutes for the kernel."""
    import cocotb_tools.config as config

    main = config.share_dir / "lib" / "verilator" / "verilator.cpp"
    link = f"-Wl,-rpath,{config.libs_dir} -L{config.libs_dir} -lcocotbvpi_verilator"
    command = [
        "verilator", *VERILATOR_FLAGS, "--public-depth", "1", "--top-module", TOP, "-o", TOP,
        "--Mdir", str(folder), "-LDFLAGS", link, f"-I{ROOT / 'rtl'}",
        f"-GCONFIG_HASH=32'h{TARGETS['tiny'].config_hash[:8]}",
        *(["--trace-vcd"] if waves else []), str(main), *map(str, sources),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_accelerator_under_cocotb(runner, tmp_path):
    simulator, sources = runner
    waves = os.environ.get("WAVES") == "1"
    folder = ROOT / "build" / "cocotb" if waves else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    hash_digits = TARGETS["tiny"].config_hash[:8]
    assert write_cases(folder / "cases.npz") >= 9
    build_simulation(sources, folder / "build", waves)
    results = simulator.test(
        hdl_toplevel=TOP, hdl_toplevel_lang="verilog", test_module="bench_accelerator",
        test_dir=HERE / "cocotb", build_dir=folder / "build", waves=waves,
        results_xml=str(folder / "results.xml"),
        extra_env={"RASNA_CASES": str(folder / "cases.npz"), "RASNA_CONFIG_HASH": hash_digits},
    )
    text = Path(results).read_text()
    benches = re.findall(r"^@accelerator_test", (HERE / "cocotb" / "bench_accelerator.py")
                         .read_text(), re.M)
    assert text.count("<testcase") == len(benches) == 8, text
    assert "<failure" not in text and "<error" not in text, text


def test_the_cases_use_every_opcode(tmp_path):
    write_cases(tmp_path / "cases.npz")
    cases, used = np.load(tmp_path / "cases.npz"), set()
    for name in cases:
        if name.endswith("_program"):
            heads = cases[name][:: isa.INSTRUCTION_WORDS] & 0xFF
            used |= {int(h) for h in heads[: 1 + list(heads).index(isa.Opcode.END)]}
    assert used == set(isa.Opcode)
