"""Certificates against closed forms, published examples and brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import betaincinv

from ranmask.certificates.exact import exact_radius
from ranmask.certificates.families import all_sets, family
from ranmask.certificates.kept import sets_met
from ranmask.certificates.paper import estimated_beta, risk_probability
from ranmask.certificates.sampled import (
    delta,
    lower_bound,
    margin_from_counts,
    radius_of,
    upper_bound,
)
from ranmask.certificates.votes import vote_differences
from ranmask.errors import OptionError


def certain(votes):
    return np.zeros(len(votes), dtype=bool)


def sampled_radius(kind, counts, samples, words, kept, **options):
    margin = margin_from_counts(kind, counts, 0, samples, words, kept, **options)
    return radius_of(kind, words, margin)


def unanimous(words, kept, *, masks=200_000):
    chosen = family(words, kept, choice="all", masks=masks)
    votes = np.zeros(len(chosen), dtype=np.int64)
    differences = vote_differences(votes, certain(votes), 0, 2)
    return exact_radius(chosen.sets, differences, words, complete=True)


class TestDelta:
    def test_one_word(self):
        assert delta(43, 4, 1) == Fraction(4, 43)

    def test_counts_sets_that_meet_the_changed_words(self):
        sets = all_sets(7, 3)
        for changed in range(8):
            met = int((sets < changed).any(axis=1).sum())
            assert sets_met(7, 3, changed) == met
            assert delta(7, 3, changed) == Fraction(met, len(sets))


class TestClopperPearson:
    def test_known_values(self):
        # All of n successes: the bound is alpha ** (1/n).
        assert lower_bound(10, 10, 0.05) == pytest.approx(0.05 ** (1 / 10), rel=1e-10)
        assert lower_bound(0, 10, 0.05) == 0.0
        assert upper_bound(0, 10, 0.05) == pytest.approx(1 - 0.05 ** (1 / 10), rel=1e-10)
        assert upper_bound(10, 10, 0.05) == 1.0

    @pytest.mark.parametrize(
        ("successes", "trials"), [(1, 1), (3, 5), (73, 100), (735, 1000), (178, 200)]
    )
    def test_tail_at_the_bound_is_at_most_alpha(self, successes, trials):
        """The binomial tail in exact fractions."""
        low = Fraction(lower_bound(successes, trials, 0.05))
        tail = sum(
            math.comb(trials, i) * low**i * (1 - low) ** (trials - i)
            for i in range(successes, trials + 1)
        )
        assert tail <= Fraction(0.05)
        assert tail >= Fraction(0.05) * (1 - Fraction(1, 10**6))

    @pytest.mark.parametrize("alpha", [1e-300, 1e-9, 0.0125, 0.5, 0.999])
    @pytest.mark.parametrize(
        ("successes", "trials"), [(1, 20000), (20000, 20000), (19999, 20000), (5000, 10000)]
    )
    def test_is_scipys_where_it_is_extreme(self, successes, trials, alpha):
        expected = betaincinv(successes, trials - successes + 1, alpha)
        assert lower_bound(successes, trials, alpha) == pytest.approx(expected, rel=1e-11, abs=0)

    def test_bad_alpha(self):
        with pytest.raises(OptionError):
            lower_bound(1, 2, 1.0)


class TestExact:
    def test_unanimous_full_family_has_the_closed_form(self):
        for words in range(1, 13):
            for kept in range(1, words + 1):
                total = math.comb(words, kept)
                expected = max(
                    d for d in range(words) if d == 0 or total > 2 * sets_met(words, kept, d)
                )
                assert unanimous(words, kept).words == expected

    def test_no_word_is_certified_when_half_or_more_are_kept(self):
        for words in range(1, 11):
            for kept in range((words + 1) // 2, words + 1):
                for choice in ("all", "sampled", "windows"):
                    chosen = family(words, kept, choice=choice, masks=300)
                    votes = np.zeros(len(chosen), dtype=np.int64)
                    differences = vote_differences(votes, certain(votes), 0, 3)
                    assert exact_radius(chosen.sets, differences, words).words == 0

    def test_a_tie_is_never_certified(self):
        sets = all_sets(4, 1)
        votes = np.array([0, 0, 1, 1])
        assert exact_radius(sets, vote_differences(votes, certain(votes), 0, 2), 4).words is None

    def test_integer_tie_that_floats_certify(self):
        """Somewhere floats see a margin above 2 * Delta where integers see an exact tie."""
        cases = [
            (words, kept, changed)
            for words in range(4, 40)
            for kept in range(1, words // 2)
            for changed in range(1, words - kept)
            if _floats_certify_a_tie(words, kept, changed)
        ]
        assert cases
        words, kept, changed = min(cases, key=lambda case: math.comb(case[0], case[1]))
        # Build such votes: every set that meets the first `changed` words, and no other, may
        # cost two; the margin equals their total cost exactly.
        sets = all_sets(words, kept)
        margin = 2 * sets_met(words, kept, changed)
        lost = (len(sets) - margin) // 2
        assert (len(sets) - margin) % 2 == 0
        votes = np.zeros(len(sets), dtype=np.int64)
        away = np.flatnonzero((sets >= changed).all(axis=1))[:lost]
        assert len(away) == lost
        votes[away] = 1
        differences = vote_differences(votes, certain(votes), 0, 2)
        assert int(differences.sum()) == margin
        answer = exact_radius(sets, differences, words, complete=True)
        assert answer.words is not None and answer.words < changed

    def test_uncertain_votes_count_against_every_rival_separately(self):
        """Counted once, for the strongest rival only, a word too many would be certified."""
        sets = family(10, 2, choice="sampled", masks=12, seed=24).sets
        votes = np.array([1, 2, 2, 0, 2, 2, 1, 2, 2, 2, 2, 2])
        uncertain = np.arange(12) == 11
        differences = vote_differences(votes, uncertain, 2, 3)
        assert exact_radius(sets, differences, 10).words == 0
        strongest = np.bincount(votes)[:2].argmax()
        once = np.stack(
            [
                (votes == 2) * 1 - (votes == rival) - uncertain * (2 if rival == strongest else 1)
                for rival in (0, 1)
            ]
        )
        assert exact_radius(sets, once, 10).words == 1

    def test_rivals_without_votes_share_a_row(self):
        votes = np.array([0, 0, 1])
        assert vote_differences(votes, certain(votes), 0, 2).shape == (1, 3)
        assert vote_differences(votes, certain(votes), 0, 50).shape == (2, 3)

    def test_worst_positions_break_the_label(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            words = int(rng.integers(3, 20))
            chosen = family(words, min(2, words), masks=100)
            votes = (rng.random(len(chosen)) < 0.25).astype(np.int64)
            differences = vote_differences(votes, certain(votes), 0, 2)
            answer = exact_radius(chosen.sets, differences, words)
            if answer.words is None:
                continue
            assert answer.tight and len(answer.worst) == answer.words + 1
            met = np.isin(chosen.sets, answer.worst).any(axis=1)
            assert (differences + 1)[0, met].sum() >= differences.sum()

    def test_spent_work_gives_a_smaller_radius_marked_as_not_tight(self):
        chosen = family(43, 4, masks=2000)
        rng = np.random.default_rng(1)
        votes = (rng.random(len(chosen)) < 0.03).astype(np.int64)
        differences = vote_differences(votes, certain(votes), 0, 2)
        full = exact_radius(chosen.sets, differences, 43)
        assert full.tight

        import ranmask.certificates.coverage as coverage

        least, coverage._LEAST_WORK = coverage._LEAST_WORK, 0
        try:
            cut = exact_radius(chosen.sets, differences, 43, work=0)
        finally:
            coverage._LEAST_WORK = least
        assert not cut.tight
        assert cut.words is not None and full.words is not None and cut.words < full.words

    def test_a_difference_below_the_bound_is_refused(self):
        with pytest.raises(ValueError, match="below"):
            exact_radius(all_sets(3, 1), np.array([[1, 1, -2]]), 3)


def _floats_certify_a_tie(words, kept, changed):
    total, left = math.comb(words, kept), math.comb(words - changed, kept)
    margin = 2 * (total - left)
    if not 0 < margin < total or (total - margin) % 2 or (total - margin) // 2 > left:
        return False
    return margin / total > 2 * (1 - left / total)


class TestCounterexample:
    """docs/certificates.md: 43 words, 4 kept, 12 key words, planted words silence the label."""

    words, kept, keys = 43, 4, 12

    def share(self, keys_left, planted):
        """Chance of the label when copies with a planted word never vote for it."""
        clean = math.comb(self.words - planted, self.kept)
        no_key = math.comb(self.words - planted - keys_left, self.kept)
        return Fraction(clean - no_key, math.comb(self.words, self.kept))

    def test_numbers(self):
        assert float(self.share(12, 0)) == pytest.approx(0.7450, abs=5e-5)
        assert float(delta(43, 4, 3)) == pytest.approx(0.2595, abs=5e-5)
        assert float(self.share(9, 3)) == pytest.approx(0.4856, abs=5e-5)

    def test_the_published_test_passes_at_three_words_and_the_label_flips(self):
        share = self.share(12, 0)
        assert share * (1 - delta(43, 4, 3)) > Fraction(1, 2)
        assert share * (1 - delta(43, 4, 4)) <= Fraction(1, 2)
        assert self.share(9, 3) < Fraction(1, 2)

    def test_radii_with_sampling(self):
        """At n' = 100,000 samples the bounds settle on the limits: 3, printed 4, sound 2."""
        samples = 100_000
        votes = round(self.share(12, 0) * samples)
        assert sampled_radius("paper", [votes], samples, 43, 4).words == 3
        assert sampled_radius("paper-as-printed", [votes], samples, 43, 4).words == 4
        assert sampled_radius("ablation", [votes], samples, 43, 4).words == 2

    def test_exact_over_all_sets(self):
        """All 123,410 kept sets: a proof of 2 words, and three words that break it."""
        sets = all_sets(self.words, self.kept)
        votes = (sets >= self.keys).all(axis=1).astype(np.int64)  # 1: no key word visible
        differences = vote_differences(votes, certain(votes), 0, 2)
        answer = exact_radius(sets, differences, self.words, complete=True)
        assert answer.words == 2 and answer.tight
        assert len(answer.worst) == 3 and max(answer.worst) < self.keys


