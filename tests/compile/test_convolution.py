"""Conv2d, Linear and BatchNorm as people write them (operators/convolution.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, prune

from rasna.errors import CompileError
from tests.compile.support import Net, check, compiled, sample, settle, simplified
from tests.messages import refuses

CONVOLUTIONS = {
    "same, odd kernel": (nn.Conv2d(3, 5, 5, padding="same"), (9, 8)),
    "same, even kernel": (nn.Conv2d(3, 5, 4, padding="same"), (9, 8)),
    "same, dilated": (nn.Conv2d(3, 5, (2, 3), padding="same", dilation=(3, 2)), (9, 8)),
    "valid": (nn.Conv2d(3, 5, 3, padding="valid"), (9, 8)),
    "unequal padding": (nn.Conv2d(3, 5, 3, padding=(2, 0)), (9, 8)),
    "dilation": (nn.Conv2d(3, 5, 3, dilation=2), (9, 8)),
    "dilation and stride": (nn.Conv2d(3, 5, 3, stride=2, dilation=2, padding=2), (9, 8)),
    "depthwise": (nn.Conv2d(8, 8, 3, groups=8, padding=1), (6, 7)),
    "two groups": (nn.Conv2d(8, 6, 3, groups=2), (6, 7)),
    "depth multiplier": (nn.Conv2d(8, 16, 3, groups=8), (6, 7)),
    "not square": (nn.Conv2d(8, 8, (3, 1), stride=(2, 1)), (17, 31)),
    "kernel 11": (nn.Conv2d(1, 2, 11, padding=5), (12, 13)),
    "kernel 1": (nn.Conv2d(17, 33, 1), (3, 3)),
    "stride beyond the kernel": (nn.Conv2d(3, 4, 2, stride=3), (11, 10)),
    "one pixel": (nn.Conv2d(100, 3, 1), (1, 1)),
    "a map smaller than the padding": (nn.Conv2d(2, 3, 5, padding=4), (2, 2)),
    "circular": (nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), (5, 6)),
    "circular with a stride": (
        nn.Conv2d(3, 4, 3, padding=(1, 2), stride=2, padding_mode="circular"),
        (5, 7),
    ),
    "circular same, even": (nn.Conv2d(3, 4, 4, padding="same", padding_mode="circular"), (5, 7)),
    "no bias": (nn.Conv2d(3, 4, 3, bias=False), (5, 7)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_conv2d_with_all_its_attributes(name):
    layer, size = CONVOLUTIONS[name]
    graph = check(settle(layer), sample(4, layer.in_channels, *size))
    assert len(graph.ops) == 1


def test_same_padding_of_an_even_kernel_is_larger_at_the_bottom_and_right():
    graph = compiled(settle(nn.Conv2d(1, 1, (4, 2), padding="same")), sample(2, 1, 6, 6))
    pad = graph.ops[0].padding
    assert (pad.top, pad.bottom, pad.left, pad.right) == (1, 2, 0, 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: F.conv2d(input=x, weight=m.w),
        lambda m, x: F.conv2d(x, m.w, m.b, 2, 1),
        lambda m, x: F.conv2d(x, bias=m.b, weight=m.w, padding="same"),
        lambda m, x: torch.conv2d(x, m.w, m.b, stride=(1, 2)),
        lambda m, x: F.conv2d(x, m.w * 0.5, m.b),
    ],
)
def test_functional_convolution(function):
    w, b = nn.Parameter(sample(4, 3, 3, 3) / 5), nn.Parameter(sample(4))
    check(Net(function, w=w, b=b).eval(), sample(4, 3, 7, 6))


def test_one_conv_applied_twice_shares_its_weights():
    layer = nn.Conv2d(4, 4, 3, padding=1)
    model = settle(Net(lambda m, x: m.conv(torch.relu(m.conv(x))), conv=layer))
    graph = check(model, sample(4, 4, 5, 5))
    first, second = graph.ops
    assert first.name == "conv" and second.name == "conv_1"
    assert (first.weight == second.weight).all()


def test_linear_on_a_flattened_map_is_a_convolution_as_large_as_the_map():
    model = settle(nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 5, 7)))
    graph = check(model, sample(4, 3, 4, 5))
    assert graph.ops[0].weight.shape == (7, 3, 4, 5)
    assert graph.outputs[0].shape == (7,)


@pytest.mark.parametrize(
    "function", [lambda m, x: F.linear(x, m.w), lambda m, x: F.linear(x, bias=m.b, weight=m.w)]
)
def test_functional_linear_on_feature_vectors(function):
    w, b = nn.Parameter(sample(4, 6)), nn.Parameter(sample(4))
    check(Net(function, w=w, b=b).eval(), sample(8, 6))


def test_batchnorm_after_conv_and_linear_is_folded():
    conv = settle(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()))
    assert len(check(conv, sample(4, 3, 6, 6)).ops) == 1
    linear = settle(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU()))
    assert len(check(linear, sample(8, 6)).ops) == 1


@pytest.mark.parametrize(
    "layers",
    [
        [nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, padding=1)],
        [nn.MaxPool2d(2), nn.BatchNorm2d(4)],
        [nn.Conv2d(4, 4, 1), nn.ReLU(), nn.BatchNorm2d(4)],
        [nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.BatchNorm2d(4)],
        [nn.BatchNorm2d(4), nn.BatchNorm2d(4)],
        [nn.Conv2d(4, 4, 1, bias=True), nn.BatchNorm2d(4, affine=False)],
        [nn.Conv2d(4, 4, 1), nn.Identity(), nn.Dropout2d(), nn.BatchNorm2d(4)],
    ],
    ids=lambda layers: "-".join(type(layer).__name__ for layer in layers),
)
def test_batchnorm_in_unusual_places(layers):
    check(settle(nn.Sequential(*layers)), sample(4, 4, 6, 6))


@pytest.mark.parametrize("gamma", [0.0, -1.0])
def test_batchnorm_with_special_gamma_standing_alone(gamma):
    model = settle(nn.Sequential(nn.BatchNorm2d(3)))
    model[0].weight.data[1] = gamma
    check(model, sample(4, 3, 6, 6))


def test_batchnorm_with_a_tiny_running_variance():
    model = settle(nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)))
    model[1].running_var[2] = 1e-12
    check(model, sample(4, 3, 6, 6))


def test_batchnorm_of_a_flattened_map_has_a_scale_per_feature():
    model = settle(nn.Sequential(nn.Flatten(), nn.BatchNorm1d(24), nn.ReLU()))
    check(model, sample(8, 2, 3, 4))


def test_functional_batchnorm():
    model = Net(
        lambda m, x: F.batch_norm(x, m.mean, m.var, m.w, bias=m.b, eps=1e-3),
        mean=sample(3), var=sample(3).abs() + 0.5, w=nn.Parameter(sample(3)), b=sample(3, seed=2),
    )  # fmt: skip
    check(model.eval(), sample(4, 3, 5, 5))


def test_parametrised_and_pruned_weights_are_read_through_their_hooks():
    pruned = settle(nn.Conv2d(3, 4, 3))
    prune.l1_unstructured(pruned, "weight", 0.5)
    graph = check(pruned, sample(4, 3, 6, 6))
    assert (graph.ops[0].weight == 0).mean() >= 0.5
    normed = parametrizations.weight_norm(settle(nn.Conv2d(3, 4, 3)))
    check(normed.eval(), sample(4, 3, 6, 6))


REFUSED = {
    "no running statistics": (
        lambda: nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False)),
        "_0 (0): batch normalisation with the statistics of the batch is not supported; "
        "train with track_running_stats=True",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_why(name):
    make, message = REFUSED[name]
    with pytest.raises(CompileError) as error:
        compiled(make().eval(), sample(2, 3, 6, 6))
    assert str(error.value) == message


class Scaled(nn.Conv2d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, 2 * weight, bias)


CALLS_REFUSED = {
    "sequence": (
        lambda m, x: F.conv2d(x.flatten(2), torch.ones(4, 2, 1, 1)),
        "conv2d, test_convolution.py:N: a convolution of (batch, 3, 36) is not supported; "
        "give it (batch, channels, height, width)",
    ),
    "_conv_forward": (
        lambda m, x: m.scaled(x),
        "scaled (scaled), test_convolution.py:N: Scaled with a _conv_forward of its own is not "
        "supported; write it in forward",
    ),
    "one row": (
        lambda m, x: F.linear(x.flatten(1), torch.ones(108)),
        "linear, test_convolution.py:N: a linear layer with one output row is not supported; "
        "use nn.Linear(n, 1)",
    ),
    "five dimensions": (
        lambda m, x: F.batch_norm(x.view(-1, 3, 1, 6, 6), torch.zeros(3), torch.ones(3)),
        "batch_norm, test_convolution.py:N: batch normalisation of (batch, 3, 1, 6, 6) is not "
        "supported; apply it to (batch, channels, height, width), (batch, channels, length) or "
        "(batch, features)",
    ),
    "constants": (
        lambda m, x: x + m.plain(torch.ones(2, 3, 6, 6)),
        "plain (plain), test_convolution.py:N: Conv2d of a parameter or constant is not "
        "supported; compute it in __init__ and keep the result as a buffer, or give it a computed "
        "tensor",
    ),
}


@pytest.mark.parametrize("name", CALLS_REFUSED)
def test_what_is_refused_in_forward_and_why(name):
    function, message = CALLS_REFUSED[name]
    model = settle(Net(function, scaled=Scaled(3, 4, 1), plain=nn.Conv2d(3, 3, 1)))
    with refuses(CompileError, message):
        compiled(model, sample(2, 3, 6, 6))


def test_keyword_arguments_in_any_order_are_no_constants_in_front():
    weight = torch.randn(4, 3, 1, 1)
    check(Net(lambda m, x: F.conv2d(weight=weight, input=x)).eval(), sample(4, 3, 6, 6))


def test_a_computed_weight_is_refused():
    model = Net(lambda m, x: F.conv2d(x, m.conv(x)), conv=nn.Conv2d(1, 1, 1)).eval()
    with refuses(
        CompileError,
        "conv2d, test_convolution.py:N: a convolution with a computed weight is not supported; "
        "make the weight a parameter or buffer of a module",
    ):
        compiled(model, sample(1, 1, 4, 4))


def test_a_convolution_with_a_forward_of_its_own_is_traced_through():
    class Standardised(nn.Conv2d):
        def forward(self, x):
            weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return F.conv2d(x, weight, self.bias, padding=1)

    graph = simplified(settle(Standardised(3, 4, 3)), sample(2, 3, 5, 5))
    assert [type(n.op).__name__ for n in graph.nodes.values()] == ["Input", "Conv"]
    check(settle(Standardised(3, 4, 3)), sample(4, 3, 5, 5))


def test_layers_made_in_forward_or_kept_in_a_plain_list():
    layers = [settle(nn.Conv2d(3, 3, 3))]
    graph = check(Net(lambda m, x: nn.ReLU(inplace=True)(layers[0](x))).eval(), sample(4, 3, 6, 6))
    assert len(graph.ops) == 1
