"""How sharp predictions are: the paper's footnote, beside ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ranmask.paper.published import published
from ranmask.paper.report.blocks import Block, Paragraph, Section, prose
from ranmask.paper.report.condensed import Predicted, Reproduction
from ranmask.paper.report.counting import finished
from ranmask.paper.report.symbols import DASH
from ranmask.paper.report.tables import (
    Cell,
    Column,
    Table,
    columns,
    not_run,
    row,
    share,
    share_cell,
)

_NORMAL = 1.96  # standard errors on either side of a mean: 95 % where there are many texts


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The table; None where entropies were not asked for."""
    chosen = [one for one in reproductions if one.kind == "entropy"]
    if not chosen:
        return None
    blocks: list[Block] = [
        Paragraph(
            prose(
                "Entropy says how undecided a vote is: 0 where all copies agree. A sharp vote "
                "gives an attacker who watches scores nothing to follow, so it looks robust in a "
                "search without being so. The paper gives averages in a footnote."
            )
        ),
        *(_table(one) for one in chosen),
    ]
    return Section("How sharp the votes are", "entropy", tuple(blocks))


def _table(one: Reproduction) -> Table:
    paper = published().entropy
    ours = {
        str(step.place["method"]): result
        for step, result in finished(one, Predicted)
        if "method" in step.place and result.rows
    }
    rows = []
    for method in dict.fromkeys([*paper.mean, *ours]):
        printed = paper.mean.get(method)
        quiet = Cell("" if printed is None else share(printed), quiet=True)
        result = ours.get(method)
        if result is None:
            rows.append(row(method, quiet, not_run(), not_run(), not_run(), not_run()))
            continue
        rows.append(
            row(
                method,
                quiet,
                _mean(result.vote_entropy),
                Cell("no scores", quiet=True)
                if result.score_entropy is None
                else _mean(result.score_entropy),
                share_cell(sum(result.correct), len(result.correct)),
                str(len(result.rows)),
            )
        )
    return Table(
        caption="Mean entropy of predictions, in nats",
        columns=(
            Column("method", numeric=False),
            Column("paper"),
            *columns("this run", ("of the votes", "of the mean scores", "accuracy", "texts")),
        ),
        rows=tuple(rows),
        notes=(
            "The paper does not say which of the two it averages. Small: mean plus and minus 1.96 "
            "standard errors; of the accuracy, the 95 % interval.",
        ),
    )


def _mean(values: Sequence[float]) -> Cell:
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Cell(share(mean))
    error = _NORMAL * statistics.stdev(values) / math.sqrt(len(values))
    low, high = max(0.0, mean - error), mean + error
    return Cell(share(mean), interval=f"{share(low)}{DASH}{share(high)}")
