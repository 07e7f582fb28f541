"""How sharp predictions are: the paper's footnote, beside ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ranmask.evaluation.intervals import mean_difference
from ranmask.paper.paired_figures import LEVEL
from ranmask.paper.published import published
from ranmask.paper.report.beside import SAME, Finding, unlike, verdict
from ranmask.paper.report.blocks import Section, text
from ranmask.paper.report.counting import means_over_seeds
from ranmask.paper.report.experiments import Configuration, Experiment, experiments
from ranmask.paper.report.names import either
from ranmask.paper.report.tables import (
    NOT_RUN,
    SPREAD,
    Cell,
    Table,
    quiet,
    seeds_cell,
    share,
    spread_cell,
    table,
)
from ranmask.paper.run_data import Predicted, Reproduction

_NORMAL = 1.96  # standard errors on either side of a mean: 95 % where there are many texts
_INTRODUCTION = """
    Entropy says how undecided a vote is: 0 where all copies agree. A vote of low entropy gives a
    score-based attack no signal to follow, so it looks robust without being so. The paper gives
    averages in a footnote.
    """


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The table; None where entropies were not asked for."""
    chosen = experiments(run for run in reproductions if run.kind == "entropy")
    blocks = text(_INTRODUCTION)
    for experiment in chosen:
        blocks += [*unlike(experiment), _table(experiment)]
        blocks += verdict(*_faults(_results(experiment.main)))
    return Section("Vote entropy", "entropy", blocks) if chosen else None


def in_short(experiment: Experiment) -> list[Finding]:
    """The entropies of the votes, in the paper's order."""
    ours, paper = _results(experiment.main), published().entropy["mean"]
    shown = [method for method in sorted(paper, key=lambda method: paper[method]) if method in ours]
    if not shown:
        return []
    missing = len(paper) - len(shown)
    swapped = _swapped(ours)
    sure, close = (
        [f"{duller} before {sharper}" for sharper, duller, found in swapped if found is significant]
        for significant in (True, False)
    )
    said = f"{missing} of {len(paper)} methods not run" if missing else SAME
    if swapped:
        told = [f"contradicts the paper: {', '.join(sure)}"] if sure else []
        told += [f"not significant: {', '.join(close)}"] if close else []
        said = "; ".join(told)
    return [
        Finding(
            f"vote entropy, lowest first in the paper: {', '.join(shown)}",
            ", ".join(share(_mean_entropy(ours[method])) for method in shown),
            ", ".join(share(paper[method]) for method in shown),
            said,
        )
    ]


def _mean_entropy(seeds: Sequence[Predicted]) -> float:
    return statistics.fmean(statistics.fmean(one.vote_entropy) for one in seeds)


def _swapped(ours: Mapping[str, Sequence[Predicted]]) -> list[tuple[str, str, bool]]:
    """Neighbours in the paper's order, the sharper first, that ours has the other way round.

    With each: whether the difference is significant.
    """
    paper = published().entropy["mean"]
    order = sorted((method for method in paper if method in ours), key=lambda name: paper[name])
    return [
        (sharper, duller, _significant(ours[sharper], ours[duller]))
        for sharper, duller in pairwise(order)
        if _mean_entropy(ours[sharper]) > _mean_entropy(ours[duller])
    ]


def _significant(higher: Sequence[Predicted], lower: Sequence[Predicted]) -> bool:
    """Over the texts that all runs have, by each text's mean over the seeds."""
    sides = (
        [dict(zip(one.rows, one.vote_entropy, strict=True)) for one in seeds]
        for seeds in (higher, lower)
    )
    first, second = means_over_seeds(*sides)
    if not first:
        return False
    return mean_difference(first, second).p_value <= LEVEL and sum(first) > sum(second)


def _faults(ours: Mapping[str, Sequence[Predicted]]) -> tuple[list[str], list[str]]:
    """Where the paper's order is reversed: significantly, and within noise."""
    sure: list[str] = []
    close: list[str] = []
    for sharper, duller, significant in _swapped(ours):
        higher, lower = (share(_mean_entropy(ours[name])) for name in (sharper, duller))
        (sure if significant else close).append(
            f"{sharper} has a higher vote entropy than {duller} ({higher} against {lower}); in "
            "the paper it is lower."
        )
    return sure, close


def _results(configuration: Configuration) -> dict[str, list[Predicted]]:
    found: dict[str, dict[str, Predicted]] = {}
    for seed, step, result in configuration.finished(Predicted):
        if "method" in step.place and result.rows:
            found.setdefault(str(step.place["method"]), {}).setdefault(seed, result)
    return {method: list(seeds.values()) for method, seeds in found.items()}


def _table(experiment: Experiment) -> Table:
    paper = published().entropy["mean"]
    ours = _results(experiment.main)
    rows = {method: (method, ours.get(method, [])) for method in dict.fromkeys([*paper, *ours])}
    for other in experiment.others:
        for method, seeds in _results(other).items():
            rows[f"{method}, {other.label}"] = method, seeds
    several = any(len(seeds) > 1 for _, seeds in rows.values())
    return table(
        "Mean entropy of predictions, in nats",
        [
            "<method",
            "paper",
            ("this run", ("of the votes", "of the mean scores", "accuracy", "texts")),
        ],
        [
            (name, quiet(share(paper[method]) if method in paper else ""), *_figures(seeds))
            for name, (method, seeds) in rows.items()
        ],
        [
            "The paper does not say which of the two it averages. Intervals: of means ± 1.96 "
            "standard errors, of the accuracy 95 %.",
            *([SPREAD] if several else []),
        ],
    )


def _figures(seeds: Sequence[Predicted]) -> list[Cell]:
    if not seeds:
        return [NOT_RUN] * 4
    scores = [one.score_entropy for one in seeds if one.score_entropy is not None]
    texts = either(len(one.rows) for one in seeds)
    return [
        _mean_of_seeds([one.vote_entropy for one in seeds]),
        _mean_of_seeds(scores) if len(scores) == len(seeds) else quiet("no scores"),
        seeds_cell([(sum(one.correct), len(one.correct)) for one in seeds]),
        Cell(texts, interval=f"{len(seeds)} seeds" if len(seeds) > 1 else ""),
    ]


def _mean_of_seeds(values: Sequence[Sequence[float]]) -> Cell:
    return spread_cell([statistics.fmean(some) for some in values]) or _mean(values[0])


def _mean(values: Sequence[float]) -> Cell:
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Cell(share(mean))
    error = _NORMAL * statistics.stdev(values) / math.sqrt(len(values))
    return Cell(share(mean), interval=f"{share(max(0.0, mean - error))}–{share(mean + error)}")
