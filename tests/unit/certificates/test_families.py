import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.certificates import families
from ranmask.certificates.families import (
    Family,
    family,
    fresh_sets,
    sampled_sets,
    weighted_sets,
)
from ranmask.certificates.kept import Retention, check_fixed, kept_count
from ranmask.errors import OptionError, interruptible

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

    @pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 5 << 64, 2**255 + 3, np.int64(7)])
    def test_seeds_are_read_as_numpy_reads_them(self, seed):
        bits = np.random.PCG64(np.random.SeedSequence([seed, 1, 9, 4]))
        keys = bits.random_raw(90).reshape(10, 9)
        expected = np.sort(np.argsort(keys, axis=1)[:, :4], axis=1)
        assert (sampled_sets(9, 4, 10, seed, stream="selection") == expected).all()

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


def splitmix(state):
    """The number after a state, as its authors write it: in C, here in whole numbers."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
    return mixed ^ (mixed >> 31)


def drawn_by_hand(words, kept, masks, seed):
    """The sets of `fresh_sets`, one position after another."""
    key = words << 32 | kept
    for part in range(4):
        key = splitmix(key) ^ (seed >> (64 * part)) % 2**64
    key, bits, drawn = splitmix(key), words.bit_length(), min(kept, words - kept)
    sets = []
    for number in range(masks):
        chosen = set()
        for turn in range(drawn):
            random = splitmix((key + (number * drawn + turn) * 0x9E3779B97F4A7C15) % 2**64)
            last = words - drawn + turn
            position = (random >> bits) * (last + 1) >> (64 - bits)
            chosen.add(last if position in chosen else position)
        sets.append(sorted(chosen if drawn == kept else set(range(words)) - chosen))
    return sets


seeds_of_texts = st.integers(0, 2**256 - 1)


class TestFreshSets:
    def test_golden(self):
        """A result names its masks by seed and text alone; splitmix64's own first numbers."""
        assert splitmix(1234567) == 6457827717110365317
        assert fresh_sets(43, 4, 3, [0]).tolist() == [GOLDEN_FRESH]

    @given(sizes, st.integers(1, 20), st.lists(seeds_of_texts, max_size=4))
    def test_by_hand(self, size, masks, seeds):
        words, kept = size
        expected = [drawn_by_hand(words, kept, masks, seed) for seed in seeds]
        found = fresh_sets(words, kept, masks, seeds)
        assert found.shape == (len(seeds), masks, kept) and found.dtype == np.int32
        assert found.tolist() == expected

    @pytest.mark.parametrize(("words", "kept"), [(300, 128), (300, 129), (400, 201), (700, 350)])
    def test_many_positions_by_hand(self, words, kept):
        """Which are taken is read from a table then, not looked for among all."""
        expected = [drawn_by_hand(words, kept, 5, seed) for seed in (1, 2**255)]
        assert fresh_sets(words, kept, 5, [1, 2**255]).tolist() == expected

    def test_a_shorter_sample_is_a_prefix(self):
        for kept in (3, 27):
            whole = fresh_sets(30, kept, 500, [7, 8])
            assert (whole[:, :20] == fresh_sets(30, kept, 20, [7, 8])).all()

    def test_chunks_do_not_change_the_sample(self, monkeypatch):
        whole = fresh_sets(30, 3, 50, [4, 5, 6])
        monkeypatch.setattr(families, "_CHUNK", 64)
        assert (fresh_sets(30, 3, 50, [4, 5, 6]) == whole).all()

    def test_every_bit_of_a_seed_counts(self):
        seeds = [0, *(1 << bit for bit in range(256))]
        assert len({sets.tobytes() for sets in fresh_sets(40, 4, 30, seeds)}) == len(seeds)

    def test_sizes_have_draws_of_their_own(self):
        sizes = [(words, kept) for words in range(1, 41) for kept in range(1, words + 1)]
        assert len({int(families._fresh_keys(*size, [0])[0]) for size in sizes}) == len(sizes)

    @pytest.mark.parametrize("kept", [2, 3, 4, 5])
    @pytest.mark.parametrize("texts", [1, 1000])
    def test_uniform_over_all_sets(self, kept, texts):
        """Chi-squared stays below its 99.99 % point, for one text and for many together."""
        draws = 35_000 // texts
        sets = fresh_sets(7, kept, draws, [3**100 + text for text in range(texts)])
        codes, counts = np.unique((1 << sets).sum(axis=2), return_counts=True)
        assert len(codes) == math.comb(7, kept)
        expected = draws * texts / len(codes)
        limit = {21: 52.4, 35: 73.5}[len(codes)]
        assert ((counts - expected) ** 2 / expected).sum() < limit

    def test_sets_of_one_text_and_of_others_are_independent(self):
        """Pairs of words: of two sets in a row, and of the same set of two seeds in a row."""
        sets = fresh_sets(6, 1, 200, range(200))[..., 0]
        for first, second in ((sets[:, :-1], sets[:, 1:]), (sets[:-1], sets[1:])):
            counts = np.bincount((6 * first + second).ravel(), minlength=36)
            expected = first.size / 36
            assert ((counts - expected) ** 2 / expected).sum() < 74.9  # 99.99 % point, 35 degrees

    def test_bad_sizes(self):
        for bad in ((3, 4, 5), (3, 0, 5), (3, 1, 0)):
            with pytest.raises(OptionError):
                fresh_sets(*bad, [1])

    def test_texts_of_one_draw_cannot_change_each_others_sets(self):
        with pytest.raises(ValueError, match="read-only"):
            fresh_sets(9, 3, 5, [1, 2])[0, 0, 0] = 8

    def test_can_be_stopped_between_chunks(self, monkeypatch):
        monkeypatch.setattr(families, "_CHUNK", 30)
        asked = []
        with interruptible(lambda: asked.append(1)):
            fresh_sets(30, 3, 10, [1, 2])
        assert len(asked) == 20


