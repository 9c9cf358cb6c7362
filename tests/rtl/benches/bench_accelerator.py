"""cocotb side of test_cocotb.py: drives rasna_accelerator as a host would, through cocotbext-axi.

Cases come from the file that the environment variable RASNA_CASES names, an .npz of
``<name>_program``, ``_inputs``, ``_scratch`` (a count) and ``_expected``.
"""

import logging
import os
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import (
    AxiBus,
    AxiLiteBus,
    AxiLiteMaster,
    AxiRam,
    AxiRamRead,
    AxiReadBus,
    AxiResp,
)

from rasna import isa

REGISTERS = {name: offset for name, offset, _, _ in isa.REGISTERS}
START, SOFT_RESET, IRQ_ENABLE = 1, 2, 4
IDLE, DONE, PENDING = 1, 2, 4
SIZE = 1 << 18
CANARY = 0x5A
FIRST_BASE, GAP_BYTES = 0x1008, 264  # not aligned to 4 KB: bursts must be split
CASES = np.load(os.environ["RASNA_CASES"])
NAMES = sorted(name.removesuffix("_program") for name in CASES if name.endswith("_program"))


class TB:
    """Clock, reset, the host's side of the registers, and one memory behind both ports."""

    def __init__(self, dut):
        self.dut, self.compared = dut, 0
        cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
        reset = {"reset": dut.aresetn, "reset_active_level": False}
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.aclk, **reset)
        self.memory = AxiRam(AxiBus.from_prefix(dut, "m_axi_data"), dut.aclk, size=SIZE, **reset)
        self.program = AxiRamRead(
            AxiReadBus.from_prefix(dut, "m_axi_program"), dut.aclk, size=SIZE,
            mem=self.memory.mem, **reset,
        )
        self.host_channels = [
            self.host.write_if.aw_channel, self.host.write_if.w_channel,
            self.host.write_if.b_channel, self.host.read_if.ar_channel,
            self.host.read_if.r_channel,
        ]
        self.memory_channels = [
            self.memory.write_if.aw_channel, self.memory.write_if.w_channel,
            self.memory.write_if.b_channel, self.memory.read_if.ar_channel,
            self.memory.read_if.r_channel, self.program.ar_channel, self.program.r_channel,
        ]
        sides = (self.host.write_if, self.host.read_if, self.memory.write_if,
                 self.memory.read_if, self.program)
        for side in sides:
            side.log.setLevel(logging.WARNING)

    def set_backpressure(self, percent, seed):
        """Random idle cycles and pauses on every channel of all models."""
        for number, channel in enumerate([*self.host_channels, *self.memory_channels]):
            rng = random.Random(1000 * seed + number)
            pauses = iter(lambda rng=rng: rng.random() * 100 < percent, None)
            channel.set_pause_generator(pauses if percent else None)
            channel.pause = False  # a generator that is stopped leaves the last value

    async def cycle_reset(self):
        self.dut.aresetn.value = 0
        await ClockCycles(self.dut.aclk, 8)
        self.dut.aresetn.value = 1
        await ClockCycles(self.dut.aclk, 2)

    async def write(self, name, value):
        await self.host.write_dword(REGISTERS[name], value)

    async def read(self, name):
        return await self.host.read_dword(REGISTERS[name])

    async def write_base(self, segment, value):
        await self.write(f"{segment}_BASE_LO", value & 0xFFFFFFFF)
        await self.write(f"{segment}_BASE_HI", value >> 32)

    async def load(self, name):
        """Place a case in memory, canaries everywhere else."""
        self.case = {k: CASES[f"{name}_{k}"] for k in ("program", "inputs", "expected")}
        num_words = {
            "PROGRAM": self.case["program"].size, "INPUT": self.case["inputs"].size,
            "OUTPUT": self.case["expected"].size, "SCRATCH": int(CASES[f"{name}_scratch"]),
        }
        self.memory.write(0, bytes([CANARY]) * SIZE)
        self.places, at = {}, FIRST_BASE
        for segment, count in num_words.items():
            self.places[segment] = (at, 8 * count)
            await self.write_base(segment, at)
            at += 8 * count + GAP_BYTES
        assert at <= SIZE, "the case does not fit into the memory"
        self.memory.write(self.places["PROGRAM"][0], self.case["program"].tobytes())
        self.memory.write(self.places["INPUT"][0], self.case["inputs"].tobytes())
        self.before = self.memory.read(0, SIZE)

    async def start(self):
        await self.write("CONTROL", START | IRQ_ENABLE)

    async def finish(self):
        """Wait for the interrupt; returns the error code."""
        if not self.dut.irq.value:
            await RisingEdge(self.dut.irq)
        status = await self.read("STATUS")
        assert status & 0xFF == IDLE | DONE | PENDING
        await self.write("IRQ_CLEAR", 1)
        await RisingEdge(self.dut.aclk)
        assert not self.dut.irq.value
        assert await self.read("STATUS") == status & ~PENDING
        return status >> 8

    def check_canaries(self):
        """Nothing but OUTPUT and SCRATCH has changed; returns the bytes of OUTPUT."""
        after, at = self.memory.read(0, SIZE), 0
        writable = sorted(self.places[s] for s in ("OUTPUT", "SCRATCH"))
        for start, length in [*writable, (SIZE, 0)]:
            assert after[at:start] == self.before[at:start], "bytes outside of a segment changed"
            at = start + length
        start, length = self.places["OUTPUT"]
        return after[start : start + length]

    async def run(self, name):
        """A whole run that must be good."""
        await self.load(name)
        await self.start()
        assert await self.finish() == isa.Error.OK
        assert self.check_canaries() == self.case["expected"].tobytes()
        self.compared += self.case["expected"].size


