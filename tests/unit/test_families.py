import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask import families
from ranmask.errors import OptionError
from ranmask.families import Retention, family, kept_count, sampled_sets

sizes = st.integers(1, 40).flatmap(lambda h: st.tuples(st.just(h), st.integers(1, h)))


class TestKeptCount:
    @pytest.mark.parametrize(
        ("words", "rate", "kept"),
        [
            (43, 0.9, 4),
            (5, 0.9, 1),  # 0.5: a half goes up
            (15, 0.9, 2),  # 1.5: a half goes up
            (25, 0.9, 3),  # 2.5: half-even would say 2
            (19, 0.8, 4),
            (50, 0.29, 36),  # 35.5 exactly, although 0.29 * 50 is below 14.5 in binary
            (1, 0.99, 1),  # at least one
            (10, 0.0, 10),
            (3, 0.9, 1),
        ],
    )
    def test_mask_rate(self, words, rate, kept):
        assert kept_count(words, mask_rate=rate) == kept

    @given(st.integers(1, 2000), st.decimals("0", "0.999", places=3))
    def test_is_nearest_integer(self, words, rate):
        kept = kept_count(words, mask_rate=float(rate))
        visible = words - Fraction(rate) * words
        assert 1 <= kept <= words
        nearest = min(
            range(max(1, int(visible) - 1), min(words, int(visible) + 2) + 1),
            key=lambda k: (abs(k - visible), -k),
        )
        assert kept == nearest

    def test_keep_is_capped_by_the_words(self):
        assert kept_count(3, keep=5) == 3
        assert kept_count(9, keep=5) == 5

    @pytest.mark.parametrize(
        "arguments",
        [{}, {"keep": 2, "mask_rate": 0.5}, {"keep": 0}, {"keep": 1.5}, {"keep": True}]
        + [{"mask_rate": rate} for rate in (-0.1, 1.0, 1.5, float("nan"), "0.5", True)],
    )
    def test_bad_retention(self, arguments):
        with pytest.raises(OptionError):
            Retention(**arguments)

    def test_no_words(self):
        with pytest.raises(OptionError):
            kept_count(0, keep=1)


class TestFamilies:
    def test_all(self):
        sets = family(6, 3).sets
        assert sets.tolist() == [list(c) for c in itertools.combinations(range(6), 3)]

    def test_auto_takes_all_when_it_fits_and_samples_otherwise(self):
        assert family(45, 2, masks=990).kind == "all"
        assert family(45, 2, masks=989).kind == "sampled"
        assert len(family(45, 2, masks=989)) == 989

    def test_all_refuses_to_exceed_the_budget(self):
        with pytest.raises(OptionError, match="123410"):
            family(43, 4, choice="all", masks=1000)

    def test_windows_are_cyclic_runs(self):
        assert family(4, 2, choice="windows").sets.tolist() == [[0, 1], [1, 2], [2, 3], [0, 3]]

    def test_windows_within_the_budget(self):
        sets = family(1000, 3, choice="windows", masks=10).sets
        assert sets[:, 0].tolist() == list(range(0, 1000, 100))

    @given(sizes, st.sampled_from(["auto", "sampled", "windows"]), st.integers(1, 200))
    def test_rows_are_rising_positions(self, size, choice, masks):
        words, kept = size
        sets = family(words, kept, choice=choice, masks=masks).sets
        assert sets.shape[1] == kept and 1 <= len(sets) <= masks
        assert sets.min() >= 0 and sets.max() < words
        assert (np.diff(sets, axis=1) > 0).all()

    def test_nothing_hidden_is_one_set(self):
        for choice in ("auto", "all", "windows"):
            assert family(3, 3, choice=choice).sets.tolist() == [[0, 1, 2]]

    def test_families_cannot_be_changed_by_accident(self):
        with pytest.raises(ValueError, match="read-only"):
            family(6, 2).sets[0, 0] = 5

    @pytest.mark.parametrize("bad", [{"masks": 0}, {"choice": "some"}, {"seed": -1}])
    def test_bad_options(self, bad):
        with pytest.raises(OptionError):
            family(30, 10, **bad)


class TestSampling:
    def test_golden(self):
        """A certificate names its family by seed alone, so these sets may never change."""
        assert sampled_sets(43, 4, 3, seed=0).tolist() == GOLDEN
        assert sampled_sets(12, 2, 3, seed=7, stream="selection").tolist() == GOLDEN_SELECTION

    def test_a_shorter_sample_is_a_prefix(self):
        assert (sampled_sets(30, 3, 500, 1)[:20] == sampled_sets(30, 3, 20, 1)).all()

    def test_streams_and_seeds_differ(self):
        first = sampled_sets(40, 4, 100, 0)
        assert (first != sampled_sets(40, 4, 100, 1)).any()
        assert (first != sampled_sets(40, 4, 100, 0, stream="selection")).any()

    def test_chunks_do_not_change_the_sample(self, monkeypatch):
        whole = sampled_sets(30, 3, 50, 4)
        monkeypatch.setattr(families, "_CHUNK", 64)
        assert (sampled_sets(30, 3, 50, 4) == whole).all()

    def test_uniform_over_all_sets(self):
        """Chi-squared over the 35 sets of 3 out of 7 stays below its 99.99 % point."""
        draws = 35_000
        sets = sampled_sets(7, 3, draws, seed=3)
        codes, counts = np.unique(sets @ np.array([49, 7, 1]), return_counts=True)
        assert len(codes) == math.comb(7, 3)
        expected = draws / len(codes)
        assert ((counts - expected) ** 2 / expected).sum() < 77.0


GOLDEN = [[25, 33, 37, 38], [9, 22, 30, 40], [12, 14, 24, 40]]
GOLDEN_SELECTION = [[1, 10], [0, 5], [1, 2]]
