import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from ranmask.evaluation.intervals import (
    Paired,
    area_interval,
    holm,
    mean_interval,
    paired_difference,
    proportion_interval,
    sign_test,
    wilson_interval,
)
from ranmask.metrics.roc import roc_curve

confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])
counts = st.tuples(*[st.integers(0, 40)] * 4).filter(lambda four: sum(four) > 0)


def runs(both, only_first, only_second, neither):
    first = [True] * (both + only_first) + [False] * (only_second + neither)
    second = [True] * both + [False] * only_first + [True] * only_second + [False] * neither
    return first, second


def score(plus, minus, texts, difference):
    """Tango's statistic with the chance of a minus found by search, not by formula."""
    # The likelihood of a minus chance q and a plus chance q + difference.
    grid = np.linspace(max(0, -difference), (1 - difference) / 2, 200_001)[1:-1]
    rest = texts - plus - minus
    likelihood = minus * np.log(grid) + plus * np.log(grid + difference)
    if rest:
        likelihood = likelihood + rest * np.log(np.maximum(1 - 2 * grid - difference, 1e-300))
    q = grid[np.argmax(likelihood)]
    spread = math.sqrt(texts * (2 * q + difference - difference**2))
    return (plus - minus - texts * difference) / spread


class TestProportion:
    @pytest.mark.parametrize(("successes", "trials"), [(0, 7), (3, 7), (7, 7), (884, 1000), (1, 1)])
    @pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
    def test_is_scipys(self, successes, trials, confidence):
        low, high = proportion_interval(successes, trials, confidence)
        reference = binomtest(successes, trials).proportion_ci(confidence, method="exact")
        assert (low, high) == pytest.approx((reference.low, reference.high), abs=1e-9)

    @given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_holds_the_estimate_and_mirrors(self, case):
        successes, trials = case
        low, high = proportion_interval(successes, trials)
        assert 0 <= low <= successes / trials <= high <= 1
        mirrored = proportion_interval(trials - successes, trials)
        assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)

    @given(st.integers(1, 500), confidences, confidences)
    def test_grows_with_confidence_and_moves_with_successes(self, trials, one, other):
        sure, less_sure = max(one, other), min(one, other)
        successes = trials // 3
        wide, narrow = (proportion_interval(successes, trials, c) for c in (sure, less_sure))
        assert wide[0] <= narrow[0] and narrow[1] <= wide[1]
        more = proportion_interval(successes + 1, trials, sure)
        assert wide[0] < more[0] and wide[1] <= more[1]

    @pytest.mark.parametrize("chance", [0.02, 0.3, 0.5, 0.91])
    def test_covers_as_often_as_it_says(self, chance):
        """Over every outcome of 30 trials, weighed by how likely it is."""
        covered = sum(
            math.comb(30, k) * chance**k * (1 - chance) ** (30 - k)
            for k in range(31)
            if proportion_interval(k, 30)[0] <= chance <= proportion_interval(k, 30)[1]
        )
        assert covered >= 0.95


class TestPaired:
    def test_published_example(self):
        """Fagerland, Lydersen and Laake (2014): Bentur's 21 children, tables II and V."""
        result = paired_difference(*runs(1, 1, 7, 12))
        assert (result.higher_first, result.higher_second) == (1, 7)
        assert result.difference == pytest.approx(-6 / 21)
        assert result.interval == pytest.approx((-0.517, -0.026), abs=5e-4)
        assert result.p_value == pytest.approx(0.0703, abs=5e-5)

    @pytest.mark.parametrize(
        "four", [(1, 1, 7, 12), (36, 12, 2, 0), (5, 3, 3, 9), (40, 9, 1, 50), (0, 4, 6, 0)]
    )
    @pytest.mark.parametrize("confidence", [0.8, 0.95])
    def test_ends_are_where_the_score_test_turns(self, four, confidence):
        result = paired_difference(*runs(*four), confidence=confidence)
        limit = norm.ppf((1 + confidence) / 2)
        _, plus, minus, _ = four
        at_low, at_high = (score(plus, minus, sum(four), end) for end in result.interval)
        assert at_low == pytest.approx(limit, abs=2e-3)
        assert at_high == pytest.approx(-limit, abs=2e-3)

    def test_runs_that_never_disagree_still_have_a_width(self):
        result = paired_difference([True] * 50, [True] * 50)
        wide = norm.ppf(0.975) ** 2
        assert result.difference == 0 and result.p_value == 1
        assert result.interval == pytest.approx((-wide / (50 + wide), wide / (50 + wide)))

    def test_runs_that_always_disagree(self):
        result = paired_difference([True] * 9, [False] * 9)
        assert result.difference == 1 and result.interval[1] == 1
        assert 0 < result.interval[0] < 1
        assert result.p_value == 2 / 2**9

    @given(counts, confidences)
    def test_holds_the_estimate_and_mirrors(self, four, confidence):
        first, second = runs(*four)
        result = paired_difference(first, second, confidence)
        low, high = result.interval
        assert -1 <= low <= result.difference <= high <= 1
        assert result.difference == pytest.approx(np.mean(first) - np.mean(second))
        mirrored = paired_difference(second, first, confidence)
        assert mirrored == Paired(
            -result.difference,
            (-high, -low),
            result.higher_second,
            result.higher_first,
            result.p_value,
        )

    @given(counts)
    def test_grows_with_confidence(self, four):
        narrow, wide = (paired_difference(*runs(*four), confidence=c).interval for c in (0.8, 0.99))
        assert wide[0] <= narrow[0] and narrow[1] <= wide[1]

    @given(counts)
    def test_p_value_is_the_exact_binomial_test(self, four):
        result = paired_difference(*runs(*four))
        _, plus, minus, _ = four
        reference = binomtest(plus, plus + minus).pvalue if plus + minus else 1
        assert result.p_value == pytest.approx(reference)

    def test_p_value_by_enumeration(self):
        """Every way that 9 texts on which the runs disagree may fall, each as likely as another."""
        for plus in range(10):
            lopsided = abs(plus - (9 - plus))
            ways = list(itertools.product([1, -1], repeat=9))
            share = sum(abs(sum(way)) >= lopsided for way in ways) / len(ways)
            assert paired_difference(*runs(3, plus, 9 - plus, 4)).p_value == pytest.approx(share)

    def test_many_texts(self):
        result = paired_difference(*runs(60_000, 5_000, 5_300, 1_000))
        assert result.p_value == pytest.approx(binomtest(5_000, 10_300).pvalue, rel=1e-6)
        assert result.interval[0] < -300 / 71_300 < result.interval[1] < 0

    def test_takes_numpy_arrays(self):
        first, second = runs(30, 80, 4, 0)
        assert paired_difference(np.array(first), np.array(second)) == paired_difference(
            first, second
        )


