"""Which tokens are predicted, and what is shown instead: a function of seed, epoch and row."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.training.masking import TokenMasking, Turn

SPECIAL = (0, 1, 2, 3, 4)
START, END, MASK = 2, 3, 4
VOCABULARY = 2000


def masking(rate=0.15, seed=0, held_out=False, special=SPECIAL):
    ordinary = np.ones(VOCABULARY, dtype=bool)
    ordinary[list(special)] = False
    return TokenMasking(ordinary, MASK, rate, seed, held_out)


def row(tokens=60, seed=0):
    """As a tokenizer makes it: special tokens around ordinary ones."""
    rng = np.random.default_rng(seed)
    return np.array([START, *rng.integers(5, VOCABULARY, tokens), END])


def hidden(ids=None, epoch=0, number=0, **options):
    return masking(**options).hide(row() if ids is None else ids, Turn(number, epoch, 0.5))


def content(one):
    return one.shown.tolist(), one.places.tolist(), one.targets.tolist()


class TestWhichTokens:
    @given(st.integers(1, 200), st.floats(0.01, 0.99), st.integers(0, 5), st.integers(0, 99))
    def test_a_share_of_them_and_at_least_one(self, tokens, rate, epoch, number):
        ids = row(tokens)
        one = hidden(ids, epoch, number, rate=rate)
        assert max(1, rate * tokens - 0.5) <= len(one.places) + 1e-9
        assert len(one.places) <= max(1, rate * tokens + 0.5)
        assert sorted(set(one.places.tolist())) == one.places.tolist()  # rising, and no one twice
        assert one.targets.tolist() == ids[one.places].tolist()
        others = np.setdiff1d(np.arange(len(ids)), one.places)
        assert np.array_equal(one.shown[others], ids[others])

    def test_special_tokens_are_never_predicted_nor_shown_at_random(self):
        ids = np.array([START, 7, 0, 8, 1, END, 9, 10, MASK, END, 0, 0])
        predicted, random_ones = set(), []
        for number in range(600):
            one = hidden(ids, number=number, rate=0.9)
            predicted.update(one.places.tolist())
            random_ones += [token for token in one.shown[one.places].tolist() if token != MASK]
        assert predicted == {1, 3, 6, 7}
        assert not set(random_ones) & set(SPECIAL)

    def test_nothing_but_special_tokens(self):
        ids = np.array([START, 1, 1, END])
        assert content(hidden(ids, rate=0.9)) == (ids.tolist(), [], [])

    def test_every_place_is_predicted_about_as_often(self):
        ids = row(10)
        counts = Counter(
            place for number in range(2000) for place in hidden(ids, number=number, rate=0.3).places
        )
        assert set(counts) == set(range(1, 11))
        assert min(counts.values()) > 500 and max(counts.values()) < 700  # of 600

    def test_the_row_that_was_given_stays_as_it_is(self):
        ids = row()
        hidden(ids, rate=0.9)
        assert np.array_equal(ids, row())


class TestWhatIsShown:
    def test_eighty_ten_ten(self):
        masked = same = other = 0
        for number in range(400):
            one = hidden(number=number, rate=0.5)
            shown = one.shown[one.places]
            masked += int((shown == MASK).sum())
            same += int((shown == one.targets).sum())
            other += int(((shown != MASK) & (shown != one.targets)).sum())
        total = masked + same + other
        assert total == 400 * 30
        assert masked / total == pytest.approx(0.8, abs=0.015)
        assert same / total == pytest.approx(0.1, abs=0.01)
        assert other / total == pytest.approx(0.1, abs=0.01)

    def test_random_tokens_come_from_the_whole_vocabulary(self):
        drawn = []
        for number in range(400):
            one = hidden(number=number, rate=0.5)
            shown = one.shown[one.places]
            drawn += shown[(shown != MASK) & (shown != one.targets)].tolist()
        assert len(set(drawn)) > 700  # of some 1200 draws out of 1995
        assert min(drawn) < 30 and max(drawn) > VOCABULARY - 30
        assert abs(np.mean(drawn) - VOCABULARY / 2) < 60


class TestPure:
    def test_whatever_was_drawn_before_and_in_any_order(self):
        turns = [(epoch, number) for epoch in range(3) for number in range(20)]
        one = masking()
        expected = {turn: content(one.hide(row(), Turn(turn[1], turn[0], 0.0))) for turn in turns}
        random.Random(1).shuffle(turns)
        np.random.seed(3)
        other = masking()
        for epoch, number in turns:  # with another progress too, and rows of others in between
            other.hide(row(30, seed=number), Turn(number + 1, epoch, 0.0))
            again = other.hide(row(), Turn(number, epoch, 0.9))
            assert content(again) == expected[epoch, number]

    @pytest.mark.parametrize(
        "change", [{"epoch": 1}, {"number": 1}, {"seed": 1}, {"held_out": True}], ids=str
    )
    def test_every_part_of_the_key_matters(self, change):
        assert hidden(**change).places.tolist() != hidden().places.tolist()

    def test_no_two_turns_share_a_draw(self):
        turns = [
            {"epoch": epoch, "number": number, "seed": seed, "held_out": held_out}
            for epoch in range(6)
            for number in range(6)
            for seed in range(2)
            for held_out in (False, True)
        ]
        seen = {tuple(hidden(row(200), **turn).places) for turn in turns}
        assert len(seen) == len(turns)

    def test_pinned(self):
        """Other values are other models: a seed of today must give the same ones tomorrow."""
        one = hidden(np.array([START, *range(10, 30), END]), epoch=2, number=5, seed=7, rate=0.5)
        assert one.places.tolist() == PINNED["places"]
        assert one.shown[one.places].tolist() == PINNED["shown"]


PINNED = {
    "places": [1, 2, 3, 9, 11, 13, 14, 15, 17, 19],
    "shown": [1965, 11, 4, 4, 4, 386, 4, 4, 4, 4],
}
