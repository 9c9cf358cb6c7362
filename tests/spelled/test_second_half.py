"""The other half of the random models, in a file of its own so that two workers share them."""

from tests.spelled import check
from tests.spelled.test_first_half import COUNT, SEED


def test_equal_to_eager_or_refused_by_name():
    print(f"\nseed {SEED + COUNT}, {COUNT} models; others: make fuzz-models N=1000 SEED=0")
    results = check.run(SEED + COUNT, COUNT)
    wrong = [f"{check.repeat(r.seed)}: {r.text}" for r in results if r.outcome == "wrong"]
    assert len(results) == COUNT
    assert not wrong, "\n".join(wrong)
