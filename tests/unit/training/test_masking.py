"""Which words are shown when: a pure function of seed, phase, epoch and row."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.certificates.kept import Retention, kept_count, ramped_count
from ranmask.training.masking import Draw, MaskingPlan, Turn, Turns

ONE = (Retention(1),)
THREE = (Retention(3),)


def plan(retentions=THREE, family="auto", copies=4, ramp=0.0, seed=0, phase=0):
    return MaskingPlan(retentions, family, copies, ramp, seed, phase)


def drawn(words=20, row=0, epoch=0, progress=0.5, **options):
    return plan(**options).draw(words, Turn(row, epoch, progress)).sets


class TestPure:
    def test_the_same_turn_is_drawn_the_same_whatever_came_before(self):
        turns = [Turn(row, epoch, 0.3) for row in range(6) for epoch in range(3)]
        one = plan(retentions=(Retention(1), Retention(2)))
        expected = {turn: one.draw(17, turn).sets.tolist() for turn in turns}
        random.Random(5).shuffle(turns)
        other = plan(retentions=(Retention(1), Retention(2)))
        for turn in turns:  # another order, and another plan with the same values
            assert other.draw(17, turn).sets.tolist() == expected[turn]

    @pytest.mark.parametrize(
        "change", [{"row": 1}, {"epoch": 1}, {"seed": 1}, {"phase": 1}], ids=str
    )
    def test_every_part_of_the_key_matters(self, change):
        assert not np.array_equal(drawn(**change), drawn())

    def test_no_two_keys_share_a_draw(self):
        """Rows and epochs up to 8, which no simple sum or product of them tells apart."""
        keys = [
            {"seed": seed, "phase": phase, "epoch": epoch, "row": row}
            for seed, phase, epoch, row in itertools.product(range(2), range(2), range(8), range(8))
        ]
        seen = {drawn(words=100, **key).tobytes() for key in keys}
        assert len(seen) == len(keys)

    def test_progress_matters_in_a_ramp_only(self):
        assert np.array_equal(drawn(progress=0.0), drawn(progress=0.9))
        assert drawn(progress=0.0, ramp=0.5).shape != drawn(progress=0.9, ramp=0.5).shape

    def test_pinned(self):
        """Other values are other models: a seed of today must give the same ones tomorrow."""
        assert drawn(words=12, row=5, epoch=2, seed=7).tolist() == PINNED["three of twelve"]
        assert drawn(words=9, retentions=ONE, seed=3).ravel().tolist() == PINNED["one of nine"]
        mixed = plan(retentions=(Retention(1), Retention(2), Retention(4)), copies=1)
        kept = [mixed.draw(30, Turn(row, 0, 0)).kept for row in range(12)]
        assert kept == PINNED["mixed"]
        windows = drawn(words=10, family="windows", copies=3, seed=1)
        assert windows.tolist() == PINNED["windows"]
        turns = Turns(10, 2, 4, seed=1, phase=1)
        assert [turn.row for turn in turns] == PINNED["rows"]


PINNED = {
    "three of twelve": [[1, 9, 11], [0, 5, 11], [1, 6, 7], [0, 1, 6]],
    "one of nine": [5, 4, 0, 6],
    "mixed": [2, 2, 2, 1, 2, 4, 1, 2, 2, 4, 2, 1],
    "windows": [[2, 3, 4], [4, 5, 6], [5, 6, 7]],
    "rows": [5, 6, 9, 3, 2, 1, 0, 8, 5, 1, 3, 4, 9, 8, 6, 2],
}


class TestHowManyWords:
    @given(
        st.integers(1, 60),
        st.one_of(
            st.integers(1, 8).map(Retention),
            st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.99]).map(lambda r: Retention(None, r)),
        ),
        st.sampled_from(["auto", "windows"]),
        st.integers(1, 6),
    )
    def test_as_many_as_certification_shows(self, words, retention, family, copies):
        draw = plan((retention,), family, copies).draw(words, Turn(3, 1, 0.5))
        kept = kept_count(words, keep=retention.keep, mask_rate=retention.mask_rate)
        assert draw.kept == kept and draw.words == words
        assert 1 <= len(draw.sets) <= copies
        for one in draw.sets.tolist():
            assert sorted(set(one)) == one and one[0] >= 0 and one[-1] < words

    def test_a_rate_is_read_as_it_is_written(self):
        """A fraction exactly, a float by its digits: the two are equal, and hide other numbers."""
        for rate, kept in ((0.9, 2), (Fraction(0.9), 1), (0.9, 2)):
            plan = MaskingPlan((Retention(mask_rate=rate),), "auto", 2, 0.0, 0)
            assert plan.draw(15, Turn(0, 0, 0.5)).kept == kept

    def test_mixed_numbers_come_up_about_equally_often(self):
        mixed = plan((Retention(1), Retention(2), Retention(5)), copies=1)
        counts = Counter(mixed.draw(20, Turn(row, 0, 0)).kept for row in range(600))
        assert set(counts) == {1, 2, 5} and min(counts.values()) > 150

    def test_every_set_comes_up_about_equally_often(self):
        two = plan((Retention(2),), copies=2)
        sets = [tuple(one) for row in range(900) for one in two.draw(4, Turn(row, 0, 0)).sets]
        counts = Counter(sets)
        assert len(counts) == 6 and min(counts.values()) > 240 and max(counts.values()) < 360

    def test_copies_of_one_text_differ(self):
        assert len({tuple(one) for one in drawn(words=50, copies=20).tolist()}) > 15


class TestRamp:
    @pytest.mark.parametrize(
        "retention", [Retention(1), Retention(3), Retention(None, 0.7)], ids=str
    )
    @pytest.mark.parametrize("ramp", [0.25, 0.5, 1.0])
    def test_from_all_words_to_k(self, retention, ramp):
        one = plan((retention,), ramp=ramp)
        kept = [one.draw(40, Turn(0, 0, progress / 64)).kept for progress in range(65)]
        assert kept[0] == 40
        assert kept == sorted(kept, reverse=True) and len(set(kept)) > 5
        end = int(64 * ramp)
        assert set(kept[end:]) == {retention.count(40)}
        assert kept[end - 4] > retention.count(40)
        assert kept[end // 2] == ramped_count(40, retention.count(40), 0.5)

    def test_no_ramp(self):
        assert drawn(progress=0.0).shape[1] == 3

    def test_windows_widen_too(self):
        assert drawn(words=8, family="windows", ramp=1.0, progress=0.0).tolist() == [list(range(8))]
        half = drawn(words=9, family="windows", ramp=1.0, progress=0.5)
        assert half.shape == (4, 6)


class TestFamilies:
    def test_a_family_that_fits_is_complete(self):
        every = [list(one) for one in itertools.combinations(range(5), 2)]
        assert drawn(words=5, retentions=(Retention(2),), copies=10).tolist() == every
        assert len(drawn(words=5, retentions=(Retention(2),), copies=9)) == 9

    def test_a_short_text_has_one_copy(self):
        assert drawn(words=3, copies=64).tolist() == [[0, 1, 2]]
        assert drawn(words=2, copies=64, family="windows").tolist() == [[0, 1]]

    def test_windows_are_cyclic_runs(self):
        every = drawn(words=7, family="windows", copies=7)
        expected = [sorted((start + place) % 7 for place in range(3)) for start in range(7)]
        assert every.tolist() == expected
        assert len(drawn(words=7, family="windows", copies=64)) == 7

    def test_some_windows_are_drawn_without_repeats(self):
        every = {tuple(one) for one in drawn(words=30, family="windows", copies=30).tolist()}
        some = [tuple(one) for one in drawn(words=30, family="windows", copies=8).tolist()]
        assert len(set(some)) == 8 and set(some) < every
        others = drawn(words=30, family="windows", copies=8, row=1).tolist()
        assert some != [tuple(one) for one in others]


def most_met(sets, words, changed):
    """By trying every choice of positions."""
    return max(
        sum(bool(set(positions) & set(one)) for one in sets)
        for positions in itertools.combinations(range(words), min(changed, words))
    )


class TestMet:
    @pytest.mark.parametrize("family", ["auto", "windows"])
    @pytest.mark.parametrize("words", range(1, 9))
    def test_the_most_copies_that_changed_words_meet(self, family, words):
        for kept, changed in itertools.product(range(1, words + 1), range(words + 3)):
            draw = plan((Retention(kept),), family, 1000).draw(words, Turn(0, 0, 1.0))
            expected = most_met(draw.sets.tolist(), words, changed)
            assert draw.met(changed) == expected, (kept, changed)

    @pytest.mark.parametrize("family", ["auto", "windows"])
    def test_of_a_sample_its_share(self, family):
        draw = plan((Retention(4),), family, 25).draw(40, Turn(0, 0, 1.0))
        for changed in range(12):
            share = (
                min(1, changed / 10)
                if family == "windows"
                else 1 - math.comb(40 - changed, 4) / math.comb(40, 4)
            )
            assert draw.met(changed) == math.ceil(25 * share - 1e-9)

    def test_words_per_copy(self):
        """With all copies, a word counts for the copies that it is in: as one word."""
        draw = plan((Retention(2),), copies=100).draw(6, Turn(0, 0, 1.0))
        assert draw.met(1) * draw.words_per_copy == pytest.approx(1)
        one = Draw(6, np.arange(6)[:, None], "auto")
        assert one.words_per_copy == 1


class TestTurns:
    @pytest.mark.parametrize(("rows", "batch"), [(10, 4), (12, 4), (7, 7), (100, 1)])
    def test_an_epoch_is_a_permutation_cut_to_whole_batches(self, rows, batch):
        turns = Turns(rows, 3, batch, seed=0)
        assert turns.steps_per_epoch == rows // batch
        size = turns.steps_per_epoch * batch
        assert len(turns) == 3 * size
        seen = [turns[place] for place in range(len(turns))]
        epochs = [seen[start : start + size] for start in range(0, len(seen), size)]
        for epoch, those in enumerate(epochs):
            assert {turn.epoch for turn in those} == {epoch}
            assert len({turn.row for turn in those}) == size
            assert all(0 <= turn.row < rows for turn in those)
        if size > 1:
            assert len({tuple(turn.row for turn in those) for those in epochs}) == 3

    def test_rows_that_are_cut_off_have_other_epochs(self):
        turns = Turns(5, 30, 4, seed=0)
        assert {turn.row for turn in turns} == set(range(5))

    def test_fewer_rows_than_a_batch_repeat(self):
        turns = Turns(3, 2, 8, seed=0)
        assert turns.steps_per_epoch == 1 and len(turns) == 16
        first = [turn.row for turn in itertools.islice(turns, 8)]
        assert sorted(first[:3]) == [0, 1, 2] and first == (first[:3] * 3)[:8]

    def test_progress_runs_from_0_to_1(self):
        progress = [turn.progress for turn in Turns(6, 4, 3, seed=0)]
        assert progress[0] == 0 and progress == sorted(set(progress)) and 0.9 < progress[-1] < 1

    def test_any_item_at_any_time(self):
        turns, again = Turns(9, 4, 3, seed=2), Turns(9, 4, 3, seed=2)
        places = list(range(len(turns)))
        expected = [turns[place] for place in places]
        random.Random(1).shuffle(places)
        assert all(again[place] == expected[place] for place in places)

    @pytest.mark.parametrize("change", [{"seed": 1}, {"phase": 1}], ids=str)
    def test_seed_and_phase_matter(self, change):
        given = {"seed": 0, "phase": 0} | change
        assert list(Turns(20, 1, 20, **given)) != list(Turns(20, 1, 20, seed=0))

    def test_there_is_no_turn_after_the_last(self):
        with pytest.raises(IndexError):
            Turns(4, 1, 2, seed=0)[4]
