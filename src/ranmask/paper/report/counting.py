"""Attacked texts counted as tables and charts show them, and how things are called there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    that are none there.  ``held``: texts that are right after the attack.  ``runs``: how many
    runs, over the same texts, were added up.
    """

    texts: int
    attempted: int
    succeeded: int
    held: int
    rechecked: int
    vanished: int
    errors: int
    runs: int


def count_attacks(results: Sequence[Attacked]) -> Attacks:
    """Counts over one or more runs."""
    statuses = [status for result in results for status in result.statuses]
    fresh = [result for result in results if _draws_afresh(result.victim)]
    checked = [held for result in fresh for held in result.confirmed if held is not None]
    succeeded, failed = statuses.count("succeeded"), statuses.count("failed")
    return Attacks(
        texts=succeeded + failed + statuses.count("skipped"),
        attempted=succeeded + failed,
        succeeded=succeeded,
        held=failed,
        rechecked=len(checked),
        vanished=checked.count(False),
        errors=statuses.count("error"),
        runs=max(1, len(results)),
    )


def robust_accuracy(counts: Attacks) -> tuple[float, float, float]:
    """Robust accuracy with its interval, in percent."""
    low, high = interval(counts.held, counts.texts, counts.runs)
    return 100 * counts.held / counts.texts, 100 * low, 100 * high


def _draws_afresh(victim: Mapping[str, Any] | None) -> bool:
    """Whether a victim draws its copies anew: only then can a success be tried on others."""
    if victim is None:
        return False
    if victim.get("kind") == "cascade":
        smoothed = victim.get("smoothed")
        return isinstance(smoothed, Mapping) and _draws_afresh(smoothed)
    options = victim.get("options")
    return not isinstance(options, Mapping) or options.get("sampling") != "fixed"
