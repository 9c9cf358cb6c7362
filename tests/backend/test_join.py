"""cat whose inputs are written where the result lies (backend/join.py)."""

import numpy as np
import pytest
import torch
from graph_check import compare
from torch import nn

from rasna.compile.backend.build import Builder, build_image
from rasna.compile.backend.join import find_joins
from rasna.golden import quantize
from rasna.targets import TARGETS, get_target
from tests.compile.support import Net, Net2, compiled, sample, settle


def cat(*parts: torch.Tensor) -> torch.Tensor:
    return torch.cat(parts, 1)


def joined_twice(m, x):
    y = m.a(x)
    return m.d(cat(y, m.b(x), y))


def read_elsewhere(m, x):
    y = m.a(x)
    return m.d(cat(y, m.b(x), m.e(y))), m.e(y)


def nested(m, x):
    y = cat(m.a(x), m.b(x))
    return m.d(cat(y, m.e(m.a(x)))), m.f(y)


def read_and_returned(m, x):
    y = cat(m.a(x), m.b(x))
    return y, m.f(y), m.pool(y)


def read_after_the_result(m, x):
    y = m.a(x)
    z = m.f(cat(y, m.b(x)))
    return z, m.e(y) + m.e(m.e(m.e(m.a(x)))), m.e(y)


def read_after_nested_results(m, x):
    y = m.a(x)
    z = m.d(cat(cat(y, m.b(x)), m.e(y)))
    return z, m.e(m.e(m.e(m.a(x)))), m.e(m.e(y)), m.e(y)


def parts_returned(m, x):
    y, z = m.a(x), m.b(x)
    return y, cat(y, z), z


MODELS = {
    "output": lambda m, x: cat(m.a(x), m.b(x)),
    "read by a layer": lambda m, x: m.f(cat(m.a(x), m.b(x))),
    "read by two": lambda m, x: (lambda y: (m.f(y), m.pool(y)))(cat(m.a(x), m.b(x))),
    "with an input": lambda m, x: m.d(cat(m.a(x), x[:, [0, 2, 1, 0]], m.b(x))),
    "the input in front": lambda m, x: cat(x, m.a(x)),
    "behind pooling": lambda m, x: cat(m.pool(m.a(x)), m.pool(m.b(x))),
    "behind averages": lambda m, x: cat(m.mean(m.a(x)), m.mean(m.b(x))),
    "behind a sum": lambda m, x: cat(m.a(x) + m.e(m.a(x)), m.b(x)),
    "of slices": lambda m, x: cat(m.a(x)[:, 1:], m.b(x)[:, :2]),
    "then ReLU": lambda m, x: m.f(cat(m.a(x), m.b(x)).relu()),
    "joined twice": joined_twice,
    "twice and returned": lambda m, x: (lambda y: cat(y, y))(m.a(x)),
    "read elsewhere": read_elsewhere,
    "nested": nested,
    "nested in front": lambda m, x: cat(cat(cat(m.a(x), m.b(x)), m.e(m.a(x))), x),
    "read and returned": read_and_returned,
    "parts returned": parts_returned,
    "read after the result": read_after_the_result,
    "read after nested results": read_after_nested_results,
    "two cats of one": lambda m, x: (lambda y: (cat(y, m.b(x)), cat(m.b(x), y)))(m.a(x)),
}  # fmt: skip


def net(name: str) -> nn.Module:
    return settle(
        Net(
            MODELS[name], a=nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()),
            b=nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()), e=nn.Conv2d(4, 4, 1),
            d=nn.Conv2d(11, 5, 3, padding=1, stride=2), f=nn.Conv2d(7, 2, 3, padding=1),
            pool=nn.MaxPool2d(3, 2, 1), mean=nn.AvgPool2d(2),
        )
    )  # fmt: skip


def built(model: nn.Module, x: torch.Tensor, target: str):
    graph = compiled(model, x)
    arrays = [quantize(x[0].numpy(), graph.tensors[port.tensor].type) for port in graph.inputs]
    return graph, compare(graph, arrays, TARGETS[target])


@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
@pytest.mark.parametrize("size", [(5, 7), (16, 24), (40, 33)])
@pytest.mark.parametrize("name", MODELS)
def test_every_join_computes_what_the_layers_say(name, size, target):
    built(net(name), sample(2, 3, *size), target)


def layers(image) -> dict[str, dict]:
    return {layer["name"]: layer for layer in image.layers}


@pytest.mark.parametrize("name, written", [
    ("output", "7 of 7"), ("read by a layer", "7 of 7"), ("behind pooling", "7 of 7"),
    ("behind averages", "7 of 7"), ("the input in front", "4 of 7"), ("with an input", "7 of 11"),
    ("joined twice", "7 of 11"), ("twice and returned", "4 of 8"), ("nested", "7 of 7"),
])  # fmt: skip
def test_what_is_written_in_place_is_not_copied(name, written):
    _, image = built(net(name), sample(2, 3, 40, 40), "tiny")
    joins = [layer for layer in image.layers if "in place" in layer["mapping"]]
    assert joins and joins[0]["mapping"] == f"{written} channels in place"
    done, total = map(int, written.split(" of "))
    assert (joins[0]["num_instructions"] == 0) == (done == total)
    if done == total:
        assert joins[0]["cycles"] == 0


def test_inputs_of_another_type_are_copied():
    def forward(m, x):
        y = m.a(x)
        return cat(y, m.b(x)), y  # y keeps a type of its own

    model = settle(Net(forward, a=nn.Conv2d(3, 4, 1), b=nn.Conv2d(3, 3, 1)))
    with torch.no_grad():
        model.a.weight.mul_(0.01)
        model.a.bias.mul_(0.01)
    graph, image = built(model, sample(2, 3, 40, 33), "tiny")
    assert list(find_joins(graph)["cat"].parts) == ["b"]
    assert layers(image)["cat"]["mapping"] == "3 of 7 channels in place"


def test_two_inputs_of_the_model_are_copied():
    graph = compiled(Net2(lambda m, x, y: cat(x, y)).eval(), sample(2, 3, 6, 6),
                     sample(2, 3, 6, 6, seed=2))  # fmt: skip
    assert not find_joins(graph)
    x = np.zeros((3, 6, 6), np.int64)
    compare(graph, [x, x + 1], get_target("tiny"))


@pytest.mark.parametrize("size, copied", [(16, True), (32, False)])
def test_a_join_that_fits_the_map_memory_is_copied_there_where_that_takes_fewer_cycles(
    size, copied
):
    layers_of = dict(
        a=nn.Conv2d(3, 32, 3, padding=1), b=nn.Conv2d(3, 32, 1),
        f=nn.Conv2d(64, 8, 3, padding=1),
    )  # fmt: skip
    model = settle(Net(MODELS["read by a layer"], **layers_of))
    graph, target = compiled(model, sample(1, 3, size, size)), get_target("pynq-z2")
    builders = [Builder(graph, target, copies=copies) for copies in (False, True)]
    either = [builder.build().cycles for builder in builders]
    assert builders[0].has_choice() and either[0] != either[1]
    image = build_image(graph, target)
    assert image.cycles == min(either)
    assert ("in place" not in layers(image)["cat"]["mapping"]) == copied
