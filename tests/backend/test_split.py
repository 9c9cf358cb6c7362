"""Maps whose readers have a horizontal stride of 2: written in two phases, without MOVE."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from graph_check import compare

from rasna import isa
from rasna.compile.backend.build import Builder, SplitSpilled
from rasna.compile.backend.plan import Limits, Planner
from rasna.compile.backend.residency import window_of
from rasna.graph import (
    Conv,
    FixedPoint,
    MaxPool,
    Padding,
    Port,
    QuantGraph,
    Requant,
    Sum,
    Tensor,
)
from rasna.isa import Opcode
from rasna.targets import TARGETS

sys.path.append(str(Path(__file__).resolve().parents[1] / "sim"))
import build_objects  # noqa: E402
from sim_harness import Context  # noqa: E402

SEED = int(os.environ.get("RASNA_SEED", "0"))
COUNT = int(os.environ.get("RASNA_GRAPHS", "16"))


class Net:
    """A quantised graph, layer by layer."""

    def __init__(self, shape, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph = QuantGraph({}, [], [], [])
        self.image = self.rng.integers(-128, 128, shape)
        self.graph.inputs.append(Port("input", self.tensor(shape, True), tuple(shape)))

    def tensor(self, shape, signed: bool = False) -> str:
        name = f"t{len(self.graph.tensors)}"
        self.graph.tensors[name] = Tensor(name, tuple(shape), FixedPoint(8, 4, signed))
        return name

    def shape(self, name: str):
        return self.graph.tensors[name].shape

    def _name(self, kind: str) -> str:
        return f"{kind}{len(self.graph.ops)}"

    def _requant(self, n: int) -> Requant:
        ones = np.ones(n, np.int32)
        return Requant(3 * ones, self.rng.integers(40, 90, n).astype(np.int32), 7 * ones, 0, 255)

    def _sizes(self, source, kernel, stride, padding):
        _, h, w = self.shape(source)
        return ((h + padding.top + padding.bottom - kernel[0]) // stride[0] + 1,
                (w + padding.left + padding.right - kernel[1]) // stride[1] + 1)

    def conv(self, source, oc, kernel=(3, 3), stride=(1, 1), padding=None, mode="zeros") -> str:
        padding = Padding(*(kernel[0] // 2,) * 2, *(kernel[1] // 2,) * 2) if padding is None \
            else padding
        weight = self.rng.integers(-60, 100, (oc, self.shape(source)[0], *kernel)).astype(np.int8)
        weight[self.rng.random(weight.shape) < 0.5] = 0
        out = self.tensor((oc, *self._sizes(source, kernel, stride, padding)))
        bias = self.rng.integers(-200, 200, oc).astype(np.int32)
        self.graph.ops.append(Conv(
            self._name("conv"), [source], out, "", weight, bias, self._requant(oc), stride,
            (1, 1), 1, padding, mode,
        ))
        return out

    def pool(self, source, kernel=(2, 2), stride=(2, 2), padding=None) -> str:
        padding = Padding() if padding is None else padding
        size = self._sizes(source, kernel, stride, padding)
        out = self.tensor((self.shape(source)[0], *size))
        self.graph.ops.append(MaxPool(
            self._name("pool"), [source], out, "", kernel, stride, (1, 1), padding, size, 0, 255,
        ))
        return out

    def add(self, a, b) -> str:
        out, n = self.tensor(self.shape(a)), self.shape(a)[0]
        ones = np.ones(n, np.int32)
        self.graph.ops.append(Sum(self._name("add"), [a, b], out, "", [1, 1], 0 * ones,
                                  Requant(0 * ones, ones, ones, 0, 255)))
        return out

    def done(self, *outputs: str) -> Net:
        self.graph.outputs = [Port(f"output_{n}", n, self.shape(n)) for n in outputs]
        return self


def check(net: Net, target: str = "tiny"):
    """Golden and both simulators compute what the layers say. Returns opcodes and fields."""
    image = compare(net.graph, [net.image], TARGETS[target])

    def on(kind):
        def run(words, inputs, output_words, scratch_words, _target):
            with Context(getattr(build_objects, kind)(target)) as context:
                context.load(words, inputs.size, output_words, scratch_words)
                return context.run(inputs)
        return run

    for kind in ("fast", "exact"):
        compare(net.graph, [net.image], TARGETS[target], run=on(kind))
    count = sum(layer["num_instructions"] for layer in image.layers)
    return [isa.decode(image.words[i * 8 : i * 8 + 8]) for i in range(count)]


def count(instructions, opcode: Opcode, **fields: int) -> int:
    return sum(o == opcode and all(f[k] == v for k, v in fields.items()) for o, f in instructions)


def residual_block(net: Net, short_first: bool) -> str:
    """Two readers of one map: a 3×3 convolution and the 1×1 one beside it, both with stride 2."""
    x = net.conv(net.graph.inputs[0].tensor, 4)

    def short():
        return net.conv(x, 4, (1, 1), (2, 2), Padding())

    skip = short() if short_first else None
    main = net.conv(x, 4, (3, 3), (2, 2))
    return net.add(main, skip or short())


@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
@pytest.mark.parametrize("short_first", [False, True])
def test_both_readers_of_a_residual_block_share_one_split_map(short_first, target):
    net = Net((3, 8, 20))
    instructions = check(net.done(residual_block(net, short_first)), target)
    assert count(instructions, Opcode.MOVE) == 0
    assert count(instructions, Opcode.TAPS, out_split=1) == 1


def test_a_map_in_host_memory_is_parted_by_load():
    net = Net((2, 9, 37))
    instructions = check(net.done(net.conv(net.graph.inputs[0].tensor, 3, stride=(2, 2))))
    assert count(instructions, Opcode.MOVE) == 0
    assert count(instructions, Opcode.LOAD, out_split=1) > 0


def test_a_sum_and_a_pool_leave_split_maps_too():
    net = Net((3, 16, 20))
    a = net.conv(net.graph.inputs[0].tensor, 3)
    instructions = check(net.done(net.pool(net.pool(net.add(a, a), (2, 2), (1, 1)))))
    assert count(instructions, Opcode.MOVE) == 0
    assert count(instructions, Opcode.TAPS, out_split=1) == 1
    net = Net((3, 16, 20))
    a = net.conv(net.graph.inputs[0].tensor, 3)
    instructions = check(net.done(net.pool(net.add(a, a))), "pynq-z2")
    assert count(instructions, Opcode.TAPS, out_split=1) == 1


def test_a_map_that_is_an_output_or_has_another_reader_stays_plain():
    net = Net((3, 8, 20))
    x = net.conv(net.graph.inputs[0].tensor, 4)
    y = net.conv(x, 4, stride=(2, 2))
    assert count(check(net.done(x, y)), Opcode.TAPS, out_split=1) == 0
    z = net.conv(x, 4)
    assert count(check(net.done(y, z)), Opcode.TAPS, out_split=1) == 0


def test_circular_columns_and_other_strides_keep_move():
    net = Net((3, 8, 21))
    x = net.conv(net.graph.inputs[0].tensor, 4)
    net.done(net.conv(x, 4, stride=(2, 2), mode="circular"))
    assert count(check(net), Opcode.MOVE) > 0
    net = Net((3, 8, 21))
    x = net.conv(net.graph.inputs[0].tensor, 4)
    assert count(check(net.done(net.conv(x, 4, stride=(1, 3)))), Opcode.MOVE) > 0


def test_a_split_map_that_must_be_stored_after_all_is_plain_from_the_start(monkeypatch):
    """Between its readers comes a layer that needs the whole map memory, which nobody foresaw."""
    monkeypatch.setattr(Builder, "_crowding", lambda *_: 0)
    spilled = []
    monkeypatch.setattr(SplitSpilled, "__init__", lambda self, name: spilled.append(name) or
                        setattr(self, "name", name))
    net = Net((2, 8, 100))
    image = net.graph.inputs[0].tensor
    x = net.conv(image, 4, (1, 1), (1, 4))
    first = net.conv(x, 4, stride=(2, 2))
    large = net.conv(image, 2, (7, 7))
    last = net.conv(x, 4, stride=(2, 2))
    instructions = check(net.done(first, large, last))
    assert set(spilled) == {x}
    assert count(instructions, Opcode.TAPS, out_split=1) == 0


def test_parts_of_a_split_row_begin_at_even_words():
    """Kept accumulators hold 64 tiles: of three rows 21 words, of which 20 are taken."""
    net = Net((64, 96, 200))
    net.conv(net.graph.inputs[0].tensor, 4, (5, 5))
    window = window_of(net.graph.ops[0], net.graph.tensors)
    words = {}
    for split in (False, True):
        planner = Planner(window, TARGETS["pynq-z2"], Limits(4000, None, True, split))
        words[split] = {p.x_words for p in planner._plans(32, 3)}
    assert words == {False: {21}, True: {20}}


@pytest.mark.parametrize("index", range(COUNT))
def test_random_strides_and_paddings_compute_what_the_layers_say(index):
    seed = SEED + index
    print(f"repeat: RASNA_SEED={seed} RASNA_GRAPHS=1 pytest {__file__} -k random_strides")
    rng = np.random.default_rng(seed)
    net = Net((int(rng.integers(1, 4)), *rng.integers(6, 40, 2)), seed)
    at = net.graph.inputs[0].tensor
    for number in range(3):
        kernel = tuple(int(k) for k in rng.integers(1, 6, 2))
        pads = Padding(*(int(rng.integers(0, k)) for k in np.repeat(kernel, 2)))
        stride = (int(rng.integers(1, 3)), 1 if number == 0 else 2)
        if min(net._sizes(at, kernel, stride, pads)) < 1:
            continue
        half = Padding(*(min(p, kernel[i // 2] // 2) for i, p in enumerate(
            (pads.top, pads.bottom, pads.left, pads.right))))
        at = net.pool(at, kernel, stride, half) if number and rng.random() < 0.3 \
            else net.conv(at, int(rng.integers(1, 5)), kernel, stride, pads)
    net.done(at)
    if net.graph.ops:
        check(net, "tiny" if seed % 4 else "pynq-z2")
