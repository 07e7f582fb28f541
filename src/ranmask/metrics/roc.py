"""How well a score tells two kinds apart: the ROC curve, its area, and average precision.

Counts and fractions, but for average precision; scores are only compared, never added.  This
module knows nothing of texts or models.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ranmask.errors import DataError


@dataclass(frozen=True)
class RocPoint:
    """What a threshold does: of each kind, how many scores lie **above** it."""

    threshold: float | Fraction
    false_alarms: int
    found: int


@dataclass(frozen=True)
class Roc:
    """The curve of a score over ``clean`` (negative) and ``attacked`` (positive) things.

    ``points`` run from the highest threshold, which nothing exceeds, down to one below every
    score; between two neighbours no other counts are possible.
    """

    clean: int
    attacked: int
    points: tuple[RocPoint, ...]

    @property
    def area(self) -> Fraction:
        """AUC: the chance that an attacked thing scores higher than a clean one, ties by half.

        Exact: the trapezoids under the points, which is the rank sum with midranks for ties.
        """
        twice = 0
        for before, after in zip(self.points, self.points[1:], strict=False):
            width = after.false_alarms - before.false_alarms
            twice += width * (after.found + before.found)
        return Fraction(twice, 2 * self.clean * self.attacked)

    @property
    def average_precision(self) -> float:
        """The mean precision over the positive things as the threshold falls, ties together.

        The area under the steps of the precision-recall curve, nothing being interpolated.
        """
        steps = (
            (after.found - before.found) * after.found / (after.found + after.false_alarms)
            for before, after in zip(self.points, self.points[1:], strict=False)
        )
        return math.fsum(steps) / self.attacked

    def at_rate(self, rate: Fraction) -> RocPoint:
        """The lowest threshold that no more than this share of the negative things exceeds."""
        allowed = [point for point in self.points if point.false_alarms <= rate * self.clean]
        return allowed[-1]


def roc_curve(clean: Sequence[float | Fraction], attacked: Sequence[float | Fraction]) -> Roc:
    """The curve of the scores of negative and of positive things, which should score higher."""
    for name, scores in (("clean", clean), ("attacked", attacked)):
        if not scores:
            raise DataError(f"a ROC curve needs scores of both kinds; there are no {name} ones")
        if not all(map(math.isfinite, scores)):
            raise DataError(f"a ROC curve needs finite scores; the {name} ones have others")
    of_clean, of_attacked = Counter(clean), Counter(attacked)
    values = sorted(of_clean.keys() | of_attacked.keys(), reverse=True)
    points, alarms, found = [], 0, 0
    for value in values:
        points.append(RocPoint(value, alarms, found))
        alarms += of_clean[value]
        found += of_attacked[value]
    points.append(RocPoint(math.nextafter(values[-1], -math.inf), alarms, found))
    return Roc(len(clean), len(attacked), tuple(points))
