"""hls_axil: register accesses, byte strobes and backpressure, against 16 registers of the bench."""

from cocotb import start_soon
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster
from tb import bench_test, pause, quiet

INPUTS = ("rst", "read_data")


async def registers(tb, values):
    """Behind the block: write with a mask, read combinationally."""
    dut = tb.dut
    while True:
        await ReadOnly()
        write, read = bool(dut.write_enable.value), bool(dut.read_enable.value)
        address, data = int(dut.write_addr.value), int(dut.write_data.value)
        mask = int(dut.write_mask.value)
        await RisingEdge(dut.clk)
        if write:
            values[address // 4] = values[address // 4] & ~mask | data & mask
            tb.writes += 1
        tb.reads += read


async def answer(tb, values):
    """read_data follows read_addr in the same cycle."""
    while True:
        tb.dut.read_data.value = values[int(tb.dut.read_addr.value) // 4 % 16]
        await tb.dut.read_addr.value_change


@bench_test(INPUTS)
async def accesses_reach_the_register_that_they_name(tb):
    tb.writes = tb.reads = 0
    master = AxiLiteMaster(AxiLiteBus.from_prefix(tb.dut, "s_axi"), tb.dut.clk, tb.dut.rst)
    quiet(master.write_if, master.read_if)
    values, model = [0] * 16, bytearray(64)
    start_soon(registers(tb, values))
    reader = None
    channels = [
        master.write_if.aw_channel, master.write_if.w_channel, master.write_if.b_channel,
        master.read_if.ar_channel, master.read_if.r_channel,
    ]
    for percent in (0, 40, 80):
        pause(channels, percent, seed=percent)
        for _ in range(40):
            start = tb.rng.randrange(64)
            data = tb.rng.randbytes(tb.rng.randrange(1, min(9, 65 - start)))
            await master.write(start, data)
            model[start : start + len(data)] = data
            if reader:
                reader.cancel()
            reader = start_soon(answer(tb, values))
            index = tb.rng.randrange(16)
            got = await master.read_dword(4 * index)
            tb.equal(got, int.from_bytes(model[4 * index : 4 * index + 4], "little"), f"word {index}")
    tb.equal(b"".join(v.to_bytes(4, "little") for v in values), bytes(model), "all registers")
    assert tb.reads == 120 and tb.writes >= 120
