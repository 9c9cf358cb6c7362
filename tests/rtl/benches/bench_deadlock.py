"""hls_deadlock: one pulse after CYCLES cycles in which no process moved, and none otherwise."""

from cocotb.triggers import ReadOnly, RisingEdge
from tb import bench_test

INPUTS = ("rst", "stalled", "done")


async def pulses(tb, cycles):
    count = 0
    for _ in range(cycles):
        await ReadOnly()
        count += int(tb.dut.deadlock.value)
        await RisingEdge(tb.dut.clk)
    return count


@bench_test(INPUTS)
async def a_process_that_moves_or_all_done_is_no_deadlock(tb):
    dut, limit = tb.dut, int(tb.dut.CYCLES.value)
    for stalled, done in ((0b01, 0b00), (0b10, 0b00), (0b00, 0b11), (0b11, 0b11)):
        dut.stalled.value, dut.done.value = stalled, done
        tb.equal(await pulses(tb, 3 * limit), 0, f"stalled {stalled:b}, done {done:b}")
    for _ in range(4):  # moves just in time, again and again
        dut.stalled.value, dut.done.value = 0b11, 0
        tb.equal(await pulses(tb, limit - 2), 0, "short stalls")
        dut.stalled.value = 0b10
        tb.equal(await pulses(tb, 2), 0, "a move")


@bench_test(INPUTS)
async def all_stalled_is_one(tb):
    dut, limit = tb.dut, int(tb.dut.CYCLES.value)
    for stalled, done in ((0b11, 0b00), (0b01, 0b10)):
        dut.stalled.value, dut.done.value = stalled, done
        tb.equal(await pulses(tb, limit + 6), 1, f"stalled {stalled:b}, done {done:b}")
        await tb.cycle_reset()
