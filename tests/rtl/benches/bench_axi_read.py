"""hls_axi_read against a memory model: data, bursts within 4 KB and the limit, credits, errors."""

from cocotb import start_soon
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiReadBus, AxiSlaveRead
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

INPUTS = ("rst", "clear", "base", "rq_valid", "rq_addr", "rq_len", "rd_ready")
SIZE, BASE = 1 << 16, 0x1F38  # not at the start of a page


class Side:
    """The memory behind the port, and a watch over the rules of the bus."""

    def __init__(self, tb):
        self.tb, self.bursts, self.memory = tb, [], FaultyMemory(SIZE)
        self.memory.mem[:] = tb.rng.randbytes(SIZE)
        self.slave = AxiSlaveRead(
            AxiReadBus.from_prefix(tb.dut, "m_axi"), tb.dut.clk, tb.dut.rst, target=self.memory
        )
        quiet(self.slave)
        tb.dut.base.value = BASE
        start_soon(self.watch())

    async def watch(self):
        dut = self.tb.dut
        bytes_per_beat = len(dut.m_axi_rdata) // 8
        while True:
            await ReadOnly()
            if dut.m_axi_arvalid.value and dut.m_axi_arready.value:
                address, beats = int(dut.m_axi_araddr.value), int(dut.m_axi_arlen.value) + 1
                check_burst(dut, address, beats, bytes_per_beat, dut.m_axi_arburst)
                assert 1 << int(dut.m_axi_arsize.value) == bytes_per_beat
                self.bursts.append(beats)
            assert dut.m_axi_rready.value, "credits make sure that there is room for every beat"
            await RisingEdge(dut.clk)

    def word(self, offset):
        size = len(self.tb.dut.m_axi_rdata) // 8
        at = BASE + offset * size
        return int.from_bytes(self.memory.mem[at : at + size], "little")


async def read(tb, side, requests, consumer=100):
    dut = tb.dut
    sender = start_soon(
        send(tb, requests, dut.rq_valid, dut.rq_ready, [dut.rq_addr, dut.rq_len], 60)
    )
    count = sum(length for _, length in requests)
    got = await receive(tb, count, dut.rd_valid, dut.rd_ready, dut.rd_data, consumer)
    await sender
    return got


@bench_test(INPUTS)
async def requests_give_the_words_of_memory(tb):
    side = Side(tb)
    for percent, consumer in ((0, 100), (30, 100), (60, 20)):
        pause([side.slave.ar_channel, side.slave.r_channel], percent, seed=percent)
        requests = bus_requests(tb)
        got = await read(tb, side, requests, consumer)
        wanted = [side.word(a + i) for a, n in requests for i in range(n)]
        tb.equal(got, wanted, f"words with {percent} % pauses")
    await until_idle(tb, side.bursts)


@bench_test(INPUTS)
async def the_first_error_is_kept_until_it_is_cleared(tb):
    side, dut = Side(tb), tb.dut
    await read(tb, side, [(0, 10)])
    tb.equal(int(dut.error.value), 0, "no error yet")
    at = BASE + 100 * len(dut.m_axi_rdata) // 8
    side.memory.bad = range(at, at + 4)
    await read(tb, side, [(90, 20), (0, 3)])
    await clear_error(tb)
    tb.equal(await read(tb, side, [(1, 2)]), [side.word(1), side.word(2)], "words behind an error")
