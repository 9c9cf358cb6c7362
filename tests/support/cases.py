"""The rows of docs/support.md: one small model each, in the words that a user would write.

A row is an operation, what is special about it, and code: a module, or an expression of ``x`` (and
``y``). ``w`` to ``z`` parameters are given by shape. The same rows are the tests of
``test_support.py``; whether a row is supported, and why not, is what the compiler says.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from tests.models.zoo import settle

MAP = (3, 8, 9)
WIDE = (8, 6, 6)
ROW = (4, 12)
VECTOR = (10,)


@dataclass(frozen=True)
class Case:
    """One row. shapes: of the inputs without the batch; parameters: name to shape."""

    operation: str
    attribute: str
    code: str
    shapes: tuple[tuple[int, ...], ...] = (MAP,)
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The identifier of the test."""
        words = f"{self.operation} {self.attribute}".lower()
        for sign, word in (("-", " minus "), ("+", " plus "), ("**", " power "), ("*", " times "),
                           ("/", " over "), ("%", " modulo "), ("@", " matmul ")):  # fmt: skip
            words = words.replace(sign, word)
        return "_".join("".join(c if c.isalnum() or c == "_" else " " for c in words).split())


class Expression(nn.Module):
    """forward(x[, y]) is an expression, with its parameters as ``self.w`` and so on."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        for name, shape in case.parameters.items():
            fan = max(1, torch.Size(shape[1:]).numel())
            setattr(self, name, nn.Parameter(torch.randn(shape) / fan**0.5))


def model_of(case: Case) -> tuple[nn.Module, list[torch.Tensor]]:
    """The model of a row in eval mode, and its NCHW samples; seeded."""
    names = ["x", "y"][: len(case.shapes)]
    is_module = case.code.startswith("nn.") and not re.search(r"\bx\b", case.code)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if is_module:
            model = nn.Sequential(eval(case.code, {"nn": nn}))
        else:
            model = _expression(case, names)
        samples = [torch.randn(4, *shape) for shape in case.shapes]
        settle(model, *[s.clone() for s in samples])
    return model, samples


def _expression(case: Case, names: list[str]) -> nn.Module:
    lines = [f"def forward(self, {', '.join(names)}):"]
    lines += [f"    {name} = self.{name}" for name in case.parameters]
    text = "\n".join([*lines, f"    return {case.code}"]) + "\n"
    file = f"{case.name}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"__name__": case.name, "torch": torch, "F": F, "nn": nn}
    exec(compile(text, file, "exec"), space)
    return type("Expression", (Expression,), {"forward": space["forward"]})(case)


def _conv(attribute: str, arguments: str, shape=MAP) -> Case:
    return Case("Conv2d", attribute, f"nn.Conv2d({arguments})", (shape,))


W = {"w": (4, 3, 3, 3)}
WB = {**W, "b": (4,)}

CONVOLUTIONS = [
    _conv("plain", "3, 4, 3"),
    _conv("padding, stride", "3, 4, 3, stride=2, padding=1"),
    _conv("padding of one side", "3, 4, (5, 1), padding=(2, 0)"),
    _conv("padding same, kernel 5", '3, 4, 5, padding="same"'),
    _conv("padding same, even kernel", '3, 4, 4, padding="same"'),
    _conv("padding same, dilated", '3, 4, 3, padding="same", dilation=2'),
    _conv("padding valid", '3, 4, 3, padding="valid"'),
    _conv("padding larger than the map", "3, 4, 3, padding=4", (3, 2, 2)),
    _conv("padding circular", '3, 4, 3, padding=1, padding_mode="circular"'),
    _conv("padding reflect", '3, 4, 3, padding=1, padding_mode="reflect"'),
    _conv("padding replicate", '3, 4, 3, padding=1, padding_mode="replicate"'),
    _conv("dilation and stride", "3, 4, 3, dilation=2, stride=2, padding=2"),
    _conv("stride larger than kernel", "3, 4, 2, stride=3"),
    _conv("stride non-square", "3, 4, (3, 1), stride=(2, 1)", (3, 17, 31)),
    _conv("kernel 1", "3, 4, 1"),
    _conv("kernel 11", "3, 4, 11, padding=5"),
    _conv("bias missing", "3, 4, 3, bias=False"),
    _conv("groups 2", "8, 6, 3, groups=2", WIDE),
    _conv("depthwise", "8, 8, 3, padding=1, groups=8", WIDE),
    _conv("depth multiplier", "8, 16, 3, groups=8", WIDE),
    _conv("one pixel", "3, 4, 3, padding=1", (3, 1, 1)),
    _conv("one input channel", "1, 33, 3", (1, 8, 8)),
    Case("Conv2d", "F.conv2d", "F.conv2d(x, w, b, stride=2)", parameters=WB),
    Case("Conv2d", "keywords only", "F.conv2d(input=x, weight=w, padding=1)", parameters=W),
    Case("Conv2d", "torch.conv2d", "torch.conv2d(x, w)", parameters=W),
    Case("Conv2d", "weight from an expression", "F.conv2d(x, w * 0.5)", parameters=W),
    Case("Conv2d", "weight computed", "F.conv2d(x, y)", (MAP, (3, 3, 3))),
    Case("Conv1d", "plain", "nn.Conv1d(4, 6, 3, padding=1)", (ROW,)),
    Case("Conv1d", "stride, dilation, groups", "nn.Conv1d(4, 6, 3, 2, 2, 2, 2)", (ROW,)),
    Case("Conv1d", "F.conv1d", "F.conv1d(x, w, padding=1)", (ROW,), {"w": (6, 4, 3)}),
    Case("Conv1d", "torch.conv1d", "torch.conv1d(x, w)", (ROW,), {"w": (6, 4, 3)}),
    Case("Conv3d", "plain", "nn.Conv3d(2, 2, 1)(x.unsqueeze(1).expand(-1, 2, -1, -1, -1))"),
    *[Case("ConvTranspose2d", name, f"nn.ConvTranspose2d(3, 4, {arguments})") for name, arguments
      in (("plain", "2, 2"), ("padding", "4, stride=2, padding=1"),
          ("output_padding", "3, stride=2, padding=1, output_padding=1"),
          ("odd size", "3, stride=2"), ("dilation", "3, stride=2, dilation=2"),
          ("non-square", "(3, 2), stride=(1, 2), padding=(1, 0)"))],
    Case("ConvTranspose2d", "groups", "nn.ConvTranspose2d(8, 4, 4, 2, 1, groups=2)", (WIDE,)),
    Case("ConvTranspose2d", "F.conv_transpose2d", "F.conv_transpose2d(x, w, stride=2)",
         parameters={"w": (3, 4, 3, 3)}),
    Case("ConvTranspose1d", "plain", "nn.ConvTranspose1d(4, 4, 2, 2)", (ROW,)),
    Case("ConvTranspose1d", "F.conv_transpose1d", "F.conv_transpose1d(x, w, None, 2, 1)", (ROW,),
         {"w": (4, 4, 4)}),
    Case("Linear", "features", "nn.Linear(10, 5)", (VECTOR,)),
    Case("Linear", "bias missing", "nn.Linear(10, 5, bias=False)", (VECTOR,)),
    Case("Linear", "F.linear", "F.linear(x, w, b)", (VECTOR,), {"w": (5, 10), "b": (5,)}),
    Case("Linear", "behind flatten", "F.linear(x.flatten(1), w)", (MAP,), {"w": (5, 216)}),
    Case("Linear", "on a map", "nn.Linear(9, 5)"),
    Case("Linear", "on a sequence", "nn.Linear(12, 5)", (ROW,)),
    Case("Linear", "matmul", "x @ w", (VECTOR,), {"w": (10, 5)}),
    Case("Bilinear", "plain", "F.bilinear(x, y, w)", (VECTOR, VECTOR), {"w": (2, 10, 10)}),
]

NORMS = [
    Case("BatchNorm2d", "alone", "nn.BatchNorm2d(3)"),
    Case("BatchNorm2d", "affine=False", "nn.BatchNorm2d(3, affine=False)"),
    Case("BatchNorm2d", "behind a convolution",
         "nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))"),
    Case("BatchNorm2d", "behind ReLU",
         "nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4))"),
    Case("BatchNorm2d", "twice", "nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(3))"),
    Case("BatchNorm2d", "without running statistics",
         "nn.BatchNorm2d(3, track_running_stats=False)"),
    Case("BatchNorm2d", "F.batch_norm", "F.batch_norm(x, m, m.abs() + 1, m, m)",
         parameters={"m": (3,)}),
    Case("BatchNorm1d", "features", "nn.Sequential(nn.Linear(10, 5), nn.BatchNorm1d(5))",
         (VECTOR,)),
    Case("BatchNorm1d", "sequence", "nn.BatchNorm1d(4)", (ROW,)),
    Case("SyncBatchNorm", "plain", "nn.SyncBatchNorm(3)"),
    Case("GroupNorm", "plain", "nn.GroupNorm(3, 3)"),
    Case("LayerNorm", "plain", "nn.LayerNorm([3, 8, 9])"),
    Case("InstanceNorm2d", "plain", "nn.InstanceNorm2d(3)"),
    Case("LocalResponseNorm", "plain", "nn.LocalResponseNorm(2)"),
]  # fmt: skip

CURVES = {
    **dict.fromkeys(
        ("sin", "cos", "atan", "arctan", "sinh", "cosh", "asinh", "arcsinh", "erf", "erfc", "exp2",
         "expm1", "sign", "square"), "x"),
    **dict.fromkeys(("tan", "asin", "arcsin", "acos", "arccos"), "x.clamp(-0.9, 0.9)"),
    **dict.fromkeys(("log2", "log10", "log1p", "rsqrt", "reciprocal"), "x.clamp(min=0.25)"),
}  # fmt: skip

ACTIVATIONS = [
    *[Case("ReLU", code.replace("(x)", "").replace("x.", "method "), code) for code in (
        "F.relu(x)", "torch.relu(x)", "x.relu()", "(x + 0).relu_()", "F.relu_(x + 0)",
        "torch.relu_(x + 0)", "F.relu(x, inplace=False)")],
    Case("ReLU", "nn.ReLU", "nn.ReLU()"),
    Case("ReLU", "nn.ReLU in place", "nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(inplace=True))"),
    Case("ReLU6", "nn.ReLU6", "nn.ReLU6()"),
    Case("ReLU6", "F.relu6", "F.relu6(x)"),
    Case("Hardtanh", "nn.Hardtanh", "nn.Hardtanh(-0.5, 2)"),
    Case("Hardtanh", "F.hardtanh", "F.hardtanh(x)"),
    Case("Hardtanh", "in place", "F.hardtanh_(x + 0)"),
    *[Case("clamp", code, code) for code in (
        "x.clamp(-1, 1)", "torch.clamp(x, min=0)", "x.clamp(max=0.5)", "torch.clip(x, -1, 2)",
        "x.clip(-1, 2)", "x.clamp_min(0)", "torch.clamp_min(x, 0.25)", "x.clamp_max(1)",
        "torch.clamp_max(x, 1)", "(x + 0).clamp_(0, 1)", "torch.clamp_(x + 0, 0, 1)",
        "(x + 0).clip_(0, 1)", "(x + 0).clamp_min_(0)", "(x + 0).clamp_max_(1)",
        "torch.clamp_min_(x + 0, 0)", "torch.clamp_max_(x + 0, 1)", "x.clamp(1, 0.5)")],
    Case("clamp", "computed bounds", "torch.clamp(x, min=x.mean((2, 3), keepdim=True))"),
    Case("minimum", "a constant", "torch.minimum(x, w)", parameters={"w": (1,)}),
    Case("maximum", "constants per channel", "torch.maximum(w, x)", parameters={"w": (3, 1, 1)}),
    Case("clamp", "bounds per channel", "torch.clamp(x, w, w + 1)", parameters={"w": (3, 1, 1)}),
    Case("LeakyReLU", "nn.LeakyReLU", "nn.LeakyReLU(0.1)"),
    Case("LeakyReLU", "F.leaky_relu", "F.leaky_relu(x, 0.25)"),
    Case("LeakyReLU", "in place", "F.leaky_relu_(x + 0)"),
    Case("RReLU", "nn.RReLU", "nn.RReLU()"),
    Case("RReLU", "F.rrelu", "F.rrelu(x)"),
    Case("PReLU", "one slope", "nn.PReLU()"),
    Case("PReLU", "a slope per channel", "nn.PReLU(3)"),
    Case("PReLU", "F.prelu", "F.prelu(x, w)", parameters={"w": (1,)}),
    Case("Hardsigmoid", "nn.Hardsigmoid", "nn.Hardsigmoid()"),
    Case("Hardsigmoid", "F.hardsigmoid", "F.hardsigmoid(x)"),
    Case("Threshold", "nn.Threshold", "nn.Threshold(0.1, 0)"),
    *[Case(name, f"nn.{name}", f"nn.{name}()") for name in (
        "Hardswish", "GELU", "SiLU", "ELU", "SELU", "CELU", "Mish",
        "Hardshrink", "Softshrink", "Softsign", "Tanhshrink")],
    *[Case(name, f"F.{name}", f"F.{name}(x)") for name in (
        "hardswish", "gelu", "silu", "elu", "selu", "celu", "mish",
        "hardshrink", "softshrink", "softsign", "tanhshrink")],
    *[Case(name, "in place", f"torch._C._nn.{name}_(x + 0)") for name in (
        "hardswish", "silu", "mish")],
    *[Case(name, f"F.{name}_", f"F.{name}_(x + 0)") for name in ("elu", "selu", "celu", "rrelu")],
    Case("threshold", "F.threshold", "F.threshold(x, 0.1, 0)"),
    Case("threshold", "F.threshold_", "F.threshold_(x + 0, 0.1, 0)"),
    *[case for name, x in CURVES.items() for case in (
        Case(name, f"torch.{name}", f"torch.{name}({x})"),
        Case(name, f"{name}_", f"({x} + 0).{name}_()"))],
    *[Case("pow", code, code) for code in (
        "x ** 2", "2 ** x", "torch.pow(x, 3)", "x.__pow__(2)", "x.__rpow__(2)",
        "(x + 0).__ipow__(2)", "(x + 0).pow_(2)", "x.float_power(2)")],
    Case("pow", "a computed exponent", "x ** y", (MAP, MAP)),
    Case("hardshrink", "x.hardshrink", "x.hardshrink(0.25)"),
    Case("abs", "absolute_", "(x + 0).absolute_()"),
    *[Case("Dropout", code, code) for code in (
        "nn.Dropout(0.5)", "nn.Dropout2d(0.5)", "nn.AlphaDropout(0.5)",
        "nn.FeatureAlphaDropout(0.5)", "F.dropout(x, training=self.training)",
        "F.dropout2d(x, 0.2, False)", "F.alpha_dropout(x)", "F.feature_alpha_dropout(x)")],
    Case("Dropout", "F.dropout1d", "F.dropout1d(x, 0.5, False)", (ROW,)),
    Case("Dropout", "nn.Dropout1d", "nn.Dropout1d(0.5)", (ROW,)),
    Case("Dropout", "random in eval", "F.dropout(x, 0.5, True)"),
    Case("Identity", "nn.Identity", "nn.Identity()"),
    *[Case("same values", code, code) for code in (
        "x.contiguous()", "x.clone()", "x.detach()", "x.float()", "x.to(torch.float32)", "x.cpu()",
        "torch.clone(x)", "torch.detach(x)", "x.type(torch.float32)", "x.type_as(x)", "x.data",
        "torch.Tensor.contiguous(x)")],
    Case("same values", "another dtype", "x.half()"),
]  # fmt: skip

HEADS = [
    *[Case(name, f"nn.{name}", f"nn.{name}({dim})") for name, dim in (
        ("Softmax", 1), ("LogSoftmax", -1), ("Softmin", 1), ("Softmax2d", ""), ("Sigmoid", ""),
        ("Tanh", ""), ("LogSigmoid", ""), ("Softplus", ""))],
    *[Case(code.split("(x")[0], code, code) for code in (
        "F.softmax(x, 1)", "torch.softmax(x, 3)", "x.softmax(1)", "F.log_softmax(x, 1)",
        "torch.log_softmax(x, 1)", "x.log_softmax(-1)", "F.softmin(x, 1)", "F.softplus(x)",
        "F.logsigmoid(x)", "torch.sigmoid(x)", "F.sigmoid(x)", "torch.special.expit(x)",
        "x.sigmoid()", "torch.tanh(x)", "F.tanh(x)", "x.tanh()", "torch.exp(x)", "x.exp()",
        "torch.abs(x)", "torch.absolute(x)", "x.abs()", "x.absolute()", "x.__abs__()",
        "torch.argmax(x, 1)", "x.argmax(1, keepdim=True)", "torch.argmin(x, 1)", "x.argmin(2)",
        "x.argmax()", "torch.softmax(x, 0)")],
    *[Case("in place", code, code) for code in (
        "torch.sigmoid_(x + 0)", "(x + 0).sigmoid_()", "torch.tanh_(x + 0)", "(x + 0).tanh_()",
        "torch.exp_(x + 0)", "(x + 0).exp_()", "torch.abs_(x + 0)", "(x + 0).abs_()",
        "torch.sqrt_(x.clamp(min=0.1))", "x.clamp(min=0.1).sqrt_()",
        "torch.log_(x.clamp(min=0.1))", "x.clamp(min=0.1).log_()")],
    *[Case(code[:5], code, code) for code in (
        "torch.log(x.clamp(min=0.1))", "x.clamp(min=0.1).log()",
        "torch.sqrt(x.clamp(min=0.1))", "x.clamp(min=0.1).sqrt()")],
    Case("normalize", "F.normalize", "F.normalize(x)"),
    Case("head", "arithmetic behind it", "1 - 2 * torch.sigmoid(x)"),
    Case("head", "one channel of it", "torch.softmax(x, 1)[:, 0]"),
    Case("head", "another shape of it", "torch.sigmoid(x).flatten(1)"),
    Case("head", "argmax of it", "torch.softmax(x, 1).argmax(1)"),
    Case("head", "a layer behind it", "F.relu(torch.sigmoid(x))"),
    Case("head", "a product with it", "x * torch.sigmoid(x)"),
]  # fmt: skip

POOLING = [
    *[Case("MaxPool2d", arguments, f"nn.MaxPool2d({arguments})") for arguments in (
        "2", "3, 2, padding=1", "2, ceil_mode=True", "1, 2", "3, 1", "3, dilation=2",
        "(3, 1), (2, 1)", "2, return_indices=True")],
    *[Case("MaxPool2d", code.split("(")[0], code) for code in (
        "F.max_pool2d(x, 2)", "torch.max_pool2d(x, 3, stride=1)",
        "F.max_pool2d_with_indices(x, 2)[0]")],
    Case("MaxPool1d", "nn.MaxPool1d", "nn.MaxPool1d(3, 2, 1)", (ROW,)),
    Case("MaxPool1d", "F.max_pool1d", "F.max_pool1d(x, 2)", (ROW,)),
    Case("MaxPool1d", "torch.max_pool1d", "torch.max_pool1d(x, 2)", (ROW,)),
    Case("MaxPool1d", "with indices", "F.max_pool1d_with_indices(x, 2)[0]", (ROW,)),
    Case("AdaptiveMaxPool2d", "a divisor", "nn.AdaptiveMaxPool2d((4, 3))"),
    Case("AdaptiveMaxPool2d", "not a divisor", "nn.AdaptiveMaxPool2d(5)"),
    Case("AdaptiveMaxPool2d", "F.adaptive_max_pool2d", "F.adaptive_max_pool2d(x, 1)"),
    Case("AdaptiveMaxPool2d", "with indices", "F.adaptive_max_pool2d_with_indices(x, 1)[0]"),
    Case("AdaptiveMaxPool1d", "nn.AdaptiveMaxPool1d", "nn.AdaptiveMaxPool1d(4)", (ROW,)),
    Case("AdaptiveMaxPool1d", "F.adaptive_max_pool1d", "F.adaptive_max_pool1d(x, 3)", (ROW,)),
    Case("AdaptiveMaxPool1d", "with indices", "F.adaptive_max_pool1d_with_indices(x, 3)[0]",
         (ROW,)),
    *[Case("AvgPool2d", arguments, f"nn.AvgPool2d({arguments})") for arguments in (
        "2", "3, 2, 1", "3, 2, 1, count_include_pad=False", "2, ceil_mode=True",
        "2, divisor_override=3", "(1, 3)")],
    Case("AvgPool2d", "F.avg_pool2d", "F.avg_pool2d(x, 2)"),
    Case("AvgPool1d", "nn.AvgPool1d", "nn.AvgPool1d(3, 2, 1)", (ROW,)),
    Case("AvgPool1d", "F.avg_pool1d", "F.avg_pool1d(x, 2)", (ROW,)),
    *[Case("AdaptiveAvgPool2d", f"to {size}", f"nn.AdaptiveAvgPool2d({size})") for size in (
        "1", "7", "(None, 1)", "12")],
    Case("AdaptiveAvgPool2d", "F.adaptive_avg_pool2d", "F.adaptive_avg_pool2d(x, (2, 3))"),
    Case("AdaptiveAvgPool1d", "nn.AdaptiveAvgPool1d", "nn.AdaptiveAvgPool1d(5)", (ROW,)),
    Case("AdaptiveAvgPool1d", "F.adaptive_avg_pool1d", "F.adaptive_avg_pool1d(x, 1)", (ROW,)),
    Case("LPPool2d", "nn.LPPool2d", "nn.LPPool2d(2, 2)"),
    *[Case("mean", code, code) for code in (
        "x.mean((2, 3))", "x.mean(dim=[2, 3], keepdim=True)", "torch.mean(x, (-2, -1))",
        "x.mean(3).mean(2)", "x.mean(2)", "x.mean(1)", "x.mean()", "x.mean(0)")],
    Case("mean", "of a sequence", "x.mean(2)", (ROW,)),
    *[Case(code.split("(")[0].replace("torch.", ""), code, code) for code in (
        "x.mean((1, 2))", "x.sum(1)", "x.sum(3, keepdim=True)", "torch.sum(x, (2, 3))", "x.amax(1)",
        "torch.amax(x, 2)", "x.amin((2, 3))", "torch.amin(x, 3)", "x.max(1)[0]",
        "torch.max(x, 2).values", "x.min(3)[0]", "torch.min(x, 1)", "x.max()")],
    *[Case(code.split("(")[0][2:], code, code) for code in (
        "x.sum((2, 3))", "x.amax((2, 3))", "x.std((2, 3))")],
    *[Case("Upsample", arguments, f"nn.Upsample({arguments})") for arguments in (
        "scale_factor=2", "size=(16, 27)", 'scale_factor=2, mode="bilinear"', "scale_factor=1.5",
        'scale_factor=2, mode="bilinear", align_corners=True',
        'size=(15, 17), mode="bilinear", align_corners=True',
        'scale_factor=1.5, mode="bilinear"', 'scale_factor=2, mode="bicubic"')],
    Case("Upsample", "nn.UpsamplingBilinear2d", "nn.UpsamplingBilinear2d(scale_factor=2)"),
    Case("Upsample", "of a sequence, linear", 'nn.Upsample(scale_factor=2, mode="linear")', (ROW,)),
    Case("Upsample", "nn.UpsamplingNearest2d", "nn.UpsamplingNearest2d(scale_factor=3)"),
    Case("Upsample", "of a sequence", "nn.Upsample(scale_factor=2)", (ROW,)),
    Case("Upsample", "F.interpolate", "F.interpolate(x, scale_factor=2)"),
    Case("Upsample", "F.interpolate, bilinear",
         'F.interpolate(x, scale_factor=2, mode="bilinear")'),
    Case("Upsample", "F.upsample", "F.upsample(x, scale_factor=2)"),
    Case("Upsample", "F.upsample_nearest", "F.upsample_nearest(x, scale_factor=2)"),
    Case("Upsample", "repeat_interleave", "x.repeat_interleave(2, 2).repeat_interleave(2, 3)"),
    Case("PixelShuffle", "nn.PixelShuffle", "nn.PixelShuffle(2)", (WIDE,)),
    Case("PixelShuffle", "F.pixel_shuffle", "F.pixel_shuffle(x, 2)", (WIDE,)),
    Case("PixelShuffle", "torch.pixel_shuffle", "torch.pixel_shuffle(x, 2)", (WIDE,)),
    Case("PixelUnshuffle", "nn.PixelUnshuffle", "nn.PixelUnshuffle(2)", (WIDE,)),
    Case("PixelUnshuffle", "F.pixel_unshuffle", "F.pixel_unshuffle(x, 3)", (WIDE,)),
    Case("PixelUnshuffle", "torch.pixel_unshuffle", "torch.pixel_unshuffle(x, 2)", (WIDE,)),
    Case("ChannelShuffle", "nn.ChannelShuffle", "nn.ChannelShuffle(4)", (WIDE,)),
    Case("ChannelShuffle", "F.channel_shuffle", "F.channel_shuffle(x, 2)", (WIDE,)),
    Case("ChannelShuffle", "native", "torch.native_channel_shuffle(x, 2)", (WIDE,)),
    Case("ChannelShuffle", "by views",
         "x.view(-1, 2, 4, 6, 6).transpose(1, 2).reshape(-1, 8, 6, 6)", (WIDE,)),
]  # fmt: skip

TWO = (MAP, MAP)
C = {"c": (3, 1, 1)}

ARITHMETIC = [
    *[Case("add", code, code, TWO) for code in (
        "x + y", "torch.add(x, y)", "x.add(y)", "torch.add(x, y, alpha=2)", "(x + 0).add_(y)",
        "x + y + x", "x + 100 * y", "sum([x, y])", "x.__add__(y)", "x.__radd__(y)",
        "(x + 0).__iadd__(y)")],
    *[Case("sub", code, code, TWO) for code in (
        "x - y", "torch.sub(x, y)", "x.sub(y, alpha=2)", "torch.subtract(x, y)", "x.subtract(y)",
        "torch.rsub(x, y)", "(x + 0).sub_(y)", "x.__sub__(y)", "x.__rsub__(y)",
        "(x + 0).__isub__(y)")],
    Case("add", "a tensor to itself", "x + x"),
    Case("add", "broadcast of (batch, channels, 1, 1)", "x + x.mean((2, 3), keepdim=True)"),
    Case("add", "broadcast of (batch, channels, 1)", "x + x.mean(2, keepdim=True)", (ROW,)),
    Case("add", "broadcast along one axis", "x + x.mean(2, keepdim=True)"),
    Case("add", "a buffer per channel", "x + c", parameters=C),
    Case("add", "a buffer of the shape of a map", "x + c", parameters={"c": MAP}),
    Case("mul", "a row of values", "x * c", parameters={"c": (9,)}),
    Case("add", "a buffer with a batch", "x + c", parameters={"c": (2, 3, 1, 1)}),
    Case("add", "a row of values", "x + c", parameters={"c": (9,)}),
    Case("mul", "two computed tensors", "x * y", TWO),
    Case("div", "x.__rtruediv__", "x.clamp(min=0.25).__rtruediv__(2)"),
    Case("mul", "a gate for pixels", "x * torch.sigmoid(x[:, :1])"),
    Case("mul", "a row and a column", "x.mean(2, keepdim=True) * x.mean(3, keepdim=True)"),
    Case("mul", "squeeze and excite", "x * x.mean((2, 3), keepdim=True)"),
    Case("mul", "a parameter per channel", "x * c", parameters=C),
    *[Case("mul", code, code) for code in (
        "x * 2", "0.1 * x", "torch.mul(x, 3)", "x.mul(0.5)", "torch.multiply(x, 2)",
        "x.multiply(2)", "(x + 0).mul_(2)", "x.__mul__(2)", "x.__rmul__(2)",
        "(x + 0).__imul__(2)")],
    *[Case("div", code, code) for code in (
        "x / 255", "torch.div(x, 3)", "x.div(3)", "torch.divide(x, 3)", "x.divide(3)",
        "torch.true_divide(x, 3)", "x.true_divide(3)", "(x + 0).div_(3)", "x.__truediv__(2)",
        "(x + 0).__itruediv__(2)", "1 / x", "x // 2", "x / 0",
        'torch.div(x, 2, rounding_mode="floor")')],
    Case("div", "mean and deviation per channel", "(x - c) / (c.abs() + 1)", parameters=C),
    *[Case("scalar arithmetic", code, code) for code in (
        "x * 2 + 1", "1 - x", "-x", "torch.neg(x)", "x.neg()", "torch.negative(x)", "x.negative()",
        "(x + 0).neg_()", "x.__neg__()", "+x", "torch.positive(x)", "x.positive()", "x ** 2",
        "x % 2")],
    *[Case(code.split("(")[0].replace("torch.", ""), code, code, TWO) for code in (
        "torch.maximum(x, y)", "torch.minimum(x, y)", "torch.fmax(x, y)", "torch.fmin(x, y)",
        "x.maximum(y)", "x.minimum(y)", "x.fmax(y)", "x.fmin(y)", "torch.where(x > 0, x, y)",
        "torch.bmm(x[:, 0], y[:, 0].transpose(1, 2))")],
]  # fmt: skip

SHAPES = [
    *[Case("flatten", code, code) for code in (
        "torch.flatten(x, 1)", "x.flatten(1)", "x.view(x.size(0), -1)", "x.view(x.shape[0], -1)",
        "x.reshape(-1, 216)", "torch.reshape(x, (x.size(0), -1))", "x.view(-1, 3, 72)",
        "torch.flatten(x)", "x.view(-1)", "x.view(4, -1)")],
    Case("flatten", "nn.Flatten", "nn.Flatten()"),
    Case("flatten", "nn.Unflatten", "nn.Sequential(nn.Flatten(), nn.Unflatten(1, (3, 8, 9)))"),
    *[Case("squeeze", code, code, ((3, 1, 1),)) for code in (
        "x.squeeze()", "x.squeeze(-1).squeeze(-1)", "torch.squeeze(x, 3)", "x.squeeze((2, 3))",
        "x.squeeze(0)", "x[:, :, 0, 0]")],
    *[Case("unsqueeze", code, code, (VECTOR,)) for code in (
        "x.unsqueeze(-1).unsqueeze(-1)", "torch.unsqueeze(x, 2)", "x[:, :, None, None]",
        "x.unsqueeze(0)", "torch.unflatten(x, 1, (10, 1, 1))", "x.unflatten(1, (10, 1))")],
    *[Case("cat", code, code, (MAP, (2, 8, 9))) for code in (
        "torch.cat([x, y], 1)", "torch.cat((x, y), dim=-3)", "torch.concat([x, y], 1)",
        "torch.concatenate([x, y], 1)", "torch.cat([x, x, y], 1)")],
    Case("cat", "features", "torch.cat([x, x], 1)", (VECTOR,)),
    Case("cat", "torch.hstack", "torch.hstack([x, y])", (MAP, (2, 8, 9))),
    Case("cat", "along height", "torch.cat([x, y], 2)", TWO),
    Case("cat", "along width", "torch.cat([x, y.relu()], 3)", TWO),
    Case("cat", "along length", "torch.cat([x, x + 1], 2)", (ROW,)),
    Case("cat", "along the batch", "torch.cat([x, y], 0)", TWO),
    Case("stack", "torch.stack", "torch.stack([x, y], 1)", TWO),
    Case("stack", "behind the channels", "torch.stack([x, y], 2)", TWO),
    Case("stack", "along the width", "torch.stack([x, y], 3)", TWO),
    *[Case("channels", code, code, (WIDE,)) for code in (
        "x[:, :3]", "x[:, 1::2]", "x[:, [2, 0]]", "x.chunk(2, 1)[1]", "torch.chunk(x, 2, dim=1)[0]",
        "torch.split(x, 3, 1)[2]", "x.split([5, 3], dim=1)[0]", "x.narrow(1, 2, 3)",
        "torch.narrow(x, 1, 0, 2)", "x.flip(1)", "torch.flip(x, (1,))",
        "x.index_select(1, torch.tensor([2, 0]))",
        "torch.index_select(x, 1, torch.tensor([2, 0]))", "x.select(1, 0)", "x.unbind(1)[0]",
        "torch.tensor_split(x, 3, 1)[1]", "x.tensor_split(3, 1)[1]", "x.roll(1, 1)")],
    *[Case("pixels", code, code) for code in (
        "x[:, :, 1:]", "x[:, :, ::2, ::2]", "x.flip(3)", "x[:, 0]", "x[:, :, 3]",
        "x[..., [0, 2]]", "x.chunk(3, 3)[1]", "x.split([2, 6], 2)[1]", "x.narrow(3, 1, 4)",
        "x.index_select(2, torch.tensor([2, 0]))", "x.roll(1, 2)", "x.roll(1)",
        "x[:, [0, 1], [1, 2]]")],
    Case("pixels", "of a sequence", "x[:, :, :-2]", (ROW,)),
    *[Case("transpose", code, code) for code in (
        "x.permute(0, 2, 3, 1)", "x.transpose(2, 3)", "x.transpose(1, 2)", "x.swapaxes(1, 2)",
        "x.swapdims(2, 3)", "torch.swapdims(x, 1, 2)", "x.movedim(1, -1)")],
    *[Case("pad", code, code) for code in (
        "F.pad(x, (1, 1, 1, 1))", "F.pad(x, (0, 1, 0, 1))",
        'F.pad(x, (1, 1, 1, 1), mode="reflect")',
        'F.pad(x, (1, 1, 1, 1), mode="replicate")', 'F.pad(x, (1, 1, 1, 1), mode="circular")',
        "F.pad(x, (-1, 2, 0, -3))", "F.pad(x, (0, 0, 0, 0, 1, 2))", "F.pad(x, (1, 1), value=0.5)",
        'F.pad(x, (1, 1), value=float("-inf"))', "F.pad(x, (1, 1), value=100.0)",
        "nn.ZeroPad2d(1)", "nn.ReflectionPad2d(1)", "nn.ReplicationPad2d((1, 0, 2, 0))",
        "nn.CircularPad2d(1)", "nn.ConstantPad2d(1, 2.0)")],
    *[Case("pad", code, code, (ROW,)) for code in (
        "nn.ZeroPad1d((2, 0))", "nn.ReflectionPad1d(1)", "nn.ReplicationPad1d(1)",
        "nn.CircularPad1d(1)", "nn.ConstantPad1d(1, 0.5)")],
    Case("expand", "x.expand_as(y)", "x.expand_as(y) + y", ((3, 1, 1), MAP)),
    *[Case("expand", code, code, ((3, 1, 1),)) for code in (
        "x.expand(-1, -1, 4, 4)", "x.repeat(1, 1, 2, 2)")],
]  # fmt: skip

STRUCTURE = [
    Case("outputs", "tuple", "(x, x.relu())"),
    Case("outputs", "list", "[x + 1, x.relu()]"),
    Case("outputs", "dict", '{"a": x + 1, "b": x.relu()}'),
    Case("outputs", "the input itself", "x"),
    Case("outputs", "a number", "(x, x.shape[1])"),
    Case("outputs", "a parameter", "(x, c)", parameters=C),
    Case("inputs", "two of different shapes", "F.linear(x.mean((2, 3)), w) + y", (MAP, VECTOR),
         {"w": (10, 3)}),
    Case("inputs", "a map and features", "F.linear(x.flatten(1), w) + y", (MAP, (5,)),
         {"w": (5, 216)}),
    Case("control flow", "on a value", "x if x.sum() > 0 else -x"),
    Case("control flow", "on a size", "x if x.shape[1] == 3 else -x"),
    Case("control flow", "on the batch", "x if x.shape[0] == 3 else -x"),
    Case("control flow", "iterating over a tensor", "sum(row for row in x)"),
    Case("control flow", "len", "x * len(x)"),
    Case("control flow", "item", "x * x.max().item()"),
    Case("control flow", "arithmetic on the batch", "x.view(x.shape[0] * 3, -1)"),
    Case("LSTM", "nn.LSTM", "nn.LSTM(12, 5)", (ROW,)),
    Case("MultiheadAttention", "nn.MultiheadAttention",
         "F.scaled_dot_product_attention(x, x, x)", (ROW,)),
    Case("Embedding", "F.embedding", "F.embedding(x.long(), w)", (VECTOR,), {"w": (20, 4)}),
]  # fmt: skip

SECTIONS: dict[str, list[Case]] = {
    "Convolutions and linear layers": CONVOLUTIONS,
    "Normalisation": NORMS,
    "Activations, Dropout and calls that change nothing": ACTIVATIONS,
    "Heads: steps on the host, at the end of a model": HEADS,
    "Pooling, mean, upsampling": POOLING,
    "Arithmetic": ARITHMETIC,
    "Shapes, channels, joining": SHAPES,
    "Structure of models": STRUCTURE,
}
CASES = [case for cases in SECTIONS.values() for case in cases]
