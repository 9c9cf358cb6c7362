"""Random networks: PyTorch, golden, fast and exact objects agree on every output word.

100 of them, and 400 more in the long run; RASNA_NETWORKS and RASNA_SEED choose others.
"""

from __future__ import annotations

import os

import pytest

from tests.networks import check, fuzz

SEED = int(os.environ.get("RASNA_SEED", "0"))
COUNT = int(os.environ.get("RASNA_NETWORKS", "100"))
PARTS = [
    pytest.param((SEED, COUNT), id="first"),
    pytest.param((SEED + COUNT, 400), marks=pytest.mark.long, id="more"),
]
TARGETS = ["tiny", "pynq-z2"]


@pytest.fixture(scope="module", params=PARTS)
def results(request):
    missing = [t for t in TARGETS if len(check.objects(t)) < 2]
    if missing:
        pytest.fail(f"no simulator objects for {', '.join(missing)}; build them with: make test")
    seed, count = request.param
    print(f"\nseed {seed}, {count} networks, targets {', '.join(TARGETS)}")
    results = fuzz.run(count, seed, jobs=2, targets=TARGETS)
    assert len(results) == count > 0
    return results


def test_every_implementation_agrees_on_every_word(results):
    wrong = [f"seed {r.seed}: {r.failure}" for r in results if r.failure and not r.refused]
    refused = [f"seed {r.seed}: {r.failure}" for r in results if r.refused]
    assert not wrong, "\n".join(wrong)
    # tiny has no room for some; the message that says so has tests of its own
    assert len(refused) <= max(1, len(results) // 100), "\n".join(refused)


def test_at_least_half_of_the_networks_are_graphs(results):
    assert sum(r.is_graph for r in results) >= len(results) / 2


def test_every_attribute_is_covered(results, capsys):
    table = fuzz.coverage(results, TARGETS)
    least = fuzz.MINIMUM * len(results) // 500
    with capsys.disabled():
        print("\n" + "\n".join(f"  {name:28} {number:6}" for name, number in table.items()))
    thin = {name: number for name, number in table.items() if number < least}
    assert not thin, f"fewer than {least} networks cover {thin}"


def test_a_flipped_weight_is_noticed(monkeypatch):
    """The checker is checked: one wrong bit of the program must show."""
    import rasna

    compile_ = rasna.compile

    def damaged(*args, **kwargs):
        program = compile_(*args, **kwargs)
        program.words = program.words.copy()
        start = program.num_instructions * 8
        program.words[start:] ^= 0x10  # a bit of weights, biases and table entries
        return program

    monkeypatch.setattr(rasna, "compile", damaged)
    noticed = sum(check.check_network(seed, ["tiny"]).failure is not None for seed in range(8))
    assert noticed >= 6
