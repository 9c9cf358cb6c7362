"""Simulated boards for the tests. pynq lives in a virtual environment of its own:

    make test-board

pynq 4.0 is that of Zynq UltraScale+ boards, 3.1 that of Zynq-7000: they run with both.
Without pynq only the tests of ``test_without_pynq.py`` and ``test_registers.py`` run.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# site-packages of pynq's environment has a package "tests" of its own: import by folder
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "program"), str(ROOT / "tests" / "backend"),
                str(ROOT / "tests" / "programs")]

collect_ignore: list[str] = []
HAS_PYNQ = importlib.util.find_spec("pynq") is not None
if not HAS_PYNQ:
    collect_ignore += [p.name for p in HERE.glob("test_pynq_*.py")]


def pytest_configure(config) -> None:
    """RASNA_PYNQ: the version that pynq must have, as 3.1."""
    wanted = os.environ.get("RASNA_PYNQ")
    if wanted:
        found = importlib.metadata.version("pynq") if HAS_PYNQ else "none"
        if not found.startswith(wanted):
            pytest.exit(f"pynq {wanted} is wanted, {found} was found", returncode=3)


def built(name: str, command: str) -> str:
    """Path of an object in build/; fails with the command that makes it."""
    path = Path(os.environ.get("RASNA_BUILD", ROOT / "build")) / name
    if not path.exists():
        pytest.fail(f"{path} is not there; build it with: {command}")
    return str(path)


@pytest.fixture
def overlay_files(tmp_path):
    """A bitstream and its .hwh: their contents do not matter to the simulated device."""
    (tmp_path / "rasna.bit").write_bytes(b"bitstream")
    (tmp_path / "rasna.hwh").write_text('<EDKSYSTEM><SYSTEMINFO ARCH="zynq"/></EDKSYSTEM>')
    return tmp_path


@pytest.fixture(autouse=HAS_PYNQ)
def pynq_state(tmp_path, monkeypatch):
    """pynq's notes about what is on the board, and those of rasna, for one test."""
    from pynq.pl_server import global_state

    from rasna.runtime import board_overlay

    monkeypatch.setattr(global_state, "STATE_DIR", str(tmp_path))
    monkeypatch.setattr(global_state, "initial_global_state_file_boot_check", lambda: None)
    monkeypatch.setattr(board_overlay, "_loaded", {})


def _activate(monkeypatch, machine):
    from board_device import SimDevice
    from pynq import Device

    device = SimDevice(machine)
    monkeypatch.setattr(type(Device), "_active_device", device, raising=False)
    monkeypatch.setattr(Device, "_active_device", device, raising=False)
    return device


@pytest.fixture
def model_board(monkeypatch):
    """model_board(target="tiny", memory_bytes=...) → a board with the fast register model."""
    from board_machines import ModelMachine

    def make(target: str = "tiny", memory_bytes: int = 1 << 24):
        path = built(f"rasna-{target}-exact.so", f"make sim-exact-so TARGET={target}")
        return _activate(monkeypatch, ModelMachine(path, target, memory_bytes))

    return make


@pytest.fixture
def rtl_board(monkeypatch):
    """rtl_board() → a board with the verilated accelerator of tiny."""
    from board_machines import RtlMachine

    def make(seed: int = 0):
        path = built("rasna-tiny-rtl.so", "make sim-rtl-so TARGET=tiny")
        return _activate(monkeypatch, RtlMachine(path, seed=seed))

    return make
