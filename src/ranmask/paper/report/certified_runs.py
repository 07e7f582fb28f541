"""Certified runs by masking rate and seed, and what a certificate makes of their votes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Self

from ranmask.metrics import CertifiedSummary
from ranmask.paper.published import CertifiedTable
from ranmask.paper.report.experiments import Configuration
from ranmask.paper.report.names import either, listed
from ranmask.paper.report.tables import whole
from ranmask.paper.run_data import Certified, Reading

AS_PRINTED = "paper-as-printed"


class Figures(list[tuple[Reading, CertifiedSummary]]):
    """What one certificate makes of the votes, for each seed."""

    @classmethod
    def of(cls, seeds: Sequence[Certified], certificate: str = "", start: int = 0) -> Self:
        """A certificate by its name, from place ``start`` on; without one the first of each."""
        found = [
            (result, result.reading(certificate, start) if certificate else result.readings[0])
            for result in seeds
        ]
        return cls((of, result.summary(of)) for result, of in found if of is not None)

    @property
    def accuracy(self) -> float:
        """The mean share of right texts."""
        return statistics.fmean(summary.correct / summary.texts for _, summary in self)

    def certified_share(self, changed: int) -> float:
        """The mean share of texts that are certified at so many changed words."""
        return statistics.fmean(of.certified_at(changed) / summary.texts for of, summary in self)

    @property
    def middle(self) -> int:
        """The median radius of the middle seed, of two the lower; -1 for N/A."""
        radii = [summary.median_radius for _, summary in self]
        return statistics.median_low(-1 if radius is None else radius for radius in radii)

    @property
    def medians(self) -> str:
        """The median radius; of seeds that differ, all of them."""
        return listed(whole(summary.median_radius) for _, summary in self)


class ByRate(dict[float | None, tuple[Certified, ...]]):
    """Results by masking rate, one for each seed; None for a run without a rate."""

    @classmethod
    def of(cls, configuration: Configuration) -> Self:
        """Finished runs with texts."""
        found: dict[float | None, dict[str, Certified]] = {}
        for seed, step, result in configuration.finished(Certified):
            if result.rows and result.readings:
                rate = float(step.place["rate"]) if "rate" in step.place else None
                found.setdefault(rate, {}).setdefault(seed, result)
        ordered = sorted(found.items(), key=lambda pair: -1 if pair[0] is None else pair[0])
        return cls((rate, tuple(seeds.values())) for rate, seeds in ordered)

    def figures(self, rate: float | None, certificate: str = "", start: int = 0) -> Figures:
        """What a certificate makes of the votes at a rate; nothing where that was not run."""
        return Figures.of(self.get(rate, ()), certificate, start)

    @property
    def best(self) -> float | None:
        """The rate at which most is certified: the largest median, then the most texts there."""

        def worth(rate: float | None) -> tuple[int, float, float]:
            found = self.figures(rate)
            # A median of 0 words says nothing of one word: that decides between such rates.
            return found.middle, found.certified_share(max(found.middle, 1)), rate or 0.0

        return max(self, key=worth)

    @property
    def several_seeds(self) -> bool:
        """Whether a rate has results of several seeds."""
        return any(len(seeds) > 1 for seeds in self.values())

    def same_medians(self, printed: CertifiedTable) -> dict[float, list[bool]]:
        """At each rate that both have: whether the median is the paper's, counted so, by seed."""
        return {
            row.rate: [summary.median_radius == row.mcb for _, summary in found]
            for row in printed.rows
            if (found := self.figures(row.rate, AS_PRINTED))
        }


def numbers_of_seeds(*found: ByRate) -> str:
    """How many seeds rates have: ``1 or 2 seeds``."""
    counts = {len(seeds) for one in found for seeds in one.values()}
    return f"{either(counts)} {'seed' if counts == {1} else 'seeds'}"