def chances(weights, kept):
    """How likely each kept set is, by going through every order in which words can be hidden."""
    words = range(len(weights))
    found = dict.fromkeys(itertools.combinations(words, kept), Fraction(0))
    for hidden in itertools.permutations(words, len(weights) - kept):
        chance, left = Fraction(1), sum(map(Fraction, weights))
        for word in hidden:
            chance *= Fraction(weights[word]) / left
            left -= Fraction(weights[word])
        found[tuple(sorted(set(words) - set(hidden)))] += chance
    assert sum(found.values()) == 1
    return found


def chi_squared(sets, expected):
    counts = dict.fromkeys(expected, 0)
    for row in sets.tolist():
        counts[tuple(row)] += 1
    return sum(
        (counts[one] - float(chance) * len(sets)) ** 2 / (float(chance) * len(sets))
        for one, chance in expected.items()
    )


class TestWeightedSampling:
    def test_golden(self):
        """A result names its masks by seed and text alone, so these sets may never change."""
        assert weighted_sets(range(1, 9), 3, 4, seed=0).tolist() == GOLDEN_WEIGHTED
        assert weighted_sets([0.5] * 12, 2, 3, seed=7).tolist() == GOLDEN_EVEN

    @pytest.mark.parametrize(("kept", "limit"), [(1, 21.1), (2, 25.7), (3, 21.1)])
    @pytest.mark.parametrize("weights", [[1, 2, 3, 4], [5, 1, 1, 1], [1, 1, 1, 1], [1, 20, 3, 0.5]])
    def test_hides_one_word_after_another_by_weight(self, weights, kept, limit):
        """Chi-squared against the exact chances stays below its 99.99 % point."""
        sets = weighted_sets(weights, kept, 60_000, seed=11)
        assert chi_squared(sets, chances(weights, kept)) < limit

    def test_equal_weights_are_uniform(self):
        sets = weighted_sets([0.3] * 7, 3, 35_000, seed=3)
        uniform = dict.fromkeys(itertools.combinations(range(7), 3), Fraction(1, 35))
        assert chi_squared(sets, uniform) < 77.0

    def test_draws_are_independent_of_each_other(self):
        """Pairs of neighbouring draws, each of one of three words."""
        sets = weighted_sets([1, 1, 1], 1, 60_000, seed=5)
        pairs = sets.reshape(-1, 2)
        even = dict.fromkeys(itertools.product(range(3), repeat=2), Fraction(1, 9))
        assert chi_squared(pairs, even) < 31.9

    def test_only_ratios_matter(self):
        weights = np.array([3.0, 0.5, 7.0, 2.0, 1.0])
        first = weighted_sets(weights, 2, 200, 1)
        for factor in (2.0**-900, 2.0**900):
            assert (weighted_sets(weights * factor, 2, 200, 1) == first).all()

    def test_nothing_hidden(self):
        assert weighted_sets([1, 0, 5], 3, 2, 0).tolist() == [[0, 1, 2]] * 2
        assert weighted_sets([0.0], 1, 1, 0).tolist() == [[0]]

    def test_extreme_weights(self):
        """The heavy ones are hidden, the light ones stay, and no number overflows."""
        sets = weighted_sets([1e308, 1e-308, 1e308, 5e-324], 2, 500, 0)
        assert np.unique(sets, axis=0).tolist() == [[1, 3]]
        sets = weighted_sets([1e308, 1e-308, 1e308, 1e-308], 1, 4000, 0)
        assert set(sets[:, 0].tolist()) == {1, 3}

    def test_a_word_without_weight_is_hidden_only_where_it_must_be(self):
        sets = weighted_sets([0, 1, 0, 1e-9, 0], 3, 2000, 0)
        assert np.unique(sets, axis=0).tolist() == [[0, 2, 4]]
        sets = weighted_sets([0, 1, 0, 1e-9, 0], 4, 2000, 0)
        assert np.unique(sets, axis=0).tolist() in ([[0, 2, 3, 4]], [[0, 1, 2, 4], [0, 2, 3, 4]])

    def test_words_without_weight_are_alike(self):
        sets = weighted_sets([0, 1, 0, 7, 0], 1, 30_000, 2)
        third = {(0,): Fraction(1, 3), (2,): Fraction(1, 3), (4,): Fraction(1, 3)}
        assert chi_squared(sets, third) < 18.5
        even = dict.fromkeys(itertools.combinations(range(4), 2), Fraction(1, 6))
        assert chi_squared(weighted_sets([0, 0, 0, 0], 2, 30_000, 4), even) < 25.7

    @given(sizes, st.integers(0, 2**256), st.randoms(use_true_random=False))
    def test_rows_are_rising_positions(self, size, seed, random):
        words, kept = size
        weights = [random.choice([0, 1e-9, 1, random.random(), 1e9]) for _ in range(words)]
        sets = weighted_sets(weights, kept, 20, seed)
        assert sets.shape == (20, kept) and sets.dtype == np.int32
        assert sets.min() >= 0 and sets.max() < words
        assert (np.diff(sets, axis=1) > 0).all()

    def test_seeds_differ_and_a_shorter_sample_is_a_prefix(self):
        first = weighted_sets(range(30), 3, 500, 1)
        assert (first[:20] == weighted_sets(range(30), 3, 20, 1)).all()
        assert (first != weighted_sets(range(30), 3, 500, 2)).any()
        assert (first != weighted_sets(range(30), 3, 500, 1 + 2**200)).any()

    def test_chunks_do_not_change_the_sample(self, monkeypatch):
        whole = weighted_sets(range(30), 3, 50, 4)
        monkeypatch.setattr(families, "_CHUNK", 64)
        assert (weighted_sets(range(30), 3, 50, 4) == whole).all()

    def test_cannot_be_changed_by_accident(self):
        with pytest.raises(ValueError, match="read-only"):
            weighted_sets([1, 2, 3], 2, 4, 0)[0, 0] = 5

    @pytest.mark.parametrize(
        "arguments",
        [
            ([1, -1, 1], 1, 5, 0),
            ([1, np.nan, 1], 1, 5, 0),
            ([1, np.inf, 1], 1, 5, 0),
            ([[1, 1, 1]], 1, 5, 0),
            (1.0, 1, 5, 0),
            ([], 1, 5, 0),
            ([1, 1, 1], 0, 5, 0),
            ([1, 1, 1], 4, 5, 0),
            ([1, 1, 1], 1, 0, 0),
            ([1, 1, 1], 1, 5, -1),
            ([1, 1, 1], 1, 5, 0.5),
        ],
        ids=str,
    )
    def test_refused(self, arguments):
        with pytest.raises(OptionError):
            weighted_sets(*arguments)


class TestCheckFixed:
    @pytest.mark.parametrize("kind", ["fresh", "lm"])
    def test_kept_sets_of_one_text_are_refused(self, kind):
        drawn = Family(kind, 3, weighted_sets([1, 1, 1], 1, 2, 0))
        with pytest.raises(OptionError, match=f"'{kind}' cannot be certified.*depend on the words"):
            check_fixed(drawn.kind)

    @pytest.mark.parametrize("kind", ["all", "sampled", "windows", "fixed"])
    def test_those_of_a_number_of_words_are_not(self, kind):
        check_fixed(kind)


GOLDEN = [[25, 33, 37, 38], [9, 22, 30, 40], [12, 14, 24, 40]]
GOLDEN_WEIGHTED = [[0, 1, 4], [0, 5, 6], [0, 1, 2], [0, 1, 2]]
GOLDEN_EVEN = [[2, 4], [9, 11], [3, 8]]
GOLDEN_FRESH = [[1, 2, 7, 11], [6, 10, 32, 35], [4, 9, 34, 40]]
GOLDEN_SELECTION = [[1, 10], [0, 5], [1, 2]]
