"""Copies of one word: the sort against the search, and edits against brute force."""

import numpy as np
import pytest

from ranmask.certificates.exact import exact_radius, single_word_radii
from ranmask.certificates.families import all_sets


def single_word_radius(differences, bound=1):
    """Of one text: it covers substitutions and edits alike."""
    [radius] = single_word_radii(differences, np.array([differences.shape[1]]), bound)
    return radius


def random_differences(rng, bound, most_words=12, most_rivals=3):
    """Mostly in favour of the label, so that there are radii to compare; many ties."""
    rivals, words = int(rng.integers(1, most_rivals + 1)), int(rng.integers(1, most_words + 1))
    low = int(rng.choice([-bound, 0, bound // 2, bound]))
    return rng.integers(low, bound + 1, size=(rivals, words))


class TestSubstitutions:
    @pytest.mark.parametrize("bound", [1, 2, 5, 2**20])
    def test_the_same_as_the_search(self, bound):
        rng = np.random.default_rng(bound)
        radii = []
        for _ in range(400):
            differences = random_differences(rng, bound)
            words = differences.shape[1]
            searched = exact_radius(
                all_sets(words, 1), differences, words, bound=bound, complete=True
            )
            assert single_word_radius(differences, bound) == searched
            radii.append(searched.words)
        assert None in radii and max(radius or 0 for radius in radii) >= 3

    def test_worst_words_are_the_heaviest(self):
        answer = single_word_radius(np.array([[1, 9, 3, 8, 9, 9, 9]]), 9)
        assert (answer.words, answer.tight, answer.worst) == (2, True, (1, 4, 5))

    def test_the_rival_in_the_way_is_shown(self):
        far, near = [9, 9, 9, 9], [9, 9, 0, 0]
        assert single_word_radius(np.array([far, near]), 9).worst == (0,)
        assert single_word_radius(np.array([near[::-1], far]), 9).worst == (2,)

    def test_a_cost_equal_to_the_margin_is_not_certified(self):
        assert single_word_radius(np.array([[1, 1, 0]])).words == 0
        assert single_word_radius(np.array([[1, 1, 1]])).words == 1


class TestEdits:
    @pytest.mark.parametrize("bound", [1, 2, 3])
    def test_against_every_sequence_of_edits(self, bound):
        """One rival after the other; words of every value; edits one by one."""
        rng = np.random.default_rng(bound)
        radii = []
        for _ in range(100):
            differences = random_differences(rng, bound, most_words=5)
            radius = single_word_radius(differences, bound).words
            assert radius == brute_force(differences, bound) == formula(differences, bound)
            radii.append(radius)
        assert {None, 0, 1, 2} <= set(radii)

    def test_the_same_as_substitutions(self):
        """Before insertions and deletions could pay, replaced words have used up the margin."""
        rng = np.random.default_rng(0)
        for _ in range(2000):
            differences = random_differences(rng, 4)
            assert single_word_radius(differences, 4).words == formula(differences, 4)

    def test_the_worst_words_all_speak_for_the_label(self):
        rng = np.random.default_rng(1)
        for _ in range(500):
            differences = random_differences(rng, 4, most_rivals=1)
            answer = single_word_radius(differences, 4)
            if answer.words is not None:
                assert len(answer.worst) == answer.words + 1
                assert (differences[0, list(answer.worst)] > 0).all()


class TestBoth:
    def test_edges(self):
        certify = single_word_radius
        assert certify(np.array([[0]])).words is None
        assert certify(np.array([[1, -1]])).words is None
        assert certify(np.array([[1, 1, 1], [1, -1, 0]])).words is None
        assert certify(np.array([[1]])).words == 0
        assert certify(np.empty((0, 3), dtype=np.int64)).words == 3
        with pytest.raises(ValueError, match="below -1"):
            certify(np.array([[1, -2]]))

    def test_no_text_can_be_edited_away(self):
        for words in range(1, 40):
            radius = single_word_radius(np.full((2, words), 7), 7).words
            assert radius == (words - 1) // 2 < words


def brute_force(differences, bound):
    """The largest number of edits after which every margin is positive, whatever they are."""
    edits = 0
    reached = [{tuple(sorted(row.tolist()))} for row in differences]
    while all(sum(words) > 0 for row in reached for words in row):
        edits += 1
        reached = [set().union(*(after_one_edit(words, bound) for words in row)) for row in reached]
    return edits - 1 if edits else None


def formula(differences, bound):
    """The dearest edits: existing words cost max(bound, bound + difference), insertions bound."""

    def left(row, edits):
        costs = [max(bound, bound + one) for one in row] + [bound] * edits
        return sum(row) - sum(sorted(costs, reverse=True)[:edits])

    edits = 0
    while all(left(row, edits) > 0 for row in differences.tolist()):
        edits += 1
    return edits - 1 if edits else None


def after_one_edit(words, bound):
    """Every text, as its sorted words, that one edit makes of another."""
    shorter = {words[:i] + words[i + 1 :] for i in range(len(words))}
    values = range(-bound, bound + 1)
    replaced = {tuple(sorted((*left, value))) for left in shorter for value in values}
    inserted = {tuple(sorted((*words, value))) for value in values}
    return shorter | replaced | inserted
