"""What the benches of single blocks share: a clock, a reset, random valid and ready, a count of comparisons."""

import logging
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, with_timeout
from cocotbext.axi import MemoryRegion

SEED = 1


class TB:
    """Clock and synchronous reset of a block; ``equal`` counts what was compared."""

    def __init__(self, dut, inputs):
        self.dut, self.compared, self.rng = dut, 0, random.Random(SEED)
        for name in inputs:
            getattr(dut, name).value = 0
        cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())

    async def cycle_reset(self):
        """A reset of four cycles; of blocks without one, nothing."""
        if not hasattr(self.dut, "rst"):
            return
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 4)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    def equal(self, got, wanted, what):
        assert got == wanted, f"{what}: {got!r}, expected {wanted!r}"
        self.compared += 1

    def chance(self, percent):
        return self.rng.random() * 100 < percent


async def send(tb, items, valid, ready, data, percent):
    """Offer items in order over valid/ready; ``data`` is a signal or a list of signals of a tuple.

    An offer stays until it is taken, as the streams of this project require.
    """
    signals = data if isinstance(data, (list, tuple)) else [data]
    for item in items:
        while not tb.chance(percent):
            await RisingEdge(tb.dut.clk)
        values = item if isinstance(item, tuple) else (item,)
        for signal, value in zip(signals, values, strict=True):
            signal.value = value
        valid.value = 1
        while True:
            await ReadOnly()
            taken = bool(ready.value)
            await RisingEdge(tb.dut.clk)
            if taken:
                break
        valid.value = 0


async def receive(tb, count, valid, ready, data, percent):
    """Take ``count`` items over valid/ready; returns the values of ``data`` (None: only counts)."""
    items = []
    while len(items) < count:
        ready.value = int(tb.chance(percent))
        await ReadOnly()
        if ready.value and valid.value:
            items.append(None if data is None else int(data.value))
        await RisingEdge(tb.dut.clk)
    ready.value = 0
    return items


def bus_requests(tb):
    """(offset, length) in words: single ones, none, more than a burst, over a page, and random ones."""
    requests = [(0, 1), (5, 0), (3, 130), (450, 200), (7, 1)]
    return requests + [(tb.rng.randrange(4000), tb.rng.randrange(70)) for _ in range(25)]


def check_burst(dut, address, beats, bytes_per_beat, burst):
    """The rules of a burst: it stays within 4 KB and the limit, and its addresses count up."""
    assert address // 4096 == (address + beats * bytes_per_beat - 1) // 4096, "4 KB rule"
    assert beats <= int(dut.MAX_BURST.value), f"a burst of {beats} beats"
    assert int(burst.value) == 1


async def until_idle(tb, bursts):
    """Wait for a bus master to be idle; its bursts were as short and as long as they may be."""
    assert max(bursts) == int(tb.dut.MAX_BURST.value) and min(bursts) == 1
    while not tb.dut.idle.value:
        await RisingEdge(tb.dut.clk)


async def clear_error(tb):
    """The error of a bus master is SLVERR; clear it."""
    dut = tb.dut
    tb.equal(int(dut.error.value), 2, "SLVERR")
    dut.clear.value = 1
    await RisingEdge(dut.clk)
    dut.clear.value = 0
    await RisingEdge(dut.clk)
    await ReadOnly()
    tb.equal(int(dut.error.value), 0, "cleared")
    await RisingEdge(dut.clk)


def bench_test(inputs, time_us=2000):
    """A cocotb test of coroutine(tb) after a reset; one that compared nothing fails."""

    def wrap(coroutine):
        async def test(dut):
            tb = TB(dut, inputs)
            await tb.cycle_reset()
            await with_timeout(coroutine(tb), time_us, "us")
            assert tb.compared > 0, "this test has compared nothing"

        test.__name__ = test.__qualname__ = coroutine.__name__
        test.__doc__, test.__module__ = coroutine.__doc__, coroutine.__module__
        return cocotb.test()(test)

    return wrap


class FaultyMemory(MemoryRegion):
    """Memory that answers SLVERR in one range of addresses, and keeps canaries."""

    def __init__(self, size):
        super().__init__(size)
        self.bad = range(0)

    def _check(self, address, length):
        if set(range(address, address + length)) & set(self.bad):
            raise OSError("a planted fault")

    async def _read(self, address, length, **kwargs):
        self._check(address, length)
        return await super()._read(address, length, **kwargs)

    async def _write(self, address, data, **kwargs):
        self._check(address, len(data))
        await super()._write(address, data, **kwargs)


def pause(channels, percent, seed):
    """Random idle cycles and backpressure on channels of cocotbext-axi."""
    for number, channel in enumerate(channels):
        rng = random.Random(1000 * seed + number)
        channel.set_pause_generator(
            iter(lambda rng=rng: rng.random() * 100 < percent, None) if percent else None
        )
        channel.pause = False


def quiet(*sides):
    for side in sides:
        side.log.setLevel(logging.ERROR)
