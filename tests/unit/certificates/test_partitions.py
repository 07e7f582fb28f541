"""Poisoned texts and changed words: the integer condition against every outcome of small votes."""

import itertools

import numpy as np
import pytest

from ranmask.certificates.partitions import most_poisoned, vote_counts
from ranmask.metrics import words_beside


def outcomes(tables, classes):
    """Every vote of so many tables, and who wins it."""
    votes = np.array(list(itertools.product(range(classes), repeat=tables)))
    return votes, vote_counts(votes.T, classes).argmax(axis=1)


def fewest_poisoned(said, proved, changed, votes, winners):
    """How many tables must be poisoned, beside so many changed words, for another label."""
    label = np.bincount(said, minlength=proved.shape[1]).argmax()
    tables = np.arange(len(said))
    reached = (votes == said) | (changed > proved[tables, votes])
    return (~reached).sum(axis=1)[winners != label].min()


def some_tables(rng, tables, classes):
    said = rng.integers(0, classes, tables)
    said = np.where(rng.random(tables) < 0.5, said[0], said)
    proved = rng.integers(0, 4, (tables, classes))
    proved[np.arange(tables), said] = 9
    proved[np.arange(tables), said] = proved.min(axis=1)
    return said, proved


@pytest.mark.parametrize(("tables", "classes"), [(1, 2), (2, 2), (5, 2), (6, 2), (4, 3), (5, 4)])
def test_neither_more_nor_less_is_proved_than_holds_of_every_vote(tables, classes):
    rng = np.random.default_rng(tables * classes)
    votes, winners = outcomes(tables, classes)
    drawn = [some_tables(rng, tables, classes) for _ in range(150)]
    said = np.stack([one for one, _ in drawn], axis=1)
    proved = np.stack([one for _, one in drawn], axis=1)
    for found, (own, radii) in zip(most_poisoned(said, proved), drawn, strict=True):
        expected = []
        for changed in range(6):
            needed = fewest_poisoned(own, radii, changed, votes, winners)
            if needed == 0:
                break
            expected.append(needed - 1)
        assert found == tuple(expected)


def test_the_lower_class_wins_a_tie():
    said = np.array([[0, 1], [0, 1], [1, 0]])
    unlimited = np.full((3, 2, 2), 5)
    # Two against one: a poisoned table makes it one against two, whoever is lower.
    assert [one[0] for one in most_poisoned(said, unlimited)] == [0, 0]
    said = np.array([[0, 1], [0, 1], [0, 1], [1, 0]])
    # Three against one: a poisoned table makes it a tie, which class 0 wins and class 1 loses.
    found = most_poisoned(said, np.full((4, 2, 2), 5))
    assert [one[0] for one in found] == [1, 0]


def test_all_tables_are_turned_at_last():
    [found] = most_poisoned(np.zeros((9, 1), dtype=int), np.full((9, 1, 2), 3))
    assert found == (4, 4, 4, 4)
    assert [words_beside(found, texts) for texts in (0, 4, 5)] == [3, 3, None]
