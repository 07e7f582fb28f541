"""ROC curves against counting every pair, and against a curve drawn threshold by threshold."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.errors import DataError
from ranmask.evaluation.intervals import wilson_interval
from ranmask.metrics.roc import RocPoint, roc_curve

# Few different values, so that ties within and between the kinds are common.
SCORES = st.lists(st.sampled_from([0.0, 0.125, 0.5, 0.75, 1.0]), min_size=1, max_size=12)


def counted(clean, attacked):
    """AUC pair by pair: an attacked one above wins, a tie is half a win."""
    pairs = list(product(clean, attacked))
    return sum(Fraction(2 * (b > a) + (b == a), 2) for a, b in pairs) / len(pairs)


@given(SCORES, SCORES)
def test_area_is_the_share_of_pairs_in_order(clean, attacked):
    assert roc_curve(clean, attacked).area == counted(clean, attacked)


@given(SCORES, SCORES)
def test_points_are_what_their_thresholds_do(clean, attacked):
    curve = roc_curve(clean, attacked)
    for point in curve.points:
        assert point.false_alarms == sum(one > point.threshold for one in clean)
        assert point.found == sum(one > point.threshold for one in attacked)
    first, last = curve.points[0], curve.points[-1]
    assert (first.false_alarms, first.found) == (0, 0)
    assert (last.false_alarms, last.found) == (len(clean), len(attacked))
    assert len({(one.false_alarms, one.found) for one in curve.points}) == len(curve.points)


@given(SCORES, SCORES)
def test_swapped_kinds_have_the_rest_of_the_area(clean, attacked):
    assert roc_curve(clean, attacked).area + roc_curve(attacked, clean).area == 1


def test_points_and_area_by_hand():
    curve = roc_curve([0.1, 0.4, 0.4], [0.4, 0.9])
    assert curve.points[:3] == (RocPoint(0.9, 0, 0), RocPoint(0.4, 0, 1), RocPoint(0.1, 2, 2))
    assert curve.area == Fraction(1 + 1 + 1 + 1, 6) + Fraction(1, 6)


@pytest.mark.parametrize(
    ("clean", "attacked", "message"),
    [
        pytest.param([], [1.0], "no clean ones", id="nothing clean"),
        pytest.param([1.0], [], "no attacked ones", id="nothing attacked"),
        pytest.param([float("nan")], [1.0], "the clean ones have others", id="not a number"),
    ],
)
def test_no_scores_or_infinite_ones_have_no_curve(clean, attacked, message):
    with pytest.raises(DataError, match=message):
        roc_curve(clean, attacked)


def test_wilson_intervals_by_hand():
    low, high = wilson_interval(81, 263)  # a textbook's example
    assert (round(low, 3), round(high, 3)) == (0.255, 0.366)
    assert wilson_interval(0, 10)[0] == 0 and wilson_interval(10, 10)[1] == 1
    assert wilson_interval(0, 0) == (0, 1)


@given(st.integers(1, 50).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_hold_their_share(counts):
    part, whole = counts
    low, high = wilson_interval(part, whole)
    assert 0 <= low <= part / whole <= high <= 1
