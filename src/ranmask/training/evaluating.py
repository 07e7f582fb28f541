"""What a smoothed classifier proves on labelled texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from ranmask.interface import TextClassifier
from ranmask.metrics import CertifiedSummary
from ranmask.words import Text


def certified_summary(
    classifier: TextClassifier, texts: Sequence[Text], labels: Sequence[int]
) -> CertifiedSummary:
    """Certify every text and count."""
    summary = CertifiedSummary()
    for result, label in zip(classifier.certify(texts), labels, strict=True):
        summary.add(correct=result.label_id == label, radius=result.radius, words=result.words)
    return summary


def certified_score(
    summary: CertifiedSummary, most: int, commonest: Fraction = Fraction(0)
) -> float:
    """Share of texts that are right and certified, averaged over 0 to ``most`` changed words.

    A classifier that always says the same is certified at any number of words wherever it is
    right.  One that is no more accurate than that (``commonest``: the share of the commonest
    class) scores below zero, so that it is chosen only where there is nothing else.
    """
    shares = [summary.certified_accuracy(changed) for changed in range(most + 1)]
    score = float(sum(shares) / len(shares))
    return score if summary.accuracy > commonest else score - 1


def commonest_share(labels: Sequence[int]) -> Fraction:
    """The accuracy of always naming the commonest class."""
    return Fraction(max(Counter(labels).values()), len(labels))
