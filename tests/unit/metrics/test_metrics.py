from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ranmask.metrics import (
    CertifiedSummary,
    ClassCounts,
    certified_values,
    class_lines,
    headline,
    median_certified_robustness,
)


def test_papers_example():
    assert median_certified_robustness([None, None, 1, 2, 3]) == 1


def test_even_numbers_take_the_lower_median():
    assert median_certified_robustness([1, 2, 3, 4]) == 2
    assert median_certified_robustness([None, None, 3, 4]) is None
    assert median_certified_robustness([]) is None


@given(st.lists(st.none() | st.integers(0, 9), min_size=1))
def test_against_sorting(radii):
    ranked = sorted(-np.inf if radius is None else radius for radius in radii)
    lower = ranked[(len(ranked) - 1) // 2]
    assert median_certified_robustness(radii) == (None if lower == -np.inf else lower)


def test_summary():
    summary = CertifiedSummary()
    summary.add(correct=True, radius=2, words=10)
    summary.add(correct=True, radius=0, words=4)
    summary.add(correct=True, radius=None, words=4)
    summary.add(correct=False, radius=7, words=10)
    summary.add(correct=True, radius=3, words=4)
    assert summary.accuracy == Fraction(4, 5)
    assert summary.certified_accuracy(0) == Fraction(3, 5)
    assert summary.certified_accuracy(1) == Fraction(2, 5)
    assert summary.certified_accuracy(3) == Fraction(1, 5)
    assert summary.certified_accuracy(4) == 0
    assert summary.median_radius == 0
    assert summary.median_rate == 0
    assert summary.largest_radius == 3


def test_median_rate_uses_each_texts_own_length():
    summary = CertifiedSummary()
    for radius, words in [(1, 10), (1, 4), (2, 5)]:
        summary.add(correct=True, radius=radius, words=words)
    assert summary.median_radius == 1
    assert summary.median_rate == Fraction(1, 4)


def skewed(found):
    """Nine texts of class 0, all right with radius 3, and one of class 1."""
    summary = CertifiedSummary()
    summary.add(correct=True, radius=3, words=9, expected=0, texts=9)
    summary.add(correct=found, radius=1, words=9, expected=1)
    return summary


class TestByClass:
    def test_by_hand(self):
        counts = ClassCounts()
        for expected, right in [
            (0, True),
            (0, False),
            (0, True),
            (2, False),
            (2, False),
            (5, True),
        ]:
            counts.add(expected, right=right)
        assert counts.majority == Fraction(3, 6)
        assert [counts.recall(one) for one in (0, 2, 5)] == [Fraction(2, 3), 0, 1]
        assert counts.balanced == Fraction(5, 9)

    def test_nothing_was_counted(self):
        assert ClassCounts().majority == 0 == ClassCounts().balanced
        assert certified_values(CertifiedSummary(), None) == {}

    def test_the_constant_classifier_is_seen_through(self):
        summary = skewed(found=False)
        assert summary.accuracy == Fraction(9, 10) == summary.classes.majority
        assert summary.median_radius == 3 and summary.classes.balanced == Fraction(1, 2)
        assert not summary.beats_majority() and not summary.beats_majority(balanced=True)

    def test_what_beats_it(self):
        assert skewed(found=True).beats_majority()
        assert skewed(found=True).beats_majority(balanced=True)
        weighted = CertifiedSummary()  # finds the small class, at the price of accuracy
        weighted.add(correct=True, radius=1, words=5, expected=0, texts=7)
        weighted.add(correct=False, radius=1, words=5, expected=0, texts=2)
        weighted.add(correct=True, radius=1, words=5, expected=1)
        assert not weighted.beats_majority() and weighted.beats_majority(balanced=True)

    def test_one_class_has_nothing_to_beat(self):
        summary = CertifiedSummary()
        summary.add(correct=True, radius=0, words=2, expected=1)
        assert summary.beats_majority() and summary.beats_majority(balanced=True)

    def test_certified_recall(self):
        summary = skewed(found=True)
        at_1, at_2 = summary.certified_classes(1), summary.certified_classes(2)
        assert (at_1.recall(0), at_1.recall(1)) == (1, 1)
        assert (at_2.recall(0), at_2.recall(1)) == (1, 0)
        assert at_2.balanced == Fraction(1, 2)

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.none() | st.integers(0, 4))),
        st.integers(0, 5),
    )
    def test_recalls_add_up_to_accuracy(self, rows, changed):
        summary = CertifiedSummary()
        for expected, correct, radius in rows:
            summary.add(correct=correct, radius=radius, words=9, expected=expected)
        for counts, share in (
            (summary.classes, summary.accuracy),
            (summary.certified_classes(changed), summary.certified_accuracy(changed)),
        ):
            found = sum(counts.recall(one) * counts.texts[one] for one in counts.texts)
            assert found == share * len(rows)

    def test_values(self):
        values = certified_values(skewed(found=True), ["ham", "spam"])
        assert (values["majority"], values["balanced_accuracy"]) == (0.9, 1.0)
        assert values["classes"] == [
            {"name": "ham", "texts": 9, "recall": 1.0, "certified_recall": [1.0, 1.0, 1.0, 1.0]},
            {"name": "spam", "texts": 1, "recall": 1.0, "certified_recall": [1.0, 1.0, 0.0, 0.0]},
        ]
        assert (
            "certified_recall"
            not in certified_values(skewed(found=True), None, certified=False)["classes"][0]
        )

    def test_lines(self):
        values = certified_values(skewed(found=True), ["ham", "spam"])
        assert headline(values) == "(majority class alone 0.900)  balanced accuracy 1.000"
        assert class_lines(values["classes"]) == [
            "class  texts  recall   CR@1   CR@2   CR@3",
            "ham        9   1.000  1.000  1.000  1.000",
            "spam       1   1.000  1.000  0.000  0.000",
        ]

    def test_of_many_classes_the_worst_are_shown(self):
        summary = CertifiedSummary()
        for expected in range(20):
            for place in range(20):
                correct = place >= (7 * expected) % 20
                summary.add(correct=correct, radius=None, words=3, expected=expected)
        lines = class_lines(certified_values(summary, None)["classes"])
        assert [line.split()[0] for line in lines[1:4]] == ["17", "14", "11"]
        assert lines[4:] == ["the 3 worst of 20 classes"]
