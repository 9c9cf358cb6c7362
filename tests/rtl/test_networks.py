"""700 random networks on the RTL of `tiny`, under random stalls: every output word is equal."""

from __future__ import annotations

import os

import pytest
import rtl_networks

COUNT = int(os.environ.get("RASNA_NETWORKS_RTL", "700"))
SEED = int(os.environ.get("RASNA_SEED", "0"))


@pytest.fixture(scope="module")
def results(rtl_path):
    rtl_path("tiny")
    print(f"\nseed {SEED}, {COUNT} networks")
    return rtl_networks.run(COUNT, SEED, jobs=2)


def test_every_network_gives_the_bits_of_pytorch_and_golden(results):
    wrong = [f"seed {r.seed}: {r.failure}" for r in results if r.failure and not r.refused]
    refused = [f"seed {r.seed}: {r.failure}" for r in results if r.refused]
    assert len(results) == COUNT > 0
    assert not wrong, "\n".join(wrong)
    # tiny has no room for some; the message that says so has tests of its own
    assert len(refused) <= COUNT // 100, "\n".join(refused)


def test_the_networks_cover_what_the_machine_can_do(results, capsys):
    table = rtl_networks.coverage(results)
    with capsys.disabled():
        print("\n" + "\n".join(f"  {name:28} {number:6}" for name, number in table.items()))
    least = COUNT // 35
    thin = {name: number for name, number in table.items() if number < least}
    assert not thin, f"fewer than {least} networks cover {thin}"
