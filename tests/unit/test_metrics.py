from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ranmask.metrics import CertifiedSummary, median_certified_robustness


def test_papers_example():
    assert median_certified_robustness([None, None, 1, 2, 3]) == 1


def test_even_numbers_take_the_lower_median():
    assert median_certified_robustness([1, 2, 3, 4]) == 2
    assert median_certified_robustness([None, None, 3, 4]) is None
    assert median_certified_robustness([]) is None


@given(st.lists(st.none() | st.integers(0, 9), min_size=1))
def test_against_sorting(radii):
    ranked = sorted(-np.inf if radius is None else radius for radius in radii)
    lower = ranked[(len(ranked) - 1) // 2]
    assert median_certified_robustness(radii) == (None if lower == -np.inf else lower)


def test_summary():
    summary = CertifiedSummary()
    summary.add(correct=True, radius=2, words=10)
    summary.add(correct=True, radius=0, words=4)
    summary.add(correct=True, radius=None, words=4)
    summary.add(correct=False, radius=7, words=10)
    summary.add(correct=True, radius=3, words=4)
    assert summary.accuracy == Fraction(4, 5)
    assert summary.certified_accuracy(0) == Fraction(3, 5)
    assert summary.certified_accuracy(1) == Fraction(2, 5)
    assert summary.certified_accuracy(3) == Fraction(1, 5)
    assert summary.certified_accuracy(4) == 0
    assert summary.median_radius == 0
    assert summary.median_rate == 0
    assert summary.largest_radius == 3


def test_median_rate_uses_each_texts_own_length():
    summary = CertifiedSummary()
    for radius, words in [(1, 10), (1, 4), (2, 5)]:
        summary.add(correct=True, radius=radius, words=words)
    assert summary.median_radius == 1
    assert summary.median_rate == Fraction(1, 4)
