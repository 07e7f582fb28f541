"""What a set of certificates is worth: accuracy, CR@d, MCB and MCR, as the paper defines them.

A text whose label is wrong, or that is not certified even unchanged, counts as minus infinity
(``None`` here, the paper's N/A).  This module reads radii only; it knows nothing of models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class CertifiedSummary:
    """Counts over labelled texts, added one by one; memory does not grow with their number."""

    texts: int = 0
    correct: int = 0
    _certified: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, *, correct: bool, radius: int | None, words: int, texts: int = 1) -> None:
        """Count a text: is the label right, and how many of how many words are certified?

        ``texts``: how many such texts there are.
        """
        self.texts += texts
        self.correct += texts * correct
        if correct and radius is not None:
            self._certified[radius, words] += texts

    @property
    def accuracy(self) -> Fraction:
        """Share of texts with the right label, certified or not."""
        return _share(self.correct, self.texts)

    def certified_accuracy(self, changed: int) -> Fraction:
        """CR@d: share of *all* texts that are right and certified at ``changed`` words."""
        reached = sum(n for (radius, _), n in self._certified.items() if radius >= changed)
        return _share(reached, self.texts)

    @property
    def median_radius(self) -> int | None:
        """MCB: the lower median of the radii; None is the paper's N/A."""
        counts: Counter[Fraction] = Counter()
        for (radius, _), n in self._certified.items():
            counts[Fraction(radius)] += n
        median = _lower_median(counts, self.texts)
        return None if median is None else int(median)

    @property
    def median_rate(self) -> Fraction | None:
        """MCR: the lower median of radius / words; None is the paper's N/A."""
        counts: Counter[Fraction] = Counter()
        for (radius, words), n in self._certified.items():
            counts[Fraction(radius, words)] += n
        return _lower_median(counts, self.texts)

    @property
    def largest_radius(self) -> int:
        """The largest radius among right labels; 0 where there is none."""
        return max((radius for radius, _ in self._certified), default=0)


def median_certified_robustness(radii: Iterable[int | None]) -> int | None:
    """MCB of a list in which None stands for N/A: of N/A, N/A, 1, 2, 3 it is 1."""
    summary = CertifiedSummary()
    for radius in radii:
        summary.add(correct=radius is not None, radius=radius, words=1)
    return summary.median_radius


def _lower_median(counts: Counter[Fraction], total: int) -> Fraction | None:
    """The lower median of ``total`` values, of which those not counted are minus infinity."""
    if not total:
        return None
    place = (total - 1) // 2 - (total - sum(counts.values()))
    if place < 0:
        return None
    for value in sorted(counts):
        place -= counts[value]
        if place < 0:
            return value
    raise AssertionError("more values counted than texts")


def _share(part: int, total: int) -> Fraction:
    return Fraction(part, total) if total else Fraction(0)
