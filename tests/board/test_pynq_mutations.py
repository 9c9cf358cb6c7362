"""A forgotten copy must be noticed: every one is left out in turn, and the bits must be wrong."""

from __future__ import annotations

import numpy as np
import pytest
from samples import S8, identity_program

import rasna
from rasna.runtime.board_memory import Buffer

WORDS = np.random.default_rng(3).integers(1, 1 << 60, (2, 2), np.uint64)


def run(files):
    """Two calls with different images, of two each; equal bits or an exception."""
    program = identity_program([("x", (1, 2, 8), S8)])
    with rasna.Runtime(program, str(files / "rasna.bit"), timeout_seconds=0.1) as runtime:
        results = [runtime._run_words(words) for words in (WORDS, WORDS + np.uint64(1))]
    return np.array_equal(results, [WORDS, WORDS + np.uint64(1)])


def test_nothing_left_out_gives_equal_bits(model_board, overlay_files):
    model_board()
    assert run(overlay_files)


@pytest.mark.parametrize(
    ("what", "direction"),
    [
        ("program buffer", "sync_to_device"),
        ("input buffer", "sync_to_device"),
        ("output buffer", "sync_from_device"),
    ],
)
def test_a_forgotten_copy_gives_wrong_bits_or_an_error(
    what, direction, model_board, overlay_files, monkeypatch
):
    model_board()
    original = Buffer.__init__
    left_out = []

    def forgetful(self, allocate, num_words, name):
        original(self, allocate, num_words, name)
        if name == what:
            monkeypatch.setattr(self, direction, lambda: left_out.append(1), raising=True)

    monkeypatch.setattr(Buffer, "__init__", forgetful)
    try:
        equal = run(overlay_files)
    except Exception:
        equal = False
    assert left_out, f"{direction} of the {what} is never called"
    assert not equal, f"{direction} of the {what} was left out and nobody noticed"


def test_an_output_that_was_not_cleared_shows_what_the_program_does_not_write(
    model_board, overlay_files, monkeypatch
):
    """The program leaves the third word of its output alone: 0, as on every other runtime."""
    program = identity_program([("x", (1, 2, 8), S8)])
    program.output_words = 3
    model_board()
    with rasna.Runtime(program, str(overlay_files / "rasna.bit")) as runtime:
        assert (runtime._run_words(WORDS)[:, 2] == 0).all()
    monkeypatch.setattr(
        Buffer, "sync_to_device",
        lambda self: None if (self.words == 0).all() else self._to_device(),
    )
    with rasna.Runtime(program, str(overlay_files / "rasna.bit")) as runtime:
        assert (runtime._run_words(WORDS)[:, 2] != 0).all()


def test_a_write_outside_of_the_buffers_is_noticed(model_board, overlay_files):
    device = model_board()
    with rasna.Runtime(
        identity_program([("x", (1, 2, 8), S8)]), str(overlay_files / "rasna.bit")
    ) as runtime:
        runtime._run_words(WORDS)
        assert not device.foreign_writes().size
        output = runtime._images_for(2).output
        device.memory[output.address + output.words.nbytes - 0x1000_0000] ^= 1
        assert list(device.foreign_writes()) == [output.address + output.words.nbytes]
