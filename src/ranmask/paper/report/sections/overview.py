"""The results in short: what was asked, and the main figures in a strip."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.paper.report.blocks import (
    Block,
    Heading,
    Paragraph,
    Prose,
    Section,
    Span,
    Strip,
    Tile,
    prose,
    text,
)
from ranmask.paper.report.counting import ATTACKS, CORPORA, rate_name
from ranmask.paper.report.sections import betas, certified, coverage, empirical
from ranmask.paper.report.tables import percent_cell, share, share_cell, whole
from ranmask.paper.run_data import Certified, Reproduction

_SMOKE = """
    > This is a **smoke** run: a few texts and a small model, to see that everything works. Its
    figures say little; look at the intervals.
    """


def section(reproductions: Sequence[Reproduction]) -> Section:
    """Each reproduction in a few lines."""
    blocks: list[Block] = []
    for run in reproductions:
        if len(reproductions) > 1:
            blocks.append(Heading(run.title))
        if run.about:
            blocks.append(Paragraph((Span(run.about),)))
        tiles = _tiles(run)
        blocks += [Strip(tiles)] if tiles else []
        blocks += text(_SMOKE) if run.size == "smoke" else []
    return Section("The results in short", "overview", blocks)


def one_sentence(reproductions: Sequence[Reproduction]) -> Prose:
    """The report in one sentence."""
    steps = [step for run in reproductions for step in run.steps]
    if not steps:
        return prose("The RanMASK paper's arithmetic, done again from its own numbers.")
    if only_runs(reproductions):
        return prose(
            "What ranmask measured, in {runs}: every share with its interval, and what is proved.",
            runs=f"{len(reproductions)} runs" if len(reproductions) > 1 else "one run",
        )
    found = coverage.covered(reproductions)
    if not found:
        return prose("A part of the RanMASK paper, run small with ranmask, to see that it works.")
    return prose(
        """The RanMASK paper, run again with ranmask: {done} of the {cells} cells of its tables and
        figures, each beside the paper's, and every radius beside what is proved.""",
        **coverage.total(found),
    )


def only_runs(reproductions: Sequence[Reproduction]) -> bool:
    """Whether none of them stands for a table or figure of the paper."""
    return all(run.steps and not run.paper for run in reproductions)


def _tiles(run: Reproduction) -> list[Tile]:
    if run.kind == "certified":
        return _certified_tiles(run)
    if run.kind == "empirical":
        return _empirical_tiles(run)
    if run.kind == "beta":
        return [
            Tile(
                share(max(betas.largest_gap(result) for result in by_rate.values())),
                "largest β − p_c found",
                CORPORA.get(corpus, corpus),
            )
            for corpus, by_rate in betas.results(run).items()
        ]
    return []


def _certified_tiles(run: Reproduction) -> list[Tile]:
    results = certified.results_by_rate(run)
    if not results:
        return []
    rate = certified.best_rate(results)
    result = results[rate]
    exact = result.readings[0]
    figures = result.summary(exact)
    median, ends = figures.median_radius, exact.median_interval()
    spread = "" if ends is None else f"95 %: {whole(ends[0])} to {whole(ends[1])}"
    where = "" if rate is None and len(results) == 1 else f", {rate_name(rate, ' masked')}"
    where += ", where most is certified" if len(results) > 1 else ""
    tiles = [
        _share_tile(figures.correct, figures.texts, f"accuracy{where}"),
        Tile(whole(median), f"{_words(median)} {_worth(result)} at the median", spread),
        _share_tile(exact.certified_at(1), figures.texts, "of texts certified at 1 word"),
    ]
    printed = result.reading("paper-as-printed")
    if printed is not None:
        claimed = result.summary(printed).median_radius
        label = f"{_words(claimed)} claimed by the paper's way of counting"
        tiles.append(Tile(whole(claimed), label, "no guarantee"))
    return tiles


def _words(count: int | None) -> str:
    return "word" if count == 1 else "words"


def _worth(result: Certified) -> str:
    """What may be said of the radii."""
    first = result.readings[0]
    if not first.guarantee:
        return "claimed, without guarantee,"
    if result.threat == "synonyms":
        return "certified against a table of synonyms"
    return "proved" if first.certificate == "exact" else "certified"


def _empirical_tiles(run: Reproduction) -> list[Tile]:
    tiles = []
    for attack, rows in empirical.measured(run).items():
        ran = [row for row in rows if row.robust is not None]
        if not empirical.complete(rows):
            continue  # the best of some is not the best
        best = max(ran, key=lambda row: row.robust or 0.0, default=None)
        if best is None or best.counts is None:
            continue
        as_good = sum(row.robust == best.robust for row in ran) - 1
        method = best.method + (f" and {as_good} more" if as_good else "")
        label = "still right under" if len(ran) == 1 else f"best of {len(ran)} methods under"
        cell = percent_cell(best.counts.held, best.counts.texts, best.counts.runs)
        note = f"{method}; 95 %: {cell.interval}"
        tiles.append(Tile(f"{cell.text} %", f"{label} {ATTACKS.get(attack, attack)}", note))
    return tiles


def _share_tile(part: int, total: int, label: str) -> Tile:
    cell = share_cell(part, total)
    return Tile(cell.text, label, f"95 %: {cell.interval}" if cell.interval else "")
