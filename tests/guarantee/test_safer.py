"""SAFER's certificate against every substitution from small tables, and over many samples."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from ranmask import SynonymSets, SynonymSmoothedClassifier
from ranmask.certificates.safer import overlap, synonym_radius

CLASSES = 3
MANY = 10**7  # so many samples that a bound is next to the true chance


def largest_move(overlaps, changed):
    """How far the chance of a class may move when so many words are replaced, by the theorem."""
    return 1 - math.prod(sorted(overlaps)[:changed], start=Fraction(1))


class GivenSets:
    """Any sets at all, of any sizes: the theorem does not ask where they come from."""

    def __init__(self, replacements, perturbations):
        self.replacements = replacements.__getitem__
        self.perturbations = perturbations.__getitem__

    def overlap(self, word):
        own = self.perturbations(word)
        return min(overlap(own, self.perturbations(other)) for other in self.replacements(word))


def chances(sets, text, judge):
    """The true chance of every class for a random copy: all copies, counted."""
    copies = list(itertools.product(*map(sets.perturbations, text)))
    counts = Counter(map(judge, copies))
    return [Fraction(counts[one], len(copies)) for one in range(CLASSES)]


def substitutions(sets, text):
    """Every text that the table makes of this one, and how many words it changes."""
    for other in itertools.product(*map(sets.replacements, text)):
        yield other, sum(a != b for a, b in zip(text, other, strict=True))


def winner(shares):
    """The only class with the largest chance; None on a tie."""
    best = max(shares)
    return shares.index(best) if shares.count(best) == 1 else None


def exact_counts(shares):
    return [int(share * MANY) for share in shares]


def check(sets, text, judge):
    """Every substitution from the table: the bound on every class, and the label in the radius."""
    before = chances(sets, text, judge)
    overlaps = [sets.overlap(word) for word in text]
    label = before.index(max(before))
    counts = exact_counts(before)
    radius = synonym_radius(counts, label, sum(counts), overlaps, alpha=1e-3).words
    largest = Fraction(0)
    for other, changed in substitutions(sets, text):
        after = chances(sets, other, judge)
        moved = max(abs(a - b) for a, b in zip(before, after, strict=True))
        assert moved <= largest_move(overlaps, changed)
        largest = max(largest, moved)
        if radius is not None and changed <= radius:
            assert winner(after) == label
    return radius, largest


def judge_at_random(seed, bias):
    """A judge without any pattern: class 0 as often as ``bias`` says, the others alike."""

    def judge(copy):
        chance = random.Random(repr((seed, copy)))
        return 0 if chance.random() < bias else chance.randrange(CLASSES)

    return judge


def judge_against(sets, text, other):
    """The worst judge for two texts: it tells their copies apart wherever it can."""
    own = set(itertools.product(*map(sets.perturbations, text)))
    others = set(itertools.product(*map(sets.perturbations, other)))
    return lambda copy: 1 if copy in others - own else 0


@st.composite
def given_sets(draw):
    """Perturbation sets of unequal sizes, replacements without symmetry, a text of them."""
    words = [f"w{number}" for number in range(draw(st.integers(2, 6)))]
    some = st.sets(st.sampled_from(words), max_size=4)
    perturbations = {word: tuple(sorted({word} | draw(some))) for word in words}
    replacements = {
        word: (word, *sorted(draw(st.sets(st.sampled_from(words), max_size=2)) - {word}))
        for word in words
    }
    text = draw(st.lists(st.sampled_from(words), min_size=1, max_size=3))
    return GivenSets(replacements, perturbations), tuple(text)


@st.composite
def tables(draw):
    """A table whose components may be larger than ``size``, and a text of its words."""
    numbers = ("one", "two", "three", "four", "five", "six", "seven", "eight")
    words = numbers[: draw(st.integers(2, 8))]
    table = {
        word: draw(st.lists(st.sampled_from(words), max_size=3, unique=True)) for word in words
    }
    spelt = [word for one in words for word in (one, one.title(), f"({one.upper()})", "oNe")]
    text = draw(st.lists(st.sampled_from(spelt), min_size=1, max_size=3))
    return SynonymSets(table, size=draw(st.integers(1, 4))), tuple(text)


@settings(max_examples=60)
@given(given_sets(), st.integers(0, 1000), st.sampled_from([0.0, 0.3, 0.8, 0.95, 1.0]))
def test_no_substitution_moves_a_chance_by_more_with_any_sets(case, seed, bias):
    sets, text = case
    check(sets, text, judge_at_random(seed, bias))


@settings(max_examples=60)
@given(tables(), st.integers(0, 1000), st.sampled_from([0.0, 0.3, 0.8, 0.95, 1.0]))
def test_no_substitution_moves_a_chance_by_more_with_sets_of_a_table(case, seed, bias):
    sets, text = case
    check(sets, text, judge_at_random(seed, bias))


@settings(max_examples=60)
@given(st.one_of(given_sets(), tables()), st.data())
def test_the_worst_judge_does_not_break_it_either(case, data):
    sets, text = case
    other = data.draw(st.sampled_from([one for one, _ in substitutions(sets, text)]))
    check(sets, text, judge_against(sets, text, other))


CHAIN = {f"w{n}": [f"w{n + 1}"] for n in range(12)}
"""One component that is much larger than the sets below."""


def test_the_bound_is_reached():
    """For one word the worst judge moves the chance by all that the bound allows."""
    sets = SynonymSets(CHAIN, size=4)
    assert sets.overlap("w5") == Fraction(3, 4)
    judge = judge_against(sets, ("w5",), ("w6",))
    _, largest = check(sets, ("w5",), judge)
    assert largest == Fraction(1, 4) == largest_move([sets.overlap("w5")], 1)


def test_radii_are_not_all_none_or_nought():
    sets = SynonymSets(CHAIN, size=5)
    text = ("w5", "w7", "w3", "unknown")
    judges = [judge_at_random(seed, bias) for seed in range(6) for bias in (0.1, 0.5, 0.9)]
    assert {check(sets, text, judge)[0] for judge in judges} >= {0, 1, 2}


def test_the_label_can_be_lost_just_outside_the_bound():
    """With a margin of exactly twice the bound there is a tie: strictly more is needed."""
    sets = SynonymSets(CHAIN, size=4)
    before, after = {"w4", "w5", "w6", "w7"}, {"w5", "w6", "w7", "w8"}
    assert (set(sets.perturbations("w5")), set(sets.perturbations("w6"))) == (before, after)
    judge = {"w4": 0, "w5": 0, "w6": 0, "w7": 1, "w8": 1}.__getitem__
    [one, two] = [chances(sets, (word,), lambda copy: judge(copy[0])) for word in ("w5", "w6")]
    assert one[0] - one[1] == 2 * largest_move([sets.overlap("w5")], 1) and winner(two) is None
    assert synonym_radius(exact_counts(one), 0, MANY, [sets.overlap("w5")]).words == 0


def test_the_published_overlap_is_wrong_where_sizes_differ():
    """|P_x & P_x'| / |P_x| is 1 here, which says that nothing moves; the label is lost."""
    small, large = ("a", "b"), tuple("abcdefghij")
    sets = GivenSets({"a": ("a", "c"), "c": ("c",)}, {"a": small, "c": large})
    published = Fraction(len(set(small) & set(large)), len(small))
    counted = [0, 0]
    for place, word in enumerate("ac"):
        shares = chances(sets, (word,), lambda copy: 0 if copy[0] in small else 1)
        counted[place] = shares[0]
    assert published == 1 and sets.overlap("a") == Fraction(1, 5)
    assert counted == [1, Fraction(1, 5)]  # from every copy to one in five
    certain = [MANY, 0, 0]
    assert synonym_radius(certain, 0, MANY, [published]).words == 1  # as published: a false proof
    assert synonym_radius(certain, 0, MANY, [sets.overlap("a")]).words == 0


