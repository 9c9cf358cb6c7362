"""One random model in its spelling: equal to eager within the bound, or refused by name.

There is no third outcome. ``check_model(seed)`` never raises; its Result says what happened.

    python tests/spelled/check.py --seed 0 --count 1000     (make fuzz-models N=1000 SEED=0)
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import numpy as np
import torch

import rasna
from rasna.compile.pipeline import Compiled, flatten_outputs, quantize_model
from rasna.compile.settings import Settings
from rasna.errors import CompileError
from rasna.golden import layers
from rasna.golden.host import run_steps
from tests.networks.check import objects
from tests.spelled.bounds import error_bounds
from tests.spelled.models import MAYBE, NO, YES, Spelled, spelled_model

ANCHOR = 1e-9  # the float graph against eager, both in float64, relative to the largest value
DEFAULTS = {"ab": 8, "wb": 8, "ib": 17}
RUNTIME_EVERY = 10  # models that go on to a Program and the simulator


@dataclass
class Result:
    """outcome: "equal", "refused" or "wrong", which text explains.

    tightness: median bound / standard deviation of the output, for 8 bits.
    """

    seed: int
    outcome: str = "wrong"
    text: str = ""
    tags: set[str] = field(default_factory=set)
    tightness: float = float("nan")
    used: float = 0.0  # largest |error| / bound


def repeat(seed: int) -> str:
    """The command that repeats the model of a seed alone."""
    return f"python tests/spelled/check.py --seed {seed} --count 1"


def check_model(seed: int, damage=None) -> Result:
    """Compile and compare the model of a seed. damage: changes the Compiled before it is run."""
    result = Result(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spelled = spelled_model(seed)
            result.tags = spelled.tags
            _check(spelled, result, seed, damage)
    except Exception as error:  # whatever it is, it is the third outcome
        result.outcome, result.text = "wrong", f"{type(error).__name__}: {error}"
    return result


def _check(spelled: Spelled, result: Result, seed: int, damage) -> None:
    must = {line for line, status in spelled.expected.items() if status == NO}
    may = must | {line for line, status in spelled.expected.items() if status == MAYBE}
    settings = Settings(**spelled.settings)
    try:
        compiled = quantize_model(spelled.model, spelled.samples, settings)
    except CompileError as error:
        result.outcome, result.text = "refused", str(error)
        complaint = _not_by_name(error, spelled, must, may)
        if complaint:
            result.outcome, result.text = "wrong", f"{complaint}: {error}"
        return
    if must:
        result.text = f"lines {sorted(must)} were not refused"
        return
    if damage is not None:
        damage(compiled)
    complaint = _beyond_bound(spelled, compiled, result)
    if not complaint and damage is None and seed % RUNTIME_EVERY == 0:
        complaint = _other_on_runtime(spelled, compiled)
    result.outcome, result.text = ("wrong", complaint) if complaint else ("equal", "")


def _not_by_name(error: CompileError, spelled: Spelled, must: set[int], may: set[int]) -> str:
    """What is wrong with a refusal: every line that must be refused is, with a full message."""
    if not error.problems:
        return "an error without problems"
    for problem in error.problems:
        if not (problem.node and problem.reason and problem.remedy):
            return "a problem without node, reason or remedy"
        if problem.file != spelled.file:
            return "a problem without a line of the model"
        if problem.line not in may:
            return f"line {problem.line} should be supported"
        if str(problem) not in str(error):
            return "a problem that the message leaves out"
    unnamed = must - {problem.line for problem in error.problems}
    return f"lines {sorted(unnamed)} are not named" if unnamed else ""


def _beyond_bound(spelled: Spelled, compiled: Compiled, result: Result) -> str:
    """Compare samples, and inputs that were no samples, with eager in float64."""
    exact = copy.deepcopy(spelled.model).double()
    inputs = [torch.cat([s[:2], 1.5 * s[:1].roll(1, -1)]) for s in spelled.samples]
    doubles = [x.double() for x in inputs]
    wb, ib = spelled.settings["wb"], spelled.settings["ib"]
    with torch.no_grad():
        want = flatten_outputs(exact(*[x.clone() for x in doubles]))
        values, bounds = error_bounds(compiled, exact, doubles, wb, ib)
    got = evaluate(compiled, inputs)
    ratios = []
    for index, (w, v, b, g) in enumerate(zip(want, values, bounds, got, strict=True)):
        if w.shape != v.shape or w.shape != g.shape:
            return f"output {index} has shape {tuple(g.shape)} instead of {tuple(w.shape)}"
        largest = max(1e-30, float(w.abs().max()), *(float(x.abs().max()) for x in doubles))
        if float((w - v).abs().max()) > ANCHOR * largest * 1e3:
            return f"output {index}: the float graph is {float((w - v).abs().max()):.3g} off"
        error = (torch.from_numpy(g) - w).abs()
        worst = float((error - b).max())
        if not worst <= ANCHOR * largest:
            at = np.unravel_index(int((error - b).argmax()), error.shape)
            return (
                f"output {index} at {tuple(map(int, at))}: {float(g[at]):.6g} instead of "
                f"{float(w[at]):.6g}, the bound is {float(b[at]):.3g}"
            )
        ratios.append(float(b.median()) / max(1e-30, float(w.std()) if w.numel() > 1 else 1.0))
        result.used = max(result.used, float((error / b.clamp_min(1e-30)).max()))
    if spelled.settings == DEFAULTS:
        result.tightness = max(ratios)
    return ""


def evaluate(compiled: Compiled, inputs: list[torch.Tensor]) -> list[np.ndarray]:
    """Outputs of the golden layer form, float64, batch first."""
    graph = compiled.quant_graph
    rows = []
    for row in range(len(inputs[0])):
        integers = [
            layers.quantize(x[row].numpy(), graph.tensors[port.tensor].type)
            for x, port in zip(inputs, graph.inputs, strict=True)
        ]
        values = layers.evaluate(graph, integers)
        outputs = {
            p.name: layers.dequantize(values[p.tensor], graph.tensors[p.tensor].type).reshape(
                1, *p.shape
            )
            for p in graph.outputs
        }
        found = run_steps(graph.host_steps, graph.results, outputs)
        rows.append([array[0] for array in found])
    return [np.stack(output).astype(np.float64) for output in zip(*rows, strict=True)]


def _other_on_runtime(spelled: Spelled, compiled: Compiled) -> str:
    """The whole way with rasna.compile: the simulator gives what golden gives."""
    if spelled.settings != DEFAULTS or not objects("tiny"):
        return ""
    program = rasna.compile(spelled.model, *spelled.samples, channel_last=False, target="tiny")
    with program.to_runtime(objects("tiny")[0]) as runtime:
        got = flatten_outputs(runtime(*spelled.samples, channel_last=False))
    for index, (a, b) in enumerate(zip(got, evaluate(compiled, spelled.samples), strict=True)):
        if a.shape != b.shape or not np.array_equal(a, b):
            return f"output {index} of the simulator differs from golden"
    return ""


def run(seed: int, count: int, progress: bool = False) -> list[Result]:
    """The results of ``count`` models; every wrong one is printed with its repeating command."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results, start = [], time.monotonic()
    for number in range(seed, seed + count):
        result = check_model(number)
        results.append(result)
        if result.outcome == "wrong":
            print(f"seed {number}: {result.text}\n  repeat: {repeat(number)}", flush=True)
        if progress and len(results) % 100 == 0:
            rate = len(results) / (time.monotonic() - start)
            print(f"{len(results)} of {count}, {rate:.1f} per second", flush=True)
    torch.set_num_threads(threads)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    args = parser.parse_args()
    print(f"seed {args.seed}, {args.count} models")
    results = run(args.seed, args.count, progress=True)
    if args.count == 1:
        print(spelled_model(args.seed).source)
        print(f"{results[0].outcome}: {results[0].text}")
    tags = Counter(tag for result in results for tag in result.tags)
    print("\n".join(f"  {tag:32} {number:6}" for tag, number in sorted(tags.items())))
    equal = [r for r in results if r.outcome == "equal"]
    if equal:
        print(f"bound / standard deviation of the output, median: "
              f"{np.nanmedian([r.tightness for r in equal]):.3f}; largest error / bound: "
              f"{max(r.used for r in equal):.3f}")  # fmt: skip
    counts = Counter(result.outcome for result in results)
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("equal", "refused", "wrong")))
    return int(counts["wrong"] > 0)


__all__ = ["Result", "YES", "check_model", "repeat", "run"]

if __name__ == "__main__":
    sys.exit(main())
