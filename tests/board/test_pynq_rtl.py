"""The unmodified Runtime on the verilated accelerator, through pynq: equal bits to golden."""

from __future__ import annotations

import numpy as np
import pytest
from random_graphs import random_graph
from random_programs import random_program
from samples import S8, conv_sample, identity_program

import rasna
from rasna.compile.backend import build_program
from rasna.errors import RuntimeObjectError, SelfCheckError
from rasna.golden import evaluate, run_program
from rasna.program.ports import pack
from rasna.runtime import board_machine, board_measure
from rasna.targets import TARGETS

NUM_GRAPHS, NUM_PROGRAMS = 12, 8
FIRST_SEED = 5000


def bit(files) -> str:
    return str(files / "rasna.bit")


def test_the_convolutions_pass_their_self_check(rtl_board, overlay_files):
    device = rtl_board()
    with conv_sample().program.to_runtime(bit(overlay_files)) as runtime:
        runtime.selfcheck()
        assert runtime.cycles > 0
        assert not device.foreign_writes().size


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + NUM_GRAPHS))
def test_whole_networks_give_golden_bits(seed, rtl_board, overlay_files):
    print(f"seed {seed}; repeat: pytest {__file__} -k '{seed}'")
    graph, arrays, _ = random_graph(seed, most_channels=6, most_size=12)
    program = build_program(graph, "tiny")
    values = evaluate(graph, arrays)
    expected = pack(
        program.outputs, [values[p.tensor][None] for p in graph.outputs], program.output_words
    )
    batch = [np.stack([a, a]).astype(p.dtype) for p, a in zip(program.inputs, arrays, strict=True)]
    device = rtl_board(seed)
    with program.to_runtime(bit(overlay_files)) as runtime:
        runtime.timeout_seconds = 60
        words = runtime._run_words(pack(program.inputs, batch, program.input_words))
        assert expected.any() and (words == expected).all()
        assert not device.foreign_writes().size


@pytest.mark.parametrize("seed", range(NUM_PROGRAMS))
def test_random_programs_on_a_bus_that_stalls(seed, rtl_board, overlay_files):
    print(f"seed {seed}; repeat: pytest {__file__} -k 'bus_that_stalls and {seed}'")
    words, inputs, output_words, scratch_words = random_program(seed, "tiny")
    program = identity_program([("x", (1, 1, 8), S8)])
    program.words, program.input_words = words, inputs.size
    program.output_words, program.scratch_words = output_words, scratch_words
    expected = run_program(words, inputs, output_words, scratch_words, "tiny")
    device = rtl_board(seed)
    device.machine.set_bus(latency_cycles=20, stall_seed=seed + 1)
    with program.to_runtime(bit(overlay_files)) as runtime:
        runtime.timeout_seconds = 60
        assert (runtime._run_words(inputs[None])[0] == expected).all()
        assert not device.foreign_writes().size


def test_layer_cycles_are_measured_and_add_up(rtl_board, overlay_files):
    rtl_board()
    with conv_sample().program.to_runtime(bit(overlay_files)) as runtime:
        runtime.selfcheck()
        cycles = runtime.layer_cycles()
        assert list(cycles) == ["conv1", "conv2"] and all(c > 0 for c in cycles.values())
        assert sum(cycles.values()) == runtime.cycles


def test_a_program_that_does_not_fit_its_self_check_is_said_to_be_wrong(rtl_board, overlay_files):
    rtl_board()
    program = conv_sample().program
    with program.to_runtime(bit(overlay_files)) as runtime:
        taps = program.layers[1]["first_instruction"] + 1
        stream = int(rasna.isa.decode(program.words[8 * taps : 8 * taps + 8].tolist())[1][
            "stream_addr"
        ])
        runtime._program_buffer.words[stream] ^= np.uint64(0x40)  # a bias
        runtime._program_buffer.sync_to_device()
        program.words = runtime._program_buffer.words.copy()
        with pytest.raises(SelfCheckError, match="golden model, too, computes another output"):
            runtime.selfcheck()


def test_a_map_that_differs_names_the_layer(rtl_board, overlay_files, monkeypatch):
    """The machine gets another program than golden: its second layer differs first."""
    rtl_board()
    program = conv_sample().program
    right = program.words.copy()
    taps = program.layers[1]["first_instruction"] + 1
    stream = int(rasna.isa.decode(right[8 * taps : 8 * taps + 8].tolist())[1]["stream_addr"])
    with program.to_runtime(bit(overlay_files)) as runtime:
        wrong = right.copy()
        wrong[stream] += np.uint64(900)  # a bias
        runtime._program_buffer.write(wrong)
        original = board_measure.BoardStepper.run

        def run_wrong(self, inputs, outputs):
            self._program.words = wrong
            try:
                original(self, inputs, outputs)
            finally:
                self._program.words = right

        monkeypatch.setattr(board_measure.BoardStepper, "run", run_wrong)
        with pytest.raises(SelfCheckError, match="layer conv2 differs first: byte "):
            runtime.selfcheck()


def test_a_bus_error_names_the_instruction(rtl_board, overlay_files):
    device = rtl_board()
    with conv_sample().program.to_runtime(bit(overlay_files)) as runtime:
        device.machine.set_bus(error_at=40)
        with pytest.raises(RuntimeObjectError, match="the memory bus answered with an error"):
            runtime.selfcheck()
        device.machine.set_bus()
        runtime.selfcheck()


def test_slow_memory_is_a_timeout_and_a_soft_reset_recovers(
    rtl_board, overlay_files, monkeypatch
):
    monkeypatch.setattr(board_machine, "_RESET_SECONDS", 60)  # simulated cycles take their time
    device = rtl_board()
    with conv_sample().program.to_runtime(bit(overlay_files)) as runtime:
        device.machine.set_bus(latency_cycles=100_000)
        runtime.timeout_seconds = 0.001
        with pytest.raises(TimeoutError, match="STATUS: running.*can be used again"):
            runtime.selfcheck()
        assert device.num_downloads == 1
        device.machine.set_bus()
        runtime.timeout_seconds = 10
        runtime.selfcheck()


def test_a_bus_that_hangs_is_recovered_by_loading_the_bitstream(
    rtl_board, overlay_files, monkeypatch
):
    monkeypatch.setattr(board_machine, "_RESET_SECONDS", 0.05)
    device = rtl_board()
    with conv_sample().program.to_runtime(bit(overlay_files)) as runtime:
        device.machine.set_bus(hang_at=30)
        runtime.timeout_seconds = 0.05
        with pytest.raises(TimeoutError, match="the bitstream was loaded again"):
            runtime.selfcheck()
        assert device.num_downloads == 2
        device.machine.set_bus()
        runtime.timeout_seconds = 10
        runtime.selfcheck()


def test_the_registers_identify_the_target(rtl_board, overlay_files):
    device = rtl_board()
    with conv_sample().program.to_runtime(bit(overlay_files)) as runtime:
        machine = runtime._loaded.machine
        assert machine.read("CONFIG_HASH") == int(TARGETS["tiny"].config_hash[:8], 16)
    with pytest.raises(rasna.TargetMismatchError, match="for target pynq-z2"):
        identity_program([("x", (1, 1, 8), S8)], target="pynq-z2").to_runtime(bit(overlay_files))
    assert device.num_downloads == 1
