"""Where there is no board, no pynq or no root, the runtime says so; nothing else needs pynq."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from samples import conv_sample

import rasna
from rasna.runtime import board_overlay

ADVICE = "a simulator (make sim-so, a path that ends in .so) runs the same bits anywhere"


def refusal(path: str) -> str:
    with pytest.raises(rasna.NotOnBoardError) as caught:
        conv_sample().program.to_runtime(path)
    return str(caught.value)


def test_without_pynq_the_error_says_what_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynq", None)
    assert refusal("rasna-pynq-z2.bit").startswith(
        "rasna-pynq-z2.bit: a bitstream runs on a board with PYNQ, and the Python package pynq "
        "cannot be imported here ("
    )
    assert refusal("a.bit").endswith(ADVICE)


def test_other_paths_are_no_runtime_objects():
    assert refusal("model.onnx") == (
        "model.onnx: a runtime object is a shared library .so or a bitstream .bit; " + ADVICE
    )


def test_a_user_who_is_not_root_is_told_before_pynq_is_imported(monkeypatch, tmp_path):
    monkeypatch.setattr(board_overlay, "_FPGA_MANAGER", str(tmp_path))
    monkeypatch.setattr(board_overlay.os, "geteuid", lambda: 1000)
    monkeypatch.setitem(sys.modules, "pynq", None)
    assert refusal("a.bit") == (
        "a.bit: a bitstream is loaded by root only, this process has user id 1000; use the "
        "board's Jupyter, which runs as root, or: sudo -E python"
    )


def test_neither_importing_rasna_nor_its_runtimes_imports_pynq_or_torch():
    code = (
        "import sys; sys.modules['pynq'] = None; sys.modules['torch'] = None\n"
        "import rasna; rasna.Runtime; rasna.RuntimeCSim; rasna.load\n"
        "import rasna.runtime.board_measure\n"
        "print('imported')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "imported\n", done.stderr


def test_numpy_and_a_few_names_of_pynq_are_enough():
    """Whole programs, a hang and a batch, without torch, pynq's dependencies or compiled code."""
    script = Path(__file__).with_name("plain_board.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0 and "the runtime works on" in done.stdout, done.stderr


def test_a_file_is_read_with_a_count_that_32_bit_python_can_hold(tmp_path, monkeypatch):
    """A count of 2 GiB or more is an OverflowError on PYNQ-Z1 and PYNQ-Z2."""
    from rasna.program import container

    counts = []

    class Reader(io.FileIO):
        def read(self, count=-1):
            counts.append(count)
            return super().read(count)

    conv_sample().program.save(tmp_path / "a.rasna")
    monkeypatch.setattr(container, "open", lambda path, mode: Reader(path), raising=False)
    assert rasna.load(tmp_path / "a.rasna").target == "tiny"
    assert counts and max(counts) < 1 << 31


def test_the_docs_say_that_it_was_not_run_on_hardware():
    assert "Not run on hardware yet" in rasna.Runtime.__doc__
