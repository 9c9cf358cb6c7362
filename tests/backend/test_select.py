"""Select on targets that it hardly fits, or does not."""

import numpy as np
import pytest
from graph_check import compare

from rasna.compile.backend.build import build_image
from rasna.errors import CompileError
from rasna.graph import FixedPoint, Port, QuantGraph, Requant, Select, Tensor
from rasna.targets import get_target

BYTE = FixedPoint(8, 0, False)


def graph(shape, channels: np.ndarray) -> QuantGraph:
    count, rows, columns = channels.shape
    out = (count, shape[1] * rows, shape[2] * columns)
    tensors = {"x": Tensor("x", shape, BYTE), "y": Tensor("y", out, BYTE)}
    one = np.ones(1, np.int32)
    op = Select("up", ["x"], "y", "", channels, Requant(0 * one, 2 * one, one, 0, 255))
    return QuantGraph(tensors, [Port("x", "x", shape)], [Port("y", "y", out)], [op])


def repeated(count: int, rows: int, columns: int) -> np.ndarray:
    return np.broadcast_to(np.arange(count)[:, None, None], (count, rows, columns)).copy()


@pytest.mark.parametrize("factors", [(1, 1), (2, 2), (3, 3), (4, 4), (1, 7)])
def test_rows_are_tiled_where_the_map_memory_is_small(factors):
    made = graph((2, 50, 40), repeated(2, *factors))
    x = np.random.default_rng(0).integers(0, 256, (2, 50, 40))
    image = compare(made, [x], get_target("tiny"))
    if factors[0] * factors[1] > 6:
        assert "row tiles" in image.layers[0]["mapping"]


def test_a_row_that_does_not_fit_is_refused_with_the_numbers():
    with pytest.raises(CompileError) as error:
        build_image(graph((1, 2, 2000), repeated(1, 2, 2)), get_target("tiny"))
    assert str(error.value) == (
        "up: one row of an output channel and of the channels it is made of needs 1258 words of "
        "map memory in every slice, target tiny has 127; use narrower maps: no target has "
        "as many"
    )
