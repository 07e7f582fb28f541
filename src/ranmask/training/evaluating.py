"""What a smoothed classifier proves on labelled texts."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.metrics import CertifiedSummary
from ranmask.smoothing import SmoothedClassifier
from ranmask.words import Text


def certified_summary(
    classifier: SmoothedClassifier, texts: Sequence[Text], labels: Sequence[int]
) -> CertifiedSummary:
    """Certify every text and count."""
    summary = CertifiedSummary()
    for result, label in zip(classifier.certify(texts), labels, strict=True):
        summary.add(correct=result.label_id == label, radius=result.radius, words=result.words)
    return summary


def certified_score(summary: CertifiedSummary, most: int) -> float:
    """Share of texts that are right and certified, averaged over 0 to ``most`` changed words."""
    shares = [summary.certified_accuracy(changed) for changed in range(most + 1)]
    return float(sum(shares) / len(shares))
