"""Whole models through the front end (pipeline.py)."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile.check_quant import check_quant
from rasna.errors import CompileError
from tests.compile.support import Net, check, compiled, sample, settle
from tests.messages import refuses


def net() -> nn.Module:
    return settle(
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
        )  # fmt: skip
    )


def same(a, b) -> bool:
    """Equality of quantised graphs, arrays included."""
    return repr(a) == repr(b) and all(
        np.array_equal(getattr(x, "weight", None), getattr(y, "weight", None))
        for x, y in zip(a.ops, b.ops, strict=True)
    )


def test_the_same_model_and_samples_give_the_same_graph():
    assert same(compiled(net(), sample(4, 3, 8, 8)), compiled(net(), sample(4, 3, 8, 8)))


def test_the_model_is_not_changed():
    model = net().double()
    before = copy.deepcopy(model.state_dict())
    compiled(model, sample(4, 3, 8, 8))
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert model[0].weight.dtype == torch.float64


def test_double_and_half_models_compile_like_float32_ones():
    graph = compiled(net(), sample(4, 3, 8, 8))
    assert same(graph, compiled(net().double(), sample(4, 3, 8, 8)))
    compiled(net().half(), sample(4, 3, 8, 8))


@pytest.mark.parametrize("ab, wb, least_db", [(8, 8, 30), (6, 6, 18), (8, 4, 12), (4, 8, 8)])
def test_fewer_bits(ab, wb, least_db):
    graph = check(net(), sample(16, 3, 8, 8), ab=ab, wb=wb, least_db=least_db)
    assert {t.type.bits for t in graph.tensors.values()} == {ab}
    assert all(np.abs(op.weight).max() < 2 ** (wb - 1) for op in graph.ops if hasattr(op, "weight"))


@pytest.mark.parametrize("ib", [12, 24])
def test_other_intermediate_bits(ib):
    graph = check(net(), sample(4, 3, 8, 8), ib=ib, least_db=25)
    assert {op.requant.ib for op in graph.ops if hasattr(op, "requant")} == {ib}


SAMPLES = {
    "all zero": torch.zeros(4, 3, 8, 8),
    "constant": torch.full((4, 3, 8, 8), 3.0),
    "one-sided": sample(4, 3, 8, 8).abs(),
    "an outlier": torch.cat([sample(3, 3, 8, 8), sample(1, 3, 8, 8) * 1e4]),
    "huge": sample(4, 3, 8, 8) * 1e30,
    "tiny": sample(4, 3, 8, 8) * 1e-30,
    "a batch of one": sample(1, 3, 8, 8),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_all_kinds(name):
    least = {"an outlier": 10, "huge": 20}.get(name, 25)
    check(net(), SAMPLES[name], least_db=least)


def test_unsigned_inputs_only_where_no_sample_is_negative():
    assert not compiled(net(), sample(4, 3, 8, 8).abs()).tensors["input_1"].type.signed
    assert compiled(net(), sample(4, 3, 8, 8)).tensors["input_1"].type.signed


def edit(change) -> nn.Module:
    model = net()
    with torch.no_grad():
        change(model)
    return model


WEIGHTS = {
    "bias zero": (lambda m: m[0].bias.zero_(), 30),
    "a row of zeros": (lambda m: m[0].weight[2].zero_(), 30),
    "a whole layer of zeros": (lambda m: (m[4].weight.zero_(), m[4].bias.zero_()), 30),
    "the last layer zero": (lambda m: (m[8].weight.zero_(), m[8].bias.zero_()), 99),
    "a huge channel": (lambda m: m[8].weight[2].mul_(1e6), 30),
    "tiny weights": (lambda m: m[8].weight.fill_(1e-30), 30),
    "a dead relu": (lambda m: m[4].bias.fill_(-100.0), 30),
    "a huge bias": (lambda m: m[8].bias.fill_(1e9), 40),
    "bias beyond the weights": (lambda m: m[8].bias.mul_(1e5), 30),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_of_all_kinds(name):
    change, least_db = WEIGHTS[name]
    check(edit(change), sample(4, 3, 8, 8), least_db=least_db)


def test_the_largest_dense_layer_stays_within_32_bits():
    model = nn.Linear(25088, 2)
    with torch.no_grad():
        model.weight.fill_(127.0)
        model.bias.fill_(1e6)
    graph = compiled(model.eval(), torch.full((1, 25088), 255.0))
    check_quant(graph)  # proves |bias| + sum |w| max |x| < 2**31


def test_hooks_that_change_nothing_are_fine_and_others_are_refused():
    model = net()
    model[4].register_forward_hook(lambda module, inputs, output: None)
    check(model, sample(4, 3, 8, 8))
    model[4].register_forward_hook(lambda module, inputs, output: output * 2)
    with refuses(
        CompileError,
        "output _8: the model gives values that differ by N compared with its traced operations; "
        "possible causes are hooks or a replaced forward of 4; remove them before compiling",
    ):
        compiled(model, sample(4, 3, 8, 8))


def test_a_forward_replaced_on_the_instance_is_refused():
    model = net()
    model.forward = lambda x: x.flatten(1)[:, :5]
    with refuses(
        CompileError,
        "output _8: the model gives values that differ by N compared with its traced operations; "
        "possible causes are hooks or a replaced forward of the model; remove them before "
        "compiling",
    ):
        compiled(model, sample(4, 3, 8, 8))


def test_random_numbers_in_forward_are_refused():
    model = Net(lambda m, x: x + torch.rand(1)).eval()
    with refuses(
        CompileError,
        "output add: the model gives values that differ by N compared with its traced "
        "operations; possible causes are random numbers or state that changes in forward; remove "
        "them before compiling",
    ):
        compiled(model, sample(4, 3, 8, 8))


def test_values_that_overflow_are_reported_with_their_node():
    model = Net(lambda m, x: F.relu(x * 3e38) * 10).eval()
    with refuses(
        CompileError,
        "mul, test_pipeline.py:N: the samples give NaN or infinite values here; check the weights "
        "and the range of the samples",
    ):
        compiled(model, sample(4, 3, 8, 8))


def test_compilation_ignores_autocast_default_dtype_and_grad_mode():
    graph = compiled(net(), sample(4, 3, 8, 8))
    model, x = net(), sample(4, 3, 8, 8)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            assert same(graph, compiled(model, x))
    finally:
        torch.set_default_dtype(torch.float32)


# ---- the comparison with the model: float64 decides where float32 does not


def test_sums_that_float32_rounds_in_another_order_are_no_difference():
    from tests.random_models import random_model

    model, samples, _ = random_model(2035)  # a sum cancels: 2e-4 of 0.1 is lost in float32
    compiled(model, *samples)


def cancel(m, x):
    big = m.conv(x) * 1e6
    return m.head(big + x) - m.head(big)  # what is left is 1e-6 of what was added


def cancelling() -> nn.Module:
    return settle(Net(cancel, conv=nn.Conv2d(3, 3, 1), head=nn.Conv2d(3, 2, 1)))


def test_a_small_difference_of_large_numbers_is_no_difference():
    compiled(cancelling(), sample(4, 3, 5, 5))


def test_a_true_difference_beside_large_numbers_is_noticed():
    model = cancelling()
    x = sample(4, 3, 5, 5)
    model.register_forward_hook(lambda module, inputs, output: output * 1.05)
    with refuses(
        CompileError,
        "output sub: the model gives values that differ by N compared with its traced "
        "operations; possible causes are hooks or a replaced forward of the model; remove them "
        "before compiling",
    ):
        compiled(model, x)


def test_a_forward_that_runs_in_float32_only_is_compared_in_float32():
    kernel = torch.ones(1, 3, 1, 1)
    model = Net(lambda m, x: F.conv2d(x, kernel) * 1e-3 + F.conv2d(x, kernel) * 1e3).eval()
    compiled(model, sample(4, 3, 5, 5))
    model.register_forward_hook(lambda module, inputs, output: output * 1.05)
    with refuses(
        CompileError,
        "output add: the model gives values that differ by N compared with its traced "
        "operations; possible causes are hooks or a replaced forward of the model; remove them "
        "before compiling",
    ):
        compiled(model, sample(4, 3, 5, 5))
