"""What tracing cannot follow ends in an error that says where (trace.py)."""

import pytest
import torch
from torch import nn

from rasna.compile.trace import trace
from rasna.errors import CompileError
from tests.compile.support import Net
from tests.messages import refuses


def branch(m, x):
    if x.sum() > 0:
        return x
    return -x


def iterate(m, x):
    return sum(row for row in x)


def length(m, x):
    return x * len(x)


def printing(m, x):
    print(x)
    return x


def formatting(m, x):
    return x if f"{x}" else -x


def number(m, x):
    return x * range(x.shape[1])[0]


def floating(m, x):
    return x * float(m.w)


WHAT = {
    branch: (
        1,
        "control flow on the value of a tensor is not supported; decide on constants of the "
        "module (self.…), or end the compiled model before it",
    ),
    iterate: (
        1,
        "iterating over a traced tensor is not supported; "
        "loop over a constant number of times or over modules",
    ),
    length: (
        1,
        "len() of a traced tensor is not supported; use a constant, or x.size(0) for the batch",
    ),
    printing: (
        1, "printing a traced tensor is not supported; remove the print from forward",
    ),
    formatting: (
        1, "printing a traced tensor is not supported; remove the print from forward",
    ),
    number: (
        1,
        "a Python number made of a traced tensor is not supported; "
        "use a constant of the module instead",
    ),
    floating: (
        1,
        "a Python number made of a traced tensor is not supported; "
        "use a constant of the module instead",
    ),
}  # fmt: skip


@pytest.mark.parametrize("function", WHAT, ids=lambda f: f.__name__)
def test_untraceable_python_says_where(function):
    offset, message = WHAT[function]
    with pytest.raises(CompileError) as error:
        trace(Net(function, w=nn.Parameter(torch.ones(1))).eval())
    line = function.__code__.co_firstlineno + offset
    assert str(error.value) == f"test_trace.py:{line}: {message}"


BRANCH = (
    "test_trace.py:N: control flow on the value of a tensor is not supported; decide on "
    "constants of the module (self.…), or end the compiled model before it"
)


def test_the_module_path_is_named_too():
    inner = Net(branch)
    with refuses(CompileError, f"(1.0), {BRANCH}"):
        trace(nn.Sequential(nn.Identity(), nn.Sequential(inner)).eval())


def test_what_is_not_supported_before_it_is_reported_too():
    def forward(m, x):
        x = torch.cumsum(x, 1)
        return branch(m, x)

    with refuses(
        CompileError,
        "the model cannot be compiled, 2 problems:\n"
        "  cumsum, test_trace.py:N: cumsum is not supported; end the compiled model before it "
        f"and apply it in PyTorch\n  {BRANCH}",
    ):
        trace(Net(forward).eval())


def test_other_errors_of_forward_are_passed_on():
    def forward(m, x):
        raise KeyError("no such head")

    with refuses(
        CompileError,
        "test_trace.py:N: the forward cannot be traced (KeyError: 'no such head'); make it a "
        "fixed sequence of tensor operations",
    ):
        trace(Net(forward).eval())


class Two(nn.Module):
    def forward(self, x, y, z=None):
        return x + y


class Starred(nn.Module):
    def forward(self, x, *xs, **options):
        return sum(xs, x) if not options else None


def test_wrong_numbers_of_samples():
    with pytest.raises(CompileError) as error:
        trace(Two(), 1)
    assert str(error.value) == (
        "Two.forward takes 2 to 3 inputs (x, y, z), 1 samples were given; "
        "give one sample array per input, in this order"
    )
    with refuses(
        CompileError,
        "ReLU.forward takes 1 inputs (input), 2 samples were given; give one sample array per "
        "input, in this order",
    ):
        trace(nn.ReLU(), 2)
    with refuses(
        CompileError,
        "Starred.forward takes at least 1 inputs (x, *xs), 0 samples were given; give one sample "
        "array per input, in this order",
    ):
        trace(Starred(), 0)


def test_starred_inputs_are_as_many_as_there_are_samples():
    for count in (1, 2, 4):
        nodes = [node for node in trace(Starred(), count).graph.nodes if node.op == "placeholder"]
        assert [node.name for node in nodes] == ["x", "xs_0", "xs_1", "xs_2"][:count]
    assert [node.name for node in trace(Starred()).graph.nodes][0] == "x"


def test_a_model_that_is_one_layer():
    graph = trace(nn.Conv2d(3, 4, 1)).graph
    assert [node.op for node in graph.nodes] == ["placeholder", "call_module", "output"]


def test_tracing_does_not_add_to_the_module():
    model = Net(lambda m, x: x + torch.ones(1))
    names = set(vars(model))
    assert list(trace(model).constants) == ["_constant_0"]
    assert set(vars(model)) == names


# ---- conditions on sizes are decided by the samples


def widen(m, x):
    if not (x.dim() == 4 and x.shape[1] in (3, 4)):  # as assert does, which pytest rewrites
        raise AssertionError("three or four channels")
    if x.shape[1] != 4:
        x = m.proj(x)
    h, w = x.size()[2:]
    while x.size(2) > 3:
        x = m.pool(x)
    if h % 2 == 0 or w > 100:
        x = -x
    return x


def sized_net():
    return Net(widen, proj=nn.Conv2d(3, 4, 1), pool=nn.MaxPool2d(2)).eval()


@pytest.mark.parametrize("shape", [(3, 8, 9), (4, 5, 9), (3, 3, 3)])
def test_conditions_on_sizes_are_decided_by_the_samples(shape):
    from tests.compile.support import check, sample

    check(sized_net(), sample(4, *shape))


def test_the_shape_of_the_samples_decides_anew():
    from tests.compile.support import compiled, sample

    assert len(compiled(sized_net(), sample(2, 4, 3, 3)).ops) == 0
    assert len(compiled(sized_net(), sample(2, 3, 8, 8)).ops) == 4


def test_a_failed_assertion_on_sizes_is_reported():
    from tests.compile.support import compiled, sample

    line = widen.__code__.co_firstlineno + 2
    with pytest.raises(CompileError) as error:
        compiled(sized_net(), sample(2, 5, 3, 3))
    assert str(error.value) == (
        f"test_trace.py:{line}: an assertion of the model fails for these samples (three or four "
        "channels); check the samples and channel_last"
    )


def on_the_batch(m, x):
    return x if x.shape[0] > 2 else -x


def on_values(m, x):
    return x if x.max().item() > x.shape[1] else -x


@pytest.mark.parametrize("function", [on_the_batch, on_values])
def test_conditions_on_the_batch_or_on_values_stay_errors(function):
    from tests.compile.support import compiled, sample

    with refuses(CompileError, BRANCH):
        compiled(Net(function).eval(), sample(4, 3, 3, 3))


def test_without_samples_conditions_on_sizes_show_all_layers():
    targets = [str(node.target) for node in trace(sized_net()).graph.nodes]
    assert "proj" in targets and "pool" in targets
