"""Two lists that put the same things in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from ranmask.metrics.ranking import pairs_in_order, rank_correlation


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=8))
def test_rank_correlation_is_spearmans(pairs):
    first, second = zip(*pairs, strict=True)
    ours = rank_correlation(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert ours is None
    else:
        assert ours == pytest.approx(spearmanr(first, second).statistic)


def test_two_methods_have_no_rank_correlation():
    assert rank_correlation([1, 2], [1, 2]) is None
    assert pairs_in_order([1, 2], [1, 2]) == (1, 1)
    assert pairs_in_order([1, 1, 2], [1, 2, 0]) == (0, 2)