class TestSign:
    def test_none_is_below_every_number_and_ties_are_dropped(self):
        first = [None, None, 0, 3, 2, 2]
        second = [None, 0, None, 3, 1, 0]
        assert sign_test(first, second) == Paired(None, None, 3, 1, 0.625)

    @given(st.lists(st.tuples(*[st.none() | st.integers(0, 4)] * 2), min_size=1, max_size=40))
    def test_mirrors_and_is_the_exact_binomial_test(self, rows):
        first, second = zip(*rows, strict=True)
        result = sign_test(first, second)
        told = result.higher_first + result.higher_second
        assert told == sum(a != b for a, b in rows)
        mirrored = sign_test(second, first)
        assert mirrored.higher_first == result.higher_second
        assert mirrored.higher_second == result.higher_first
        reference = binomtest(result.higher_first, told).pvalue if told else 1
        assert result.p_value == mirrored.p_value == pytest.approx(reference)


class TestHolm:
    def test_by_hand(self):
        assert holm([0.01, 0.02, 0.02]) == pytest.approx((0.03, 0.04, 0.04))
        assert holm([0.5, 0.001]) == pytest.approx((0.5, 0.002))
        assert holm([0.9, 0.8]) == (1.0, 1.0)
        assert holm([]) == ()

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.5))
    def test_rejects_what_the_procedure_rejects(self, p_values, level):
        """Holm's own words: go up from the smallest while p <= level / (how many are left)."""
        rejected = set()
        for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if p_values[index] * (len(p_values) - rank) > level:
                break
            rejected.add(index)
        adjusted = holm(p_values)
        assert {i for i, p in enumerate(adjusted) if p <= level} == rejected

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    def test_keeps_the_order_and_never_lowers(self, p_values):
        adjusted = holm(p_values)
        assert all(a >= p for p, a in zip(p_values, adjusted, strict=True))
        for i, j in itertools.combinations(range(len(p_values)), 2):
            if p_values[i] <= p_values[j]:
                assert adjusted[i] <= adjusted[j]


def test_intervals_of_areas_hold_the_true_area_about_as_often_as_they_say():
    """Two normal kinds, of which the area is known; unequal sizes, and nearly apart."""
    rng = np.random.default_rng(1)
    for distance, negatives, positives in ((1.0, 60, 20), (3.0, 80, 15)):
        truth = NormalDist().cdf(distance / 2**0.5)
        held = 0
        for _ in range(400):
            clean = rng.normal(0, 1, negatives).tolist()
            found = rng.normal(distance, 1, positives).tolist()
            low, high = area_interval(float(roc_curve(clean, found).area), negatives, positives)
            held += low <= truth <= high
        assert 0.91 <= held / 400 <= 0.995


def test_areas_at_the_ends_keep_their_width():
    low, high = area_interval(1.0, 50, 10)
    assert 0.7 < low < 0.99 and high == 1.0
    assert area_interval(0.0, 50, 10) == pytest.approx((0.0, 1 - low))


def test_intervals_of_means_hold_the_true_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(2)
    shares, sizes = (0.9, 0.7, 0.99), (200, 30, 40)
    held = 0
    for _ in range(600):
        drawn = [(int(rng.binomial(n, p)), n) for p, n in zip(shares, sizes, strict=True)]
        low, high = mean_interval(drawn)
        held += low <= sum(shares) / 3 <= high
    assert 0.92 <= held / 600 <= 0.99


@pytest.mark.parametrize("part", [0, 7, 20])
def test_the_mean_of_one_share_is_that_share(part):
    assert mean_interval([(part, 20)]) == pytest.approx(wilson_interval(part, 20))
