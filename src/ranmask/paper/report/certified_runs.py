"""Certified runs by masking rate and seed, and what a certificate makes of their votes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ranmask.metrics import CertifiedSummary
from ranmask.paper.published import CertifiedTable
from ranmask.paper.report.experiments import Configuration
from ranmask.paper.report.names import either
from ranmask.paper.report.tables import whole
from ranmask.paper.run_data import Certified, Reading

ByRate: TypeAlias = dict[float | None, tuple[Certified, ...]]
"""Results by masking rate, one for each seed; None for a run without a rate."""
Figures: TypeAlias = list[tuple[Reading, CertifiedSummary]]
"""What one certificate makes of the votes, for each seed."""

AS_PRINTED = "paper-as-printed"


def results_by_rate(configuration: Configuration) -> ByRate:
    """Finished runs with texts, by masking rate and seed; None for a run without a rate."""
    found: dict[float | None, dict[str, Certified]] = {}
    for seed, step, result in configuration.finished(Certified):
        if result.rows and result.readings:
            rate = float(step.place["rate"]) if "rate" in step.place else None
            found.setdefault(rate, {}).setdefault(seed, result)
    ordered = sorted(found.items(), key=lambda pair: -1 if pair[0] is None else pair[0])
    return {rate: tuple(seeds.values()) for rate, seeds in ordered}


def figures(seeds: Sequence[Certified], certificate: str = "", start: int = 0) -> Figures:
    """What a certificate makes of each seed's votes; without a name, the first one of each."""
    found = [
        (result, result.reading(certificate, start) if certificate else result.readings[0])
        for result in seeds
    ]
    return [(of, result.summary(of)) for result, of in found if of is not None]


def best_rate(results: ByRate) -> float | None:
    """The rate at which most is certified: the largest median, then the most texts there."""

    def worth(rate: float | None) -> tuple[int, float, float]:
        found = figures(results[rate])
        reached = middle(found)
        # A median of 0 words says nothing of one word: that decides between such rates.
        return reached, certified_share(found, max(reached, 1)), rate or 0.0

    return max(results, key=worth)


def certified_share(found: Figures, changed: int) -> float:
    """The mean share of texts that are certified at so many changed words."""
    return statistics.fmean(of.certified_at(changed) / summary.texts for of, summary in found)


def accuracy(found: Figures) -> float:
    """The mean share of right texts."""
    return statistics.fmean(summary.correct / summary.texts for _, summary in found)


def middle(found: Figures) -> int:
    """The median radius of the middle seed, of two the lower; -1 for N/A."""
    radii = [summary.median_radius for _, summary in found]
    return statistics.median_low(-1 if radius is None else radius for radius in radii)


def medians(found: Figures) -> str:
    """The median radius; of seeds that differ, all of them."""
    return listed(whole(summary.median_radius) for _, summary in found)


def listed(values: Iterable[str]) -> str:
    """One value where all are alike, else all."""
    every = list(values)
    return every[0] if len(set(every)) == 1 else ", ".join(every)


def same_medians(printed: CertifiedTable, results: ByRate) -> dict[float, list[bool]]:
    """At each rate that both have: whether the median is the paper's, counted so, by seed."""
    return {
        row.rate: [summary.median_radius == row.mcb for _, summary in found]
        for row in printed.rows
        if (found := figures(results.get(row.rate, ()), AS_PRINTED))
    }


def several_seeds(results: ByRate) -> bool:
    """Whether a rate has results of several seeds."""
    return any(len(seeds) > 1 for seeds in results.values())


def numbers_of_seeds(*found: ByRate) -> str:
    """How many seeds rates have: ``1 or 2 seeds``."""
    counts = {len(seeds) for one in found for seeds in one.values()}
    return f"{either(counts)} {'seed' if counts == {1} else 'seeds'}"
