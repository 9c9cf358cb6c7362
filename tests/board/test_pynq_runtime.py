"""rasna.Runtime over pynq on a simulated board: results, memory, hangs, threads."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from board_machines import BASE_ADDRESS
from samples import S8, conv_sample, identity_program

import rasna
from rasna import isa
from rasna.errors import BoardMemoryError, BoardTimeoutError, RuntimeObjectError
from rasna.golden import dequantize, quantize
from rasna.runtime import board, board_machine, board_memory

SHAPE = (3, 5, 11)
MB = 1 << 20


@pytest.fixture
def images():
    return np.random.default_rng(0).uniform(-9, 9, (7, 5, 11, 3)).astype(np.float32)


def bit(files) -> str:
    return str(files / "rasna.bit")


def identity(files, **options):
    return rasna.Runtime(identity_program([("x", SHAPE, S8)]), bit(files), **options)


def expected(images):
    return dequantize(quantize(images, S8), S8)


def test_to_runtime_gives_the_board_runtime(model_board, overlay_files):
    model_board()
    runtime = conv_sample().program.to_runtime(bit(overlay_files))
    assert type(runtime) is rasna.Runtime
    runtime.selfcheck()


def test_images_come_back_with_equal_bits(model_board, overlay_files, images):
    device = model_board()
    with identity(overlay_files) as runtime:
        assert np.ptp(expected(images)) > 0
        for count in (1, 2, 7):
            assert (runtime(images[:count]) == expected(images[:count])).all()
        assert (runtime(images[0]) == expected(images[0])).all()
        assert runtime(images[:0]).shape == (0, 5, 11, 3)
        assert not device.foreign_writes().size


def test_the_program_is_written_once(model_board, overlay_files, images, monkeypatch):
    device = model_board()
    flushed = []
    flush = device.flush
    monkeypatch.setattr(
        device, "flush", lambda bo, *rest: (flushed.append(bo), flush(bo, *rest))
    )
    with identity(overlay_files) as runtime:
        program_address = runtime._program_buffer.address
        for _ in range(3):
            runtime(images)
        assert flushed.count(program_address) == 1


def test_identification_is_read_before_anything_is_written(model_board, overlay_files):
    device = model_board()
    with identity(overlay_files):
        names = [(kind, device.register_names[offset]) for kind, offset in device.accesses]
        assert names[:2] == [("r", "ISA_VERSION"), ("r", "CONFIG_HASH")]
        assert ("w", "CONTROL") in names[2:]


def test_buffers_are_freed_by_close_and_calls_are_refused_after_it(
    model_board, overlay_files, images
):
    device = model_board()
    runtime = identity(overlay_files)
    runtime(images)
    assert device.buffers
    runtime.close()
    runtime.close()
    assert not device.buffers
    for call in (lambda: runtime(images), runtime.selfcheck, runtime.throughput_test,
                 runtime.layer_cycles):
        with pytest.raises(rasna.ClosedError):
            call()


def test_a_runtime_that_is_forgotten_frees_its_buffers(model_board, overlay_files):
    device = model_board()
    runtime = identity(overlay_files)
    del runtime
    gc.collect()
    assert not device.buffers
    identity(overlay_files).close()


def test_a_runtime_that_cannot_be_made_leaves_nothing(model_board, overlay_files, monkeypatch):
    device = model_board(memory_bytes=64 * 1024)
    with pytest.raises(BoardMemoryError):
        rasna.Runtime(identity_program([("x", (4, 100, 200), S8)]), bit(overlay_files))
    assert not device.buffers
    identity(overlay_files).close()


def test_exhausted_memory_says_what_is_needed_and_available(
    model_board, overlay_files, monkeypatch, tmp_path
):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nCmaTotal: 131072 kB\nCmaFree: 2048 kB\n")
    monkeypatch.setattr(board_memory, "_MEMINFO", str(tmp_path / "meminfo"))
    model_board(memory_bytes=64 * 1024)
    with pytest.raises(MemoryError) as caught:
        rasna.Runtime(identity_program([("x", (4, 100, 200), S8)]), bit(overlay_files))
    assert str(caught.value).startswith(
        "input buffer: 80,000 bytes of contiguous memory are needed, 2,097,152 of 134,217,728 "
        "bytes are free (Failed to allocate Memory!); close other runtimes"
    )


def test_a_system_without_the_numbers_still_reports(monkeypatch, tmp_path):
    monkeypatch.setattr(board_memory, "_MEMINFO", str(tmp_path / "none"))

    def allocate(shape, dtype):
        raise OSError("no")

    with pytest.raises(BoardMemoryError, match="16 bytes .* not known on this system"):
        board_memory.Buffer(allocate, 2, "input buffer")


def test_a_batch_that_does_not_fit_memory_runs_in_smaller_parts(
    model_board, overlay_files, images
):
    many = np.repeat(images, 10, axis=0)
    device = model_board(memory_bytes=60 * 1024)
    with identity(overlay_files) as runtime:
        assert (runtime(many) == expected(many)).all()
        assert 1 < runtime._images_for(64).capacity < 64
        assert not device.foreign_writes().size


@pytest.mark.parametrize("num_words", [2_400, 8_400_000], ids=["over 16 KB", "over 64 MB"])
def test_large_transfers(num_words, model_board, overlay_files):
    """The program copies the last two words of its input, so all of it must have arrived."""
    assert num_words * 8 > (16 << 10 if num_words < 10_000 else 64 * MB)
    program = identity_program([("x", (1, 2, 8), S8)])
    opcode, load = isa.decode(program.words[: isa.INSTRUCTION_WORDS].tolist())
    load["dram_addr"] = num_words - 2
    program.words[: isa.INSTRUCTION_WORDS] = isa.encode(opcode, **load)
    program.input_words = num_words
    device = model_board(memory_bytes=num_words * 8 + MB)
    words = np.random.default_rng(1).integers(0, 1 << 60, (1, num_words), np.uint64)
    with rasna.Runtime(program, bit(overlay_files)) as runtime:
        assert (runtime._run_words(words) == words[:, -2:]).all()
        address = runtime._single.input.address - BASE_ADDRESS
        there = device.memory[address : address + num_words * 8].view(np.uint64)
        assert (there == words[0]).all()
        assert not device.foreign_writes().size


def test_a_hang_is_a_timeout_and_the_runtime_stays_usable(model_board, overlay_files, images):
    device = model_board()
    with identity(overlay_files, timeout_seconds=0.02) as runtime:
        device.machine.hang = "run"
        with pytest.raises(TimeoutError, match="the machine was reset and can be used again"):
            runtime(images)
        device.machine.hang = ""
        assert (runtime(images) == expected(images)).all()
        assert device.num_downloads == 1


def test_a_bus_that_hangs_is_recovered_by_loading_the_bitstream(
    model_board, overlay_files, images, monkeypatch
):
    monkeypatch.setattr(board_machine, "_RESET_SECONDS", 0.02)
    device = model_board()
    with identity(overlay_files, timeout_seconds=0.02) as runtime:
        device.machine.hang = "bus"
        with pytest.raises(TimeoutError, match="the bitstream was loaded again") as caught:
            runtime(images)
        assert caught.value.recovered and device.num_downloads == 2
        device.machine.hang = ""
        assert (runtime(images) == expected(images)).all()


def test_a_board_that_nothing_helps_is_said_to_be_switched_off(
    model_board, overlay_files, images, monkeypatch
):
    monkeypatch.setattr(board_machine, "_RESET_SECONDS", 0.02)
    device = model_board()
    with identity(overlay_files, timeout_seconds=0.02) as runtime:
        device.machine.hang = "dead"
        with pytest.raises(BoardTimeoutError, match="switch the board off and on") as caught:
            runtime(images)
        assert not caught.value.recovered


def test_an_error_of_the_machine_names_the_instruction(model_board, overlay_files, images):
    model_board()
    program = identity_program([("x", SHAPE, S8)])
    program.words = program.words.copy()
    program.words[8] |= np.uint64(0x7F)  # instruction 1 becomes an opcode that does not exist
    with rasna.Runtime(program, bit(overlay_files)) as runtime:
        runtime._loaded.machine._read = with_error(runtime._loaded.machine._read)
        with pytest.raises(RuntimeObjectError, match="instruction 1: unknown opcode"):
            runtime(images)


def with_error(read):
    """Reads as of a machine that stopped at instruction 1 with BAD_OPCODE."""
    replaced = {board_machine.OFFSETS["STATUS"]: 3 | 1 << 8, board_machine.OFFSETS["ERROR_PC"]: 1}
    return lambda offset: replaced.get(offset) or read(offset)


def test_threads_share_the_machine(model_board, overlay_files, images):
    model_board()
    wrong = []

    def work(runtime, index):
        for _ in range(5):
            batch = images[index % 7 :]
            if not (runtime(batch) == expected(batch)).all():
                wrong.append(index)

    with identity(overlay_files) as one, identity(overlay_files) as two:
        threads = [
            threading.Thread(target=work, args=((one, two)[i % 2], i)) for i in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_closing_in_another_thread_gives_a_result_or_closed_error(
    model_board, overlay_files, images
):
    device = model_board()
    outcomes = []

    def work(runtime):
        try:
            while True:
                assert (runtime(images) == expected(images)).all()
                outcomes.append("result")
        except rasna.ClosedError:
            outcomes.append("closed")

    runtime = identity(overlay_files)
    threads = [threading.Thread(target=work, args=(runtime,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(outcomes) < 3:
        pass
    runtime.close()
    for thread in threads:
        thread.join(60)
    assert outcomes.count("closed") == 3 and not device.buffers


def test_the_throughput_test_has_four_numbers(model_board, overlay_files):
    model_board()
    with identity(overlay_files) as runtime:
        result = runtime.throughput_test(5)
        assert result.batch == 5 and result.cycles == runtime.cycles > 0
        assert 0 < result.machine_latency_seconds <= result.latency_seconds
        assert 0 < result.images_per_second and 0 < result.machine_images_per_second
        assert len(str(result).splitlines()) == 5
        for batch in (0, -1, 1.5, True):
            with pytest.raises(rasna.RasnaValueError, match="batch must be an integer"):
                runtime.throughput_test(batch)


def test_buffers_far_apart_are_refused(model_board, overlay_files):
    class Fake:
        def __init__(self, address):
            self.address = address

    with pytest.raises(RuntimeObjectError, match="one aligned window of 32 GiB"):
        board_memory.check_window({"input": Fake(1 << 20), "output": Fake(1 << 35)})
    board_memory.check_window({"input": Fake(1 << 20), "output": Fake((1 << 35) - 8)})


def test_old_pynq_without_sync_methods_is_served_by_flush_and_invalidate():
    calls = []

    class Old(np.ndarray):
        device_address = 64

        def flush(self):
            calls.append("flush")

        def invalidate(self):
            calls.append("invalidate")

        def freebuffer(self):
            calls.append("free")

    buffer = board_memory.Buffer(lambda shape, dtype: np.zeros(shape, dtype).view(Old), 4, "x")
    buffer.write(np.arange(4, dtype=np.uint64))
    buffer.sync_from_device()
    buffer.free()
    buffer.free()
    assert calls == ["flush", "invalidate", "free"]
    with pytest.raises(RuntimeObjectError, match="used after it was freed"):
        buffer.sync_to_device()


def test_the_batch_limits_are_what_the_docs_say():
    assert board._MAX_BATCH == 64 and board._BATCH_BYTES == 4 * MB
