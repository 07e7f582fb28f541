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
