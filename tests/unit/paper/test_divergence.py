import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import entropy

from ranmask.paper.divergence import jensen_shannon

shares = st.floats(0, 1, allow_subnormal=False)
pairs = st.lists(st.tuples(shares, shares), min_size=1, max_size=30)


def as_published(p, q):
    """The formula of the published code: mixed first, scaled by scipy afterwards."""
    middle = (np.asarray(p) + np.asarray(q)) / 2
    return 0.5 * entropy(p, middle) + 0.5 * entropy(q, middle)


@given(pairs)
def test_agrees_with_scipys_relative_entropy(rows):
    p, q = zip(*rows, strict=True)
    assume(sum(p) > 1e-6 and sum(q) > 1e-6)
    value = jensen_shannon(p, q)
    assert 0 <= value <= math.log(2) + 1e-12
    assert value == pytest.approx(jensen_shannon(q, p), abs=1e-15)
    one, other = np.array(p) / sum(p), np.array(q) / sum(q)
    middle = (one + other) / 2
    reference = (rel_entr(one, middle).sum() + rel_entr(other, middle).sum()) / 2
    assert value == pytest.approx(reference, abs=1e-12)


def test_is_known_by_hand():
    assert jensen_shannon([2, 0], [0, 5]) == pytest.approx(math.log(2))
    # p = (3/4, 1/4), q = (1/4, 3/4), middle = (1/2, 1/2)
    by_hand = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert jensen_shannon([3, 1], [1, 3]) == pytest.approx(by_hand)


def test_agrees_with_the_published_code_as_far_as_its_docstring_says():
    draw = np.random.default_rng(3)
    p = draw.uniform(0.5, 1, 1000)
    q = np.clip(0.95 * p + draw.normal(0, 0.02, 1000), 0, 1)
    apart = ((p.sum() - q.sum()) / (p.sum() + q.sum())) ** 2
    ours = jensen_shannon(p, q)
    assert as_published(p, q) == pytest.approx(ours * (1 + apart), rel=1e-4)
    assert as_published(p, q) == pytest.approx(ours, rel=1e-3)


def test_is_blind_to_a_common_factor():
    p = np.random.default_rng(0).uniform(0.1, 1, 500)
    assert jensen_shannon(p, 0.3 * p) == pytest.approx(0, abs=1e-15)


def test_is_an_eighth_of_the_mean_square_of_relative_differences():
    draw = np.random.default_rng(1)
    off = draw.normal(0, 0.02, 2000)
    p = np.full(2000, 0.8)
    value = jensen_shannon(p, p * (1 + off))
    assert value == pytest.approx(np.mean((off - off.mean()) ** 2) / 8, rel=0.05)
    # The same texts twice: no more and no less.
    twice = jensen_shannon(np.tile(p, 2), np.tile(p * (1 + off), 2))
    assert twice == pytest.approx(value, rel=1e-9)


def test_huge_numbers_do_not_overflow():
    assert jensen_shannon([1e308] * 4, [1, 1, 1, 1]) == 0
