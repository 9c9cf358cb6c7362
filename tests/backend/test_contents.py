"""What the emitter knows of the map memory is true, and spares FILLs."""

import os

import numpy as np
import pytest
from graph_check import pack_words
from random_graphs import random_graph

from rasna import isa
from rasna.compile.backend.build import build_image
from rasna.compile.backend.contents import UNKNOWN, MapContents
from rasna.golden import Machine
from rasna.isa import Opcode, Segment
from rasna.targets import TARGETS

SEED = int(os.environ.get("RASNA_SEED", "0"))
COUNT = int(os.environ.get("RASNA_GRAPHS", "40"))


def out_channels(fields, words):
    """The out_channel of every record of a TAPS."""
    place = next(f for f in isa.CHANNEL_RECORD if f.name == "out_channel")
    size = next(f for f in isa.CHANNEL_RECORD if f.name == "list_words")
    found, at = [], fields["stream_addr"]
    for _ in range(fields["num_channels"]):
        found.append(int(words[at + place.word]) >> place.bit & ((1 << place.bits) - 1))
        lists = int(words[at + size.word]) >> size.bit & ((1 << size.bits) - 1)
        at += isa.CHANNEL_RECORD_WORDS + lists
    return np.array(found)


def follow(image, arrays, target):
    """Run golden and MapContents side by side; the number of words that were known."""
    inputs = np.concatenate([pack_words(np.asarray(a)) for a in arrays])
    sizes = [image.segment_words[s] for s in (Segment.OUTPUT, Segment.SCRATCH)]
    machine, contents = Machine(image.words, inputs, *sizes, target), MapContents(target)
    last, known = [], 0
    while not machine.done:
        opcode, fields = machine.step()
        if opcode == Opcode.TABLE:
            entries = machine.state.table
            last = entries["out_offset"][: fields["num_entries"]]
            last = last[entries["last"][: fields["num_entries"]] != 0].tolist()
        channels = out_channels(fields, image.words) if opcode == Opcode.TAPS else None
        contents.after(opcode, fields, channels, last)
        at = contents.byte != UNKNOWN
        words = contents.byte[at].astype(np.uint64) * np.uint64(0x0101010101010101)
        assert (machine.state.map_words[at] == words).all(), f"{opcode.name}: not what is there"
        known = max(known, int(at.sum()))
    return known


@pytest.mark.parametrize("target", ["tiny", "pynq-z2"])
@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_what_is_known_is_there(seed, target):
    print(f"repeat: RASNA_SEED={seed} RASNA_GRAPHS=1 pytest tests/backend/test_contents.py")
    graph, arrays, _ = random_graph(seed)
    follow(build_image(graph, TARGETS[target]), arrays, TARGETS[target])


def test_something_is_known():
    known = [
        follow(build_image(graph, TARGETS["tiny"]), arrays, TARGETS["tiny"])
        for graph, arrays, _ in map(random_graph, range(10))
    ]
    assert sum(k > 0 for k in known) >= 5


FILL = dict(fill=7, stripes_log2=1, out_base=4, num_words=2, num_blocks=3, block_step=8)
WORDS = np.array([4, 5, 12, 13, 20, 21])
LOAD = dict(
    num_channels=1, num_rows=2, num_words=1, out_stripes_log2=1, out_base=4, out_channel_step=8,
    out_row_step=8, out_rows=1, out_halo_top=0, out_local_rows=1, out_row=0, out_height=2,
    circular_rows=0,
)  # fmt: skip


def test_a_fill_is_known_for_its_number_of_stripes_only():
    contents = MapContents(TARGETS["tiny"])
    assert not contents.holds(7, 1, WORDS)
    contents.after(Opcode.FILL, FILL)
    assert contents.holds(7, 1, WORDS)
    assert not contents.holds(7, 2, WORDS) and not contents.holds(0, 1, WORDS)
    assert not contents.holds(7, 1, np.array([6]))


def test_rows_are_forgotten_in_the_stripes_that_store_them():
    contents = MapContents(TARGETS["tiny"])
    contents.after(Opcode.FILL, FILL)
    contents.after(Opcode.LOAD, {**LOAD, "num_rows": 1})  # row 0 is in stripe 0
    assert not contents.holds(7, 1, WORDS) and contents.holds(7, 1, WORDS[1:])
    assert contents.holds(7, 1, WORDS, [1]) and not contents.holds(7, 1, WORDS, [0])
    contents.after(Opcode.LOAD, LOAD)
    assert not contents.holds(7, 1, WORDS, [1])


def test_a_move_is_forgotten_in_all_slices():
    contents = MapContents(TARGETS["tiny"])
    contents.after(Opcode.FILL, FILL)
    move = dict(out_base=2, num_channels=2, out_channel_step=8, num_rows=1, out_row_step=0,
                num_words=1, out_word_step=1)  # fmt: skip
    contents.after(Opcode.MOVE, move, offsets=[3])
    assert not contents.holds(7, 1, np.array([5])) and not contents.holds(7, 1, np.array([13]))
    assert contents.holds(7, 1, np.array([4, 12, 20, 21]))


def test_taps_that_keep_accumulators_write_nothing():
    contents = MapContents(TARGETS["tiny"])
    contents.after(Opcode.FILL, FILL)
    contents.after(Opcode.TAPS, {"acc_keep": 1})
    assert contents.holds(7, 1, WORDS)
    contents.after(Opcode.TAPS, {"acc_keep": 0})  # to channels that nobody names
    assert not contents.holds(7, 1, WORDS)


def test_an_opcode_that_is_not_known_may_have_written_anything():
    contents = MapContents(TARGETS["tiny"])
    contents.after(Opcode.FILL, FILL)
    for keeps in (Opcode.STORE, Opcode.TABLE, Opcode.CURVE):
        contents.after(keeps, {})
    assert contents.holds(7, 1, WORDS)
    contents.after(max(Opcode) + 1, {})
    assert not contents.holds(7, 1, WORDS)


def test_maps_of_equal_shape_are_framed_once():
    """Ten padded convolutions in a row; without memory there would be ten frames."""
    from fit import Net

    net = Net((8, 16, 16), 0.5)
    for _ in range(10):
        net.conv(8, 3)
    image = build_image(net.done().graph, TARGETS["pynq-z2"])
    count = sum(layer["num_instructions"] for layer in image.layers)
    fills = [int(image.words[i * 8]) & 0xFF for i in range(count)].count(Opcode.FILL)
    assert 2 <= fills <= 10  # a frame takes two or three


def test_both_phases_of_split_rows_are_forgotten():
    contents = MapContents(TARGETS["tiny"])
    contents.after(Opcode.FILL, FILL)
    rows = {**LOAD, "num_rows": 1, "num_words": 2, "out_split": 1, "out_phase_step": 17}
    contents.after(Opcode.LOAD, rows)  # both words share word 4, and word 21 with their odd bytes
    for word in (4, 21):
        assert not contents.holds(7, 1, np.array([word]), [0])
        assert contents.holds(7, 1, np.array([word]), [1])
    assert contents.holds(7, 1, np.array([5, 12, 13, 20]))
