"""Reshapes move behind element-wise operations (passes/sink_reshape.py)."""

import torch.nn.functional as F
from torch import nn

from rasna.compile import floatgraph as fg
from tests.compile.support import Net, sample, settle, simplified


def nodes(function, *shape: int) -> list[str]:
    model = settle(
        Net(function, conv=nn.Conv1d(3, 6, 3), bn=nn.BatchNorm1d(6), map=nn.Conv2d(3, 4, 1),
            flat=nn.BatchNorm1d(48))
    )  # fmt: skip
    graph = simplified(model, sample(2, *shape))
    return [type(n.op).__name__ for n in graph.nodes.values() if not isinstance(n.op, fg.Input)]


def test_match():
    def forward(m, x):
        return F.leaky_relu(m.bn(m.conv(x)), 0.1)

    assert nodes(forward, 3, 20) == ["Reshape", "Conv", "Leaky", "Reshape"]


def test_near_miss_a_reshape_that_others_read():
    def forward(m, x):
        y = m.conv(x)
        return m.bn(y), y

    assert nodes(forward, 3, 20) == ["Reshape", "Conv", "Reshape", "Affine"]


def test_leaves_alone_arithmetic_on_other_channels():
    assert nodes(lambda m, x: m.flat(m.map(x).flatten(1)), 3, 3, 4) == ["Conv", "Reshape", "Affine"]
