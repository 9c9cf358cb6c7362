"""hls_rom: every word, a cycle after its address, and hold without enable."""

from cocotb.triggers import ReadOnly, RisingEdge
from tb import bench_test


@bench_test(("read_enable", "read_addr"))
async def words_are_those_of_the_parameter(tb):
    dut, width = tb.dut, len(tb.dut.read_data)
    init = int(dut.INIT.value)
    addresses = [tb.rng.randrange(int(dut.DEPTH.value)) for _ in range(100)]
    for address in addresses:
        dut.read_enable.value, dut.read_addr.value = 1, address
        await RisingEdge(dut.clk)
        dut.read_enable.value, dut.read_addr.value = 0, tb.rng.randrange(int(dut.DEPTH.value))
        for _ in range(tb.rng.randrange(1, 3)):
            await ReadOnly()
            want = init >> (width * address) & ((1 << width) - 1)
            tb.equal(int(dut.read_data.value), want, f"word {address}")
            await RisingEdge(dut.clk)
