"""The score of a class never falls below what is proved, whichever words are changed, to anything.

All substitutions of short texts over a small vocabulary, with words as hostile as can be.
"""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from ranmask import OptionError, ProtectedClassifier, SmoothedClassifier
from ranmask.certificates.class_margins import MOST_CHANGED
from ranmask.models.readers import FunctionReader
from ranmask.results import MarginCertificate

CLASSES = 3
VOCABULARY = ("a", "b", "c", "h0", "h1", "h2")


def speaker(seed, steps):
    """Scores that depend on the words of a copy; a hostile word in it decides them."""

    def scores(texts):
        rows = []
        for text in texts:
            hostile = [int(word[1]) for word in text.split() if word.startswith("h")]
            drawn = random.Random(f"{seed} {text}")
            row = [drawn.randrange(steps + 1) / steps for _ in range(CLASSES)]
            if hostile:
                row = [float(number == hostile[0]) for number in range(CLASSES)]
            elif drawn.random() < 0.5:  # mostly for class 0, so that something is proved
                row = [1.0, 0.0, 0.0]
            rows.append(row)
        return rows

    return scores


def leads(classifier, texts, positive):
    """The lead of a class in each text, from the totals, with its scale."""
    return [
        int(totals[positive] - np.delete(totals, positive).max())
        for scored in classifier.scored(texts)
        for totals in scored.votes.totals
    ]


def within(words, changed):
    """Every text with as many words that differs in so many places at most."""
    for places in itertools.combinations(range(len(words)), min(changed, len(words))):
        for new in itertools.product(VOCABULARY, repeat=len(places)):
            text = list(words)
            for place, word in zip(places, new, strict=True):
                text[place] = word
            yield " ".join(text)


SMOOTHINGS = [
    {"keep": 1},
    {"keep": 1, "ensemble": "score"},
    {"keep": 1, "ensemble": "logit"},
    {"keep": 2},
    {"keep": 2, "ensemble": "score"},
    {"keep": 2, "family": "windows"},
    {"keep": 2, "family": "sampled", "masks": 8},
    {"keep": 1, "family": "sampled", "masks": 6},
    {"keep": 1, "family": "distinct", "ensemble": "score"},
    {"keep": 1, "family": "distinct"},
]


def named(options):
    return "-".join(map(str, options.values()))


def built(seed, options):
    says = speaker(seed, 4)
    return SmoothedClassifier(says, hide="drop", recheck=0, labels=["x", "y", "z"], **options)


def protected(seed, weights, **options):
    reader = FunctionReader(speaker(seed + 1000, 4), repeatable=True)
    return ProtectedClassifier(
        speaker(seed, 4),
        reader=reader,
        reader_weights=weights,
        hide="drop",
        recheck=0,
        labels=["x", "y", "z"],
        **options,
    )


def check(classifier, words, positive, changes):
    """No text within reach has a lower score; returns the certificate and the lowest leads."""
    text = " ".join(words)
    [found] = classifier.certify_margins([text], positive)
    assert isinstance(found, MarginCertificate) and found.positive_id == positive
    [plain] = classifier.certify([text])
    assert (found.label, found.radius, found.votes) == (plain.label, plain.radius, plain.votes)
    assert found.margin == leads(classifier, [text], positive)[0]
    assert len(found.margins) == min(len(words), MOST_CHANGED) + 1
    assert list(found.margins) == sorted(found.margins, reverse=True)
    assert -found.margin_scale <= found.margin <= found.margin_scale
    lowest = []
    for changed in range(changes + 1):
        others = list(within(words, changed))
        after = classifier.certify_margins(others, positive)
        assert {one.margin_scale for one in after} == {found.margin_scale}
        lowest.append(min(one.margin for one in after))
        if changed < len(found.margins):
            assert lowest[-1] >= found.margins[changed]
    if positive == found.label_id:  # the same radius as that of the label
        # (which, where words count once beside a reader, promises more: any order of the words)
        reordered = found.family == "distinct" and found.reader is not None
        assert found.flag_radius(0) == (found.radius or 0 if reordered else found.radius)
    return found, lowest


@pytest.mark.parametrize("options", SMOOTHINGS, ids=named)
@pytest.mark.parametrize("positive", [0, 1])
def test_no_change_takes_more_than_is_proved(options, positive):
    above = 0
    for seed, length in itertools.product(range(2), (2, 5)):
        words = random.Random(seed).choices(("a", "b", "c"), k=length)
        found, _ = check(built(seed, options), words, positive, 2)
        above += found.margins[1] > -found.margin_scale
    assert above or positive  # words mostly speak for class 0


