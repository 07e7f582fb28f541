"""What this is: what was asked, and the main figures in a strip."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.paper.headlines import recomputed
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
)
from ranmask.paper.report.condensed import Certified, Predicted, Reproduction
from ranmask.paper.report.counting import (
    attack_name,
    certified_at,
    corpus_name,
    finished,
    masked,
    median_interval,
    rate_name,
    reading,
    summary,
)
from ranmask.paper.report.sections import betas, certified, empirical, provenance, rates
from ranmask.paper.report.sections.certified_tables import ByRate
from ranmask.paper.report.symbols import BETA, MINUS
from ranmask.paper.report.tables import Cell, percent_cell, share, share_cell, whole


def section(reproductions: Sequence[Reproduction]) -> Section:
    """Each reproduction in a few lines."""
    blocks: list[Block] = []
    for one in reproductions:
        if len(reproductions) > 1:
            blocks.append(Heading(one.title))
        if one.about:
            blocks.append(Paragraph((Span(one.about),)))
        tiles = _tiles(one)
        if tiles:
            blocks.append(Strip(tiles))
        blocks += _warnings(one)
    return Section("What this is", "overview", tuple(blocks))


def one_sentence(reproductions: Sequence[Reproduction]) -> Prose:
    """The report in one sentence."""
    steps = [step for one in reproductions for step in one.steps]
    done = sum(step.state == "done" for step in steps)
    if not steps:
        return prose("The RanMASK paper's arithmetic, done again from its own numbers.")
    if only_runs(reproductions):
        return prose(
            "What ranmask measured, in {runs}: every share with its interval, and what is proved.",
            runs="one run" if len(reproductions) == 1 else f"{len(reproductions)} runs",
        )
    what = f"{len(reproductions)} parts" if len(reproductions) > 1 else "one part"
    return prose(
        "{what} of the RanMASK paper, run again with ranmask: {done} of {steps} steps done, every "
        "figure beside the paper's, and every radius beside what is proved.",
        what=what[0].upper() + what[1:],
        done=done,
        steps=len(steps),
    )


def only_runs(reproductions: Sequence[Reproduction]) -> bool:
    """Whether none of them stands for a table or figure of the paper."""
    return all(one.steps and not one.paper for one in reproductions)


def _tiles(one: Reproduction) -> tuple[Tile, ...]:
    if one.kind == "certified":
        return _certified_tiles(one)
    if one.kind == "empirical":
        return _empirical_tiles(one)
    if one.kind == "beta":
        return tuple(
            Tile(
                share(max(betas.largest_gap(result) for result in by_rate.values())),
                f"largest {BETA} {MINUS} p_c found",
                corpus_name(corpus),
            )
            for corpus, by_rate in betas.results(one).items()
        )
    if one.kind == "rates":
        return _rate_tiles(one)
    if one.kind == "entropy":
        found = [result for _, result in finished(one, Predicted) if result.rows]
        return (Tile(str(len(found)), "ensembles measured"),) if found else ()
    if one.name == "headline-averages":
        figures = recomputed()
        agreeing = sum(figure.agrees for figure in figures)
        return (Tile(f"{agreeing} of {len(figures)}", "averages follow from the tables"),)
    return ()


def _certified_tiles(one: Reproduction) -> tuple[Tile, ...]:
    results = certified.results_by_rate(one)
    if not results:
        return ()
    rate = certified.best_rate(results)
    result = results[rate]
    exact = result.readings[0]
    figures = summary(result, exact)
    median, interval = figures.median_radius, median_interval(exact)
    spread = ""
    if interval is not None:
        spread = f"95 %: {whole(interval[0])} to {whole(interval[1])}"
    tiles = [
        _share_tile(share_cell(figures.correct, figures.texts), _accuracy(results, rate)),
        Tile(whole(median), f"{_words(median)} {_worth(result)} at the median", spread),
        _share_tile(
            share_cell(certified_at(exact, 1), figures.texts), "of texts certified at 1 word"
        ),
    ]
    printed = reading(result, "paper-as-printed")
    if printed is not None:
        claimed = summary(result, printed).median_radius
        tiles.append(
            Tile(
                whole(claimed),
                f"{_words(claimed)} claimed by the paper's way of counting",
                "no guarantee",
            )
        )
    return tuple(tiles)


def _accuracy(results: ByRate, rate: float | None) -> str:
    """What the first tile shows, and why it is this rate."""
    if len(results) > 1:
        return f"accuracy, {masked(rate)}, where most is certified"
    return "accuracy" if rate is None else f"accuracy, {masked(rate)}"


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


def _empirical_tiles(one: Reproduction) -> tuple[Tile, ...]:
    tiles = []
    for attack, rows in empirical.measured(one).items():
        run = [measured for measured in rows if measured.robust is not None]
        if not run:
            continue
        best = max(run, key=lambda measured: measured.robust or 0.0)
        if best.counts is None:
            continue
        cell = percent_cell(best.counts.held, best.counts.texts, best.counts.runs)
        as_good = sum(measured.robust == best.robust for measured in run) - 1
        method = best.method + (f" and {as_good} more" if as_good else "")
        label = "still right under" if len(run) == 1 else f"best of {len(run)} methods under"
        note = f"{method}; 95 %: {cell.interval}"
        tiles.append(Tile(f"{cell.text} %", f"{label} {attack_name(attack)}", note))
    return tuple(tiles)


def _rate_tiles(one: Reproduction) -> tuple[Tile, ...]:
    tiles = []
    for (ensemble, attack), line in rates.counts(one).items():
        known = {rate: counted for rate, counted in line.items() if counted.texts}
        if known and attack == "textfooler":
            best = max(known, key=lambda rate: (known[rate].held / known[rate].texts, -rate))
            cell = percent_cell(known[best].held, known[best].texts, known[best].runs)
            label = f"best robust accuracy, {ensemble}, {attack_name(attack)}"
            note = f"at {rate_name(best)} masked; 95 %: {cell.interval}"
            tiles.append(Tile(f"{cell.text} %", label, note))
    return tuple(tiles)


def _share_tile(cell: Cell, label: str) -> Tile:
    return Tile(cell.text, label, f"95 %: {cell.interval}" if cell.interval else "")


def _warnings(one: Reproduction) -> list[Block]:
    blocks: list[Block] = []
    if one.size == "smoke":
        blocks.append(
            Paragraph(
                prose(
                    "This is a **smoke** run: a few texts and a small model, to see that "
                    "everything works. Its figures say little; look at the intervals."
                ),
                tone="warning",
            )
        )
    absent = provenance.missing(one)
    if absent:
        blocks.append(
            Paragraph(
                prose(
                    "**{absent} of {steps} steps** were not run or failed; the last section says "
                    "which and why.",
                    absent=len(absent),
                    steps=len(one.steps),
                ),
                tone="warning",
            )
        )
    return blocks
