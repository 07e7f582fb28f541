"""Why a cascade carries no certificate, and what its certified variant does prove.

Every text within the radius is tried.  The smoothed label, ``label``, never moves.  The label that
is shown does: for some texts a single word is enough, which fools detector and plain classifier.
"""

import itertools
import zlib

import pytest

from ranmask import FunctionClassifier, SmoothedClassifier
from ranmask.smoothing.cascade import Cascade

WORDS = ("good", "bad", "film", "!")
NAMES = ("negative", "positive")


def smoothed():
    def votes(texts):
        return [[0.0, 1.0] if "bad" not in text.split() else [1.0, 0.0] for text in texts]

    return SmoothedClassifier(votes, keep=1, labels=NAMES)


def hashed(salt, labels):
    """Arbitrary in every word and place, as a large network may be."""

    def scores(texts):
        shares = [zlib.crc32(f"{salt} {text}".encode()) % 1000 / 1000 for text in texts]
        return [[1 - share, share] for share in shares]

    return FunctionClassifier(scores, labels=labels)


def cascade(salt):
    return Cascade(hashed(salt, NAMES), smoothed(), hashed(salt + 100, ("clean", "attacked")))


def within(text, radius):
    """Every text of as many words that differs in at most ``radius`` of them."""
    words = text.split()
    for places in itertools.combinations(range(len(words)), radius):
        for chosen in itertools.product(WORDS, repeat=radius):
            changed = list(words)
            for place, word in zip(places, chosen, strict=True):
                changed[place] = word
            yield " ".join(changed)


@pytest.mark.parametrize("salt", range(4))
def test_only_the_smoothed_label_survives_every_change(salt):
    both = cascade(salt)
    text = "good film good film good"
    [result] = both.certify([text])
    [alone] = both.smoothed.certify([text])
    assert result.radius == alone.radius == 2 and result.guarantee
    around = both.certify(list(within(text, result.radius)))
    assert {one.label for one in around} == {result.label} == {"positive"}
    # The guarantee that a user might wrongly read into it is broken, and not by far-off texts.
    assert {one.shown_label for one in around} == set(NAMES)
    assert {one.label for one in both.predict(list(within(text, 1)))} == set(NAMES)


def test_one_word_flips_what_is_shown_and_not_what_is_certified():
    """Constructed: the detector looks for ``!``, the plain classifier at the last word alone."""
    plain = FunctionClassifier(
        lambda texts: [[0, 1] if text.endswith("good") else [1, 0] for text in texts], labels=NAMES
    )
    detector = FunctionClassifier(
        lambda texts: [[0, 1] if "!" in text.split() else [1, 0] for text in texts],
        labels=("clean", "attacked"),
    )
    both = Cascade(plain, smoothed(), detector)
    before, after = both.certify(["good film good film good", "good film good film film"])
    assert (before.label, before.shown_label, before.radius) == ("positive", "positive", 2)
    assert (after.label, after.shown_label, after.path) == ("positive", "negative", "plain")
    # Seen by the detector, the same change shows the certified label.
    [seen] = both.certify(["good film good ! film"])
    assert (seen.shown_label, seen.path) == ("positive", "smoothed")


def test_radii_are_those_of_the_smoothed_classifier():
    both = cascade(1)
    texts = [" ".join(words) for words in itertools.product(WORDS, repeat=4)]
    results, alone = both.certify(texts), both.smoothed.certify(texts)
    assert [one.radius for one in results] == [one.radius for one in alone]
    assert [one.label_id for one in results] == [one.label_id for one in alone]
    assert {one.path for one in results} == {"plain", "smoothed"}
