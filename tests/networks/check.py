"""One random network on every implementation: all output words must be equal.

PyTorch's tuned model in eval, the golden model (tap form), and the fast and exact
simulator objects of every target that was built. ``python tests/networks/fuzz.py`` runs many.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import rasna
from rasna import isa
from rasna.golden import run_program
from rasna.golden.host import run_steps
from rasna.program.ports import pack, unpack
from rasna.targets import get_target
from tests.random_models import random_model

BODIES = ("plain", "avx2", "vnni", "neon")


@dataclass
class Result:
    """What one network covered, and what went wrong (None: all equal)."""

    seed: int
    tags: set[str] = field(default_factory=set)
    is_graph: bool = False
    failure: str | None = None
    refused: bool = False


def objects(target: str) -> list[Path]:
    """The functional objects of a target that were built, fast before exact."""
    names = (f"rasna-{target}.so", f"rasna-{target}-exact.so")
    return [p for n in names if (p := ROOT / "build" / n).exists()]


def outputs_of(value) -> list[np.ndarray]:
    """The leaves of nested outputs, from left to right."""
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in outputs_of(v)]
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in outputs_of(v)]
    return [np.asarray(value.detach() if isinstance(value, torch.Tensor) else value)]


def cpu_bodies(path: Path) -> list[str]:
    """Tap-loop bodies that this CPU can run."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    have = ["plain"]
    have += ["avx2"] if " avx2" in flags else []
    have += ["vnni"] if " avx512_vnni" in flags else []
    return have


def program_tags(program) -> set[str]:
    """What the instructions of a program cover, under the target's name."""
    tags = set()
    for layer in program.layers:
        mapping = layer.get("mapping", "")
        if "row tiles" in mapping or "rows at once" in mapping:
            tags.add("row tiles")
        if "passes" in mapping:
            tags.add("passes")
    limit = get_target(program.target).list_words
    for number in range(program.num_instructions):
        head = program.words[number * 8 : number * 8 + 8]
        opcode, f = isa.decode(head)
        tags.add(opcode.name)
        if f.get("out_split"):
            tags.add(f"split rows of {opcode.name}")
        if opcode == isa.Opcode.TAPS:
            tags.add(f"{program.target} {1 << f['stripes_log2']} stripes")
            tags.add(isa.Encoding(f["encoding"]).name.lower() + " lists")
            tags.add(isa.Func(f["func"]).name)
            for name in ("acc_init", "list_shared", "circular_rows"):
                if f[name]:
                    tags.add(name)
            per_channel = f["stream_words"] / max(1, f["num_channels"])
            if f["acc_init"] and per_channel > limit / 2:
                tags.add("split lists")
    return tags


def check_network(seed: int, targets: list[str], bodies: list[str] | None = None) -> Result:
    """Run the network of a seed; never raises for a mismatch, the Result says it."""
    result = Result(seed)
    try:
        _check(seed, targets, bodies, result)
    except rasna.errors.CompileError as error:
        result.refused, result.failure = True, f"refused: {error}"
    except Exception as error:  # any other exception is a fault, too
        result.failure = f"{type(error).__name__}: {error}"
    return result


def _check(seed: int, targets: list[str], bodies: list[str] | None, result: Result) -> None:
    model, samples, info = random_model(seed)
    result.tags |= set(info["tags"])
    result.is_graph = info["is_graph"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # layers that cannot become circular
        rasna.tune(
            model, sp=info["sp"], ab=info["ab"], wb=info["wb"], ib=info["ib"],
            chpad=seed % 2 == 0, strategy="all" if seed % 3 == 0 else "auto",
        )
    model.eval()
    for target in targets:
        program = rasna.compile(model, *samples, channel_last=False, target=target)
        result.tags |= program_tags(program)
        with torch.no_grad():
            expected = outputs_of(model(*samples))
        _check_golden(program, samples, expected)
        for path in objects(target):
            exact = path.stem.endswith("exact")
            for body in [None] if exact else bodies or cpu_bodies(path):
                _check_object(program, path, body, samples, expected)
                if body:
                    result.tags.add(f"body {body}")


def _check_golden(program, samples, expected) -> None:
    """The first image of the batch through the tap form of the golden model."""
    integers = []
    for port, sample in zip(program.inputs, samples, strict=True):
        integers.append(rasna.golden.quantize(np.asarray(sample[:1]), port.type))
    words = pack(program.inputs, integers, program.input_words)[0]
    got = run_program(
        program.words, words, program.output_words, program.scratch_words, program.target
    )
    outputs = {
        port.name: rasna.golden.dequantize(leaf, port.type)
        for port, leaf in zip(program.outputs, unpack(program.outputs, got[None]), strict=True)
    }
    results = run_steps(program.host_steps, program.results, outputs)
    for result, want in zip(results, expected, strict=True):
        if not np.array_equal(result, want[:1]):
            raise AssertionError(f"golden and PyTorch differ for {program.target}")


def _check_object(program, path: Path, body: str | None, samples, expected) -> None:
    before = os.environ.get("RASNA_BODY")
    if body:
        os.environ["RASNA_BODY"] = body
    try:
        with program.to_runtime(path) as runtime:
            got = outputs_of(runtime(*samples, channel_last=False))
    finally:
        if body:
            os.environ.pop("RASNA_BODY")
            if before is not None:
                os.environ["RASNA_BODY"] = before
    if len(got) != len(expected):
        raise AssertionError(f"{path.name}: {len(got)} outputs, {len(expected)} expected")
    for index, (a, b) in enumerate(zip(got, expected, strict=True)):
        if a.shape != b.shape or not np.array_equal(a, b):
            raise AssertionError(f"{path.name} body {body}: output {index} differs from PyTorch")
