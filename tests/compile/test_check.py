"""rasna.check: every problem at once, what compiles, where to split; whole texts (report.py)."""

import copy
import pickle
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rasna
from rasna.compile import capture, dry_run
from rasna.compile.floatgraph import Clamp, FloatGraph, Node, Where
from rasna.compile.operators import Value
from rasna.compile.problems import Refusal
from rasna.errors import CompileError, RasnaTypeError
from tests.compile.support import Net, Net2, sample, settle
from tests.messages import refuses, whole


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)) + x)


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


class Mixed(nn.Module):
    """Every stage finds something: tracing, capture, lowering."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.layer1 = nn.Sequential(Block(), Block())
        self.act = nn.LPPool2d(2, 1)
        self.branch = Branch()
        self.layer2 = Block()
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = self.act(self.layer1(self.stem(x)))
        x = self.layer2(self.branch(x))
        x = self.fc(x.mean((2, 3)))
        print(x)
        return torch.cumsum(x, 1)


def line(function, offset: int) -> str:
    return f"test_check.py:{function.__code__.co_firstlineno + offset}"


def check(model, *samples, **options) -> rasna.Report:
    return rasna.check(model, *samples, channel_last=False, target="tiny", **options)


def test_a_model_without_problems():
    report = check(settle(Block()), sample(2, 4, 6, 6))
    assert report.ok and report and not report.problems and not report.parts
    assert report.until is None
    assert str(report) == "Block compiles for tiny: 4 operations"
    assert report.compiled == ("conv", "bn", "add", "relu") and report.remaining == ()


def test_the_whole_report():
    model = settle(Mixed()).train()
    report = check(model, sample(2, 3, 10, 10))
    f, b, k = Mixed.forward, Branch.forward, Block.forward
    assert str(report) == (
        "Mixed cannot be compiled for tiny, 5 problems:\n"
        "  the model is in training mode; call model.eval() first\n"
        f"  act (act), {line(f, 1)}: LPPool2d is not supported; it takes "
        "powers and roots; use nn.AvgPool2d or nn.MaxPool2d and train it again\n"
        f"  (branch), {line(b, 1)}: control flow on the value of a tensor is not supported; decide "
        "on constants of the module (self.…), or end the compiled model before it\n"
        f"  {line(f, 4)}: printing a traced tensor is not supported; remove the print from "
        "forward\n"
        f"  cumsum, {line(f, 5)}: cumsum is not supported; end the compiled model before it and "
        "apply it in PyTorch\n"
        "15 of 19 operations can be compiled\n"
        "to split the model:\n"
        "  compile: 9 operations, rasna.compile(model, …, until='layer1')\n"
        f"  PyTorch: act (act), {line(f, 1)}\n"
        f"  compile: 6 operations, layer2_conv (layer2.conv), {line(k, 1)} to fc (fc), "
        f"{line(f, 3)}, as a module of its own\n"
        f"  PyTorch: sum_1 (branch), {line(b, 1)}; cumsum, {line(f, 5)}; gt (branch), {line(b, 1)}"
    )
    assert not report and not report.ok
    assert report.until == "layer1"
    act = report.problems[1]
    assert (act.node, act.path, act.file) == ("act", "act", "test_check.py")
    assert act.line == f.__code__.co_firstlineno + 1
    assert act.reason == "LPPool2d is not supported"
    assert act.remedy == (
        "it takes powers and roots; use nn.AvgPool2d or nn.MaxPool2d and train it again"
    )
    assert report.remaining == ("act", "sum_1", "gt", "cumsum")


def test_compile_raises_the_same_report():
    model, x = settle(Mixed()), sample(2, 3, 10, 10)
    report = check(model, x)
    with pytest.raises(CompileError) as error:
        rasna.compile(model, x, channel_last=False, target="tiny")
    assert str(error.value) == str(report)
    assert error.value.report == report and error.value.problems == report.problems
    copied = pickle.loads(pickle.dumps(error.value))
    assert str(copied) == str(report) and copied.problems == report.problems


def test_what_is_suggested_compiles():
    model, x = settle(Mixed()), sample(2, 3, 10, 10)
    until = check(model, x).until
    program = rasna.compile(model, x, channel_last=False, target="tiny", until=until)
    assert program.outputs[0].shape == (4, 8, 8)


def test_nothing_of_the_model_changes():
    model = settle(Mixed()).train()
    model.layer2.eval()
    before = copy.deepcopy(model.state_dict())
    modes = [m.training for m in model.modules()]
    check(model, sample(2, 3, 10, 10))
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert [m.training for m in model.modules()] == modes


def test_problems_of_later_stages_are_found_behind_what_is_not_supported():
    def forward(m, x):
        y = torch.cumsum(m.conv(x), 1)
        return m.fc(y.mean((2, 3))).view(-1, 1, 42, 100).clamp_min(0) + m.wide(x)

    model = settle(
        Net(forward, conv=nn.Conv2d(3, 4, 3), fc=nn.Linear(4, 4200),
            wide=nn.Conv2d(3, 1, (6, 5)))
    )  # fmt: skip
    report = check(model, sample(2, 3, 47, 104))
    assert [problem.node for problem in report.problems] == ["cumsum", "add"]
    assert report.problems[1].reason == (
        "a map of shape (4200, 1, 1) that is used with the shape (1, 42, 100) is not supported"
    )


def test_every_layer_that_does_not_fit_is_named():
    def forward(m, x):
        return m.c(torch.cumsum(m.b(m.a(x)), 1))

    convs = {name: nn.Conv2d(2, 2, 3, padding=1) for name in "abc"}
    model = settle(Net(forward, **convs))
    report = check(model, torch.randn(2, 2, 3, 4000))
    assert [p.node for p in report.problems] == ["cumsum", "a", "b", "c"]
    assert str(report.problems[1]) == (
        f"a (a), {line(forward, 1)}: one output row needs 2008 words of map memory in every "
        "slice (3 input rows of 501 words, 500 output words, 5 around them), target tiny has 127; "
        "use narrower inputs: no target has as many"
    )


def test_an_input_that_is_an_output_must_fit_too():
    report = check(settle(Net(lambda m, x: x)), torch.randn(2, 2, 3, 4000))
    assert str(report.problems[0]) == (
        "x: copying one row needs 502 words of map memory in every slice, target tiny has 127 "
        "left; use narrower maps, or target='pynq-z2', which has 1023"
    )


def test_values_that_are_not_finite_are_named_together_with_the_rest():
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 1), nn.LPPool2d(2, 1)))
    model[0].weight.data[0] = float("nan")
    report = check(model, sample(2, 3, 4, 4))
    assert [str(p) for p in report.problems][:2] == [
        "0.weight: 3 of 12 values are NaN or infinite; repair the training or the checkpoint",
        "_1 (1): LPPool2d is not supported; it takes powers and roots; use nn.AvgPool2d or "
        "nn.MaxPool2d and train it again",
    ]


def test_a_model_on_the_meta_device_is_not_run():
    report = check(nn.Conv2d(3, 4, 1, device="meta").eval(), sample(2, 3, 4, 4))
    assert str(report) == (
        "Conv2d cannot be compiled for tiny, 2 problems:\n"
        "  weight: is on the meta device and has no values; load it first\n"
        "  bias: is on the meta device and has no values; load it first"
    )


def test_a_wrong_number_of_samples_is_a_problem():
    model = settle(Net2(lambda m, x, y: x + y))
    assert str(check(model, sample(2, 3, 4, 4))) == (
        "Net2 cannot be compiled for tiny, 1 problem:\n"
        "  Net2.forward takes 2 inputs (x, y), 1 samples were given; "
        "give one sample array per input, in this order"
    )


def test_behind_what_pytorch_cannot_compute_the_kinds_are_checked():
    def forward(m, x):
        y = m.a(x)
        return torch.cumsum(m.b(y).view(3, 7), 1), m.c(y)

    model = settle(
        Net(forward, a=nn.Conv2d(3, 4, 1), b=nn.Conv2d(5, 4, 1), c=nn.GroupNorm(2, 4))
    )
    report = check(model, sample(2, 3, 4, 4))
    assert [p.node for p in report.problems] == ["b", "cumsum", "c"]
    assert report.problems[0].reason.startswith(
        "PyTorch cannot compute this for inputs of the shapes (2, 4, 4, 4) (Given groups=1"
    )
    assert report.until == "a"


def test_what_no_output_needs_is_no_problem():
    def forward(m, x):
        torch.cumsum(x, 1)
        return m.conv(x)

    assert check(settle(Net(forward, conv=nn.Conv2d(3, 4, 1))), sample(2, 3, 4, 4)).ok


def test_a_number_made_of_a_tensor_is_always_a_problem():
    report = check(settle(Net(lambda m, x: x * x.max().item())), sample(2, 3, 4, 4))
    assert [p.node for p in report.problems] == ["max_1", "item"]


def test_a_module_that_cannot_be_traced_does_not_hide_the_rest():
    class Loop(nn.Module):
        def forward(self, x):
            return torch.stack([row for row in x])

    model = settle(nn.Sequential(nn.Conv2d(3, 4, 1), Loop(), nn.Conv2d(4, 4, 1), nn.Unfold(1)))
    report = check(model, sample(2, 3, 4, 4))
    assert [str(p).split("; ")[0] for p in report.problems] == [
        f"(1), {line(Loop.forward, 1)}: iterating over a traced tensor is not supported",
        "_3 (3): Unfold is not supported",
    ]
    assert report.until == "0"


def test_an_endless_loop_ends():
    def forward(m, x):
        while x.sum() > 0:
            x = x - 1
        return x

    report = check(settle(Net(forward)), sample(2, 3, 4, 4))
    assert whole(str(report)) == (
        "Net cannot be compiled for tiny, 1 problem:\n"
        "  test_check.py:N: control flow on the value of a tensor is not supported; decide on "
        "constants of the module (self.…), or end the compiled model before it\n"
        "1 of 5 operations can be compiled\n"
        "to split the model:\n"
        "  compile: 1 operation, rasna.compile(model, …, until='sub')\n"
        "  PyTorch: sum_1, test_check.py:N; sum_2, test_check.py:N; gt, test_check.py:N; "
        "gt_1, test_check.py:N"
    )


def test_a_tuned_module_in_a_model_that_is_not_is_named():
    model = settle(nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3)), nn.Flatten()))
    rasna.tune(model[0], sp=0, strategy="all")
    model.eval()
    report = check(model, sample(2, 3, 6, 6))
    assert str(report.problems[0]) == (
        "(0): a module that is tuned within a model that is not is not supported; "
        "compile the module alone, or tune the whole model"
    )
    assert check(model[0], sample(2, 3, 6, 6)).ok


def test_two_results_are_needed_behind_the_cut():
    def forward(m, x):
        a = m.a(x)
        b = m.b(a)
        return torch.cumsum(a, 1) + torch.cumprod(b, 1)

    model = settle(Net(forward, a=nn.Conv2d(3, 4, 1), b=nn.Conv2d(4, 4, 1)))
    report = check(model, sample(2, 3, 4, 4))
    assert report.until == ["a", "b"]
    assert whole(str(report)) == (
        "Net cannot be compiled for tiny, 2 problems:\n"
        "  cumsum, test_check.py:N: cumsum is not supported; end the compiled model before it, "
        "until='a', and apply it in PyTorch\n"
        "  cumprod, test_check.py:N: cumprod is not supported; end the compiled model before it, "
        "until='b', and apply it in PyTorch\n"
        "3 of 5 operations can be compiled\n"
        "to split the model:\n"
        "  compile: 2 operations, rasna.compile(model, …, until=['a', 'b'])\n"
        "  PyTorch: cumsum, test_check.py:N; cumprod, test_check.py:N\n"
        "  compile: 1 operation, add, test_check.py:N, as a module of its own"
    )


def test_a_fault_of_the_compiler_is_reported_as_one(monkeypatch):
    def fails(*arguments):
        raise ZeroDivisionError("division by zero\nand more lines")

    monkeypatch.setattr(dry_run, "_later_stages", fails)
    report = check(settle(nn.Sequential(nn.ReLU())), sample(2, 3, 4, 4))
    assert [str(problem) for problem in report.problems] == [
        "the compiler fails (ZeroDivisionError: division by zero); please report this model"
    ]


def test_a_result_that_the_compiler_did_not_expect_is_refused():
    graph = FloatGraph()
    graph.add(Node("relu", Clamp((0, 1)), [], (3, 4, 4), Where("relu")))
    walker = SimpleNamespace(context=SimpleNamespace(batch=2, graph=graph))
    with pytest.raises(Refusal) as refusal:
        capture._Walker._checked(walker, Value("relu", (3, 4, 4)), torch.zeros(2, 3, 4))
    assert refusal.value.what == (
        "a result of shape (2, 3, 4) and torch.float32, where (2, 3, 4, 4) and torch.float32 were "
        "expected, is not supported"
    )
    assert refusal.value.remedy == "please report this model"


def test_wrong_arguments_are_raised():
    model, x = settle(Block()), sample(2, 4, 6, 6)
    with refuses(RasnaTypeError, "compile needs one sample array per model input, none was given"):
        rasna.check(model)
    with refuses(RasnaTypeError, "the model must be a torch.nn.Module, str was given"):
        rasna.check("model", x)
    with refuses(
        ValueError, "target 'pink' is unknown; the targets are tiny, small, pynq-z2, kv260"
    ):
        rasna.check(model, x, target="pink")
