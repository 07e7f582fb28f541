"""From a condensed result to the counts that tables and charts show.  Integers throughout."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

from ranmask.metrics import CertifiedSummary
from ranmask.paper.run_data import Attacked, Certified, Reading, Reproduction, Step

_Result = TypeVar("_Result")

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


def certificate_name(name: str) -> str:
    """A certificate as a reader knows it."""
    return CERTIFICATES.get(name, name)


def attack_name(name: str) -> str:
    """An attack as its authors write it."""
    return ATTACKS.get(name, name)


def corpus_name(name: str) -> str:
    """A corpus as the paper writes it."""
    return CORPORA.get(name, name)


def rate_name(rate: float | None) -> str:
    """A masking rate in percent; None is a run that keeps a number of words instead."""
    return "as run" if rate is None else f"{100 * float(rate):g} %"


def masked(rate: float | None) -> str:
    """The same as a phrase."""
    return rate_name(rate) if rate is None else f"{rate_name(rate)} masked"


def finished(reproduction: Reproduction, sort: type[_Result]) -> Iterator[tuple[Step, _Result]]:
    """Steps that are done and have a result of this sort."""
    for step in reproduction.steps:
        if step.state == "done" and isinstance(step.result, sort):
            yield step, step.result


def reading(result: Certified, certificate: str) -> Reading | None:
    """What one certificate makes of the votes, or None where it was not asked."""
    return next((one for one in result.readings if one.certificate == certificate), None)


def summary(result: Certified, of: Reading) -> CertifiedSummary:
    """The paper's figures of one certificate."""
    counted = CertifiedSummary()
    for correct, radius, words in zip(of.correct, of.radius, result.words, strict=True):
        counted.add(correct=correct, radius=radius, words=words)
    return counted


def certified_at(of: Reading, changed: int) -> int:
    """Texts that are right and certified at so many changed words."""
    pairs = zip(of.correct, of.radius, strict=True)
    return sum(correct and radius is not None and radius >= changed for correct, radius in pairs)


def median_interval(of: Reading) -> tuple[int | None, int | None] | None:
    """95 % interval of the median radius, by order statistics; None where there are too few texts.

    Half of all such texts have a radius of at most the true median, so how many of ours do is
    binomial; that tells between which of our sorted radii it lies, whatever their distribution.
    """
    texts = len(of.radius)
    # The largest rank with P(Binomial(texts, 1/2) < rank) <= 2.5 %, in whole numbers.
    below, rank = 0, 0
    while 40 * (below + math.comb(texts, rank)) <= 2**texts:
        below += math.comb(texts, rank)
        rank += 1
    if not rank:
        return None
    counted = [
        -1 if radius is None or not correct else radius
        for correct, radius in zip(of.correct, of.radius, strict=True)
    ]
    counted.sort()
    low, high = counted[rank - 1], counted[texts - rank]
    return (None if low < 0 else low, None if high < 0 else high)


@dataclass(frozen=True)
class Attacks:
    """Counts of attacked texts, those with errors left out.

    ``rechecked``: successes that were tried again on fresh masks; ``vanished``: those of them
    that are none there.  ``runs``: how many runs, over the same texts, were added up.
    """

    texts: int
    attempted: int
    succeeded: int
    rechecked: int
    vanished: int
    errors: int
    runs: int = 1

    @property
    def held(self) -> int:
        """Texts that are right after the attack."""
        return self.attempted - self.succeeded


def count_attacks(results: Sequence[Attacked]) -> Attacks:
    """Counts over one or more runs."""
    statuses = [status for result in results for status in result.statuses]
    checked = [
        one
        for result in results
        if draws_afresh(result.victim)
        for one in result.confirmed
        if one is not None
    ]
    succeeded, failed = statuses.count("succeeded"), statuses.count("failed")
    return Attacks(
        texts=succeeded + failed + statuses.count("skipped"),
        attempted=succeeded + failed,
        succeeded=succeeded,
        rechecked=len(checked),
        vanished=checked.count(False),
        errors=statuses.count("error"),
        runs=max(1, len(results)),
    )


def draws_afresh(victim: Mapping[str, Any] | None) -> bool:
    """Whether a victim draws its copies anew: only then can a success be tried on others."""
    if victim is None:
        return False
    if victim.get("kind") == "cascade":
        smoothed = victim.get("smoothed")
        return isinstance(smoothed, Mapping) and draws_afresh(smoothed)
    options = victim.get("options")
    return not isinstance(options, Mapping) or options.get("sampling") != "fixed"


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's, ties sharing their ranks; None below three pairs, or where all are alike.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return statistics.correlation(_ranks(first), _ranks(second))


def pairs_in_order(first: Sequence[float], second: Sequence[float]) -> tuple[int, int]:
    """Pairs that both lists put in the same order, of those that neither ties.

    >>> pairs_in_order([1, 2, 3], [1, 3, 2])
    (2, 3)
    """
    same = compared = 0
    for (a, b), (c, d) in combinations(zip(first, second, strict=True), 2):
        if a != c and b != d:
            compared += 1
            same += (a < c) == (b < d)
    return same, compared


def length_bins(words: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Up to four ranges of lengths with about as many texts in each: least and most words."""
    if not words:
        return ()
    ordered = sorted(words)
    cuts = sorted({ordered[len(ordered) * part // 4] for part in (1, 2, 3)} - {ordered[0]})
    starts = [ordered[0], *cuts]
    ends = [*(cut - 1 for cut in cuts), ordered[-1]]
    return tuple(zip(starts, ends, strict=True))


def _ranks(values: Sequence[float]) -> list[float]:
    """Places in order; those that are equal share the mean of theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]
