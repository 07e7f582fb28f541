"""What a smoothed classifier proves on labelled texts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ranmask.metrics import CertifiedSummary, certified_values
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.training.options import ClassWeights
from ranmask.words import Text


def certified_summary(
    classifier: CertifiedClassifier, texts: Sequence[Text], labels: Sequence[int]
) -> CertifiedSummary:
    """Certify every text and count."""
    summary = CertifiedSummary()
    for result, label in zip(classifier.certify(texts), labels, strict=True):
        summary.add(
            correct=result.label_id == label,
            radius=result.radius,
            words=result.words,
            expected=label,
            named=result.label_id,
        )
    return summary


def certified_score(
    summary: CertifiedSummary, most: int, class_weights: ClassWeights = "none"
) -> float:
    """Share of texts that are right and certified, averaged over 0 to ``most`` changed words.

    With balanced ``class_weights``, the mean of the classes' shares.  A classifier that always says
    the same is certified at any number of words wherever it is right.  One that does not beat that
    (`CertifiedSummary.beats_majority`) scores below zero, so that it is chosen only where there is
    nothing else.
    """
    balanced = class_weights == "balanced"
    shares: list[Fraction] = [
        summary.certified_classes(changed).balanced
        if balanced
        else summary.certified_accuracy(changed)
        for changed in range(most + 1)
    ]
    score = float(sum(shares) / len(shares))
    return score if summary.beats_majority(balanced=balanced) else score - 1


def figures(
    summary: CertifiedSummary, names: Sequence[str], class_weights: ClassWeights = "none"
) -> dict[str, Any]:
    """What is reported of a set of certificates: plain JSON values.

    ``beats_majority``: by the measure that was trained for.
    """
    largest = max(summary.largest_radius, 1)
    return {
        "texts": summary.texts,
        "accuracy": float(summary.accuracy),
        "median_radius": summary.median_radius,
        "certified_accuracy": [
            float(summary.certified_accuracy(changed)) for changed in range(largest + 1)
        ],
        **certified_values(summary, names),
        "beats_majority": summary.beats_majority(balanced=class_weights == "balanced"),
    }
