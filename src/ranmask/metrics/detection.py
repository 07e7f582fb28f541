"""One class against all others: precision, recall, F1, ROC, and certified recall.

A text's *score* is the lead of the positive class over its strongest rival, as a share of all
votes (or points), from -1 to 1.  The classifier's own decision flags what scores above 0.  Another
*threshold* flags less or more; which one is chosen here by a rate of false positives, the share of
the negative texts that it may flag.  Certified at ``d``: proved to score above the threshold
whichever ``d`` words are changed.  Fractions and integers compare; nothing is decided by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from ranmask.errors import DataError
from ranmask.metrics.roc import Roc, roc_curve

RATES = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20))
"""Rates of false positives that summaries show."""

_SHOWN_RADII = 5


@dataclass(frozen=True, slots=True)
class DetectedText:
    """A text with its true class, and what was said of it.

    ``score``: None where nothing but the label is known.  ``radius``: of its label, if certified.
    ``margins``, in parts of ``scale``: what its score is at least after 0, 1, 2, ... changed
    words; empty where that is not known, and of texts that are not positive.
    """

    positive: bool
    flagged: bool
    score: Fraction | None = None
    radius: int | None = None
    margins: Sequence[int] = ()
    scale: int = 1

    def above(self, threshold: Fraction) -> bool:
        """Whether it scores above a threshold."""
        return self.score is not None and self.score > threshold

    def certified_above(self, threshold: Fraction, changed: int) -> bool:
        """Whether it is proved to score above a threshold whichever words are changed."""
        if not self.above(threshold) or changed >= len(self.margins):
            return False
        margin = self.margins[changed] * threshold.denominator
        return margin > threshold.numerator * self.scale


@dataclass(frozen=True)
class Flagged:
    """How many texts of each kind a decision flags.

    ``certified``: of the positive ones, those proved to stay flagged after 0, 1, 2, ... changed
    words; None where that is not known.  ``threshold``: None for the classifier's own decision.
    """

    positives: int
    negatives: int
    found: int
    false_alarms: int
    certified: tuple[int, ...] | None = None
    threshold: float | None = None

    @property
    def recall(self) -> Fraction:
        """Flagged texts among the positive ones."""
        return _share(self.found, self.positives)

    @property
    def precision(self) -> Fraction:
        """Positive texts among those that are flagged; 0 where none is."""
        return _share(self.found, self.found + self.false_alarms)

    @property
    def f1(self) -> Fraction:
        """The harmonic mean of precision and recall."""
        return _share(2 * self.found, self.positives + self.found + self.false_alarms)

    @property
    def false_positive_rate(self) -> Fraction:
        """Flagged texts among the negative ones."""
        return _share(self.false_alarms, self.negatives)

    def certified_at(self, changed: int) -> int:
        """Positive texts proved to stay flagged at so many changed words."""
        counts = self.certified or ()
        return counts[changed] if changed < len(counts) else 0

    def values(self) -> dict[str, Any]:
        """All figures as plain JSON values."""
        values: dict[str, Any] = {
            "precision": float(self.precision),
            "recall": float(self.recall),
            "f1": float(self.f1),
            "false_positive_rate": float(self.false_positive_rate),
        }
        if self.threshold is not None:
            values = {"threshold": self.threshold, **values}
        if self.certified is not None:
            shares = [float(_share(count, self.positives)) for count in self.certified]
            values["certified_recall"] = shares
        return values


@dataclass
class DetectionSummary:
    """Texts, added one by one; each is kept, for a curve needs them all."""

    texts: list[DetectedText] = field(default_factory=list)

    def add(self, text: DetectedText) -> None:
        """Count a text."""
        self.texts.append(text)
        self.__dict__.pop("roc", None)

    @property
    def positives(self) -> int:
        """Texts of the positive class."""
        return sum(text.positive for text in self.texts)

    @property
    def has_margins(self) -> bool:
        """Whether something is proved about scores, of every positive text."""
        return self.positives > 0 and all(text.margins for text in self.texts if text.positive)

    @property
    def decision(self) -> Flagged:
        """What the classifier's own labels flag."""
        flags = [text.flagged for text in self.texts]
        radii = [
            text.radius
            for text in self.texts
            if text.positive and text.flagged and text.radius is not None
        ]
        most = max(radii, default=-1)
        proofs = [sum(radius >= changed for radius in radii) for changed in range(most + 1)]
        known = any(text.radius is not None for text in self.texts)
        return self._flagged(flags, tuple(proofs) if known else None)

    @cached_property
    def roc(self) -> Roc | None:
        """The curve of the scores; None without texts of both kinds, each with a score."""
        kinds: dict[bool, list[float | Fraction]] = {False: [], True: []}
        for text in self.texts:
            if text.score is None:
                return None
            kinds[text.positive].append(text.score)
        return roc_curve(kinds[False], kinds[True]) if kinds[False] and kinds[True] else None

    def threshold_at(self, rate: Fraction) -> float:
        """The lowest threshold that flags no more than this share of the negative texts."""
        if self.roc is None:
            raise DataError(
                "a threshold for a rate of false positives needs scored texts of both kinds: "
                f"{self.positives} of {len(self.texts)} are positive"
            )
        exactly = self.roc.at_rate(rate).threshold
        rounded = float(exactly)
        return rounded if rounded >= exactly else math.nextafter(rounded, math.inf)

    def at_threshold(self, threshold: float) -> Flagged:
        """What is flagged above a threshold, and proved to be so."""
        limit = Fraction(threshold)
        flags = [text.above(limit) for text in self.texts]
        proofs: list[int] | None = None
        if self.has_margins:
            proofs = []
            found = [text for text in self.texts if text.positive]
            while found:
                found = [text for text in found if text.certified_above(limit, len(proofs))]
                proofs.append(len(found))
        return self._flagged(flags, None if proofs is None else tuple(proofs), threshold)

    def values(self) -> dict[str, Any]:
        """All figures as plain JSON values."""
        values: dict[str, Any] = {"texts": self.positives, **self.decision.values()}
        if self.roc is not None:
            values["auc"] = float(self.roc.area)
            values["average_precision"] = self.roc.average_precision
            values["at_rates"] = [
                {"rate": float(rate), **self.at_threshold(self.threshold_at(rate)).values()}
                for rate in RATES
            ]
        return values

    def _flagged(
        self,
        flags: Sequence[bool],
        certified: tuple[int, ...] | None,
        threshold: float | None = None,
    ) -> Flagged:
        kinds = [text.positive for text in self.texts]
        found = sum(flag and kind for flag, kind in zip(flags, kinds, strict=True))
        positives = sum(kinds)
        return Flagged(
            positives, len(kinds) - positives, found, sum(flags) - found, certified, threshold
        )


def detection_lines(name: str, values: dict[str, Any]) -> list[str]:
    """The figures of a positive class as people read them."""
    rates = values.get("at_rates", ())
    first = [f"positive class {name}:", *(f"{key} {values[key]:.3f}" for key in _OWN)]
    if rates:
        first += [
            f"AUC {values['auc']:.3f}",
            f"average precision {values['average_precision']:.3f}",
        ]
    lines = ["  ".join([*first, *_certified(values)])]
    for at in rates:
        shown = [f"at {at['rate']:.1%} false positives: recall {at['recall']:.3f}"]
        shown += [f"precision {at['precision']:.3f}", *_certified(at)]
        shown += [f"(threshold {at['threshold']:.6g}, of these texts)"]
        lines.append("  ".join(shown))
    return lines


_OWN = ("precision", "recall", "f1")


def _certified(values: dict[str, Any]) -> list[str]:
    shares = values.get("certified_recall", ())[1 : _SHOWN_RADII + 1]
    return [f"certified@{changed} {share:.3f}" for changed, share in enumerate(shares, 1)]


def _share(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)
