"""The search over weights of levels finds what was planted, and leaves out what brings nothing."""

from fractions import Fraction

import numpy as np
import pytest

from ranmask.certificates.families import family
from ranmask.certificates.level_weights import ReadTexts
from ranmask.certificates.votes import count_votes
from ranmask.training.choosing import WORTH, calls_of, measured
from ranmask.training.level_search import LevelSearch

WORDS = 16


def planted(right, *, texts=600, word=0.55, seed=0, classes=2):
    """Texts of 16 words, each right with the chance ``word``; segments with those of ``right``.

    ``right``: of the whole text, of each half, of each quarter.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, size=texts)

    def said(size, chance):
        correct = rng.random((texts, size)) < chance
        other = (labels[:, None] + rng.integers(1, classes, size=(texts, size))) % classes
        return np.eye(classes)[np.where(correct, labels[:, None], other)]

    rows = said(WORDS, word).reshape(-1, classes)
    nodes = np.concatenate([said(2**level, chance) for level, chance in enumerate(right)], axis=1)
    copies = np.full(texts, WORDS)
    votes = count_votes(rows, "score", "scores", 0.0, copies)
    return ReadTexts(votes, [family(WORDS, 1, choice="all", masks=100)] * texts, nodes, labels)


def test_a_level_that_is_right_is_found():
    texts = planted((0.95, 0.5, 0.99))
    search = LevelSearch([texts], 2)
    [*_, take] = search.best((1,), search.model - 0.02)
    assert take[2] >= 4 and not any(take[:2])  # the quarters alone: two of them are left
    [found] = search.weighed([take])
    assert found.calls == 4 and found.accuracy() > Fraction(95, 100)
    whole = max(measured([texts], [(weight / 4,) for weight in range(1, 80)]), key=at_one)
    assert at_one(found) > at_one(whole) + Fraction(1, 10)


def at_one(found):
    return found.score((1,))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_level_that_says_nothing_is_left_out(classes):
    texts = planted((0.9, 1 / classes, 1 / classes), word=0.8, classes=classes)
    search = LevelSearch([texts], 2)
    for give_up in (0.02, 0.1):
        [*_, take] = search.best((1, 2), search.model - give_up)
        assert len(take) == 1


def test_of_all_that_prove_nearly_as_much_the_fewest_calls_are_taken():
    """Quarters prove a little more here, by less than a point."""
    search = LevelSearch([planted((0.99, 0.99, 0.99), word=0.85)], 2)
    most, take = search.best((1,), search.model - 0.05)
    assert (calls_of(most), take) == (4, (0.125,))
    more, less = map(at_one, search.weighed([most, take]))
    assert 0 < more - less < WORTH
    # Words that are always right prove everything, whatever is read: a tie.
    search = LevelSearch([planted((1.0, 1.0, 1.0), word=1.0)], 6)
    assert search.best((1, 2), search.model) == [(0.125,)]


def test_what_is_best_is_the_best_of_all_that_are_allowed():
    texts = planted((0.9, 0.8, 0.7), texts=200)
    search = LevelSearch([texts], 5)
    least = search.model - 0.1
    [most, *_] = search.best((1, 2), least)
    tried = [
        (whole, half, quarter)
        for whole in (0.0, 0.5, 1.0, 2.0, 4.0, 8.1)
        for half in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
        for quarter in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    ]
    allowed = [one for one in search.weighed(tried) if one.expected >= least]
    [found] = search.weighed([most])
    assert len(allowed) > 5 and len(most) > 1 and found.expected >= least - 1e-6
    assert all(found.score((1, 2)) >= one.score((1, 2)) for one in allowed)


def test_nothing_is_accurate_enough():
    search = LevelSearch([planted((0.6, 0.6, 0.6), texts=100)], 1)
    assert search.best((1,), 1.01) == []


def test_accuracy_is_expected_to_be_lower_the_fewer_the_texts():
    """One standard error of the difference from the model, of texts that are lost and won."""
    few, many = (
        LevelSearch([planted((0.9, 0.7, 0.7), texts=size)], 1).weighed([(2.0, 2.0)])[0]
        for size in (100, 6400)
    )
    doubts = [float(one.accuracy()) - one.expected for one in (few, many)]
    assert 0.01 < doubts[0] < 0.08 and doubts[1] < doubts[0] / 4


def test_the_doubt_is_that_of_texts_lost_and_won():
    texts = planted((0.9, 0.7, 0.7), texts=400)
    [found] = LevelSearch([texts], 1).weighed([(4.0, 1.0)])
    model = texts.nodes[:, 0].argmax(axis=1) == texts.labels
    sums = np.add.reduceat(texts.votes.points, texts.votes.starts, axis=0) / 2**20
    sums = sums + 4 * texts.nodes[:, 0] + texts.nodes[:, 1:3].sum(axis=1)
    changed = (sums.argmax(axis=1) == texts.labels) != model
    fitted = found.expected + np.sqrt(changed.sum()) / 400
    assert abs(fitted - float(found.accuracy())) < 0.01  # runs that fall are averaged


def test_balanced_classes_count_alike():
    texts = planted((0.9, 0.5, 0.9), texts=600)
    rare = np.flatnonzero((texts.labels == 0) | (np.arange(600) < 60))
    places = np.concatenate([np.arange(WORDS) + WORDS * place for place in rare])
    some = count_votes(
        texts.votes.points[places] / 2**20, "score", "scores", 0.0, np.full(len(rare), WORDS)
    )
    part = ReadTexts(some, [texts.families[0]] * len(rare), texts.nodes[rare], texts.labels[rare])
    plain, balanced = LevelSearch([part], 1), LevelSearch([part], 1, balanced=True)
    own = part.nodes[:, 0].argmax(axis=1) == part.labels
    assert plain.model == pytest.approx(own.mean())
    recalls = [own[part.labels == label].mean() for label in (0, 1)]
    assert balanced.model == pytest.approx(np.mean(recalls))
    [one], [other] = plain.weighed([(1.0, 0.0, 2.0)]), balanced.weighed([(1.0, 0.0, 2.0)])
    assert one.right == other.right and one.expected > other.expected  # few of one class: doubt


def test_the_frontier_has_all_that_is_best_for_some_price():
    texts = planted((0.95, 0.8, 0.9))
    search = LevelSearch([texts], 10)
    found = search.frontier((1, 2))
    assert len(found) > 2 and len({one.weights for one in found}) == len(found)
    assert all(len(one.weights) > 1 and one.weights[-1] and one.expected for one in found)
    for points in (1, 3, 5):
        for weights in search.best((1, 2), search.model - points / 100):
            assert len(weights) == 1 or weights in [one.weights for one in found]
    assert [one.certified for one in found] == [
        one.certified for one in measured([texts], [one.weights for one in found])
    ]
