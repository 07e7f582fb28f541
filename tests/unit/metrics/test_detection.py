"""Figures of a positive class against scikit-learn, and against counting text by text."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.errors import DataError
from ranmask.metrics import CertifiedSummary, certified_values
from ranmask.metrics.detection import (
    RATES,
    DetectedText,
    DetectionSummary,
    detection_lines,
)
from ranmask.metrics.roc import roc_curve
from ranmask.runs.summary import RunSummary

sklearn_metrics = pytest.importorskip("sklearn.metrics")

# Few different scores, so that ties are common.
ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([-0.5, -0.125, 0.0, 0.25, 0.75])),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({positive for positive, _ in rows}) == 2)


def summary_of(rows):
    summary = DetectionSummary()
    for positive, score in rows:
        summary.add(DetectedText(positive, score > 0, Fraction(score)))
    return summary


@given(ROWS)
@settings(max_examples=40)
def test_decision_against_scikit_learn(rows):
    truth, said = [row[0] for row in rows], [row[1] > 0 for row in rows]
    found = summary_of(rows).decision
    theirs = sklearn_metrics.precision_recall_fscore_support(
        truth, said, average="binary", pos_label=True, zero_division=0
    )
    assert [float(found.precision), float(found.recall), float(found.f1)] == pytest.approx(
        theirs[:3]
    )
    negatives = [flag for flag, kind in zip(said, truth, strict=True) if not kind]
    assert found.false_positive_rate == Fraction(sum(negatives), len(negatives))


@given(ROWS)
@settings(max_examples=40)
def test_curves_against_scikit_learn(rows):
    truth, scores = [row[0] for row in rows], [row[1] for row in rows]
    roc = summary_of(rows).roc
    assert float(roc.area) == pytest.approx(sklearn_metrics.roc_auc_score(truth, scores))
    assert roc.average_precision == pytest.approx(
        sklearn_metrics.average_precision_score(truth, scores)
    )


@given(ROWS, st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1)]))
@settings(max_examples=40)
def test_recall_at_a_rate_is_the_best_of_all_thresholds(rows, rate):
    """scikit-learn's ROC curve: the largest recall of the points that keep to the rate."""
    truth, scores = [row[0] for row in rows], [row[1] for row in rows]
    alarms, recalls, _ = sklearn_metrics.roc_curve(truth, scores, drop_intermediate=False)
    best = max(
        recall for alarm, recall in zip(alarms, recalls, strict=True) if alarm <= rate + 1e-12
    )
    summary = summary_of(rows)
    found = summary.at_threshold(summary.threshold_at(rate))
    assert float(found.recall) == pytest.approx(best)
    assert found.false_positive_rate <= rate


CLASSES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


@given(CLASSES)
@settings(max_examples=40)
def test_classes_against_scikit_learn(rows):
    summary = CertifiedSummary()
    for expected, named in rows:
        summary.add(correct=expected == named, radius=None, words=3, expected=expected, named=named)
    truth, said = zip(*rows, strict=True)
    occurring = sorted(set(truth))
    theirs = sklearn_metrics.precision_recall_fscore_support(
        truth, said, labels=occurring, zero_division=0
    )
    values = certified_values(summary, None)
    for place, entry in enumerate(values["classes"]):
        found = [entry[name] for name in ("precision", "recall", "f1", "texts")]
        assert found == pytest.approx([column[place] for column in theirs])
    assert values["balanced_accuracy"] == pytest.approx(theirs[1].mean())


def test_precision_is_left_out_where_labels_are_not_known():
    summary = CertifiedSummary()
    summary.add(correct=True, radius=1, words=3, expected=0, named=0)
    summary.add(correct=False, radius=1, words=3, expected=0)
    assert "precision" not in certified_values(summary, None)["classes"][0]


MARGINS = st.lists(st.integers(-8, 8), min_size=1, max_size=4).map(
    lambda steps: tuple(sorted(steps, reverse=True))
)


@given(
    st.lists(st.tuples(st.booleans(), MARGINS), min_size=2, max_size=12).filter(
        lambda rows: len({positive for positive, _ in rows}) == 2
    ),
    st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1)]),
)
def test_certified_recall_counts_texts_above_the_threshold(rows, rate):
    summary = DetectionSummary()
    for positive, margins in rows:
        score = Fraction(margins[0], 7)  # sevenths: no double is one of them
        summary.add(DetectedText(positive, score > 0, score, None, margins, 7))
    threshold = summary.threshold_at(rate)
    found = summary.at_threshold(threshold)
    for changed in range(6):
        proved = sum(
            positive and changed < len(margins) and Fraction(margins[changed], 7) > threshold
            for positive, margins in rows
        )
        assert found.certified_at(changed) == proved
    assert found.certified[0] == found.found
    assert found.false_alarms <= rate * found.negatives


def test_a_threshold_is_rounded_up_so_that_no_alarm_slips_through():
    third = Fraction(1, 3)
    assert float(third) < third
    summary = DetectionSummary()
    summary.add(DetectedText(False, True, third))
    summary.add(DetectedText(True, True, Fraction(1, 2)))
    threshold = summary.threshold_at(Fraction(0))
    assert threshold == math.nextafter(1 / 3, 1) and Fraction(threshold) >= third
    assert summary.at_threshold(threshold).false_alarms == 0


def test_what_is_flagged_by_label_alone_has_no_curve():
    summary = DetectionSummary()
    summary.add(DetectedText(True, True))
    summary.add(DetectedText(False, True))
    values = summary.values()
    assert values["precision"] == 0.5 and "auc" not in values
    with pytest.raises(DataError, match="1 of 2 are positive"):
        summary.threshold_at(Fraction(1, 100))


def test_one_kind_has_no_curve():
    summary = summary_of([(True, 0.5), (True, -0.5)])
    assert summary.roc is None and summary.values()["recall"] == 0.5


def test_certified_recall_of_the_own_decision():
    summary = DetectionSummary()
    for radius in (None, 0, 2):
        summary.add(DetectedText(True, True, Fraction(1, 2), radius))
    summary.add(DetectedText(True, False, Fraction(-1, 2), 7))  # a certified miss
    summary.add(DetectedText(False, True, Fraction(1, 2), 5))
    found = summary.decision
    assert found.certified == (2, 1, 1)
    assert [found.certified_at(changed) for changed in (0, 2, 3)] == [2, 1, 0]


def test_lines():
    summary = summary_of([(True, 0.75), (True, 0.25), (False, -0.125), (False, 0.25)])
    first, *rates = detection_lines("spam", summary.values())
    assert first == (
        "positive class spam:  precision 0.667  recall 1.000  f1 0.800  AUC 0.875  "
        "average precision 0.833"
    )
    assert len(rates) == len(RATES) and "at 1.0% false positives: recall 0.500" in rates[1]


def test_average_precision_by_hand():
    assert roc_curve([0.1, 0.4, 0.4], [0.4, 0.9]).average_precision == (1 + 2 / 4) / 2


def test_margins_are_kept_of_positive_texts_alone():
    line = {
        **{"correct": True, "words": 4, "radius": 1, "label_id": 1, "guarantee": True},
        **{"positive_id": 1, "margin": 2, "margin_scale": 4, "margins": [2, 1]},
    }
    summary = RunSummary("certify", ("ham", "spam"), positive=1)
    summary.add([{**line, "expected_id": 1}, {**line, "expected_id": 0}])
    found, other = summary.detection.texts
    assert found.margins == [2, 1] and other.margins == () and other.score == found.score
    assert summary.detection.has_margins
    assert summary.detection.at_threshold(0.0).certified == (1, 1, 0)
