"""A board made of NumPy alone: a stand-in for pynq, and a machine over the golden model.

It needs neither pynq nor a compiled object, so it shows what the runtime needs of a board: any
Python with NumPy runs it, that of a 32-bit system too.

    PYTHONPATH=python python3 tests/board/plain_board.py [conv.rasna]

The program is compiled, or read from a file: compiling is not meant for 32-bit systems.
Its memory lies in the last 16 MiB below 4 GiB, where a signed 32-bit address would be negative.
"""

from __future__ import annotations

import sys
import tempfile
import types
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "program")]

from board_machines import ModelMachine, decode_until_end, segment_words, written_words
from samples import S8, conv_sample, identity_program

import rasna
from rasna import golden, isa
from rasna.program.ports import pack, unpack
from rasna.program.selfcheck import selfcheck_inputs
from rasna.targets import get_target

BASE_ADDRESS = 0xFF00_0000
MEMORY_BYTES = 1 << 24


class GoldenMachine(ModelMachine):
    """The registers of ModelMachine; programs run on the golden model."""

    def __init__(self, target: str) -> None:
        self.memory = np.full(MEMORY_BYTES, 0xA5, np.uint8)
        self.target, self.isa_version = get_target(target), isa.ISA_VERSION
        self.config_hash = int(self.target.config_hash[:8], 16)
        self.hang = self.stuck = ""
        self.polls_per_run, self.num_runs = 2, 0
        self._clear()

    def _words_behind(self, segment: str) -> np.ndarray:
        first = self._base(segment) - BASE_ADDRESS
        assert 0 <= first < MEMORY_BYTES and first % 8 == 0, f"{segment} at {first:#x}"
        return self.memory[first:].view(np.uint64)

    def _execute(self) -> tuple[int, int]:
        code, num_words = decode_until_end(self._words_behind("PROGRAM"))
        inputs, outputs, scratch = (
            segment_words(code, s) for s in (isa.Segment.INPUT, isa.Segment.OUTPUT,
                                             isa.Segment.SCRATCH)
        )  # fmt: skip
        words = golden.run_program(
            self._words_behind("PROGRAM")[:num_words].copy(),
            self._words_behind("INPUT")[:inputs].copy(), outputs, scratch, self.target.name,
        )
        written = written_words(code, outputs)
        self._words_behind("OUTPUT")[:outputs][written] = words[written]
        self.registers["CYCLES_LO"] = 100 * len(code)
        return 0, len(code) - 1


class PlainBuffer(np.ndarray):
    """What pynq.allocate gives: its memory and the machine's differ but for the two copies."""

    def sync_to_device(self) -> None:
        self.behind[:] = self.view(np.ndarray).view(np.uint8)

    def sync_from_device(self) -> None:
        self.view(np.ndarray).view(np.uint8)[:] = self.behind

    def freebuffer(self) -> None:
        self.board.num_buffers -= 1


class PlainPynq(types.ModuleType):
    """The names of pynq that the runtime uses, and no others."""

    def __init__(self, machine: GoldenMachine) -> None:
        super().__init__("pynq")
        self.machine, self.num_buffers, self.next_address = machine, 0, BASE_ADDRESS + 4096
        self.Device = types.SimpleNamespace(active_device=types.SimpleNamespace(tag="plain"))
        self.num_downloads = 0

    def Overlay(self, path, download, device):
        self.num_downloads += bool(download)
        accelerator = {"type": isa.IP_VLNV, "phys_addr": 0xA000_0000, "addr_range": 0x1000}
        return types.SimpleNamespace(
            ip_dict={"rasna_0": accelerator}, is_loaded=lambda: True,
            download=self.machine.configure,
        )

    def MMIO(self, address, span, device):
        assert (address, span) == (0xA000_0000, isa.REGISTER_SPAN_BYTES)
        return types.SimpleNamespace(read=self.machine.read, write=self._write)

    def _write(self, offset: int, value: int) -> None:
        assert type(value) is int and 0 <= value < 1 << 32, value
        self.machine.write(offset, value)

    def allocate(self, shape, dtype, target):
        array = np.full(shape, 0x5A5A5A5A5A5A5A5A, dtype).view(PlainBuffer)
        array.board, array.device_address = self, self.next_address
        first = self.next_address - BASE_ADDRESS
        array.behind = self.machine.memory[first : first + array.nbytes]
        if array.behind.size < array.nbytes:
            raise RuntimeError("Failed to allocate Memory!")
        self.next_address += -(-array.nbytes // 4096) * 4096
        self.num_buffers += 1
        return array


def use(target: str = "tiny") -> PlainPynq:
    """A new board; ``import pynq`` gives it from now on."""
    board = sys.modules["pynq"] = PlainPynq(GoldenMachine(target))
    rasna.runtime.board_overlay._loaded.clear()
    return board


def check_convolutions(folder: Path, path: Path) -> None:
    """Load and run; the bits of golden, cycles, throughput, a hang, all freed."""
    board, program = use(), rasna.load(path)
    inputs = [a.repeat(5, 0) for a in selfcheck_inputs(program.inputs, 7)]
    words = golden.run_program(
        program.words, pack(program.inputs, inputs, program.input_words)[0],
        program.output_words, program.scratch_words, "tiny",
    )
    expected = unpack(program.outputs, words[None])[0].repeat(5, 0)
    with program.to_runtime(str(folder / "rasna.bit")) as runtime:
        runtime.selfcheck()
        result = runtime(*inputs, channel_last=False, normalize=False)
        assert expected.any() and (np.asarray(result) == expected).all()
        assert list(runtime.layer_cycles()) == ["conv1", "conv2"]
        assert runtime.throughput_test(3).images_per_second > 0
        runtime.timeout_seconds, board.machine.hang = 0.01, "run"
        try:
            runtime.selfcheck()
        except TimeoutError as error:
            assert "STATUS: running" in str(error)
        else:
            raise AssertionError("a hang was not noticed")
        board.machine.hang = ""
        runtime.selfcheck()
    assert board.num_buffers == 0 and board.num_downloads == 1


def check_a_batch(folder: Path) -> None:
    """Real numbers, more images than one transfer holds."""
    board = use()
    program = identity_program([("x", (3, 5, 11), S8)])
    x = np.random.default_rng(0).uniform(-9, 9, (70, 5, 11, 3))
    with program.to_runtime(str(folder / "rasna.bit")) as runtime:
        y = runtime(x)
        assert (y == golden.dequantize(golden.quantize(x.astype(np.float32), S8), S8)).all()
    assert board.num_buffers == 0


def main() -> None:
    for name in ("torch", "pandas"):
        sys.modules[name] = None  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rasna.bit").write_bytes(b"bits")
        (folder / "rasna.hwh").write_text("<EDKSYSTEM/>")
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "conv.rasna"
        if len(sys.argv) < 2:
            conv_sample().program.save(path)
        check_convolutions(folder, path)
        check_a_batch(folder)
    bits = 8 * np.dtype(np.intp).itemsize
    print(f"the runtime works on {bits}-bit Python {sys.version.split()[0]}, "
          f"NumPy {np.__version__}")


if __name__ == "__main__":
    main()
