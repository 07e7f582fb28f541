"""Algorithm 1 by bits: against a loop over sets, and against a search over all positions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from ranmask import DataError, OptionError, SmoothedClassifier
from ranmask.certificates.families import sampled_sets
from ranmask.certificates.paper import (
    Overlaps,
    average_share,
    estimated_beta,
    random_positions,
)
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.paper.betas import BetaEstimator
from ranmask.results import BetaEstimate

TEXT = "good film great x bad y best z awful w fine v"


def smoothed(base=keyword_classifier, **options):
    return SmoothedClassifier(base, **{"keep": 2, "certificate": "ablation", **options})


def naive_share(sets, for_label, positions):
    met = [bool(set(row) & set(positions)) for row in sets.tolist()]
    votes = sum(vote for vote, meets in zip(for_label.tolist(), met, strict=True) if meets)
    return Fraction(votes, sum(met)) if any(met) else None


def naive_beta(sets, for_label, words, changed, draws, seed):
    """Algorithm 1 as it was first written here: one draw, one set at a time."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, words, changed]))
    shares = []
    for _ in range(draws):
        positions = np.argsort(bits.random_raw(words))[:changed].tolist()
        shares.append(naive_share(sets, for_label, positions))
    used = [share for share in shares if share is not None]
    return sum(used, Fraction(0)) / len(used) if used else Fraction(0), max(used, default=None)


def votes_of(sets, seed=0):
    return np.random.default_rng(seed).random(len(sets)) < 0.7


class TestOverlaps:
    @pytest.mark.parametrize(
        ("words", "kept", "masks", "changed"),
        [
            (12, 2, 50, 1),
            (12, 2, 50, 4),
            (12, 2, 50, 12),
            (40, 4, 333, 3),
            (9, 9, 5, 2),
            (1, 1, 1, 1),
        ],
    )
    def test_a_loop_agrees(self, words, kept, masks, changed):
        sets = sampled_sets(words, kept, masks, 3)
        for_label = votes_of(sets)
        expected, _ = naive_beta(sets, for_label, words, changed, 30, 5)
        assert estimated_beta(sets, for_label, words, changed, draws=30, seed=5) == expected

    def test_choices_that_no_set_meets_are_left_out(self):
        sets = np.array([[0], [0], [1]], dtype=np.int32)
        for_label = np.array([True, False, True])
        expected, _ = naive_beta(sets, for_label, 20, 1, 100, 0)
        assert 0 < expected < 1
        assert estimated_beta(sets, for_label, 20, 1, draws=100) == expected
        assert average_share(np.array([0, 0]), np.array([0, 0])) is None
        assert estimated_beta(sets, for_label, 2000, 1, draws=1) == 0

    def test_more_sets_than_are_packed_at_once(self):
        sets = sampled_sets(10, 2, 9001, 0)
        for_label = votes_of(sets)
        choices = np.array([[0, 3], [7, 9]])
        votes, met = Overlaps.of(sets, for_label, 10).counts(choices)
        for row, positions in enumerate(choices.tolist()):
            meets = np.isin(sets, positions).any(axis=1)
            assert (votes[row], met[row]) == (for_label[meets].sum(), meets.sum())

    def test_random_positions_are_pinned(self):
        """A run of today must be comparable with one of tomorrow."""
        assert random_positions(6, 2, 3, 0).tolist() == [[2, 5], [1, 0], [3, 1]]
        assert random_positions(6, 2, 3, 0).tolist() == random_positions(6, 2, 9, 0)[:3].tolist()

    def test_greedy_adds_the_best_position(self):
        sets = sampled_sets(11, 2, 80, 1)
        for_label = votes_of(sets, 4)
        votes, met = Overlaps.of(sets, for_label, 11).greedy_counts(11)
        chosen = []
        for step in range(11):
            free = [position for position in range(11) if position not in chosen]
            shares = [naive_share(sets, for_label, [*chosen, one]) for one in free]
            assert Fraction(int(votes[step]), int(met[step])) == max(shares)
            chosen.append(free[shares.index(max(shares))])
        assert (votes[-1], met[-1]) == (for_label.sum(), 80)

    def test_greedy_passes_words_by_that_no_set_shows(self):
        sets = np.array([[3], [3], [4]], dtype=np.int32)
        votes, met = Overlaps.of(sets, np.array([False, False, False]), 6).greedy_counts(2)
        assert votes.tolist() == [0, 0] and met[0] > 0


