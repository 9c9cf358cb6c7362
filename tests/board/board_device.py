"""A pynq Device without a board: the runtime above it is the one that runs on hardware.

Host buffers and the accelerator's memory are different arrays. Bytes move between them in
``flush`` and ``invalidate`` only, so a forgotten one gives wrong results. Behind the registers
is one of the machines of ``board_machines.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from board_machines import BASE_ADDRESS
from pynq.buffer import PynqBuffer
from pynq.pl_server import global_state
from pynq.pl_server.device import Device

from rasna import isa

REGISTERS_ADDRESS = 0x4000_0000
POISON = 0xA5  # what memory holds that nobody wrote
GUARD_BYTES = 4096  # between buffers; must keep their poison


class SimBuffer(PynqBuffer):
    """A buffer whose memory the device gets back, once, as the kernel does on a board."""

    def freebuffer(self) -> None:
        if not getattr(self, "freed", True):  # views have no such attribute and free nothing
            self.freed = True
            self.device.free(self.bo)


class Metadata:
    """What pynq.Overlay reads from a parsed .hwh."""

    def __init__(self, ip_dict: dict) -> None:
        self.ip_dict = ip_dict
        self.gpio_dict, self.interrupt_controllers, self.interrupt_pins = {}, {}, {}
        self.hierarchy_dict, self.mem_dict, self.clock_dict = {}, {}, {}
        self.systemgraph = None


def accelerator(vlnv: str = isa.IP_VLNV, addr_range: int = 0x1000) -> dict:
    """The ip_dict of a design with one accelerator."""
    return {
        "rasna_0": {
            "type": vlnv, "phys_addr": REGISTERS_ADDRESS, "addr_range": addr_range,
            "registers": {}, "state": None, "interrupts": {}, "gpio": {}, "fullpath": "rasna_0",
            "parameters": {}, "mem_id": "s_axi",
        }
    }


class SimDevice(Device):
    """One simulated board.

    machine: what is behind the registers. memory_bytes: contiguous memory.
    """

    _probe_priority_ = 10

    @classmethod
    def _probe_(cls):
        return []

    def __init__(self, machine, tag: str = "sim") -> None:
        super().__init__(tag)
        self.capabilities = {"REGISTER_RW": True, "MEMORY_MAPPED": False}
        self.arch, self.name = "x86_64", "sim"
        self.machine = machine
        self.memory = machine.memory
        self.memory[:] = POISON
        self.buffers: dict[int, np.ndarray] = {}  # address → host side
        self.num_allocated = self.num_downloads = 0
        self.metadata = Metadata(accelerator())
        self.accesses: list[tuple[str, int]] = []  # ("r" or "w", offset)
        self.register_names = {offset: name for name, offset, _, _ in isa.REGISTERS}

    # Registers ---------------------------------------------------------------------------

    def read_registers(self, address: int, length: int) -> bytes:
        words = []
        for offset in range(address - REGISTERS_ADDRESS, address - REGISTERS_ADDRESS + length, 4):
            self.accesses.append(("r", offset))
            words.append(self.machine.read(offset).to_bytes(4, "little"))
        return b"".join(words)

    def write_registers(self, address: int, data: bytes) -> None:
        data = bytes(data)
        for at in range(0, len(data), 4):
            offset = address - REGISTERS_ADDRESS + at
            self.accesses.append(("w", offset))
            self.machine.write(offset, int.from_bytes(data[at : at + 4], "little"))

    # Memory ------------------------------------------------------------------------------

    @property
    def free_bytes(self) -> int:
        return self.memory.size - sum(h.size + GUARD_BYTES for h in self.buffers.values())

    def _place(self, num_bytes: int) -> int:
        """First address with room, guards included."""
        at = BASE_ADDRESS + GUARD_BYTES
        for address in sorted(self.buffers):
            if at + num_bytes + GUARD_BYTES <= address:
                break
            at = (address + self.buffers[address].size + 2 * GUARD_BYTES - 1) & -GUARD_BYTES
        if at + num_bytes + GUARD_BYTES > BASE_ADDRESS + self.memory.size:
            raise RuntimeError("Failed to allocate Memory!")  # as pynq does
        return at

    def allocate(self, shape, dtype, **kwargs):
        num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        address = self._place(num_bytes)
        host = np.full(num_bytes, POISON ^ 0xFF, np.uint8)
        self.buffers[address] = host
        self.num_allocated += 1
        return SimBuffer(
            shape, dtype=dtype, device=self, device_address=address, bo=address, coherent=False,
            buffer=host.data,
        )

    def free(self, address: int) -> None:
        host = self.buffers.pop(address, None)  # None: the process that had it has died
        if host is not None:
            first = address - BASE_ADDRESS
            self.memory[first : first + host.size] = POISON

    def flush(self, bo, offset, vaddr, nbytes) -> None:
        first = bo - BASE_ADDRESS + offset
        self.memory[first : first + nbytes] = self.buffers[bo][offset : offset + nbytes]

    def invalidate(self, bo, offset, vaddr, nbytes) -> None:
        first = bo - BASE_ADDRESS + offset
        self.buffers[bo][offset : offset + nbytes] = self.memory[first : first + nbytes]

    def foreign_writes(self) -> np.ndarray:
        """Addresses outside of all buffers that do not hold their poison any more."""
        mine = np.zeros(self.memory.size, bool)
        for address, host in self.buffers.items():
            mine[address - BASE_ADDRESS : address - BASE_ADDRESS + host.size] = True
        return np.flatnonzero((self.memory != POISON) & ~mine) + BASE_ADDRESS

    # Bitstreams --------------------------------------------------------------------------

    def get_bitfile_metadata(self, bitfile_name, partial=False):
        return self.metadata

    def download(self, bitstream, parser=None) -> None:
        self.num_downloads += 1
        self.machine.configure()
        digest = global_state.bitstream_hash(bitstream.bitfile_name)
        global_state.save_global_state(global_state.GlobalState(
            bitfile_name=str(Path(bitstream.bitfile_name)), active_name=self.name,
            timestamp="", bitfile_hash=digest,
        ))
        self.post_download(bitstream, parser, self.name)
