"""hls_ram: every word, read-first at the same address, hold without enable, contents behind a reset."""

from cocotb.triggers import ReadOnly, RisingEdge
from tb import bench_test

INPUTS = ("read_enable", "read_addr", "write_enable", "write_addr", "write_data")


async def access(tb, read=None, write=None):
    """One cycle: read an address, write (address, data), or both; returns the data read."""
    dut = tb.dut
    dut.read_enable.value, dut.write_enable.value = read is not None, write is not None
    if read is not None:
        dut.read_addr.value = read
    if write is not None:
        dut.write_addr.value, dut.write_data.value = write
    await RisingEdge(dut.clk)
    dut.read_enable.value = dut.write_enable.value = 0
    await ReadOnly()
    data = int(dut.read_data.value)
    await RisingEdge(dut.clk)
    return data


@bench_test(INPUTS)
async def words_start_as_given_and_keep_what_is_written(tb):
    dut = tb.dut
    depth, width = int(dut.DEPTH.value), len(dut.write_data)
    init = int(dut.INIT.value) if int(dut.INIT_BITS.value) > 1 else 0
    model = [init >> (width * k) & ((1 << width) - 1) for k in range(depth)]
    for address in range(depth):
        tb.equal(await access(tb, read=address), model[address], f"word {address} at the start")
    for _ in range(600):
        read, write = tb.rng.randrange(depth), tb.rng.randrange(depth)
        if tb.chance(30):
            read = write  # read-first
        data = tb.rng.getrandbits(width)
        kind = tb.rng.randrange(3)
        got = await access(tb, None if kind == 1 else read, None if kind == 2 else (write, data))
        if kind != 1:
            tb.equal(got, model[read], f"word {read}, written in the same cycle: {read == write}")
        if kind != 2:
            model[write] = data


@bench_test(INPUTS)
async def the_output_holds_without_enable(tb):
    await access(tb, write=(1, 1))
    await access(tb, write=(2, 2))
    got = await access(tb, read=1)
    tb.equal(got, 1, "word 1")
    tb.dut.read_addr.value = 2
    for _ in range(3):
        await RisingEdge(tb.dut.clk)
    await ReadOnly()
    tb.equal(int(tb.dut.read_data.value), 1, "held")
    await RisingEdge(tb.dut.clk)