class TestBetaEstimate:
    def test_a_case_by_hand(self):
        """Copies show one word each; positions 0 and 1 vote for the label, position 2 does not."""
        estimator = BetaEstimator(smoothed(keep=1, masks=3000), changed=4, draws=500)
        [beta] = estimator.estimate(["good good bad"])
        assert beta.label_id == 1 and beta.changed == (1, 2, 3, 4)
        assert beta.largest[:2] == (1.0, 1.0)
        assert beta.largest[2] == beta.average[2] == beta.share == beta.votes[1] / 3000
        assert beta.average[:2] == pytest.approx((2 / 3, 2 / 3), abs=0.05)
        assert beta.average[3] is beta.largest[3] is None

    @pytest.mark.parametrize("base", [keyword_classifier, hashing_classifier])
    def test_average_is_algorithm_one_and_largest_the_worst_that_was_tried(self, base):
        one = smoothed(base, masks=400, seed=7)
        [beta] = BetaEstimator(one, changed=5, draws=40).estimate([TEXT])
        [scored] = one.scored([TEXT], "estimation")
        sets, for_label = scored.texts[0].kept, scored.votes.best == beta.label_id
        assert beta.label_id == int(np.argmax(beta.votes)) and beta.masks == 400
        assert beta.share == for_label.sum() / 400
        for changed in range(1, 6):
            exact = estimated_beta(sets, for_label, 12, changed, draws=40, seed=7)
            assert beta.average[changed - 1] == float(exact)
            drawn = naive_beta(sets, for_label, 12, changed, 40, 7)[1]
            best = max(
                naive_share(sets, for_label, positions)
                for positions in itertools.combinations(range(12), changed)
            )
            assert float(drawn) <= beta.largest[changed - 1] <= float(best)
        single = max(naive_share(sets, for_label, [position]) for position in range(12))
        assert beta.largest[0] == float(single)  # one word: greedy tries them all

    def test_greedy_finds_what_few_draws_miss(self):
        text = " ".join(["good"] * 3 + ["bad"] * 2 + ["x"] * 35)
        [beta] = BetaEstimator(smoothed(keep=4, masks=2000), changed=3, draws=1).estimate([text])
        assert all(
            largest > average for largest, average in zip(beta.largest, beta.average, strict=True)
        )

    def test_draws_find_what_greedy_misses(self):
        """All pairs are drawn; the best of them does not hold the best single position."""
        one = smoothed(hashing_classifier, masks=40, seed=1)
        [beta] = BetaEstimator(one, changed=2, draws=1000).estimate([TEXT])
        [scored] = one.scored([TEXT], "estimation")
        sets, for_label = scored.texts[0].kept, scored.votes.best == beta.label_id
        _, best = naive_beta(sets, for_label, 12, 2, 1000, 1)
        votes, met = Overlaps.of(sets, for_label, 12).greedy_counts(2)
        assert votes[1] / met[1] < beta.largest[1] == float(best)

    def test_a_pair(self):
        judge = smoothed(lambda pairs: keyword_classifier([h for _, h in pairs]), masks=200)
        estimator = BetaEstimator(judge, changed=3)
        [pair] = estimator.estimate([("some premise", TEXT)])
        [alone] = BetaEstimator(smoothed(masks=200), changed=3).estimate([TEXT])
        assert (pair.average, pair.largest, pair.words) == (alone.average, alone.largest, 12)

    def test_json_round_trip(self):
        [beta] = BetaEstimator(smoothed(masks=50), changed=3).estimate(["good film"])
        assert BetaEstimate.from_dict(beta.to_dict()) == beta
        assert beta.to_dict()["average"][2] is None
        with pytest.raises(DataError, match="no share"):
            BetaEstimate.from_dict({k: v for k, v in beta.to_dict().items() if k != "share"})

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"changed": 0}, "changed must be .* at least 1, not 0"), ({"draws": 0}, "draws must")],
    )
    def test_refused(self, options, message):
        with pytest.raises(OptionError, match=message):
            BetaEstimator(smoothed(), **options)

    def test_only_votes(self):
        scores = SmoothedClassifier(keyword_classifier, keep=2, ensemble="score")
        with pytest.raises(OptionError, match="share of votes, not of ensemble='score'"):
            BetaEstimator(scores)
