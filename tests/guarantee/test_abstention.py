"""What is proved of a classifier that declines to answer, tried on every change of short texts."""

import itertools
from collections import Counter

import pytest

from ranmask import SmoothedClassifier
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.words import distance

WORDS = ("good", "bad", "film")
TEXTS = [" ".join(words) for words in itertools.product(WORDS, repeat=5)]
PAIRS = [
    (one, other, distance(TEXTS[one], TEXTS[other]))
    for one, other in itertools.product(range(len(TEXTS)), repeat=2)
]


def telling(texts):
    """Two classes; a visible word tells the class alone, so radii spread from 0 to 2."""
    return [[0.2 + 0.6 * ("bad" in text), 0.2 + 0.7 * ("good" in text)] for text in texts]


CASES = [
    pytest.param(function, options, id=f"{function.__name__}-{options}")
    for function in (telling, keyword_classifier, hashing_classifier)
    for options in (
        {"keep": 1},
        {"keep": 1, "ensemble": "score"},
        {"keep": 1, "ensemble": "logit"},
        {"keep": 2},
        {"keep": 2, "ensemble": "score"},
        {"keep": 2, "family": "windows"},
        {"keep": 2, "family": "sampled", "masks": 7},
        {"keep": 1, "hide": "drop", "threat": "edits"},
    )
]


def answers(function, options):
    """Label and radius of every text; a radius of -1 stands for none."""
    results = SmoothedClassifier(function, **options).certify(TEXTS)
    assert all(result.tight for result in results)
    return [(one.label_id, -1 if one.radius is None else one.radius) for one in results]


@pytest.mark.parametrize(("function", "options"), CASES)
def test_a_radius_falls_by_at_most_the_changed_words(function, options):
    """So a text of radius t + d is still answered, at threshold t, after any d changes."""
    found = answers(function, options)
    for one, other, changed in PAIRS:
        assert found[other][1] >= found[one][1] - changed, (TEXTS[one], TEXTS[other])


@pytest.mark.parametrize(("function", "options"), CASES)
def test_an_answer_that_reaches_the_threshold_is_never_another_label(function, options):
    """Radius r at the text, t at what became of it: up to r + t changes, and the same label.

    Of a text that is not certified (r = -1) that holds up to t changes.
    """
    found = answers(function, options)
    for one, other, changed in PAIRS:
        if changed <= max(found[one][1], 0) + found[other][1]:
            assert found[one][0] == found[other][0], (TEXTS[one], TEXTS[other])


@pytest.mark.parametrize("ensemble", ["vote", "score"])
@pytest.mark.parametrize("function", [telling, keyword_classifier, hashing_classifier])
def test_both_hold_for_edits(function, ensemble):
    """Texts of one to five words; order is free, so texts are what they have of each word."""
    bags = [
        bag for size in range(1, 6) for bag in itertools.combinations_with_replacement(WORDS, size)
    ]
    options = {"keep": 1, "hide": "drop", "threat": "edits", "ensemble": ensemble}
    results = SmoothedClassifier(function, **options).certify([" ".join(bag) for bag in bags])
    found = [(one.label_id, -1 if one.radius is None else one.radius) for one in results]
    assert max(radius for _, radius in found) >= 1
    for (one, (label, radius)), (other, (answer, left)) in itertools.product(
        zip(bags, found, strict=True), repeat=2
    ):
        gone, new = Counter(one) - Counter(other), Counter(other) - Counter(one)
        edits = max(gone.total(), new.total())
        assert left >= radius - edits, (one, other)
        if edits <= max(radius, 0) + left:
            assert label == answer, (one, other)


def test_no_more_is_true():
    """One more change, or one less word of radius, and both statements fail somewhere."""
    assert -1 in {radius for _, radius in answers(hashing_classifier, {"keep": 1})}
    found = answers(telling, {"keep": 1})
    assert {radius for _, radius in found} == {0, 1, 2}
    assert any(found[other][1] == found[one][1] - changed for one, other, changed in PAIRS)
    assert any(
        found[one][0] != found[other][0] and changed == found[one][1] + found[other][1] + 1
        for one, other, changed in PAIRS
    )
    # Stripped of a margin, a text that was answered may be declined.
    assert any(
        found[one][1] >= 1 > found[other][1] and changed == 1 for one, other, changed in PAIRS
    )
