"""Attacked texts counted as tables and charts show them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from typing import Any

from ranmask.evaluation.intervals import sign_test
from ranmask.paper.paired_figures import LEVEL, p_digits
from ranmask.paper.report.experiments import Configuration
from ranmask.paper.report.tables import interval, share
from ranmask.paper.run_data import Attacked


@dataclass(frozen=True)
class Attacks:
    """Counts of attacked texts, those with errors left out.

    ``clean`` and ``right``: by row, whether the text is right before and after the attack.
    ``rechecked``: successes that were tried again on fresh masks; ``vanished``: those of them that
    are none there.
    """

    clean: Mapping[int, bool]
    right: Mapping[int, bool]
    rechecked: int
    vanished: int
    errors: int

    @property
    def texts(self) -> int:
        """How many have no error."""
        return len(self.right)

    @property
    def attempted(self) -> int:
        """How many of them were right, and so attacked."""
        return sum(self.clean.values())

    @property
    def held(self) -> int:
        """How many of them are right after the attack."""
        return sum(self.right.values())

    @property
    def succeeded(self) -> int:
        """How many fell."""
        return self.attempted - self.held

    def over(self, rows: Sequence[int]) -> Attacks:
        """The same of some texts only, without what was tried again."""
        clean, right = ({row: some[row] for row in rows} for some in (self.clean, self.right))
        return Attacks(clean, right, 0, 0, 0)


def count_attacks(result: Attacked) -> Attacks:
    """Counts of one run."""
    known = [status != "error" for status in result.statuses]
    clean, right = (
        dict(compress(zip(result.rows, some, strict=True), known))
        for some in (result.clean, result.robust)
    )
    fresh = result.confirmed if _draws_afresh(result.victim) else ()
    checked = [held for held in fresh if held is not None]
    return Attacks(clean, right, len(checked), checked.count(False), known.count(False))


def attacks_by_seed(
    configuration: Configuration, *keys: str
) -> dict[tuple[str, ...], tuple[Attacks, ...]]:
    """Attacked texts by the entries ``keys`` of their place, for each seed that has texts."""
    found: dict[tuple[str, ...], dict[str, Attacks]] = {}
    for seed, step, result in configuration.finished(Attacked):
        if set(keys) <= step.place.keys() and (counted := count_attacks(result)).texts:
            place = tuple(str(step.place[key]) for key in keys)
            found.setdefault(place, {}).setdefault(seed, counted)
    return {place: tuple(seeds.values()) for place, seeds in found.items()}


def shared_texts(runs: Sequence[Attacks]) -> list[int]:
    """Rows that all have."""
    return sorted(set.intersection(*(set(one.right) for one in runs))) if runs else []


def robust_accuracy(seeds: Sequence[Attacks]) -> tuple[float, float, float]:
    """Mean robust accuracy of seeds over the same texts, with its interval, in percent."""
    held, texts = (sum(getattr(one, key) for one in seeds) for key in ("held", "texts"))
    low, high = interval(held, texts, len(seeds))
    return mean_robust(seeds), 100 * low, 100 * high


def noise(first: Sequence[Attacks], second: Sequence[Attacks], *, among: int = 1) -> str:
    """The p value of a lead of the first that is not significant, ``p = .062``; else nothing.

    A sign test over the texts that all runs have, by each text's mean over the seeds; of one seed
    this is McNemar's test.  ``among``: from how many the first was picked for its lead; p is
    multiplied by that (Bonferroni).
    """
    means = means_over_seeds([one.right for one in first], [one.right for one in second])
    if not means[0]:
        return "no texts in common"
    test = sign_test(*means)
    chance = min(1.0, among * test.p_value)
    said = "p < .001" if chance < 0.001 else f"p = {share(chance, p_digits(chance, 3))}"
    if chance > LEVEL:
        return said
    # The higher mean may have fewer texts on its side: they differ more.
    return "" if test.higher_first > test.higher_second else f"{said} for the other"


def means_over_seeds(*sides: Sequence[Mapping[int, float]]) -> list[list[float]]:
    """By side, each text's mean over the seeds, of texts that all have; given by row, for each."""
    rows = sorted(set.intersection(*(set(one) for side in sides for one in side)))
    return [[statistics.fmean(one[row] for one in side) for row in rows] for side in sides]


def mean_robust(seeds: Sequence[Attacks], rows: Sequence[int] | None = None) -> float:
    """Mean robust accuracy of seeds, in percent; of some texts only, where ``rows`` are given."""
    chosen = [[one.right[row] for row in (one.right if rows is None else rows)] for one in seeds]
    return 100 * float(statistics.mean(Fraction(sum(right), len(right)) for right in chosen))


def _draws_afresh(victim: Mapping[str, Any] | None) -> bool:
    """Whether a victim draws its copies anew: only then can a success be tried on others."""
    if victim is None:
        return False
    if victim.get("kind") == "cascade":
        smoothed = victim.get("smoothed")
        return isinstance(smoothed, Mapping) and _draws_afresh(smoothed)
    options = victim.get("options")
    return not isinstance(options, Mapping) or options.get("sampling") != "fixed"
