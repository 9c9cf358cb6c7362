"""Cycles on the RTL: what sparsity saves, and how good the compiler's estimate is.

On a board's target in the long run, whose RTL takes minutes to build; the digits on `tiny` always.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import torch
from rtl_harness import BOARD_TARGET, ROOT, estimates
from torch import nn

import rasna
from rasna.targets import TARGETS
from tests.models import zoo

long = pytest.mark.long
on_each_target = pytest.mark.parametrize("target", ["tiny", pytest.param(BOARD_TARGET, marks=long)])


def run_once(model: nn.Module, sample: torch.Tensor, target: str, path) -> tuple[list[tuple[str, int]], list]:
    """Compile, run one image, compare with PyTorch; estimates and measured cycles."""
    program = rasna.compile(model.eval(), sample, channel_last=False, target=target)
    with program.to_runtime(path) as runtime:
        got = runtime(sample[:1].numpy(), channel_last=False)
        with torch.no_grad():
            assert np.array_equal(got, model(sample[:1]).numpy())
        measured = runtime.counters
    estimated = estimates(program.words, program.num_instructions, target)
    assert len(measured) == len(estimated) == program.num_instructions
    return estimated, measured


def layer_cycles(sparsity: float, path) -> int:
    """Cycles of a 3x3 convolution, 64 to 64 channels, 16x16, without the program's transfers."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU())
    rasna.tune(model, sp=sparsity, strategy="all")
    estimated, measured = run_once(model, torch.randn(1, 64, 16, 16), BOARD_TARGET, path)
    names = [name for name, _ in estimated]
    whole = sum(measured)
    own = sum(c for n, c in zip(names, measured, strict=True) if n in ("TABLE", "TAPS", "MOVE"))
    print(f"\nsp={sparsity}: {own} cycles of the layer, {whole} with LOAD and STORE of its maps")
    return own


@long
def test_at_80_percent_sparsity_a_layer_takes_at_most_a_quarter_of_the_cycles(rtl_path, capsys):
    with capsys.disabled():
        dense, sparse = (layer_cycles(sp, rtl_path(BOARD_TARGET)) for sp in (0.0, 0.8))
        print(f"speed-up {dense / sparse:.2f}")
    lanes = 8 * TARGETS[BOARD_TARGET].slices
    ideal = 64 * 64 * 9 * 256 / lanes  # multiply-accumulates of the layer over those of a cycle
    assert ideal <= dense < 1.05 * ideal
    assert sparse <= dense / 4


@pytest.mark.parametrize(("name", "target"), [
    ("digits", "tiny"),
    pytest.param("digits", BOARD_TARGET, marks=long),
    pytest.param("resnet20", BOARD_TARGET, marks=long),
])
@pytest.mark.parametrize("sparsity", [0.0, 0.8])
def test_the_estimate_is_within_5_percent_of_the_measured_cycles(
    name, target, sparsity, rtl_path, capsys
):
    model, sample = zoo.build(name), zoo.sample(name)[0]
    rasna.tune(model, sp=sparsity)
    estimated, measured = run_once(model, sample, target, rtl_path(target))
    total, real = sum(cycles for _, cycles in estimated), sum(measured)
    table = defaultdict(lambda: [0, 0, 0])
    for (opcode, cycles), counted in zip(estimated, measured, strict=True):
        row = table[opcode]
        row[0], row[1], row[2] = row[0] + 1, row[1] + cycles, row[2] + counted
    with capsys.disabled():
        print(f"\n{name} on {target} at sp={sparsity}: estimated {total}, measured {real}")
        for opcode, row in table.items():
            print(f"  {opcode:6} {row[0]:5} instructions, estimated {row[1]:8}, measured {row[2]:8}")
    assert abs(total - real) <= 0.05 * real


@on_each_target
def test_a_profile_shows_cycles_by_layer(target, rtl_path, capsys):
    model, sample = zoo.build("digits"), zoo.sample("digits")[0]
    rasna.tune(model, sp=0.8)
    program = rasna.compile(model.eval(), sample, channel_last=False, target=target)
    with program.to_runtime(rtl_path(target)) as runtime:
        profile = runtime.profile(sample[:1].numpy(), channel_last=False)
        assert profile.measured == sum(runtime.counters)
    assert [r.name for r in profile.layers] == [n["name"] for n in program.layers] + ["start and end"]
    assert all(row.measured > 0 for row in profile.layers)
    assert profile.estimated == sum(n["cycles"] for n in program.layers) + profile.layers[-1].estimated
    with capsys.disabled():
        print(f"\n{profile}")
    assert f"{profile.measured:,}" in str(profile) and str(profile).endswith(f"MHz of {target}")


def test_a_profile_needs_an_object_that_counts_cycles():
    import build_sim

    program = rasna.compile(nn.ReLU().eval(), torch.randn(1, 4, 4, 4), channel_last=False, target="tiny")
    with program.to_runtime(build_sim.build("tiny", ROOT / "build")) as runtime:
        with pytest.raises(rasna.RuntimeObjectError, match="make sim-rtl-so TARGET=tiny"):
            runtime.profile(np.zeros((1, 4, 4, 4), np.float32), channel_last=False)
