"""rasna_accelerator of `tiny` under cocotb, with cocotbext-axi's models of host and memory.

WAVES=1 keeps a waveform below build/cocotb/accelerator.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from cocotb_harness import build, cocotb_environment, run_bench
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


def test_the_accelerator_under_cocotb(rtl_path, tmp_path):
    import build_rtl

    waves = os.environ.get("WAVES") == "1"
    folder = ROOT / "build" / "cocotb" / "accelerator" if waves else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    environment = cocotb_environment()
    sources = build_rtl.rtl_sources(rtl_path("tiny").parent / "rtl" / "tiny" / "rasna_top.sv")
    digits = TARGETS["tiny"].config_hash[:8]
    assert write_cases(folder / "cases.npz") >= 9
    build(TOP, sources, folder, environment, {"CONFIG_HASH": f"32'h{digits}"}, waves)
    run_bench(TOP, "bench_accelerator", folder, environment, waves, "accelerator_test",
              RASNA_CASES=str(folder / "cases.npz"), RASNA_CONFIG_HASH=digits)


def test_the_cases_use_every_opcode(tmp_path):
    write_cases(tmp_path / "cases.npz")
    cases, used = np.load(tmp_path / "cases.npz"), set()
    for name in cases:
        if name.endswith("_program"):
            heads = cases[name][:: isa.INSTRUCTION_WORDS] & 0xFF
            used |= {int(h) for h in heads[: 1 + list(heads).index(isa.Opcode.END)]}
    assert used == set(isa.Opcode)
