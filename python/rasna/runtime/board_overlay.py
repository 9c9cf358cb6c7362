"""Brings a bitstream onto a board with pynq, and shares the accelerator in it.

pynq is imported here only, and late: ``import rasna`` works everywhere. Both pynq 3.1 and 4.0
are used through what they have in common; where they may differ, the feature is looked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import isa
from ..errors import NotOnBoardError, RuntimeObjectError, TargetMismatchError
from .board_machine import BoardMachine

if TYPE_CHECKING:
    from ..program import Program

_ADVICE = "a simulator (make sim-so, a path that ends in .so) runs the same bits anywhere"
_FPGA_MANAGER = "/sys/class/fpga_manager/fpga0"
_ARCHITECTURES = {"zynq": "armv7l", "zynquplus": "aarch64"}  # ARCH of a .hwh → platform.machine()


@dataclass
class LoadedOverlay:
    """A bitstream on a device and the accelerator in it, shared by runtimes of this process."""

    path: str
    digest: str
    overlay: Any
    machine: BoardMachine
    allocate: Callable[..., Any]
    lock: threading.RLock = field(default_factory=threading.RLock)  # of machine and buffers
    users: set[object] = field(default_factory=set)  # tokens; adding and removing is atomic

    def reload(self) -> bool:
        """Load the bitstream again; returns whether the machine is idle after it."""
        try:
            self.overlay.download()
        except Exception:  # whatever pynq and the kernel raise: the caller says what to do
            return False
        return self.machine.reset()


_loaded: dict[str, LoadedOverlay] = {}  # by the tag of the device
_loaded_lock = threading.RLock()


def acquire(program: Program, path: str, user: object) -> LoadedOverlay:
    """The overlay of ``path``, loaded unless it is already, with a machine that fits ``program``.

    ``user`` is a token: the overlay is in use until it is discarded from ``users``. It stays on
    the board then, to be used again.

    Raises
    ------
    NotOnBoardError: no pynq, no device, not root. RuntimeObjectError: the bitstream or its .hwh
    is missing, stale, for another board, or has no accelerator. TargetMismatchError.
    """
    pynq = _import_pynq(path)
    _check_files(path)
    _check_summary(path, program)
    device = _find_device(pynq, path)
    with open(path, "rb") as file:
        digest = hashlib.sha1(file.read()).hexdigest()  # as pynq notes it
    with _loaded_lock:
        loaded = _loaded.get(device.tag)
        if loaded and not (loaded.digest == digest and loaded.overlay.is_loaded()):
            if loaded.users:
                raise RuntimeObjectError(
                    f"{path}: {loaded.path} is on the board, used by {len(loaded.users)} open "
                    "runtimes; close() them first"
                )
            loaded = None
        if loaded is None:
            loaded = _load(pynq, device, path, digest, program)
            _loaded[device.tag] = loaded
        else:
            _check_identity(loaded, program)
        loaded.users.add(user)
    return loaded


def _import_pynq(path: str) -> Any:
    if not path.endswith(".bit"):
        raise NotOnBoardError(
            f"{path}: a runtime object is a shared library .so or a bitstream .bit; {_ADVICE}"
        )
    if os.path.isdir(_FPGA_MANAGER) and os.geteuid() != 0:
        raise NotOnBoardError(
            f"{path}: a bitstream is loaded by root only, this process has user id "
            f"{os.geteuid()}; use the board's Jupyter, which runs as root, or: sudo -E python"
        )
    try:
        import pynq
    except ImportError as error:
        raise NotOnBoardError(
            f"{path}: a bitstream runs on a board with PYNQ, and the Python package pynq "
            f"cannot be imported here ({error}); {_ADVICE}"
        ) from error
    return pynq


def _find_device(pynq: Any, path: str) -> Any:
    try:
        return pynq.Device.active_device
    except Exception as error:  # pynq raises RuntimeError, XRT others
        raise NotOnBoardError(
            f"{path}: pynq finds no device here ({error}); on a board, start Python as root with "
            "the environment of PYNQ (/etc/profile.d/pynq_venv.sh and xrt_setup.sh), elsewhere: "
            + _ADVICE
        ) from error


def _check_files(path: str) -> None:
    if not os.path.isfile(path):
        raise RuntimeObjectError(f"{path} does not exist; copy the .bit and the .hwh to the board")
    hwh = path[:-4] + ".hwh"
    if not os.path.isfile(hwh):
        raise RuntimeObjectError(
            f"{path}: {hwh} is missing; pynq reads addresses and clocks from it: copy the file "
            "that belongs to the bitstream beside it, with the same name"
        )
    with open(hwh, encoding="utf-8", errors="replace") as file:
        found = re.search(r'<SYSTEMINFO[^>]*\bARCH="(\w+)"', file.read(65536))
    arch = found[1] if found else ""
    needed = _ARCHITECTURES.get(arch)
    if needed and platform.machine().startswith(("arm", "aarch64")):
        if platform.machine() != needed:
            raise RuntimeObjectError(
                f"{path} is for another board: its .hwh says {arch} ({needed}), this is "
                f"{platform.machine()}; take the bitstream that was built for this board"
            )


def _check_summary(path: str, program: Program) -> None:
    """Compare with the JSON that the build wrote beside the bitstream, where there is one."""
    summary_path = path[:-4] + ".json"
    try:
        with open(summary_path, encoding="utf-8") as file:
            summary = json.load(file)
    except FileNotFoundError:
        return
    except ValueError as error:
        raise RuntimeObjectError(f"{summary_path}: is not JSON ({error}); copy it again") from None
    for kind in ("bit", "hwh"):
        name = path[:-4] + "." + kind
        with open(name, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        noted = summary.get(f"{kind}_sha256", digest)
        if noted != digest:
            raise RuntimeObjectError(
                f"{name} is not the file that was built with {summary_path} (SHA-256 "
                f"{digest[:12]}…, noted {str(noted)[:12]}…): one of the files is stale; copy .bit, "
                ".hwh and .json of one build"
            )
    board, here = str(summary.get("board", "")), os.environ.get("BOARD", "")
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in (board, here)]
    if all(plain) and not (plain[0].startswith(plain[1]) or plain[1].startswith(plain[0])):
        raise RuntimeObjectError(
            f"{path} was built for the board {board}, this is {here} (environment variable "
            f"BOARD); take rasna-{here.lower()}.bit"
        )
    if "config_hash" in summary and summary["config_hash"] != program.config_hash:
        raise TargetMismatchError(
            f"the Program is for target {program.target} (configuration {program.config_hash}), "
            f"{path} is {summary.get('target')} (configuration {summary['config_hash']}); "
            f'compile with target="{summary.get("target")}", or take another bitstream'
        )


def _load(pynq: Any, device: Any, path: str, digest: str, program: Program) -> LoadedOverlay:
    """Use the bitstream that is on the board when it is this one and answers; else load it."""
    if _is_on_board(digest):
        try:
            loaded = _open(pynq, device, path, digest, download=False)
            _check_identity(loaded, program)
            if loaded.machine.reset():  # a kernel that died may have left it running
                return loaded
        except Exception:  # a note that is out of date: what pynq raises then is not documented
            pass
    loaded = _open(pynq, device, path, digest, download=True)
    _check_identity(loaded, program)
    if not loaded.machine.reset():
        raise RuntimeObjectError(
            f"{path}: the accelerator is not idle after loading and a soft reset; "
            f"{loaded.machine.status()}; switch the board off and on"
        )
    return loaded


def _is_on_board(digest: str) -> bool:
    """Whether pynq noted that the bitstream on the board has this SHA-1 (pynq 3.0 and later)."""
    try:
        from pynq.pl_server import global_state

        global_state.initial_global_state_file_boot_check()
        if not global_state.global_state_file_exists():
            return False
        return bool(global_state.load_global_state().bitfile_hash == digest)
    except Exception:  # another pynq, or no note that can be read: load the bitstream
        return False


def _open(pynq: Any, device: Any, path: str, digest: str, download: bool) -> LoadedOverlay:
    try:
        overlay = pynq.Overlay(os.path.abspath(path), download=download, device=device)
    except Exception as error:
        raise RuntimeObjectError(f"{path}: pynq cannot load it: {error}") from error
    name, description = _find_ip(overlay.ip_dict, path)
    size = int(description.get("addr_range") or 0)
    needed = max(offset for _, offset, _, _ in isa.REGISTERS) + 4
    if size < needed:
        raise RuntimeObjectError(
            f"{path}: its .hwh gives the accelerator {name} {size} bytes of registers, {needed} "
            "are needed: the .hwh is of another version; copy .bit and .hwh of one build"
        )
    span = min(size, isa.REGISTER_SPAN_BYTES)
    mmio = pynq.MMIO(int(description["phys_addr"]), span, device=device)

    def allocate(shape: tuple[int, ...], dtype: Any) -> Any:
        return pynq.allocate(shape=shape, dtype=dtype, target=device)

    return LoadedOverlay(path, digest, overlay, BoardMachine(mmio.read, mmio.write, path), allocate)


def _find_ip(ip_dict: dict[str, Any], path: str) -> tuple[str, Any]:
    """The accelerator by vendor, library and name; any version: the registers tell more."""
    wanted = isa.IP_VLNV.rpartition(":")[0]
    for name, description in ip_dict.items():
        if str(description.get("type", "")).rpartition(":")[0] == wanted:
            return name, description
    there = ", ".join(sorted({str(d.get("type")) for d in ip_dict.values()})) or "nothing"
    raise RuntimeObjectError(
        f"{path}: its .hwh has no IP {wanted}, but {there}; this is not a bitstream of Rasna, or "
        "the .hwh is of another one"
    )


def _check_identity(loaded: LoadedOverlay, program: Program) -> None:
    with loaded.lock:
        loaded.machine.check_identity(program.target, program.isa_version, program.config_hash)
