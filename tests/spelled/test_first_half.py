"""Random models as people spell them: equal to eager within a bound, or refused by name."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

from rasna.compile.operators.registry import FUNCTIONS, METHODS
from rasna.graph import Conv, Sum
from tests.spelled import check
from tests.spelled.models import NO, spelled_model

COUNT = int(os.environ.get("RASNA_SPELLED", "1000")) // 2
SEED = int(os.environ.get("RASNA_SEED", "0"))


@pytest.fixture(scope="module")
def results():
    print(f"\nseed {SEED}, {COUNT} models; others: make fuzz-models N=1000 SEED=0")
    return check.run(SEED, COUNT)


def test_equal_to_eager_or_refused_by_name(results):
    wrong = [f"{check.repeat(r.seed)}: {r.text}" for r in results if r.outcome == "wrong"]
    assert len(results) == COUNT
    assert not wrong, "\n".join(wrong)


def test_most_models_compile_and_their_bounds_say_something(results):
    equal = [r for r in results if r.outcome == "equal"]
    assert len(equal) >= 0.6 * COUNT
    # an output of noise alone has a ratio above 1; 8-bit networks of this depth are far below
    assert np.nanmedian([r.tightness for r in equal]) < 0.5


def test_every_family_of_spellings_is_met(results):
    tags = Counter(tag for r in results for tag in r.tags)
    wanted = {
        "conv.module", "conv.block", "conv.functional", "module list", "shared module", "residual",
        "batchnorm.alone", "batchnorm.functional", "activation", "in place", "nothing",
        "arithmetic", "per channel", "sum", "sum.broadcast", "max_pool", "max_pool.adaptive",
        "average.adaptive", "average.pool", "flatten", "mean", "squeeze", "linear",
        "linear.functional", "refused", "conv.mode=circular", "conv.dilation=2", "conv.groups=2",
    }  # fmt: skip
    thin = {tag: tags[tag] for tag in wanted if tags[tag] < max(1, COUNT // 100)}
    assert not thin, f"too few models with {thin}"


# ---- the checker is checked


def first(compiled, kind):
    return next((op for op in compiled.quant_graph.ops if isinstance(op, kind)), None)


def negate(compiled):
    if (op := first(compiled, Conv)) is not None:
        op.weight = -op.weight


def lose_the_largest_weight(compiled):
    if (op := first(compiled, Conv)) is not None:
        op.weight = op.weight.copy()
        op.weight[np.unravel_index(np.abs(op.weight).argmax(), op.weight.shape)] = 0


def lose_the_bias(compiled):
    for op in compiled.quant_graph.ops:
        if isinstance(op, Conv):
            op.bias = np.zeros_like(op.bias)


def double(compiled):
    for op in compiled.quant_graph.ops[:1]:
        if isinstance(op, (Conv, Sum)):
            op.requant.shift = np.maximum(op.requant.shift - 1, 1)


@pytest.mark.parametrize("damage", [negate, lose_the_largest_weight, lose_the_bias, double])
def test_damage_is_noticed(damage):
    """Four of ten models at least: others have no convolution, or hide what it gives."""
    outcomes = [check.check_model(seed, damage).outcome for seed in range(24)]
    compiled = sum(outcome != "refused" for outcome in outcomes)
    assert outcomes.count("wrong") >= 0.4 * compiled


def test_a_refusal_of_what_is_supported_is_noticed(monkeypatch):
    for table in (FUNCTIONS, METHODS):
        for key in [k for k in table if "relu" in getattr(k, "__name__", str(k))]:
            monkeypatch.delitem(table, key)
    wrong = [r for r in (check.check_model(seed) for seed in range(40)) if r.outcome == "wrong"]
    assert len(wrong) >= 4
    assert all("should be supported" in r.text for r in wrong)


def test_a_missing_refusal_is_noticed(monkeypatch):
    seed = next(s for s in range(100) if NO in spelled_model(s).expected.values()
                and check.check_model(s).outcome == "refused")  # fmt: skip
    refuse = check.quantize_model

    def accept(model, samples, settings):
        return refuse(_Identity().eval(), samples[:1], settings)

    monkeypatch.setattr(check, "quantize_model", accept)
    assert "were not refused" in check.check_model(seed).text


class _Identity(check.torch.nn.Module):
    def forward(self, x):
        return x + 1
