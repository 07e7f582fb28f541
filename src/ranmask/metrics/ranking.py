"""How far two lists of values put the same things in the same order."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1 up, ties sharing theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's, ties sharing their ranks; None below three pairs, or where all are alike.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return statistics.correlation(ranks(first), ranks(second))


def pairs_in_order(first: Sequence[float], second: Sequence[float]) -> tuple[int, int]:
    """Pairs that both lists put in the same order, of those that neither ties.

    >>> pairs_in_order([1, 2, 3], [1, 3, 2])
    (2, 3)
    """
    pairs = combinations(zip(first, second, strict=True), 2)
    same = [(a < c) == (b < d) for (a, b), (c, d) in pairs if a != c and b != d]
    return sum(same), len(same)
