"""hls_axi_write against a memory model: data, canaries, bursts, answers in order, errors."""

from cocotb import start_soon
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiSlaveWrite, AxiWriteBus
from tb import (
    FaultyMemory,
    bench_test,
    bus_requests,
    check_burst,
    clear_error,
    pause,
    quiet,
    receive,
    send,
    until_idle,
)

INPUTS = ("rst", "clear", "base", "wq_valid", "wq_addr", "wq_len", "wd_valid", "wd_data", "wb_ready")
SIZE, BASE, CANARY = 1 << 16, 0x1F38, 0x5A


class Side:
    """The memory behind the port, full of canaries, and a watch over the rules of the bus."""

    def __init__(self, tb):
        self.tb, self.memory = tb, FaultyMemory(SIZE)
        self.bursts, self.data_bursts = [], []  # lengths by address, by WLAST
        self.memory.mem[:] = bytes([CANARY]) * SIZE
        self.wanted = bytearray(self.memory.mem)
        self.slave = AxiSlaveWrite(
            AxiWriteBus.from_prefix(tb.dut, "m_axi"), tb.dut.clk, tb.dut.rst, target=self.memory
        )
        quiet(self.slave)
        tb.dut.base.value = BASE
        start_soon(self.watch())

    async def watch(self):
        dut, beats_so_far = self.tb.dut, 0
        size = len(dut.m_axi_wdata) // 8
        while True:
            await ReadOnly()
            if dut.m_axi_awvalid.value and dut.m_axi_awready.value:
                address, beats = int(dut.m_axi_awaddr.value), int(dut.m_axi_awlen.value) + 1
                check_burst(dut, address, beats, size, dut.m_axi_awburst)
                self.bursts.append(beats)
            if dut.m_axi_wvalid.value and dut.m_axi_wready.value:
                assert int(dut.m_axi_wstrb.value) == (1 << size) - 1
                beats_so_far += 1
                if dut.m_axi_wlast.value:  # data may come before its address is taken
                    self.data_bursts.append(beats_so_far)
                    beats_so_far = 0
            await RisingEdge(dut.clk)


async def write(tb, side, requests, producer=100):
    """Write random words to (offset, length) requests; returns when all are answered."""
    dut, size = tb.dut, len(tb.dut.wd_data) // 8
    words = [tb.rng.getrandbits(8 * size) for _ in range(sum(n for _, n in requests))]
    at = iter(words)
    for offset, length in requests:
        for i in range(length):
            place = BASE + (offset + i) * size
            side.wanted[place : place + size] = next(at).to_bytes(size, "little")
    tasks = [
        start_soon(send(tb, requests, dut.wq_valid, dut.wq_ready, [dut.wq_addr, dut.wq_len], 60)),
        start_soon(send(tb, words, dut.wd_valid, dut.wd_ready, dut.wd_data, producer)),
    ]
    answers = await receive(tb, len(requests), dut.wb_valid, dut.wb_ready, None, 70)
    for task in tasks:
        await task
    return answers


@bench_test(INPUTS)
async def requests_reach_memory_and_nothing_else_changes(tb):
    side = Side(tb)
    for percent, producer in ((0, 100), (30, 100), (60, 20)):
        channels = [side.slave.aw_channel, side.slave.w_channel, side.slave.b_channel]
        pause(channels, percent, seed=percent)
        requests = bus_requests(tb)
        await write(tb, side, requests, producer)
        # every answer has come: all is in memory by now
        tb.equal(bytes(side.memory.mem) == bytes(side.wanted), True, f"memory, {percent} % pauses")
    tb.equal(side.data_bursts, side.bursts, "beats up to WLAST")
    await until_idle(tb, side.bursts)


@bench_test(INPUTS)
async def the_first_error_is_kept_until_it_is_cleared(tb):
    side, dut = Side(tb), tb.dut
    await write(tb, side, [(0, 10)])
    tb.equal(int(dut.error.value), 0, "no error yet")
    at = BASE + 100 * len(dut.wd_data) // 8
    side.memory.bad = range(at, at + 4)
    await write(tb, side, [(90, 20), (0, 3)])
    await clear_error(tb)
    side.memory.bad = range(0)
    await write(tb, side, [(90, 20)])
    tb.equal(bytes(side.memory.mem) == bytes(side.wanted), True, "memory behind an error")
