"""Gather: what is loaded, what taps arrange, and targets that it does not fit."""

import numpy as np
import pytest
from graph_check import compare

from rasna.compile.backend.build import build_image
from rasna.compile.backend.columns import Run, find_runs
from rasna.errors import CompileError
from rasna.graph import FixedPoint, Gather, Port, QuantGraph, Tensor
from rasna.isa import decode
from rasna.targets import get_target

TYPE = FixedPoint(8, 4, True)


def graph(shape, rows, columns, channels=None, fill=0, inputs=1, axis=1) -> QuantGraph:
    channels = np.arange(shape[0]) if channels is None else np.array(channels)
    out = (len(channels), len(rows), len(columns))
    names = [f"x{i}" for i in range(inputs)]
    tensors = {n: Tensor(n, shape, TYPE) for n in names} | {"y": Tensor("y", out, TYPE)}
    op = Gather(
        "moved", names, "y", "", channels, np.array(rows), np.array(columns), axis, fill, -128, 127
    )
    return QuantGraph(
        tensors, [Port(n, n, shape) for n in names], [Port("y", "y", out)], [op]
    )


def counts(made: QuantGraph, target: str = "pynq-z2") -> dict[str, int]:
    """How often each opcode appears, after comparing what the program computes."""
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-128, 128, made.tensors[p.tensor].shape) for p in made.inputs]
    image = compare(made, arrays, get_target(target))
    number = {}
    for i in range(image.layers[0]["num_instructions"]):
        name = decode(image.words[8 * i : 8 * i + 8])[0].name
        number[name] = number.get(name, 0) + 1
    return number


def test_a_crop_of_rows_is_loaded_and_stored():
    assert counts(graph((3, 40, 33), np.arange(5, 35), np.arange(33))) == {"LOAD": 1, "STORE": 1}


def test_every_second_row_is_one_load():
    assert counts(graph((3, 40, 33), np.arange(0, 40, 2), np.arange(33))) == {
        "LOAD": 1, "STORE": 1,
    }


def test_zeros_above_and_below_are_filled():
    rows = np.pad(np.arange(20), 2, constant_values=-1)
    assert counts(graph((3, 20, 16), rows, np.arange(16))) == {"FILL": 1, "LOAD": 1, "STORE": 1}


@pytest.mark.parametrize("fill", [0, 100])
def test_the_middle_of_padded_rows_is_one_instruction(fill):
    columns = np.pad(np.arange(200), 3, constant_values=-1)
    number = counts(graph((2, 20, 200), np.arange(20), columns, fill=fill), "pynq-z2")
    assert number["TAPS"] == 3


def test_every_second_column_is_one_instruction():
    number = counts(graph((2, 12, 128), np.arange(12), np.arange(0, 128, 2)))
    assert number["TAPS"] == 1


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
def test_maps_are_joined(axis, target):
    shape = (3, 10, 13)
    sizes = [10, 13]
    sizes[axis - 1] *= 3
    made = graph(shape, *[np.arange(n) for n in sizes], inputs=3, axis=axis)
    assert counts(made, target)["LOAD"] >= 3


@pytest.mark.parametrize("channels", [[2, -1, 0, 0], [-1, -1], [5, 3, 1]])
def test_channels_are_picked_and_added(channels):
    counts(graph((6, 5, 9), np.arange(5), np.arange(9)[::-1], channels), "tiny")


def test_everything_may_be_blank():
    counts(graph((2, 5, 9), [-1] * 4, [-1] * 11, fill=-7), "tiny")
    counts(graph((2, 5, 9), [-1] * 4, [-1] * 11), "tiny")


def test_rows_are_tiled_where_the_map_memory_is_small():
    made = graph((2, 60, 120), np.arange(60)[::-1], np.arange(1, 120))
    image = build_image(made, get_target("tiny"))
    assert "row tiles" in image.layers[0]["mapping"]
    counts(made, "tiny")


def test_a_large_map_takes_few_instructions():
    rows = np.pad(np.arange(224), 3, mode="reflect")
    image = build_image(graph((3, 224, 224), rows, rows), get_target("pynq-z2"))
    assert image.layers[0]["num_instructions"] < 100


def test_a_row_that_does_not_fit_is_refused_with_the_numbers():
    with pytest.raises(CompileError) as error:
        build_image(graph((1, 2, 2000), np.arange(2), np.arange(1, 2000)), get_target("tiny"))
    assert str(error.value) == (
        "moved: one row of the result and of what it is made of needs 506 words of map memory in "
        "every slice, target tiny has 127; use narrower maps, or target='pynq-z2', which has 1023"
    )


def test_runs_have_equal_steps_and_end_with_their_input():
    numbers = np.array([-1, 0, 2, 4, 5, 9, 10, 3, 3, 3])
    assert list(find_runs(numbers, [6, 6], 100)) == [
        Run(1, 3, 0, 0, 2), Run(4, 1, 0, 5, 0), Run(5, 2, 1, 3, 1), Run(7, 3, 0, 3, 0),
    ]
