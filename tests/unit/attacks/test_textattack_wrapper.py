"""The wrapper for TextAttack, which is not installed here: rows as TextAttack wants them."""

import numpy as np
import pytest

from ranmask import SmoothedClassifier
from ranmask.attacks.textattack import SmoothedModelWrapper
from ranmask.attacks.victims import GRID, Answers, Question, SmoothedVictim, Victim
from ranmask.words import document


def asked(attempt, text, near):
    """A question about texts as they are spelt."""
    return Question(attempt, document(text), document(near))


WORDS = ["a", "by", "cat", "door", "eight", "future", "gallery"]


def thirds(texts):
    """Three classes; each word speaks for one of them."""
    rows = np.full((len(texts), 3), 0.5)
    for row, text in zip(rows, texts, strict=True):
        words = (text if isinstance(text, str) else text[1]).split()
        for word in words:
            row[len(word) % 3] += 1 + len(word) / 10
    return rows / rows.sum(axis=1, keepdims=True)


class Told(Victim):
    """Says what it is told to."""

    labels = None

    def __init__(self, label, shares):
        self.told = label, shares
        self.asked = []

    def answer(self, questions):
        self.asked += [question.text for question in questions]
        label, shares = self.told
        return Answers(np.array([label] * len(questions)), np.array([shares] * len(questions)))

    def description(self):
        return {}


@pytest.fixture(params=["vote", "score"])
def smoothed(request):
    return SmoothedClassifier(thirds, keep=1, ensemble=request.param, hide="drop")


def texts():
    return [" ".join(WORDS[start : start + size]) for start in range(4) for size in (1, 2, 3, 5)]


def test_rows_sum_to_one_in_single_precision(smoothed):
    """Or TextAttack takes a whole batch for logits."""
    shares = SmoothedVictim(smoothed).answer([asked(0, text, text) for text in texts()]).shares
    assert (shares.sum(axis=1) != 1).any()  # rounded shares do not
    rows = np.array(SmoothedModelWrapper(smoothed)(texts()), dtype=np.float32)
    assert (np.abs(rows.sum(axis=1) - 1) < 1e-6).all()
    assert (rows >= 0).all()


def test_scores_are_those_of_ranmask(smoothed):
    """All but the least likely class, which no attack starts from."""
    victim = SmoothedVictim(smoothed)
    answers = victim.answer([asked(0, text, text) for text in texts()])
    for row, shares in zip(SmoothedModelWrapper(victim)(texts()), answers.shares, strict=True):
        assert (np.array(row) != shares).sum() <= 1
        if (shares == shares.max()).sum() == 1:
            assert row[shares.argmax()] == shares.max()


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.375, 0.375, 0.25]])
def test_the_label_is_the_classifiers_own(label, shares):
    """It saw a winner where rounded shares tie."""
    [row] = SmoothedModelWrapper(Told(label, np.array(shares)))(["a text"])
    assert int(np.argmax(row)) == label
    assert sum(row) == 1


def test_what_is_missing_goes_to_the_least_likely_class():
    [row] = SmoothedModelWrapper(Told(0, np.array([0.5, 0.125 - GRID, 0.375])))(["a text"])
    assert row == [0.5, 0.125, 0.375]


def test_what_is_missing_never_makes_a_share_negative():
    victim = Told(1, np.array([0.0, 0.75 + GRID, 0.25]))
    [row] = SmoothedModelWrapper(victim)(["a text"])
    assert row == [0.0, 0.75 + GRID, 0.25 - GRID]


def test_a_text_without_words_says_nothing():
    """TextFooler deletes the only word of a text to see how much it matters."""
    victim = Told(0, np.array([0.5, 0.25, 0.25]))
    wrapper = SmoothedModelWrapper(victim)
    assert wrapper(["a", "", ("premise", "")]) == [[0.5, 0.25, 0.25], *[[1 / 3] * 3] * 2]
    assert "" not in victim.asked
    assert SmoothedModelWrapper(victim)([""]) == [[1 / 3] * 3]


def test_pairs_and_texts_that_come_twice():
    victim = Told(0, np.array([0.75, 0.25]))
    pair = ("A premise", "a hypothesis")
    assert SmoothedModelWrapper(victim)([pair, "a", list(pair), "a"]) == [[0.75, 0.25]] * 4
    assert victim.asked == [document(pair), document("a")]
