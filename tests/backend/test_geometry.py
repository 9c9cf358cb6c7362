"""Split slots: both phases of a row where LOAD and TAPS write them, zero halos in the gaps."""

import itertools

import numpy as np
import pytest

from rasna.compile.backend.geometry import plain_slot, row_words, runs, split_slot

OUTSIDE, JUNK = 0, 255
ROWS = 3


def written_rows(slot, width):
    """Bytes of rows whose gaps are filled and which are then written as out_split says.

    Pixel x of row y is 100*y + x + 1; the lead words come first.
    """
    memory = np.full((slot.lead_words + ROWS * slot.num_words + 2) * 8, JUNK, np.int64)
    memory[: slot.lead_words * 8] = OUTSIDE
    starts = [(slot.lead_words + y * slot.num_words) * 8 for y in range(ROWS)]
    for start, (first, count) in itertools.product(starts, slot.gaps):
        memory[start + first * 8 : start + (first + count) * 8] = OUTSIDE
    for y, start in enumerate(starts):
        for x in range(row_words(width) * 8):
            value = 100 * y + x + 1 if x < width else OUTSIDE
            word, half = divmod(x // 8, 2)
            at = start + word * 8 + half * 4 + x % 8 // 2
            memory[at + (slot.phase_step * 8 if x % 2 else 0)] = value
    return memory, starts


@pytest.mark.parametrize("width", [*range(1, 34), 56, 57, 63, 64, 65, 112])
def test_every_pixel_and_halo_pixel_of_a_split_row_is_where_the_slot_says(width):
    for left, right in itertools.product(range(4), range(4)):
        slot = split_slot(width, left, right)
        memory, starts = written_rows(slot, width)
        for y, start in enumerate(starts):
            for x in range(-left, width + right):
                expected = 100 * y + x + 1 if 0 <= x < width else OUTSIDE
                assert memory[start + slot.byte(x)] == expected, (left, right, y, x)


@pytest.mark.parametrize("width", range(1, 70))
def test_split_rows_keep_to_the_parities_of_the_machine(width):
    for left, right in itertools.product(range(9), range(9)):
        slot = split_slot(width, left, right)
        assert slot.num_words % 2 == 0 and slot.phase_step % 2 == 1


def test_a_split_row_takes_no_more_words_than_it_needs():
    assert [split_slot(w, 1, 0).num_words for w in (8, 16, 32, 56)] == [2, 4, 6, 10]
    assert [split_slot(w, 0, 0).num_words for w in (8, 16, 32, 56)] == [2, 2, 6, 10]
    assert split_slot(32, 1, 0).gaps == ((2, 1),)  # only odd pixels have a neighbour outside
    assert split_slot(16, 0, 0).gaps == ()


def test_the_gap_of_a_plain_row_is_what_lies_behind_its_pixels():
    assert plain_slot(8, 1, 1).gaps == ((1, 1),)
    assert plain_slot(8, 1, 1).gap_words == 1
    assert plain_slot(8).gaps == ()
    assert plain_slot(8, 1, 1, circular=True).gaps == ()


def test_consecutive_numbers_are_runs():
    assert runs([]) == ()
    assert runs([1, 2, 3, 7, 9, 10]) == ((1, 3), (7, 1), (9, 2))