class TestAblation:
    def test_below_half_masking_never_certifies_a_word(self):
        for words in range(2, 60):
            for rate in (0.1, 0.2, 0.3, 0.4, 0.49):
                from ranmask.certificates.kept import kept_count

                kept = kept_count(words, mask_rate=rate)
                assert 2 * kept >= words
                for radius in (
                    sampled_radius("ablation", [10**6], 10**6, words, kept),
                    sampled_radius("paper", [10**6], 10**6, words, kept),
                    sampled_radius("ablation-runner-up", [10**6, 0], 10**6, words, kept),
                ):
                    assert radius.words == 0

    def test_not_certified_even_unchanged(self):
        assert sampled_radius("ablation", [500], 1000, 20, 2).words is None
        assert sampled_radius("paper", [500], 1000, 20, 2).words is None
        assert sampled_radius("paper-as-printed", [500], 1000, 20, 2).words is None
        assert sampled_radius("ablation-runner-up", [500, 490, 10], 1000, 20, 2).words is None

    def test_runner_up_form_certifies_without_a_majority(self):
        counts = [2200, 900, 950, 950]
        assert sampled_radius("ablation", [counts[0]], 5000, 40, 1).words is None
        assert sampled_radius("ablation-runner-up", counts, 5000, 40, 1).words >= 3

    def test_runner_up_form_splits_alpha_over_all_its_bounds(self):
        counts, samples, words, kept = [640, 200, 160], 1000, 40, 1

        def radius_at(share):
            low = Fraction(lower_bound(counts[0], samples, share))
            high = Fraction(upper_bound(counts[1], samples, share))
            return max(d for d in range(words) if low - high > 2 * delta(words, kept, d))

        assert radius_at(0.9) > radius_at(0.9 / 3)  # so that the split shows
        answer = sampled_radius("ablation-runner-up", counts, samples, words, kept, alpha=0.9)
        assert answer.words == radius_at(0.9 / 3)

    def test_radius_is_the_last_that_passes(self):
        low = Fraction(lower_bound(4900, 5000, 0.05))
        radius = sampled_radius("ablation", [4900], 5000, 43, 4).words
        assert low - delta(43, 4, radius) > Fraction(1, 2)
        assert low - delta(43, 4, radius + 1) <= Fraction(1, 2)