def accelerator_test(compares=True):
    """A cocotb test of coroutine(tb) after a reset; one that compared no output word fails."""

    def wrap(coroutine):
        async def test(dut):
            tb = TB(dut)
            await tb.cycle_reset()
            await with_timeout(coroutine(tb), 2, "ms")
            assert tb.compared > 0 or not compares, "this test has compared nothing"

        test.__name__ = test.__qualname__ = coroutine.__name__
        test.__doc__, test.__module__ = coroutine.__doc__, coroutine.__module__
        return cocotb.test()(test)

    return wrap


@accelerator_test(compares=False)
async def registers_identify_the_machine_and_hold_bases(tb):
    assert await tb.read("ISA_VERSION") == isa.ISA_VERSION
    assert await tb.read("CONFIG_HASH") == int(os.environ["RASNA_CONFIG_HASH"], 16)
    assert await tb.read("STATUS") == IDLE and await tb.read("CONTROL") == 0
    values = {name: random.Random(name).getrandbits(32) for name in REGISTERS if "_BASE_" in name}
    for name, value in values.items():
        await tb.write(name, value)
    for name, value in values.items():
        assert await tb.read(name) == value
    await tb.host.write(REGISTERS["INPUT_BASE_LO"] + 1, b"\xab")  # one byte strobe
    expected = values["INPUT_BASE_LO"] & 0xFFFF00FF | 0xAB00
    assert await tb.read("INPUT_BASE_LO") == expected
    unmapped = set(range(0, 0x80, 4)) - set(REGISTERS.values())
    for offset in unmapped:
        await tb.host.write_dword(offset, 0xFFFFFFFF)
        assert await tb.host.read_dword(offset) == 0
    assert await tb.read("STATUS") == IDLE


@accelerator_test()
async def programs_and_a_network_give_the_expected_words(tb):
    for name in NAMES:
        await tb.run(name)


@accelerator_test()
async def programs_give_the_expected_words_under_backpressure(tb):
    for percent in (20, 60):
        tb.set_backpressure(percent, seed=percent)
        for name in NAMES:
            if not name.startswith("network"):
                await tb.run(name)


@accelerator_test()
async def equal_runs_take_equal_cycles(tb):
    cycles = []
    for _ in range(2):
        await tb.run(NAMES[0])
        cycles.append((await tb.read("CYCLES_LO"), await tb.read("CYCLES_HI")))
    assert cycles[0] == cycles[1] and cycles[0][0] > 50 and cycles[0][1] == 0


@accelerator_test()
async def the_interrupt_follows_its_enable(tb):
    await tb.load(NAMES[0])
    await tb.write("CONTROL", START)
    while not await tb.read("STATUS") & IDLE:
        pass
    assert await tb.read("STATUS") == IDLE | DONE and not tb.dut.irq.value
    await tb.run(NAMES[0])


@accelerator_test()
async def a_soft_reset_in_the_middle_of_a_run_leaves_a_good_machine(tb):
    stopped = 0
    for delay in range(0, 130, 9):
        tb.set_backpressure(30 if delay % 2 else 0, seed=delay)
        await tb.load(NAMES[0])
        await tb.start()
        await ClockCycles(tb.dut.aclk, 1 + delay)
        stopped += not await tb.read("STATUS") & IDLE
        await tb.write("CONTROL", SOFT_RESET)
        while not await tb.read("STATUS") & IDLE:
            pass
        assert await tb.read("STATUS") == IDLE and not tb.dut.irq.value
        assert await tb.read("ERROR_PC") == 0 and await tb.read("CYCLES_LO") == 0
        tb.check_canaries()
        await ClockCycles(tb.dut.aclk, 5)
        channels = (tb.dut.m_axi_data_arvalid, tb.dut.m_axi_data_awvalid,
                    tb.dut.m_axi_data_wvalid, tb.dut.m_axi_program_arvalid)
        assert not any(int(valid.value) for valid in channels)
        await tb.run(NAMES[0])
    assert stopped >= 5


@accelerator_test()
async def error_responses_are_the_error_code_bus(tb):
    sides = (
        (tb.program.r_channel, "rresp", AxiResp.SLVERR),
        (tb.memory.read_if.r_channel, "rresp", AxiResp.DECERR),
        (tb.memory.write_if.b_channel, "bresp", AxiResp.SLVERR),
    )
    for channel, field, response in sides:
        for percent in (0, 40):
            tb.set_backpressure(percent, seed=5)
            send = channel.send

            async def wrong(item, send=send, field=field, response=response):
                setattr(item, field, response)
                await send(item)

            channel.send = wrong
            await tb.load("copy")
            await tb.start()
            assert await tb.finish() == isa.Error.BUS, field
            number = await tb.read("ERROR_PC")
            assert number == {"rresp": 0, "bresp": 1}[field]
            tb.check_canaries()
            channel.send = send
            await tb.run("copy")


@accelerator_test()
async def bad_bases_and_bad_opcodes_end_the_run(tb):
    await tb.run(NAMES[0])
    for segment, base in (("OUTPUT", 1 << 35), ("PROGRAM", 0x1004), ("SCRATCH", 0xFFF << 40)):
        await tb.load(NAMES[0])
        await tb.write_base(segment, base)
        await tb.start()
        assert await tb.finish() == isa.Error.BAD_ARGUMENT
        assert tb.check_canaries() == bytes([CANARY]) * tb.places["OUTPUT"][1]
    await tb.load(NAMES[0])
    tb.memory.write(tb.places["PROGRAM"][0], b"\xee")
    tb.before = tb.memory.read(0, SIZE)
    await tb.start()
    assert await tb.finish() == isa.Error.BAD_OPCODE and await tb.read("ERROR_PC") == 0
    await tb.run(NAMES[0])
