"""cocotb side of test_wrapper.py: drives the top of scale.cpp as a host would."""

import json
import logging
import os
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp

REGISTERS = {r["name"]: r["offset"] for r in json.loads(Path(os.environ["REGISTERS"]).read_text())}
CONTROL, GLOBAL_ENABLE, DONE_ENABLE, STATUS = 0x00, 0x04, 0x08, 0x0C
START, DONE, IDLE = 1, 2, 4
CANARY = 0x5A
SIZE = 1 << 17


class TB:
    """Clock, reset, the host's side of the registers, and one memory per port."""

    def __init__(self, dut):
        self.dut = dut
        cocotb.start_soon(Clock(dut.ap_clk, 10, unit="ns").start())
        args = {"reset": dut.ap_rst_n, "reset_active_level": False}
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi_control"), dut.ap_clk, **args)
        self.memories = [
            AxiRam(AxiBus.from_prefix(dut, f"m_axi_gmem{k}"), dut.ap_clk, size=SIZE, **args)
            for k in range(2)
        ]
        for model in (self.host, *self.memories):
            for side in (model.write_if, model.read_if):
                side.log.setLevel(logging.WARNING)

    async def reset(self):
        self.dut.ap_rst_n.value = 0
        await ClockCycles(self.dut.ap_clk, 8)
        self.dut.ap_rst_n.value = 1
        await ClockCycles(self.dut.ap_clk, 2)

    def stall(self, percent, seed):
        """Random idle cycles on every channel."""
        for memory in self.memories:
            for number, channel in enumerate(
                (memory.write_if.aw_channel, memory.write_if.w_channel, memory.write_if.b_channel,
                 memory.read_if.ar_channel, memory.read_if.r_channel)
            ):  # fmt: skip
                rng = random.Random(seed + number)
                channel.set_pause_generator(
                    iter(lambda rng=rng: rng.random() * 100 < percent, None)
                )

    async def run(self, num, factor, src=0x1008, dst=0x3FF8):
        """One run; returns the words read back."""
        rng = random.Random(num)
        words = [rng.getrandbits(64) for _ in range(num)]
        for memory in self.memories:
            memory.write(0, bytes([CANARY]) * SIZE)
        self.memories[0].write(src, b"".join(w.to_bytes(8, "little") for w in words))
        await self.host.write_dword(REGISTERS["num"], num)
        await self.host.write_dword(REGISTERS["factor"], factor & 0xFFFF)
        await self.host.write_qword(REGISTERS["src"], src)
        await self.host.write_qword(REGISTERS["dst"], dst)
        assert await self.host.read_dword(CONTROL) & (START | IDLE) == IDLE
        await self.host.write_dword(CONTROL, START)
        while True:
            status = await self.host.read_dword(CONTROL)
            if status & DONE:
                break
        assert not (await self.host.read_dword(CONTROL)) & DONE, "done clears on read"
        expected = b"".join((w * factor % 2**64).to_bytes(8, "little") for w in words)
        whole = bytes([CANARY]) * dst + expected
        assert self.memories[1].read(0, SIZE) == whole.ljust(SIZE, bytes([CANARY])), (
            "memory differs"
        )
        assert await self.host.read_dword(REGISTERS["num_odd"]) == sum(w & 1 for w in words)


async def bring_up(dut):
    tb = TB(dut)
    await tb.reset()
    return tb


@cocotb.test()
async def runs_back_to_back(dut):
    tb = await bring_up(dut)
    for num, factor in ((1, 3), (700, -5), (0, 1), (513, 32767)):
        await with_timeout(tb.run(num, factor), 1, "ms")
        assert await tb.host.read_dword(REGISTERS["axi_error"]) == 0


@cocotb.test()
async def runs_with_stalls(dut):
    tb = await bring_up(dut)
    tb.stall(40, seed=7)
    for num in (5, 300):
        await with_timeout(tb.run(num, 9), 1, "ms")


@cocotb.test()
async def interrupt_follows_its_enables(dut):
    tb = await bring_up(dut)
    await with_timeout(tb.run(4, 2), 1, "ms")
    assert not dut.irq.value
    await tb.host.write_dword(GLOBAL_ENABLE, 1)
    await tb.host.write_dword(DONE_ENABLE, 1)
    await with_timeout(tb.run(4, 2), 1, "ms")
    assert dut.irq.value and await tb.host.read_dword(STATUS) == 1
    await tb.host.write_dword(STATUS, 1)
    await RisingEdge(dut.ap_clk)
    assert not dut.irq.value


@cocotb.test()
async def error_responses_surface(dut):
    """A wrong RRESP or BRESP is in the register; the next run starts clean."""
    tb = await bring_up(dut)
    for memory, expected in ((0, AxiResp.SLVERR), (1, AxiResp.DECERR << 6)):
        model = tb.memories[memory]
        side = model.read_if.r_channel if memory == 0 else model.write_if.b_channel
        field = "rresp" if memory == 0 else "bresp"
        send = side.send

        async def wrong(
            item, send=send, field=field, response=expected >> (0 if memory == 0 else 6)
        ):
            setattr(item, field, response)
            await send(item)

        side.send = wrong
        await with_timeout(tb.run(3, 1), 1, "ms")
        assert await tb.host.read_dword(REGISTERS["axi_error"]) == expected
        side.send = send
        await with_timeout(tb.run(3, 1), 1, "ms")
        assert await tb.host.read_dword(REGISTERS["axi_error"]) == 0
