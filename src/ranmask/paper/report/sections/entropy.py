"""How sharp predictions are: the paper's footnote, beside ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from ranmask.paper.published import published
from ranmask.paper.report.blocks import Section, text
from ranmask.paper.report.sections.coverage import unlike, verdict
from ranmask.paper.report.tables import NOT_RUN, Cell, Table, quiet, share, share_cell, table
from ranmask.paper.run_data import Predicted, Reproduction

_NORMAL = 1.96  # standard errors on either side of a mean: 95 % where there are many texts
_INTRODUCTION = """
    Entropy says how undecided a vote is: 0 where all copies agree. A sharp vote gives an attacker
    who watches scores nothing to follow, so it looks robust in a search without being so. The
    paper gives averages in a footnote.
    """


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The table; None where entropies were not asked for."""
    chosen = [run for run in reproductions if run.kind == "entropy"]
    blocks = text(_INTRODUCTION)
    for run in chosen:
        blocks += [*unlike(run), _table(run), *verdict(_faults(run))]
    return Section("How sharp the votes are", "entropy", blocks) if chosen else None


def _faults(run: Reproduction) -> list[str]:
    """Neighbours in the paper's order that ours has the other way round."""
    paper, ours = published().entropy["mean"], _results(run)
    means = {
        method: statistics.fmean(ours[method].vote_entropy) for method in paper if method in ours
    }
    order = sorted(means, key=lambda method: paper[method])
    return [
        f"The votes of {sharper} are less sharp than those of {duller} "
        f"({share(means[sharper])} against {share(means[duller])}); in the paper they are sharper."
        for sharper, duller in pairwise(order)
        if means[sharper] > means[duller]
    ]


def _results(run: Reproduction) -> dict[str, Predicted]:
    return {
        str(step.place["method"]): result
        for step, result in run.finished(Predicted)
        if "method" in step.place and result.rows
    }


def _table(run: Reproduction) -> Table:
    paper = published().entropy["mean"]
    ours = _results(run)
    return table(
        "Mean entropy of predictions, in nats",
        [
            "<method",
            "paper",
            ("this run", ("of the votes", "of the mean scores", "accuracy", "texts")),
        ],
        [
            (
                method,
                quiet(share(paper[method]) if method in paper else ""),
                *_figures(ours.get(method)),
            )
            for method in dict.fromkeys([*paper, *ours])
        ],
        [
            "The paper does not say which of the two it averages. Small: mean plus and minus 1.96 "
            "standard errors; of the accuracy, the 95 % interval."
        ],
    )


def _figures(result: Predicted | None) -> list[Cell]:
    if result is None:
        return [NOT_RUN] * 4
    scores = result.score_entropy
    return [
        _mean(result.vote_entropy),
        quiet("no scores") if scores is None else _mean(scores),
        share_cell(sum(result.correct), len(result.correct)),
        Cell(str(len(result.rows))),
    ]


def _mean(values: Sequence[float]) -> Cell:
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Cell(share(mean))
    error = _NORMAL * statistics.stdev(values) / math.sqrt(len(values))
    return Cell(share(mean), interval=f"{share(max(0.0, mean - error))}–{share(mean + error)}")
