import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ranmask.errors import ClassifierError
from ranmask.smoothing.votes import SCALE, count_ballots

tables = st.tuples(st.integers(1, 12), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-8, 8))
)


def test_a_tie_goes_to_the_lowest_id():
    ballots = count_ballots(np.array([[0.0, 1.0], [1.0, 0.0]]), "vote", "scores", 0.0)
    assert ballots.counts == (1, 1) and ballots.winner == 0


def test_without_tolerance_no_vote_is_uncertain():
    ballots = count_ballots(np.array([[0.5, 0.5]]), "vote", "scores", 0.0)
    assert ballots.counts == (1, 0) and not ballots.uncertain.any()


def test_votes_within_the_tolerance_are_uncertain():
    scores = np.array([[1.0, 0.9], [1.0, 0.5], [0.0, 0.125]])
    ballots = count_ballots(scores, "vote", "logits", 0.125)
    assert ballots.uncertain.tolist() == [True, False, True]


@settings(max_examples=200)
@given(tables, st.sampled_from(["vote", "score", "logit"]), st.data())
def test_no_movement_within_the_tolerance_undercuts_the_differences(scores, ensemble, data):
    """Move every logit by up to half the tolerance: no copy falls below what was promised."""
    tolerance = data.draw(st.sampled_from([2.0**-20, 1e-3, 0.5]))
    moves = data.draw(
        arrays(np.float64, scores.shape, elements=st.floats(-tolerance / 2, tolerance / 2))
    )
    before = count_ballots(scores, ensemble, "logits", tolerance)
    after = count_ballots(scores + moves, ensemble, "logits", tolerance)
    for label in range(before.classes):
        promised = before.differences(label)
        if ensemble == "vote":
            rivals = [r for r in range(before.classes) if r != label]
            actual = [(after.votes == label) * 1 - (after.votes == r) for r in rivals]
            lowest = promised.sum(axis=1).min()
            assert lowest <= np.sum(actual, axis=1).min()
        else:
            rivals = [r for r in range(before.classes) if r != label]
            actual = (after.points[:, [label]] - after.points[:, rivals]).T
            assert (promised <= actual).all()


@given(tables)
def test_points_stay_within_the_bound(scores):
    for ensemble in ("score", "logit"):
        ballots = count_ballots(scores, ensemble, "logits", 0.0)
        apart = ballots.points.max(axis=1) - ballots.points.min(axis=1)
        assert apart.max() <= ballots.bound
        assert (ballots.differences(ballots.winner) >= -ballots.bound).all()
    assert ballots.bound <= math.sqrt(2) * SCALE + 3


def test_score_ensemble_needs_probabilities():
    with pytest.raises(ClassifierError, match="between 0 and 1"):
        count_ballots(np.array([[2.0, -1.0]]), "score", "scores", 0.0)


def test_score_ensemble_adds_probabilities():
    ballots = count_ballots(np.array([[0.9, 0.1], [0.4, 0.6]]), "score", "scores", 0.0)
    assert ballots.winner == 0 and ballots.counts == (1, 1)
    assert ballots.means() == pytest.approx((0.65, 0.35), abs=1e-6)


def test_logit_ensemble_normalises():
    """One huge logit counts no more than a small one."""
    ballots = count_ballots(np.array([[1e6, 0.0], [0.0, 1.0], [0.0, 1.0]]), "logit", "logits", 0.0)
    assert ballots.winner == 1


def test_tiny_logits_stay_within_the_bound():
    """Their squares underflow; a careless norm would let one copy outweigh the bound."""
    for size in (2.7e-162, 5e-324, 1e300):
        for tolerance in (0.0, 1e-3):
            ballots = count_ballots(np.array([[-size, size]]), "logit", "logits", tolerance)
        assert ballots.points[0].tolist() == [-741455, 741455]
        assert ballots.points[0, 1] - ballots.points[0, 0] <= ballots.bound
