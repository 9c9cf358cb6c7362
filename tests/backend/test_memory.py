
from rasna.compile.backend.memory import FirstFit, OutOfMap
from tests.messages import refuses


def test_blocks_are_placed_from_below_and_reused_when_released():
    memory = FirstFit(100)
    first, second = memory.allocate(30), memory.allocate(30)
    memory.release(first)
    assert (first, second) == (0, 30)
    assert memory.allocate(20) == 0
    assert memory.allocate(20) == 60


def test_high_blocks_are_placed_from_above():
    memory = FirstFit(100)
    assert memory.allocate(10, high=True) == 90
    assert memory.allocate(10, high=True) == 80
    memory.release(90)
    assert memory.allocate(5, high=True) == 95


def test_a_request_that_fits_nowhere_tells_the_largest_gap():
    memory = FirstFit(100)
    memory.allocate(40)
    with refuses(OutOfMap, "70 words are needed, 60 are free"):
        memory.allocate(70)
    with refuses(OutOfMap, "70 words are needed, 60 are free"):
        memory.allocate(70, high=True)


def test_a_block_is_released_at_the_end_of_its_with_statement():
    memory = FirstFit(10)
    with memory.block(10):
        assert memory.largest_gap() == 0
    assert memory.largest_gap() == 10
    assert memory.peak == 10


def test_an_unbounded_memory_grows():
    memory = FirstFit()
    assert memory.allocate(1000) == 0
    assert memory.allocate(1) == 1000
    assert memory.peak == 1001
