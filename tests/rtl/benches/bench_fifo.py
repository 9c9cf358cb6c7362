"""hls_fifo: order, both flags, full rate, reset."""

from cocotb import start_soon
from cocotb.triggers import ClockCycles, Combine, ReadOnly, RisingEdge
from tb import bench_test, receive, send

INPUTS = ("rst", "write_valid", "write_data", "read_ready")


@bench_test(INPUTS)
async def items_come_out_in_order_at_any_rate(tb):
    dut = tb.dut
    width = len(dut.write_data)
    for producer, consumer in ((100, 100), (30, 100), (100, 30), (50, 50), (90, 10)):
        items = [tb.rng.getrandbits(width) for _ in range(300)]
        sender = start_soon(
            send(tb, items, dut.write_valid, dut.write_ready, dut.write_data, producer)
        )
        got = await receive(tb, 300, dut.read_valid, dut.read_ready, dut.read_data, consumer)
        await sender
        tb.equal(got, items, f"items at {producer} and {consumer} %")


@bench_test(INPUTS)
async def it_is_full_at_its_depth_and_empty_at_none(tb):
    dut, depth = tb.dut, int(tb.dut.DEPTH.value)
    for _ in range(3):
        tb.equal(bool(dut.read_valid.value), False, "valid when empty")
        await send(tb, range(1, depth + 1), dut.write_valid, dut.write_ready, dut.write_data, 100)
        await ReadOnly()
        tb.equal((bool(dut.write_ready.value), bool(dut.read_valid.value)), (False, True), "full")
        await RisingEdge(dut.clk)
        dut.write_valid.value, dut.write_data.value = 1, 0  # not taken: there is no room
        await ClockCycles(dut.clk, 3)
        dut.write_valid.value = 0
        got = await receive(tb, depth, dut.read_valid, dut.read_ready, dut.read_data, 100)
        mask = (1 << len(dut.write_data)) - 1
        tb.equal(got, [i & mask for i in range(1, depth + 1)], "items")
        await ReadOnly()
        tb.equal(bool(dut.write_ready.value), True, "room when empty")
        await RisingEdge(dut.clk)


@bench_test(INPUTS)
async def reset_empties_it(tb):
    dut, depth = tb.dut, int(tb.dut.DEPTH.value)
    await send(tb, [1] * depth, dut.write_valid, dut.write_ready, dut.write_data, 100)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    await ReadOnly()
    tb.equal(bool(dut.write_ready.value), False, "ready during reset")
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 2)
    await ReadOnly()
    tb.equal((bool(dut.write_ready.value), bool(dut.read_valid.value)), (True, False), "flags")
    await RisingEdge(dut.clk)
    sender = start_soon(send(tb, [0, 1], dut.write_valid, dut.write_ready, dut.write_data, 100))
    tb.equal(await receive(tb, 2, dut.read_valid, dut.read_ready, dut.read_data, 100), [0, 1], "")
    await Combine(sender)
