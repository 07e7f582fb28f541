"""What a smoothed classifier proves on labelled texts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ranmask.metrics import CertifiedSummary, certified_values
from ranmask.metrics.detection import DetectionSummary
from ranmask.results import Certificate, PartitionCertificate
from ranmask.runs.summary import add_poisoned, all_words, detected_text, poisoned_values
from ranmask.runs.task import class_number
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.shared_options import ClassWeights
from ranmask.words import Text


def certified_summary(
    classifier: CertifiedClassifier, texts: Sequence[Text], labels: Sequence[int]
) -> CertifiedSummary:
    """Certify every text and count."""
    return _counted(classifier.certify(texts), labels)


def check_positive(positive: str | None, names: Sequence[str]) -> None:
    """Refuse a positive class that there is not, before anything is trained."""
    if positive is not None:
        class_number(positive, tuple(names))


def measured_figures(
    classifier: CertifiedClassifier,
    texts: Sequence[Text],
    labels: Sequence[int],
    names: Sequence[str],
    *,
    class_weights: ClassWeights,
    positive: str | None,
    threat: str = "substitutions",
) -> dict[str, Any]:
    """Certify every text; `figures` of that, and those of a positive class, where one is named.

    ``threat`` is what the classifier certifies: of synonyms, all words at once have a figure too.
    """
    number = None if positive is None else class_number(positive, tuple(names))
    results: Sequence[Certificate]
    if (
        number is not None
        and isinstance(classifier, SmoothedClassifier)
        and classifier.gives_margins
    ):
        results = classifier.certify_margins(texts, number)
    else:
        results = classifier.certify(texts)
    summary = _counted(results, labels)
    found = figures(summary, names, class_weights) | all_words(threat, summary)
    found |= _other_threats(results, labels) | _poisoned(results, labels)
    if number is not None:
        detection = DetectionSummary()
        for result, label in zip(results, labels, strict=True):
            detection.add(detected_text({**result.to_dict(), "expected_id": label}, number))
        found["positive"] = {"name": names[number], **detection.values()}
    return found


def _other_threats(results: Sequence[Certificate], labels: Sequence[int]) -> dict[str, Any]:
    """Certified accuracies against other threats, where several are certified."""
    summaries: dict[str, CertifiedSummary] = {}
    for result, label in zip(results, labels, strict=True):
        for threat, radius in result.radii.items():
            if threat != result.threat:
                summaries.setdefault(threat, CertifiedSummary()).add(
                    correct=result.label_id == label, radius=radius, words=result.words
                )
    values = {
        threat: {"certified_accuracy": _shares(summary)} | all_words(threat, summary)
        for threat, summary in summaries.items()
    }
    return {"threats": values} if values else {}


def _shares(summary: CertifiedSummary) -> list[float]:
    """Certified accuracy at 0, 1, 2, ... changes, up to the largest radius."""
    most = max(summary.largest_radius, 1)
    return [float(summary.certified_accuracy(changed)) for changed in range(most + 1)]


def _poisoned(results: Sequence[Certificate], labels: Sequence[int]) -> dict[str, Any]:
    """Certified accuracies beside poisoned training texts, where those are certified."""
    summaries: dict[int, CertifiedSummary] = {}
    for result, label in zip(results, labels, strict=True):
        if isinstance(result, PartitionCertificate):
            line = {"correct": result.label_id == label, "words": result.words}
            add_poisoned(summaries, result.poisoned, {**line, "expected_id": label})
    return {"poisoned": poisoned_values(summaries)} if summaries else {}


def _counted(results: Sequence[Certificate], labels: Sequence[int]) -> CertifiedSummary:
    summary = CertifiedSummary()
    for result, label in zip(results, labels, strict=True):
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
    return {
        "texts": summary.texts,
        "accuracy": float(summary.accuracy),
        "median_radius": summary.median_radius,
        "certified_accuracy": _shares(summary),
        **certified_values(summary, names),
        "beats_majority": summary.beats_majority(balanced=class_weights == "balanced"),
    }
