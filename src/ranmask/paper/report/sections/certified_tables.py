"""Tables of certified robustness: beside the paper's, and what the votes prove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ranmask.metrics import CertifiedSummary
from ranmask.paper.published import CertifiedRow, CertifiedTable
from ranmask.paper.report.condensed import Certified, Reading
from ranmask.paper.report.counting import (
    certificate_name,
    certified_at,
    corpus_name,
    median_interval,
    rate_name,
    reading,
    summary,
)
from ranmask.paper.report.symbols import ALPHA, DASH, MINUS
from ranmask.paper.report.tables import (
    Cell,
    Column,
    Table,
    columns,
    difference,
    not_run,
    row,
    share,
    share_cell,
    whole,
)

ByRate: TypeAlias = dict[float | None, Certified]
"""Results by masking rate; None for a run without one."""

_LARGEST = 5
_COMPARED = {
    "paper-as-printed": Column("as printed", "no guarantee: MCB"),
    "paper": Column("off-by-one removed", "no guarantee: MCB"),
    "ablation": Column("MCB", f"Levine{DASH}Feizi, 1 {MINUS} {ALPHA}"),
}


def against_paper(table: CertifiedTable, results: ByRate) -> Table:
    """The paper's table, and the same counted on our votes."""
    rates = {printed.rate for printed in table.rows} | {
        rate for rate in results if rate is not None
    }
    rows = []
    for rate in sorted(rates):
        printed, result = table.row(rate), results.get(rate)
        ours = None if result is None else reading(result, "paper-as-printed")
        rows.append(row(rate_name(rate), *_printed(printed), *_counted(result, ours, printed)))
    return Table(
        caption=f"{corpus_name(table.corpus)}: the paper's table, and ours counted as the paper "
        "counts",
        columns=(
            Column("masked"),
            *columns(f"paper ({table.base}), no guarantee", ("accuracy", "MCB", "MCR")),
            *columns("this run, no guarantee", ("accuracy", "MCB", "MCR")),
            *columns("difference", ("accuracy", "MCB")),
        ),
        rows=tuple(rows),
        notes=("Small figures are 95 % intervals over texts.", *_sizes(results)),
    )


def _printed(printed: CertifiedRow | None) -> tuple[Cell, Cell, Cell]:
    if printed is None:
        nothing = Cell(DASH, quiet=True)
        return nothing, nothing, nothing
    rate = "N/A" if printed.mcr is None else f"{printed.mcr:.1f} %"
    return (
        Cell(share(printed.accuracy / 100), quiet=True),
        Cell(whole(printed.mcb), quiet=True),
        Cell(rate, quiet=True),
    )


def _counted(
    result: Certified | None, ours: Reading | None, printed: CertifiedRow | None
) -> tuple[Cell, ...]:
    if result is None or ours is None:
        return (not_run(), not_run(), not_run(), Cell(DASH, quiet=True), Cell(DASH, quiet=True))
    figures = summary(result, ours)
    return (
        share_cell(figures.correct, figures.texts),
        _median_cell(ours, figures),
        Cell(_rate(figures)),
        *_differences(figures, printed),
    )


def _differences(figures: CertifiedSummary, printed: CertifiedRow | None) -> tuple[Cell, Cell]:
    dash = Cell(DASH, quiet=True)
    if printed is None:
        return dash, dash
    moved = float(figures.accuracy) - printed.accuracy / 100
    accuracy = Cell(("+" if moved > 0 else "") + share(moved))
    median = figures.median_radius
    if median is None or printed.mcb is None:
        return accuracy, dash
    return accuracy, Cell(difference(median - printed.mcb, 0))


def proved(results: ByRate) -> Table:
    """The first certificate of each run, and the medians of the others."""
    compared = [name for name in _COMPARED if any(also(one, name) for one in results.values())]
    rows = []
    for rate, result in results.items():
        exact = result.readings[0]
        figures = summary(result, exact)
        others = [_other(result, name) for name in compared]
        rows.append(
            row(
                rate_name(rate),
                *others,
                share_cell(figures.correct, figures.texts),
                _median_cell(exact, figures, strong=True),
                _rate(figures),
                share_cell(certified_at(exact, 1), figures.texts),
            )
        )
    return Table(
        caption=_caption(results),
        columns=(
            Column("masked"),
            *(_COMPARED[name] for name in compared),
            *columns(_main_name(results), ("accuracy", "MCB", "MCR", "CR@1")),
        ),
        rows=tuple(rows),
        notes=(
            "Intervals of a median are those of order statistics; where there is none, there are "
            "too few texts for one.",
            *_sizes(results),
            *_threats(results),
        ),
    )


def _caption(results: ByRate) -> str:
    first = [result.readings[0] for result in results.values()]
    if not all(one.guarantee for one in first):
        return "What is claimed of the votes, without guarantee"
    proof = all(one.certificate == "exact" for one in first)
    return f"What the votes {'prove' if proof else 'certify'}"


def _sizes(results: ByRate) -> list[str]:
    """How many texts and copies there were, and how many texts were left out."""
    texts = [len(result.rows) for result in results.values()]
    masks = [result.masks for result in results.values()]
    errors = sum(result.errors for result in results.values())
    said = f"{_span(texts)} texts, at most {max(masks):,} copies of each."
    return [f"{said} {errors:,} with errors are left out." if errors else said]


def _span(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _main_name(results: ByRate) -> str:
    """The first certificate of each run, and what it is worth."""
    first = [result.readings[0] for result in results.values()]
    names = ", ".join(dict.fromkeys(certificate_name(one.certificate) for one in first))
    if not all(one.guarantee for one in first):
        return f"{names}, no guarantee"
    return f"{names}, a proof" if names == "exact" else names


def _threats(results: ByRate) -> list[str]:
    """What a radius counts, where it is not any substitution of words."""
    meanings = {
        "synonyms": "A radius counts words replaced from a table of synonyms only; other words "
        "are not covered.",
        "edits": "A radius counts edits: words replaced, inserted or deleted, in any order.",
    }
    return sorted({meanings[one.threat] for one in results.values() if one.threat in meanings})


def also(result: Certified, name: str) -> Reading | None:
    """A certificate beside the first."""
    return next((one for one in result.readings[1:] if one.certificate == name), None)


def _other(result: Certified, name: str) -> Cell:
    found = also(result, name)
    if found is None:
        return not_run()
    return Cell(whole(summary(result, found).median_radius), quiet=not found.guarantee)


def _median_cell(of: Reading, figures: CertifiedSummary, strong: bool = False) -> Cell:
    interval = median_interval(of)
    spelt = ""
    if interval is not None:
        spelt = f"{whole(interval[0])}{DASH}{whole(interval[1])}"
    return Cell(whole(figures.median_radius), interval=spelt, strong=strong)


def _rate(figures: CertifiedSummary) -> str:
    rate = figures.median_rate
    return "N/A" if rate is None else f"{float(100 * rate):.1f} %"


def levels(results: ByRate) -> Table:
    """CR@1 to CR@5 of every certificate."""
    rows = []
    for rate, result in results.items():
        for of in result.readings:
            name = certificate_name(of.certificate) + ("" if of.guarantee else " (no guarantee)")
            cells = [
                share_cell(certified_at(of, changed), len(result.rows))
                for changed in range(1, _LARGEST + 1)
            ]
            rows.append(row(rate_name(rate), name, *cells))
    return Table(
        caption="Share of texts right and certified",
        columns=(
            Column("masked"),
            Column("certificate", numeric=False),
            *(Column(f"CR@{changed}") for changed in range(1, _LARGEST + 1)),
        ),
        rows=tuple(rows),
    )