@pytest.mark.parametrize("weights", [(1.5,), (0.5, 0.75), (0, 1), (1, 0, 0.5)])
@pytest.mark.parametrize("positive", [0, 2])
def test_beside_a_reader(weights, positive):
    for seed in range(4):
        words = random.Random(seed).choices(("a", "b", "c"), k=4)
        check(protected(seed, weights, keep=1), words, positive, 2)
    check(protected(9, (2,), keep=2), ["a", "b", "c"], positive, 2)
    check(protected(9, (2,), keep=1, family="distinct"), ["a", "b", "a"], positive, 2)


def test_a_reader_that_changes_its_mind_is_counted_against_the_score():
    answer = [1.0, 0.0, 0.0]
    classifier = ProtectedClassifier(
        lambda texts: [[1.0, 0.0, 0.0]] * len(texts),
        reader=lambda texts: [list(answer) for _ in texts],
        reader_weights=(1,),
        keep=1,
        recheck=0,
    )
    [before] = classifier.certify_margins(["a b c d"], 0)
    answer[:] = [0.0, 1.0, 0.0]
    [after] = classifier.certify_margins(["a b c d"], 0)
    assert after.margin < before.margin and after.margin >= before.margins[0]
    assert after.margin_scale == before.margin_scale


def test_the_bound_is_attained_by_single_words():
    """Where a word is judged alone and a hostile one may come, nothing better can be proved."""
    for seed, options in itertools.product(range(6), SMOOTHINGS[:2]):
        words = random.Random(seed).choices(("a", "b", "c"), k=4)
        for positive in range(CLASSES):
            found, lowest = check(built(seed, options), words, positive, 2)
            assert lowest == list(found.margins[:3])


@pytest.mark.parametrize("options", SMOOTHINGS[:5], ids=named)
def test_what_is_flagged_above_any_threshold_stays_flagged(options):
    """Every threshold that could make a difference: all scores, and between them."""
    kept = 0
    for seed in range(4):
        words = random.Random(50 + seed).choices(("a", "b"), k=4)
        classifier = built(seed, options)
        [found] = classifier.certify_margins([" ".join(words)], 0)
        thresholds = {Fraction(margin, found.margin_scale) for margin in found.margins}
        for threshold in (*map(float, thresholds), -0.3, 0.0, 0.25):
            radius = found.flag_radius(threshold)
            assert (radius is None) or found.flagged(threshold)
            if radius is not None and radius <= 2:
                kept += 1
                for other in classifier.certify_margins(list(within(words, radius)), 0):
                    assert other.flagged(threshold)
    assert kept > 4


def test_an_uncertain_vote_is_counted_against_the_score():
    def close(texts):
        return [[0.5, 0.5 - 1e-9, 0.0] for _ in texts]

    [found] = SmoothedClassifier(close, keep=1, tolerance=1e-3, recheck=0).certify_margins(
        ["a b c"], 0
    )
    assert found.margin == 3 and found.margins[0] == -3
    assert found.flagged() and found.flag_radius() is None


def test_long_texts_of_many_in_one_batch():
    classifier = built(3, {"keep": 1, "ensemble": "score"})
    drawn = random.Random(1)
    texts = [" ".join(drawn.choices(("a", "b", "c"), k=size)) for size in (1, 30, 2, 9, 10, 11, 64)]
    together = classifier.certify_margins(texts, 0)
    assert together == [classifier.certify_margins([text], 0)[0] for text in texts]
    assert [len(one.margins) for one in together] == [2, 11, 3, 10, 11, 11, 11]


@pytest.mark.parametrize(
    "options",
    [{"certificate": "ablation"}, {"certificate": "paper"}, {"threat": "edits"}],
)
def test_what_is_not_proved_is_refused(options):
    classifier = SmoothedClassifier(speaker(1, 2), keep=1, hide="drop", recheck=0, **options)
    assert not classifier.gives_margins
    with pytest.raises(OptionError, match="substitutions"):
        classifier.certify_margins(["a b"], 0)


def test_only_what_is_above_a_threshold_is_flagged():
    [found] = SmoothedClassifier(
        lambda texts: [[float("a" in text), float("a" not in text)] for text in texts],
        keep=1,
        recheck=0,
    ).certify_margins(["a a a b"], 0)
    assert (found.margin, found.margin_scale, found.margins[:2]) == (2, 4, (2, 0))
    assert [found.flagged(threshold) for threshold in (0.5, 0.499)] == [False, True]
    assert [found.flag_radius(threshold) for threshold in (0.0, -0.001)] == [0, 1]


def test_a_class_by_its_name():
    classifier = built(1, {"keep": 1})
    assert classifier.certify_margins(["a b"], "z") == classifier.certify_margins(["a b"], 2)


@pytest.mark.parametrize("positive", [-1, 3, "spam"])
def test_a_class_that_does_not_exist(positive):
    with pytest.raises(OptionError, match="positive"):
        built(1, {"keep": 1}).certify_margins(["a b"], positive)