class TestPaper:
    def test_printed_is_one_more(self):
        for votes in (600, 800, 950, 1000):
            last = sampled_radius("paper", [votes], 1000, 43, 4).words
            assert sampled_radius("paper-as-printed", [votes], 1000, 43, 4).words == last + 1

    def test_algorithm_1_averages_votes_of_sets_that_meet_the_positions(self):
        sets = family(10, 2).sets
        everyone = np.ones(len(sets), dtype=bool)
        assert estimated_beta(sets, everyone, 10, 3) == 1
        assert estimated_beta(sets, ~everyone, 10, 3) == 0
        half = sets[:, 0] == 0
        # With all words changed, every set meets them: the plain share of votes.
        assert estimated_beta(sets, half, 10, 10) == Fraction(int(half.sum()), len(sets))

    def test_algorithm_1_in_algorithm_2(self):
        def none_left(changed):
            return Fraction(0)

        assert sampled_radius("paper", [900], 1000, 20, 2, beta=none_left).words == 20

    def test_risk_probability(self):
        # 20 words, 6 masked, 2 perturbed: both survive with C(18, 6) / C(20, 6).
        expected = Fraction(math.comb(18, 6), math.comb(20, 6))
        assert risk_probability(20, 0.3, 0.1) == expected
        assert risk_probability(43, 0.9, 0.1) < Fraction(1, 1000)
        assert risk_probability(20, 0.3, 1.0) == 0
        with pytest.raises(ValueError, match="perturbed_rate"):
            risk_probability(20, 0.3, 1.5)
