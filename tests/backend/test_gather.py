"""Row slots assembled by MOVE: each byte of a slot must come from the right pixel."""

import numpy as np
import pytest

from rasna.compile.backend.gather import halo_gathers, phase_gathers
from rasna.compile.backend.geometry import phase_slot, plain_slot

FILL = -1


def apply(gathers, row, num_words, start=None):
    """What MOVE does with a row of bytes: entries in order, words written one by one."""
    out = np.full(num_words * 8, FILL) if start is None else start
    source = row if start is None else out
    for g in gathers:
        word = np.full(8, FILL)
        for offset, mask in g.vectors:
            for lane in range(8):
                if mask >> lane & 1:
                    word[lane] = source[offset + lane]
        out[g.word * 8 : g.word * 8 + 8] = word
    return out


@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 9, 16, 28])
@pytest.mark.parametrize("left, right", [(1, 1), (0, 2), (3, 0), (1, 1)])
def test_circular_halos_repeat_the_row(width, left, right):
    if max(left, right) > width:
        pytest.skip("padding wraps more than once: refused by PyTorch")
    slot = plain_slot(width, left, right, circular=True)
    memory = np.full(slot.num_words * 8, FILL)
    first = slot.byte(0)
    memory[first : first + width] = np.arange(width)
    apply(halo_gathers(slot), None, slot.num_words, start=memory)
    for x in range(-left, width + right):
        assert memory[slot.byte(x)] == x % width


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("stride", [2, 3, 5])
@pytest.mark.parametrize("width", [5, 8, 17, 30])
def test_phases_hold_every_stride_th_pixel(width, stride, circular):
    left, right = 2, 3
    slot = phase_slot(width, left, right, stride, circular)
    row = np.concatenate([np.arange(width), np.full(16, 99)])
    out = apply(phase_gathers(slot, 0), row, slot.num_words)
    for x in range(-left, width + right):
        expected = x if 0 <= x < width else (x % width if circular else FILL)
        assert out[slot.byte(x)] == expected


def test_zero_halos_of_neighbouring_rows_share_one_gap():
    slot = plain_slot(7, 1, 1)
    assert (slot.num_words, slot.lead_words) == (1, 1)
    assert plain_slot(8, 1, 1).num_words == 2
    assert plain_slot(8).num_words == 1
