"""Attacked texts counted as tables and charts show them, and how things are called there."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from typing import Any

from ranmask.paper.report.experiments import Configuration
from ranmask.paper.report.tables import interval
from ranmask.paper.run_data import Attacked, Reading

CERTIFICATES = {
    "exact": "exact",
    "ablation": "Levine–Feizi",
    "ablation-runner-up": "Levine–Feizi, runner-up",
    "paper": "paper, off-by-one removed",
    "paper-as-printed": "paper, as printed",
    "paper-estimated-beta": "paper, estimated beta",
}
ATTACKS = {
    "textfooler": "TextFooler",
    "bert-attack": "BERT-Attack",
    "deepwordbug": "DeepWordBug",
}
CORPORA = {"agnews": "AGNEWS", "sst2": "SST2", "imdb": "IMDB", "snli": "SNLI"}


def certificate_name(of: Reading, *, warned: bool = False) -> str:
    """A certificate as a reader knows it; ``warned``: with a word where it guarantees nothing."""
    warning = "" if of.guarantee or not warned else " (no guarantee)"
    return CERTIFICATES.get(of.certificate, of.certificate) + warning


def rate_name(rate: float | None, word: str = "") -> str:
    """A masking rate in percent; None is a run that keeps a number of words instead."""
    return "as run" if rate is None else f"{100 * float(rate):g} %{word}"


@dataclass(frozen=True)
class Attacks:
    """Counts of attacked texts, those with errors left out.

    ``rechecked``: successes that were tried again on fresh masks; ``vanished``: those of them
    that are none there.  ``held``: texts that are right after the attack.
    """

    texts: int
    attempted: int
    succeeded: int
    held: int
    rechecked: int
    vanished: int
    errors: int


def count_attacks(result: Attacked, rows: Collection[int] | None = None) -> Attacks:
    """Counts of one run; of some ``rows`` only, where they are given."""
    chosen = [rows is None or row in rows for row in result.rows]
    statuses = list(compress(result.statuses, chosen))
    fresh = compress(result.confirmed, chosen) if _draws_afresh(result.victim) else ()
    checked = [held for held in fresh if held is not None]
    succeeded, failed = statuses.count("succeeded"), statuses.count("failed")
    return Attacks(
        texts=succeeded + failed + statuses.count("skipped"),
        attempted=succeeded + failed,
        succeeded=succeeded,
        held=failed,
        rechecked=len(checked),
        vanished=checked.count(False),
        errors=statuses.count("error"),
    )


def attacks_by_seed(
    configuration: Configuration, *keys: str
) -> dict[tuple[str, ...], tuple[Attacks, ...]]:
    """Attacked texts by the entries ``keys`` of their place, for each seed that has texts."""
    found = _attacked_by_seed(configuration, *keys)
    return {place: tuple(map(count_attacks, results)) for place, results in found.items()}


def robust_on_the_same_texts(
    one: Configuration, other: Configuration, *keys: str
) -> dict[tuple[str, ...], tuple[float, float]]:
    """Mean robust accuracies of both, in percent, by places that both have.

    Over the texts that all runs of a place have: those of others would compare badly.
    """
    sides = [_attacked_by_seed(configuration, *keys) for configuration in (one, other)]
    found = {}
    for place in sides[0]:
        runs = [side.get(place, ()) for side in sides]
        if all(runs):
            rows = set.intersection(*(_answered(run) for some in runs for run in some))
            counts = [[count_attacks(run, rows) for run in some] for some in runs]
            if all(count.texts for some in counts for count in some):
                found[place] = mean_robust(counts[0]), mean_robust(counts[1])
    return found


def _answered(run: Attacked) -> set[int]:
    """Rows without an error."""
    pairs = zip(run.rows, run.statuses, strict=True)
    return {row for row, status in pairs if status != "error"}


def _attacked_by_seed(
    configuration: Configuration, *keys: str
) -> dict[tuple[str, ...], tuple[Attacked, ...]]:
    """The run of each seed that has texts, by the entries ``keys`` of its place."""
    found: dict[tuple[str, ...], dict[str, Attacked]] = {}
    for seed, step, result in configuration.finished(Attacked):
        if set(keys) <= step.place.keys() and count_attacks(result).texts:
            place = tuple(str(step.place[key]) for key in keys)
            found.setdefault(place, {}).setdefault(seed, result)
    return {place: tuple(seeds.values()) for place, seeds in found.items()}


def robust_accuracy(seeds: Sequence[Attacks]) -> tuple[float, float, float]:
    """Mean robust accuracy of seeds over the same texts, with its interval, in percent."""
    held, texts = (sum(getattr(one, key) for one in seeds) for key in ("held", "texts"))
    low, high = interval(held, texts, len(seeds))
    return mean_robust(seeds), 100 * low, 100 * high


def luck(first: Sequence[Attacks], second: Sequence[Attacks]) -> str:
    """What is added where the better of two may not be: nothing where their intervals are apart."""
    apart = robust_accuracy(first)[1] > robust_accuracy(second)[2]
    return "" if apart else ", which may be luck: their 95 % intervals overlap"


def mean_robust(seeds: Sequence[Attacks]) -> float:
    """Mean robust accuracy of seeds, in percent."""
    return 100 * float(statistics.mean(Fraction(one.held, one.texts) for one in seeds))


def _draws_afresh(victim: Mapping[str, Any] | None) -> bool:
    """Whether a victim draws its copies anew: only then can a success be tried on others."""
    if victim is None:
        return False
    if victim.get("kind") == "cascade":
        smoothed = victim.get("smoothed")
        return isinstance(smoothed, Mapping) and _draws_afresh(smoothed)
    options = victim.get("options")
    return not isinstance(options, Mapping) or options.get("sampling") != "fixed"
