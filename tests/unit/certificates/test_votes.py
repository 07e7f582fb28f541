import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ranmask.certificates.votes import SCALE, count_votes
from ranmask.errors import ClassifierError

tables = st.tuples(st.integers(1, 12), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-8, 8))
)


def test_a_tie_goes_to_the_lowest_id():
    votes = count_votes(np.array([[0.0, 1.0], [1.0, 0.0]]), "vote", "scores", 0.0)
    assert votes.counts.tolist() == [[1, 1]] and votes.winners.tolist() == [0]


def test_without_tolerance_no_vote_is_uncertain():
    votes = count_votes(np.array([[0.5, 0.5]]), "vote", "scores", 0.0)
    assert votes.counts.tolist() == [[1, 0]] and not votes.uncertain.any()


def test_votes_within_the_tolerance_are_uncertain():
    scores = np.array([[1.0, 0.9], [1.0, 0.5], [0.0, 0.125]])
    votes = count_votes(scores, "vote", "logits", 0.125)
    assert votes.uncertain.tolist() == [True, False, True]


@settings(max_examples=200)
@given(tables, st.sampled_from(["vote", "score", "logit"]), st.data())
def test_no_movement_within_the_tolerance_undercuts_the_differences(scores, ensemble, data):
    """Move every logit by up to half the tolerance: no copy falls below what was promised."""
    tolerance = data.draw(st.sampled_from([2.0**-20, 1e-3, 0.5]))
    moves = data.draw(
        arrays(np.float64, scores.shape, elements=st.floats(-tolerance / 2, tolerance / 2))
    )
    before = count_votes(scores, ensemble, "logits", tolerance)
    after = count_votes(scores + moves, ensemble, "logits", tolerance)
    for label in range(before.classes):
        promised = before.differences(np.array([label]))
        if ensemble == "vote":
            rivals = [r for r in range(before.classes) if r != label]
            actual = [(after.best == label) * 1 - (after.best == r) for r in rivals]
            lowest = promised.sum(axis=1).min()
            assert lowest <= np.sum(actual, axis=1).min()
        else:
            rivals = [r for r in range(before.classes) if r != label]
            actual = (after.points[:, [label]] - after.points[:, rivals]).T
            assert (promised <= actual).all()


@given(tables)
def test_points_stay_within_the_bound(scores):
    for ensemble in ("score", "logit"):
        votes = count_votes(scores, ensemble, "logits", 0.0)
        apart = votes.points.max(axis=1) - votes.points.min(axis=1)
        assert apart.max() <= votes.bound
        assert (votes.differences(votes.winners) >= -votes.bound).all()
    assert votes.bound <= math.sqrt(2) * SCALE + 3


def test_score_ensemble_needs_probabilities():
    with pytest.raises(ClassifierError, match="between 0 and 1"):
        count_votes(np.array([[2.0, -1.0]]), "score", "scores", 0.0)


def test_score_ensemble_adds_probabilities():
    votes = count_votes(np.array([[0.9, 0.1], [0.4, 0.6]]), "score", "scores", 0.0)
    assert votes.winners.tolist() == [0] and votes.counts.tolist() == [[1, 1]]
    assert votes.means()[0] == pytest.approx((0.65, 0.35), abs=1e-6)


def test_logit_ensemble_normalises():
    """One huge logit counts no more than a small one."""
    votes = count_votes(np.array([[1e6, 0.0], [0.0, 1.0], [0.0, 1.0]]), "logit", "logits", 0.0)
    assert votes.winners.tolist() == [1]


def test_tiny_logits_stay_within_the_bound():
    """Their squares underflow; a careless norm would let one copy outweigh the bound."""
    for size in (2.7e-162, 5e-324, 1e300):
        for tolerance in (0.0, 1e-3):
            votes = count_votes(np.array([[-size, size]]), "logit", "logits", tolerance)
        assert votes.points[0].tolist() == [-741455, 741455]
        assert votes.points[0, 1] - votes.points[0, 0] <= votes.bound


@settings(max_examples=100)
@given(st.data())
def test_votes_against_a_label_by_the_definition(data):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    total = sum(sizes)
    scores = data.draw(arrays(np.float64, (total, 3), elements=st.sampled_from([0.0, 0.5, 1.0])))
    labels = [data.draw(st.integers(0, 2)) for _ in sizes]
    votes = count_votes(scores, "vote", "logits", 0.6, np.array(sizes))
    ends = np.cumsum(sizes)
    expected = [
        [
            sum(
                (vote == one and not doubt) if one == label else (vote == one or doubt)
                for vote, doubt in zip(votes.best[a:b], votes.uncertain[a:b], strict=True)
            )
            for one in range(3)
        ]
        for a, b, label in zip(ends - sizes, ends, labels, strict=True)
    ]
    assert votes.against(labels).tolist() == expected
