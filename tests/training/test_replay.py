"""Batches that serve several steps."""

from collections import Counter
from itertools import islice

import pytest

from restore.training.replay import replay


def test_once_hands_the_new_ones_through() -> None:
    assert list(replay(iter(range(9)), 1, seed=0)) == list(range(9))


@pytest.mark.parametrize("times", [2, 3])
def test_each_is_seen_that_often_on_average_and_the_new_ones_in_order(times: int) -> None:
    seen = list(replay(iter(range(400)), times, seed=1, kept=8))
    assert seen[::times] == list(range(400))
    often = Counter(seen)
    assert set(often) == set(range(400))
    assert len(seen) == times * 400


def test_what_comes_back_is_not_older_than_the_memory_allows() -> None:
    """A batch is dropped by chance, half of them within a few times what is kept."""
    seen = list(islice(replay(iter(range(10**6)), 2, seed=2, kept=8), 4000))
    ages = [new - old for new, old in zip(seen[::2], seen[1::2], strict=True)]
    assert min(ages) >= 0
    assert sum(age < 40 for age in ages) > 0.95 * len(ages)


def test_the_seed_decides() -> None:
    runs = [list(replay(iter(range(60)), 2, seed=seed, kept=8)) for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]
