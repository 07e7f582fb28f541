"""What a smoothed classifier proves on labelled texts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ranmask.metrics import CertifiedSummary, certified_values
from ranmask.results import Certificate
from ranmask.runs.summary import RunSummary, all_words, poisoned_values
from ranmask.runs.task import class_number
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.shared_options import ClassWeights
from ranmask.words import Text


def certified_summary(
    classifier: CertifiedClassifier, texts: Sequence[Text], labels: Sequence[int]
) -> CertifiedSummary:
    """Certify every text and count."""
    return _summary(classifier.certify(texts), labels).certified


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
    summary = _summary(results, labels, names, number)
    found = figures(summary.certified, names, class_weights) | all_words(threat, summary.certified)
    own = {result.threat for result in results}
    others = {
        other: {"certified_accuracy": _shares(counted)} | all_words(other, counted)
        for other, counted in summary.threats.items()
        if other not in own
    }
    if others:
        found["threats"] = others
    if summary.poisoned:
        found["poisoned"] = poisoned_values(summary.poisoned)
    if number is not None:
        found["positive"] = {"name": names[number], **summary.detection.values()}
    return found


def _summary(
    results: Sequence[Certificate],
    labels: Sequence[int],
    names: Sequence[str] | None = None,
    positive: int | None = None,
) -> RunSummary:
    """What a run over these texts would say of them."""
    summary = RunSummary("certify", names, positive=positive)
    summary.add(
        {**result.to_dict(), "expected_id": label, "correct": result.label_id == label}
        for result, label in zip(results, labels, strict=True)
    )
    return summary


def _shares(summary: CertifiedSummary) -> list[float]:
    """Certified accuracy at 0, 1, 2, ... changes, up to the largest radius."""
    most = max(summary.largest_radius, 1)
    return [float(summary.certified_accuracy(changed)) for changed in range(most + 1)]


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
