"""What goes wrong on the RTL ends in an error that says what, and the next run is good."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
import pytest
from random_programs import random_program
from rtl_harness import run_case
from sim_harness import Context, SimError, open_library
from small_programs import taps_program

from rasna import golden, isa
from rasna.assembler import assemble

ROOT = Path(__file__).resolve().parents[2]
COPY = assemble((ROOT / "tests" / "programs" / "copy.rasm").read_text())
CASE = (COPY.words, COPY.inputs, COPY.outputs.size, COPY.scratch_words)


def good(context: Context) -> None:
    assert run_case(context, CASE).tolist() == COPY.outputs.tolist()


def answers_of_a_run(library) -> int:
    """Read beats and write responses of CASE: the first fault position that does not happen."""
    with Context(library) as context:
        for number in range(1, 1000):
            context.set_option("bus_error_at", number)
            try:
                run_case(context, CASE)
                return number
            except SimError:
                continue
    raise AssertionError("no run without a fault")


def test_every_bus_error_is_the_error_code_and_the_next_run_is_good(rtl):
    library = rtl("tiny")
    count = answers_of_a_run(library)
    assert count > 20
    for options in ({}, {"stall_seed": 7}):
        with Context(library, **options) as context:
            for number in range(1, count):
                context.set_option("bus_error_at", number)
                with pytest.raises(SimError) as error:
                    run_case(context, CASE)
                assert error.value.code == isa.Error.BUS, (number, error.value.text)
                assert re.fullmatch(
                    r"instruction \d: the memory bus answered with an error", error.value.text
                )
                context.set_option("bus_error_at", 0)
                good(context)


def test_memory_that_never_answers_is_a_timeout_that_names_process_and_port(rtl):
    with Context(rtl("tiny")) as context:
        texts = set()
        for number in (1, 9, 17, 25):
            context.set_option("bus_hang_at", number)
            with pytest.raises(SimError) as error:
                run_case(context, CASE)
            assert error.value.code == isa.Error.TIMEOUT
            texts |= set(re.findall(r"process \w+ waits for [^\n]*", error.value.text))
            context.set_option("bus_hang_at", 0)
            good(context)
    print(texts)
    assert "process fetch waits for read data of port program" in texts
    assert "process engine waits for read data of port data" in texts or (
        "process engine waits for the write response of port data" in texts
    )


def test_a_run_longer_than_allowed_is_a_timeout(rtl):
    with Context(rtl("tiny"), timeout_cycles=50) as context:
        with pytest.raises(SimError, match="instruction 0: the run took longer than allowed: "
                                           "more than 50 cycles") as error:
            run_case(context, CASE)
        assert error.value.code == isa.Error.TIMEOUT
        context.set_option("timeout_cycles", 100_000)
        good(context)


def test_options_are_checked_and_can_be_read(rtl, monkeypatch):
    with Context(rtl("tiny"), latency=7) as context:
        assert context.get_option("latency") == "7"
        with pytest.raises(SimError, match='option latency is "0", allowed are 1 to 2000'):
            context.set_option("latency", 0)
        with pytest.raises(SimError, match="step_limit, stop_at, latency, stall_seed"):
            context.set_option("speed", 1)
    monkeypatch.setenv("RASNA_RTL_OPTIONS", "latency=9,stall_seed=4")
    with Context(rtl("tiny")) as context:
        assert [context.get_option(n) for n in ("latency", "stall_seed")] == ["9", "4"]
    monkeypatch.setenv("RASNA_RTL_OPTIONS", "latency=9,fast")
    with pytest.raises(SimError, match='RASNA_RTL_OPTIONS has "fast"'):
        Context(rtl("tiny"))


def test_the_map_memory_can_be_read_behind_every_instruction(rtl):
    """What self-checks use: equal to golden wherever the program has written."""
    program, inputs, output_words, scratch_words = random_program(11, "tiny")
    compared = 0
    with Context(rtl("tiny")) as context:
        context.load(program, inputs.size, output_words, scratch_words)
        for number in range(1, 12):
            machine = golden.Machine(program, inputs, output_words, scratch_words, "tiny")
            while machine.state.number < number and not machine.done:
                machine.step()
            context.set_option("stop_at", number)
            context.run(inputs)
            for index in range(4):
                got = context.read_map(index, 0, 128).view(np.uint8)
                written = machine.state.written[index]
                assert (got == machine.state.map_bytes[index])[written].all(), (number, index)
                compared += int(written.sum())
    assert compared > 1000


def test_contexts_run_at_the_same_time_in_threads(rtl):
    library, wrong = rtl("tiny"), []

    def work(seed: int) -> None:
        case = random_program(seed, "tiny")
        with Context(library, stall_seed=seed + 1) as context:
            for _ in range(3):
                if not np.array_equal(run_case(context, case), expected[seed]):
                    wrong.append(seed)

    expected = [golden.run_program(*random_program(s, "tiny"), "tiny") for s in range(4)]
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def differences(library, seeds: range) -> int:
    """Random programs whose words are not those of golden, or that end in an error."""
    found = 0
    for seed in seeds:
        case = random_program(seed, "tiny")
        expected = golden.run_program(*case, "tiny")
        with Context(library, timeout_cycles=200_000) as context:
            try:
                found += not np.array_equal(run_case(context, case), expected)
            except SimError:
                found += 1
    return found


@pytest.mark.long
def test_one_wrong_bit_in_the_rtl_is_noticed(rtl, rtl_path, tmp_path):
    """The comparisons of this folder can fail: a word behind the wrap of a queue loses a bit."""
    import build_rtl

    kernel = rtl_path("tiny").parent / "rtl" / "tiny" / "rasna_top.sv"
    sources = build_rtl.rtl_sources(kernel)
    right = next(path for path in sources if path.name == "hls_fifo.sv")
    text = right.read_text()
    line = "= mem[read_ptr_reg];"
    assert text.count(line) == 1
    wrong = tmp_path / "hls_fifo.sv"
    wrong.write_text(text.replace(
        line, line.replace(";", " ^ WIDTH'(read_ptr_reg == LAST && DEPTH == 128);")
    ))
    sources[sources.index(right)] = wrong
    path = build_rtl.build("tiny", tmp_path, sources=sources, suffix="-wrong",
                           cache=rtl_path("tiny").parent / "obj" / "rtl-cache")
    assert differences(rtl("tiny"), range(20)) == 0
    assert differences(open_library(path), range(20)) > 0


def test_one_flipped_bit_of_a_weight_is_noticed(rtl):
    inputs = np.random.default_rng(3).integers(0, 2**64, 4, np.uint64)
    program = taps_program()
    expected = golden.run_program(program, inputs, 2, 0, "tiny")
    with Context(rtl("tiny")) as context:
        assert np.array_equal(run_case(context, (program, inputs, 2, 0)), expected)
        program[-1] ^= np.uint64(2)  # the only word of the tap list
        assert not np.array_equal(run_case(context, (program, inputs, 2, 0)), expected)
