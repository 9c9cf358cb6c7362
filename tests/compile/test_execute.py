"""The float graph computes what PyTorch computes, with and without the passes (execute.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rasna.compile.capture import capture
from rasna.compile.execute import folded_parameters, per_channel, run
from rasna.compile.floatgraph import Arithmetic, Conv, Opaque
from rasna.compile.passes import simplify
from tests.compile.support import Net, sample, settle
from tests.messages import refuses


def forward(m, x):
    y = F.relu(m.bn(m.conv((x - m.mean) / 2)))
    z = F.max_pool2d(y, 3, 2, 1, ceil_mode=True) - 0.5 * F.avg_pool2d(y, 3, 2, 1, ceil_mode=True)
    return m.fc(F.dropout(z, training=m.training).mean(3).mean(2)), z.flatten(1)


def model() -> nn.Module:
    conv = nn.Conv2d(3, 4, (2, 3), (1, 2), padding=1, padding_mode="circular")
    return settle(Net(forward, conv=conv, bn=nn.BatchNorm2d(4), fc=nn.Linear(4, 5),
                      mean=sample(1, 3, 1, 1)))  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("passes", [False, True])
def test_a_graph_computes_what_the_model_computes(passes, dtype):
    net = model()
    graph = capture(net, [sample(2, 3, 9, 12)])
    graph = simplify(graph) if passes else graph
    x = sample(3, 3, 9, 12, seed=7).to(dtype)
    with torch.no_grad():
        for got, want in zip(run(graph, net, [x]), net.to(dtype)(x), strict=True):
            assert got.dtype == dtype and torch.allclose(got, want, atol=1e-5)


def test_observers_see_every_node_in_order_and_may_replace_values():
    net = model()
    graph = capture(net, [sample(2, 3, 9, 12)])
    seen = []

    def observe(node, value):
        seen.append(node.name)
        return torch.zeros_like(value)

    with torch.no_grad():
        outputs = run(graph, net, [sample(2, 3, 9, 12)], observe)
    assert seen == list(graph.nodes) and not outputs[0].any()


def test_folded_parameters_have_gradients():
    net = model()
    graph = simplify(capture(net, [sample(2, 3, 9, 12)]))
    (op,) = [n.op for n in graph.nodes.values() if isinstance(n.op, Conv)]
    weight, bias = folded_parameters(net, op)
    (weight.sum() + bias.sum()).backward()
    assert weight.dtype == torch.float64
    assert net.conv.weight.grad.any() and net.bn.weight.grad.any()


@pytest.mark.parametrize(
    "kind, a, b",
    [("add", 1, 4), ("sub", 1, -4), ("rsub", -1, 4), ("mul", 4, 0), ("div", 0.25, 0)],
)
def test_arithmetic_steps_per_channel(kind, a, b):
    scale, offset = per_channel(nn.Identity(), [Arithmetic(kind, 4.0)], 3)
    assert scale.tolist() == [a] * 3 and offset.tolist() == [b] * 3


def test_steps_are_applied_one_after_another():
    steps = [Arithmetic("add", 1.0), Arithmetic("mul", 3.0), Arithmetic("rsub", 1.0)]
    scale, offset = per_channel(nn.Identity(), steps, 1)
    assert (scale.item(), offset.item()) == (-3.0, -2.0)  # 1 - 3 * (x + 1)


def test_a_node_that_is_not_supported_cannot_be_executed():
    net = model()
    graph = capture(net, [sample(2, 3, 9, 12)])
    graph.nodes["relu"].op = Opaque()
    with refuses(TypeError, "relu, test_execute.py:N: Opaque cannot be executed"):
        run(graph, net, [sample(2, 3, 9, 12)])