# -- the whole classifier ----------------------------------------------------------------------


def scores_of(judge):
    def classify(texts):
        return np.eye(CLASSES)[[judge(tuple(text.split())) for text in texts]]

    return classify


@pytest.mark.parametrize("seed", range(4))
def test_certified_texts_keep_the_label_of_the_ideal_vote(seed):
    sets = SynonymSets({**CHAIN, "good": ["fine", "great"], "fine": ["nice"]}, size=3)
    judge = judge_at_random(seed, 0.93)
    smoothed = SynonymSmoothedClassifier(scores_of(judge), sets, masks=3000, seed=seed)
    radii = []
    for text in ("w5 Good, w2", "w7 w8 fine", "GREAT w1 w1", "w4 the w9"):
        [result] = smoothed.certify([text])
        words = tuple(text.split())
        radii.append(result.radius)
        for other, changed in substitutions(sets, words):
            if result.radius is not None and changed <= result.radius:
                assert winner(chances(sets, other, judge)) == result.label_id
    assert any(radii)


ALPHA = 0.2
REPETITIONS = 400


def test_it_fails_at_most_alpha_often():
    """A text whose true margin is exactly twice the bound: to certify a word is a failure.

    Of its two words, each drawn from four, one decides: one of its four draws is of class 1.
    """
    sets = SynonymSets(CHAIN, size=4)
    decisive = sets.perturbations("w5")[0]

    def judge(copy):
        return 1 if copy[0] == decisive else 0

    shares = chances(sets, ("w5", "w1"), judge)
    overlaps = [sets.overlap("w5"), sets.overlap("w1")]
    assert shares[0] - shares[1] == 2 * largest_move(overlaps, 1) == Fraction(1, 2)
    failures = 0
    for seed in range(REPETITIONS):
        smoothed = SynonymSmoothedClassifier(
            scores_of(judge), sets, masks=60, selection_masks=10, alpha=ALPHA, seed=seed
        )
        [result] = smoothed.certify(["w5 w1"])
        failures += result.radius is not None and (result.radius >= 1 or result.label_id != 0)
    assert binomtest(failures, REPETITIONS, ALPHA, alternative="greater").pvalue > 1e-3
    assert failures  # or the test would see nothing


def test_near_ties_of_three_classes_fail_at_most_alpha_often():
    """Straight from a multinomial, at the threshold against both rivals at once."""
    shares = np.array([0.5, 0.25, 0.25])
    draws = np.random.default_rng(3).multinomial(400, shares, size=4000)
    overlaps = [Fraction(7, 8)] * 5
    radii = {
        counts: synonym_radius(counts, 0, 400, overlaps, alpha=ALPHA).words
        for counts in set(map(tuple, draws.tolist()))
    }
    failures = sum((radii[tuple(counts)] or 0) >= 1 for counts in draws.tolist())
    assert binomtest(failures, 4000, ALPHA, alternative="greater").pvalue > 1e-3
    assert failures
