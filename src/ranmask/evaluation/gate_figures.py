"""Figures of a gate, each with its interval, from the summaries of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ranmask.attacks.outcome import AttackSummary
from ranmask.errors import DataError
from ranmask.evaluation.intervals import NORMAL, area_interval, mean_interval, wilson_interval
from ranmask.evaluation.requirements import FigureName
from ranmask.metrics.detection import DetectionSummary
from ranmask.runs.summary import RunSummary


@dataclass(frozen=True)
class Figure:
    """A measured figure with its 95 % interval; ``texts``: how many it was measured on."""

    name: str
    value: Fraction
    low: float
    high: float
    texts: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        shown = {"figure": self.name, "value": float(self.value)}
        return {**shown, "interval": [self.low, self.high], "texts": self.texts}


class MeasuredFigures:
    """Figures by their names."""

    def __init__(
        self,
        summary: RunSummary,
        calibrated: DetectionSummary | None,
        attacks: Mapping[str, AttackSummary],
    ) -> None:
        self._summary, self._attacks = summary, attacks
        self._calibrated = calibrated or summary.detection

    def threshold(self, rate: Fraction) -> float:
        """The threshold for a rate of false positives."""
        return self._calibrated.threshold_at(rate)

    @property
    def harmless(self) -> int:
        """How many texts of other classes thresholds are set on."""
        return len(self._calibrated.texts) - self._calibrated.positives

    def figure(self, name: FigureName) -> Figure:
        """A figure, measured."""
        if name.recipe is not None:
            return self._attacked(name, self._attacks[name.recipe])
        if name.kind.positive:
            return self._detected(name)
        certified, summary = self._summary.certified, self._summary
        if name.name == "errors":
            return _proportion(name, summary.errors, summary.rows)
        if name.name == "accuracy":
            return _proportion(name, certified.correct, certified.texts)
        if name.name == "balanced accuracy":
            counts = certified.classes
            pairs = [(counts.right[number], counts.texts[number]) for number in counts.texts]
            return Figure(str(name), counts.balanced, *mean_interval(pairs), certified.texts)
        if name.name == "certified accuracy":
            share = certified.certified_accuracy(name.changed or 0)
            return _proportion(name, int(share * certified.texts), certified.texts)
        return self._median(name)

    def _median(self, name: FigureName) -> Figure:
        """The median radius; its interval is from one ranked text to another."""
        certified = self._summary.certified
        radii = sorted(radius for _, radius, _, texts in certified.radii() for _ in range(texts))
        radii = [-1] * (certified.texts - len(radii)) + radii  # -1: not certified, or wrong
        last = len(radii) - 1
        spread = NORMAL * len(radii) ** 0.5 / 2
        low = radii[max(0, int(last / 2 - spread))]
        high = radii[min(last, int(last / 2 + spread + 1))]
        median = certified.median_radius
        value = Fraction(-1 if median is None else median)
        return Figure(str(name), value, float(low), float(high), len(radii))

    def _attacked(self, name: FigureName, attacked: AttackSummary) -> Figure:
        if name.name == "robust recall":
            counts, positive = attacked.robust_classes, self._summary.positive
            assert positive is not None
            return _proportion(name, counts.right[positive], counts.texts[positive])
        return _proportion(name, attacked.failed, attacked.texts)

    def _detected(self, name: FigureName) -> Figure:
        detection = self._summary.detection
        if name.name in ("auc", "average precision"):
            roc = detection.roc
            if roc is None:
                raise DataError(
                    f"{name} needs texts of the positive class and others: "
                    f"{detection.positives} of {len(detection.texts)} are positive"
                )
            if name.name == "auc":
                ends = area_interval(float(roc.area), roc.clean, roc.attacked)
                return Figure(str(name), roc.area, *ends, len(detection.texts))
            found = roc.average_precision
            ends = wilson_interval(found * roc.attacked, roc.attacked)
            return Figure(str(name), Fraction(found), *ends, len(detection.texts))
        at = detection.decision
        if name.rate is not None:
            at = detection.at_threshold(self.threshold(name.rate))
        if name.name == "certified recall":
            return _proportion(name, at.certified_at(name.changed or 0), at.positives)
        if name.name == "recall":
            return _proportion(name, at.found, at.positives)
        if name.name == "precision":
            return _proportion(name, at.found, at.found + at.false_alarms, nothing=Fraction(0))
        if name.name == "false-positive rate":
            return _proportion(name, at.false_alarms, at.negatives)
        # F1 rises with the share of texts found among all that are positive or flagged.
        jaccard = _proportion(name, at.found, at.positives + at.false_alarms)
        low, high = (2 * share / (1 + share) for share in (jaccard.low, jaccard.high))
        return replace(jaccard, value=at.f1, low=low, high=high)


def _proportion(name: FigureName, part: int, whole: int, nothing: Fraction | None = None) -> Figure:
    """A share; ``nothing``: what it is of nothing, where that has a meaning."""
    if not whole and nothing is None:
        raise DataError(f"{str(name)!r} cannot be measured: there is no text to count")
    value = Fraction(part, whole) if whole else nothing or Fraction(0)
    return Figure(str(name), value, *wilson_interval(part, whole), whole)
