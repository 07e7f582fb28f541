"""Curves of the remaining margin: above zero exactly up to the radius, and as low as they say."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from ranmask.certificates import coverage, margins
from ranmask.certificates.exact import exact_radii
from ranmask.certificates.families import Family, family
from ranmask.certificates.margins import BEYOND, exact_margins, sampled_margins
from ranmask.certificates.sampled import delta, lower_bound, radius_of, sampled_margin
from ranmask.certificates.votes import Votes, count_votes
from ranmask.errors import OptionError


def votes_of(copies, classes, seed, *, ensemble="vote", lean=0.5, tolerance=0.0):
    scores = np.random.default_rng(seed).random((copies, classes))
    scores[:, 0] += lean
    return count_votes(scores / scores.sum(axis=1, keepdims=True), ensemble, "scores", tolerance)


def last_positive(curve):
    positive = [changed for changed, margin in enumerate(curve.margins) if margin > 0]
    assert positive == list(range(len(positive))), "a margin rises again"
    return len(positive) - 1 if positive else None


def costliest(differences, bound, sets, words, changed):
    """The least that is left of the lead, by trying every choice of positions."""
    left = []
    for chosen in itertools.combinations(range(words), changed):
        met = np.isin(sets, chosen).any(axis=1)
        left.append((differences.sum(axis=1) - (differences + bound)[:, met].sum(axis=1)).min())
    return int(min(left))


CASES = [
    (words, kept, choice, classes, ensemble)
    for words, kept in [(6, 1), (9, 2), (9, 3), (14, 2), (5, 5)]
    for choice in ("all", "sampled", "windows")
    for classes in (2, 4)
    for ensemble in ("vote", "score", "logit")
]


@pytest.mark.parametrize(("words", "kept", "choice", "classes", "ensemble"), CASES)
def test_the_exact_curve_is_what_every_choice_of_words_leaves(
    words, kept, choice, classes, ensemble
):
    family_ = family(words, kept, choice=choice, masks=60 if choice == "sampled" else 10**4)
    for seed in range(3):
        said = votes_of(
            len(family_), classes, seed, ensemble=ensemble, lean=0.3 + seed, tolerance=1e-3
        )
        radius = exact_radii(said, [family_])[0].words
        curve = exact_margins(said, family_, radius)
        assert all(curve.known)
        assert last_positive(curve) == radius == curve.radius
        differences = said.differences(said.winners)
        for changed, margin in enumerate(curve.margins):
            left = costliest(differences, said.bound, family_.sets, words, changed)
            assert margin == Fraction(left, 2 * said.bound * len(family_))
        assert len(curve.margins) == min(words, (-1 if radius is None else radius) + BEYOND) + 1


def test_edits_cost_no_less_than_replaced_words_and_agree_up_to_the_radius():
    whole = family(12, 1, choice="all")
    said = votes_of(12, 3, 5, ensemble="score", lean=1.0)
    radius = exact_radii(said, [whole], "edits")[0].words
    replaced = exact_margins(said, whole, radius)
    edited = exact_margins(said, whole, radius, "edits")
    assert last_positive(edited) == radius
    assert edited.margins[: radius + 2] == replaced.margins[: radius + 2]
    assert all(one <= other for one, other in zip(edited.margins, replaced.margins, strict=True))


@pytest.mark.parametrize("ensemble", ["vote", "score"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("kept", "choice"), [(4, "sampled"), (2, "all"), (3, "windows")])
def test_where_the_search_gives_up_the_curve_is_a_lower_bound_and_says_so(
    monkeypatch, ensemble, seed, kept, choice
):
    family_ = family(16, kept, choice=choice, masks=300)
    said = votes_of(len(family_), 3, seed, ensemble=ensemble, lean=1.0 + seed)
    radius = exact_radii(said, [family_])[0].words
    true = exact_margins(said, family_, radius)

    def gives_up(self, positions, target):
        raise coverage.OutOfWorkError

    monkeypatch.setattr(margins.Coverage, "search", gives_up)
    bounded = exact_margins(said, family_, radius)
    assert choice != "sampled" or not all(bounded.known)
    assert last_positive(bounded) == radius == last_positive(true)
    assert all(one <= other for one, other in zip(bounded.margins, true.margins, strict=True))


@pytest.mark.parametrize(
    "kind", ["ablation", "ablation-runner-up", "paper", "paper-as-printed", "paper-estimated-beta"]
)
@pytest.mark.parametrize("lean", [0.0, 0.4, 1.0, 3.0])
def test_a_sampled_curve_crosses_zero_right_after_its_radius(kind, lean):
    words = 20
    family_ = family(words, 3, choice="sampled", masks=400)
    said = votes_of(400, 3, 7, lean=lean, tolerance=0.01)
    margin = sampled_margin(kind, said, family_, 0, alpha=0.05, seed=3)
    radius = radius_of(kind, words, margin).words
    curve = sampled_margins(kind, said, family_, 0, radius, alpha=0.05, seed=3)
    last = last_positive(curve)
    if kind == "paper-as-printed" and last is not None:
        assert radius == last + 1
    else:
        assert radius == last


def test_levine_and_feizis_margin_is_their_test():
    family_ = family(20, 3, choice="sampled", masks=400)
    said = votes_of(400, 2, 7, lean=1.0)
    votes = int((said.best == 0).sum())
    low = Fraction(lower_bound(votes, 400, 0.05))
    curve = sampled_margins("ablation", said, family_, 0, 2, alpha=0.05)
    assert curve.margins[2] == low - delta(20, 3, 2) - Fraction(1, 2)


def test_one_class_has_nothing_to_lose():
    nothing = np.zeros(3, dtype=np.int64)
    said = Votes(1, np.array([3]), nothing, nothing.astype(bool), None, nothing, 1, 1)
    curve = exact_margins(said, family(3, 1, choice="all"), 3)
    assert curve.margins == (Fraction(1, 2),) * 4


def test_kept_sets_that_follow_the_words_have_no_curve():
    drawn = Family("fresh", 3, family(3, 1, choice="all").sets)
    with pytest.raises(OptionError):
        exact_margins(votes_of(3, 2, 0), drawn, 0)
    with pytest.raises(OptionError):
        sampled_margins("ablation", votes_of(3, 2, 0), drawn, 0, 0, alpha=0.05)


def test_an_inserted_word_costs_more_than_a_bad_one_replaced():
    scores = np.array([[1.0, 0.0], [0.35, 0.65], [0.35, 0.65], [0.35, 0.65]])
    said = count_votes(scores, "score", "scores", 0.0)
    whole = family(4, 1, choice="all")
    replaced = exact_margins(said, whole, 0)
    edited = exact_margins(said, whole, 0, "edits")
    assert edited.margins[1] == replaced.margins[1]
    assert edited.margins[1] - edited.margins[2] == Fraction(1, 8)
    assert edited.margins[2] < replaced.margins[2]
