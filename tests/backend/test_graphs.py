"""Random quantised graphs: the tap form of the golden model equals the layer form, word by word."""

import os

import pytest
import torch
from graph_check import compare
from random_graphs import random_graph
from torch import nn

from rasna.compile.backend import build_image
from rasna.golden import quantize, run_program
from rasna.isa import Opcode, decode
from rasna.targets import TARGETS, get_target
from tests.compile.support import compiled


class Doubled(nn.Module):
    def forward(self, x):
        return x + x * 0.5


SEED = int(os.environ.get("RASNA_SEED", "0"))
COUNT = int(os.environ.get("RASNA_GRAPHS", "120"))
BATCH = 20


@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_random_graphs_compute_what_the_layers_say(first, target):
    for seed in range(SEED + first, SEED + first + BATCH):
        print(f"repeat: RASNA_SEED={seed} RASNA_GRAPHS=1 pytest tests/backend/test_graphs.py")
        graph, arrays, _ = random_graph(seed)
        compare(graph, arrays, TARGETS[target])


PRODUCERS = {
    "conv": nn.Conv2d(3, 3, 1),
    "conv that goes through a window": nn.Conv2d(3, 3, 3, padding=1, stride=2),
    "average": nn.AvgPool2d(2, stride=(1, 2)),
    "average in two parts of a word": nn.AdaptiveAvgPool2d((1, 4)),
    "average with different divisors": nn.AvgPool2d(3, 2, padding=1, count_include_pad=False),
    "maximum": nn.MaxPool2d(2, 1),
    "affine": nn.BatchNorm2d(3),
    "sum": Doubled(),
}


@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("width", [7, 11, 20])
def test_padding_of_a_maximum_loses_whatever_wrote_the_map(producer, width, target):
    """What lies around a map that stays in the map memory must be the lowest value, not 0."""
    torch.manual_seed(width)
    pool = nn.MaxPool2d((1, 3), 1, padding=(0, 1))
    model = nn.Sequential(PRODUCERS[producer], pool, nn.Conv2d(3, 2, 1)).eval()
    x = -torch.rand(2, 3, 6, width) - 0.5
    if producer.startswith("conv"):
        with torch.no_grad():
            model[0].weight.abs_()
            model[0].bias.zero_()
    graph = compiled(model, x)
    compare(graph, [quantize(x[0].numpy(), graph.tensors["input_1"].type)], TARGETS[target])


def test_a_wrong_weight_is_noticed():
    graph, arrays, _ = random_graph(0)
    target = get_target("tiny")
    first = build_image(graph, target)
    last_bias = first.layers[-1]["first_instruction"] + first.layers[-1]["num_instructions"] - 1

    def damaged(words, *args):
        words = words.copy()
        for number in range(last_bias):
            opcode, fields = decode(words[number * 8 : number * 8 + 8])
            if opcode == Opcode.TAPS:
                words[fields["stream_addr"]] ^= 0x00000F00  # the bias of its first channel
        return run_program(words, *args)

    with pytest.raises(AssertionError, match="differs"):
        compare(graph, arrays, target, run=damaged)


def test_equal_graphs_give_equal_images():
    images = [build_image(random_graph(3)[0], TARGETS["pynq-z2"]).words for _ in range(2)]
    assert images[0].tobytes() == images[1].tobytes()


def test_intermediate_tensors_stay_in_the_map_memory_when_they_fit():
    from fit import resnet20

    image = build_image(resnet20(0.8).graph, TARGETS["pynq-z2"])
    stores = sum(
        int(image.words[i * 8]) & 0xFF == Opcode.STORE
        for i in range(sum(layer["num_instructions"] for layer in image.layers))
    )
    assert stores <= 4  # 31 tensors are produced
