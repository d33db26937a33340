"""Training on every batch several times: making one costs as much as learning from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

T = TypeVar("T")

KEPT = 64
"""Batches that are kept to come back."""


def replay(fresh: Iterator[T], times: int, *, seed: int, kept: int = KEPT) -> Iterator[T]:
    """Yield new batches, and between two of them `times` - 1 earlier ones, drawn at random.

    Args:
        fresh: New batches.
        times: How often a batch is seen, on average; 1 hands the new ones through.
        seed: Decides which come back.
        kept: How many are kept in memory; a new one then takes the place of any.

    Yields:
        Batches until there is no new one left.
    """
    rng = np.random.default_rng(seed)
    pool: list[T] = []
    for item in fresh:
        yield item
        if times == 1:
            continue
        if len(pool) < kept:
            pool.append(item)
        else:
            pool[int(rng.integers(kept))] = item
        for _ in range(times - 1):
            yield pool[int(rng.integers(len(pool)))]
