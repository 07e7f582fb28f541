"""Harmless words appended: they undo a classifier that weighs words, and no detector."""

import math

import numpy as np
import pytest

from ranmask import OptionError, WordDetector
from ranmask.attacks.appending import append_words, harmless_words
from ranmask.training.detector_options import DetectorTraining
from ranmask.training.detector_tables import train_detector_table

HAM = ["see you at lunch", "are you at home", "lunch at home then", "see you then love"]
SPAM = ["win a free prize", "free cash prize now", "claim cash now win", "call now free win"]
TEXTS, FLAGS = [*HAM, *SPAM], [False] * 4 + [True] * 4


def weighed(texts):
    """A free classifier: words of spam speak for it, and words of ham against it."""
    spam, ham = set(" ".join(SPAM).split()), set(" ".join(HAM).split())
    totals = [sum((w in spam) - (w in ham) for w in text.split()) for text in texts]
    return [1 / (1 + math.exp(-total)) for total in totals]


def test_harmless_words_are_those_of_harmless_texts():
    words = harmless_words(TEXTS, FLAGS, 5)
    assert len(words) == 5 and set(words) <= set(" ".join(HAM).split())
    assert words[0] in ("at", "you")


def test_the_fewest_words_that_undo_a_flag():
    found = append_words(weighed, ["win cash now", "free"], 0.5, ("lunch", "win", "home"), most=20)
    assert [one.succeeded for one in found] == [True, True]
    # Ranked by the victim's own scores: "win" comes last, and the others again and again.
    first, second = found
    assert "win" not in second.words and len(second.words) == 2
    text = " ".join([first.text, *first.words])
    assert weighed([text])[0] < 0.5
    fewer = " ".join([first.text, *first.words[:-1]])
    assert weighed([fewer])[0] >= 0.5


def test_a_detector_is_not_undone():
    options = DetectorTraining(epochs=30, learning_rate=0.05, batch_size=4)
    table = train_detector_table(TEXTS, FLAGS, ("ham", "spam"), options=options)
    detector = WordDetector(table, threshold=0.05)
    flagged = [text for text, one in zip(SPAM, detector.detect(SPAM), strict=True) if one.flagged]
    assert len(flagged) == len(SPAM)

    def scores(texts):
        return [found.score for found in detector.detect(texts)]

    words = harmless_words(TEXTS, FLAGS)
    assert not any(
        one.succeeded for one in append_words(scores, flagged, detector.threshold, words, most=64)
    )
    assert all(one.succeeded for one in append_words(weighed, SPAM, 0.5, words, most=64))


def test_bad_arguments():
    assert append_words(weighed, [], 0.5, ("a",)) == []
    with pytest.raises(OptionError, match="nothing can be appended"):
        append_words(weighed, ["a"], 0.5, ())
    with pytest.raises(OptionError, match="one number a text"):
        append_words(lambda texts: np.zeros((len(texts), 2)), ["a"], 0.5, ("b",))


def test_a_text_that_is_not_flagged_is_no_success():
    with pytest.raises(OptionError, match=r"text 1 is not flagged: it scores 0\.25"):
        append_words(lambda texts: [1, 0.25][: len(texts)], ["a", "b"], 0.5, ["x"])
