"""The results in short: what was asked, and the main figures in a strip."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ranmask.paper.report.beside import Finding
from ranmask.paper.report.blocks import (
    Block,
    Paragraph,
    Prose,
    Section,
    Span,
    Strip,
    Tile,
    prose,
    text,
)
from ranmask.paper.report.certified_runs import AS_PRINTED, ByRate, Figures
from ranmask.paper.report.experiments import Experiment, experiments
from ranmask.paper.report.methods import measured, ranking
from ranmask.paper.report.names import attack_name, corpus_name, rate_name
from ranmask.paper.report.sections import (
    adversarial,
    arithmetic,
    betas,
    certified,
    coverage,
    empirical,
    entropy,
    rates,
)
from ranmask.paper.report.tables import Cell, percent, seeds_cell, share, table, whole
from ranmask.paper.run_data import Certified, Kind, Reproduction

_IN_SHORT: dict[Kind, Callable[[Experiment], list[Finding]]] = {
    "certified": certified.in_short,
    "empirical": empirical.in_short,
    "beta": betas.in_short,
    "rates": rates.in_short,
    "entropy": entropy.in_short,
    "arithmetic": arithmetic.in_short,
    "adversarial": adversarial.in_short,
}
_SPREAD = (
    "Robust accuracies in percent: with several seeds the mean ± sample standard deviation, with "
    "one the 95 % interval over texts. Significant: p ≤ .05 in a paired sign test."
)
_RANKED = "Ranked are the methods of the paper's table, over the texts that all of them met."
_SETTINGS = "Settings, texts and seeds are given with each table below."
_SMOKE = """
    > This is a **smoke** run: a few texts and a small model, to see that everything works. Its
    figures say little; look at the intervals.
    """


def section(reproductions: Sequence[Reproduction]) -> Section:
    """The main figures of all: of one in a strip, of several in a table beside the paper's."""
    found = experiments(reproductions)
    blocks: list[Block] = []
    for one in found if len(found) < 2 else ():
        about, tiles = one.run.about, _tiles(one)
        blocks += [Paragraph((Span(about),))] if about else []
        blocks += [Strip(tiles)] if tiles else []
    # One run of nothing in the paper is told by its strip.
    blocks += _table(found) if len(found) > 1 or any(one.run.paper for one in found) else []
    blocks += text(_SMOKE) if any(one.run.size == "smoke" for one in found) else []
    return Section("Results in short", "overview", blocks)


def _table(found: Sequence[Experiment]) -> list[Block]:
    """A row for each main figure; nothing of the paper where no run is of it."""
    whole = any(one.run.paper or one.run.kind == "arithmetic" for one in found)
    rows: list[Sequence[str]] = []
    for experiment in found:
        for number, finding in enumerate(_IN_SHORT[experiment.run.kind](experiment)):
            title = "" if number else experiment.run.title  # once
            beside = (finding.paper, finding.verdict) if whole else ()
            rows.append((title, finding.what, finding.ours, *beside))
    titles = ["<experiment", "<figure", "<ours", *(["<paper", "<verdict"] if whole else [])]
    attacked = [one.run.paper for one in found if one.run.kind == "empirical"]
    said = [
        *([_SPREAD] if attacked else []),
        *([_RANKED] if any(attacked) else []),
        *([_SETTINGS] if whole else []),
    ]
    notes = [" ".join(said)] if said else []
    return [table("Main figures", titles, rows, notes)] if rows else []


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
    total = coverage.total(found)
    if len(found) == 1:
        return prose(
            """A part of the RanMASK paper, run again with ranmask: {done} of its {cells} cells,
            each beside the paper's.""",
            **total,
        )
    return prose(
        """The RanMASK paper, run again with ranmask: {done} of the {cells} cells of its tables and
        figures, each beside the paper's, and every radius beside what can be proved.""",
        **total,
    )


def only_runs(reproductions: Sequence[Reproduction]) -> bool:
    """Whether none of them stands for a table or figure of the paper."""
    return all(run.steps and not run.paper for run in reproductions)


def _tiles(experiment: Experiment) -> list[Tile]:
    """The main figures of the first configuration."""
    run = experiment.run
    if run.kind == "certified":
        return _certified_tiles(experiment)
    if run.kind == "empirical":
        return _empirical_tiles(experiment)
    if run.kind == "beta":
        return [
            Tile(
                share(max(betas.largest_gap(result) for result in by_rate.values())),
                "largest β − p_c found",
                corpus_name(corpus),
            )
            for corpus, by_rate in betas.results(run).items()
        ]
    return []


def _certified_tiles(experiment: Experiment) -> list[Tile]:
    results = ByRate.of(experiment.main)
    if not results:
        return []
    rate = results.best
    seeds, exact = results[rate], results.figures(rate)
    ends = exact[0][0].median_interval() if len(seeds) == 1 else None
    spread = "" if ends is None else f"95 %: {whole(ends[0])} to {whole(ends[1])}"
    where = "" if rate is None and len(results) == 1 else f", {rate_name(rate, ' masked')}"
    where += ", where most is certified" if len(results) > 1 else ""
    tiles = [
        _share_tile([(one.correct, one.texts) for _, one in exact], f"accuracy{where}"),
        _median_tile(exact, f"{_worth(seeds[0])} at the median", spread),
        _share_tile(
            [(of.certified_at(1), one.texts) for of, one in exact], "of texts certified at 1 word"
        ),
    ]
    printed = results.figures(rate, AS_PRINTED)
    if printed:
        label = "claimed when counted as in the paper"
        tiles.append(_median_tile(printed, label, "no guarantee"))
    return tiles


def _median_tile(found: Figures, label: str, note: str) -> Tile:
    radii = found.medians
    words = "word" if radii == "1" else "words"
    seeds = f"{len(found)} seeds" if len(found) > 1 else ""
    return Tile(radii, f"{words} {label}", "; ".join(part for part in (note, seeds) if part))


def _worth(result: Certified) -> str:
    """What may be said of the radii."""
    first = result.readings[0]
    if not first.guarantee:
        return "claimed, without guarantee,"
    if result.threat == "synonyms":
        return "certified against a table of synonyms"
    return "proved" if first.certificate == "exact" else "certified"


def _empirical_tiles(experiment: Experiment) -> list[Tile]:
    tiles = []
    for attack, rows in measured(experiment).items():
        one = ranking(rows)
        if one is None or one.missing:
            continue  # the best of some is not the best
        best = next(row for row in one.rows if row.method == one.leaders[0])
        as_good = len(one.leaders) - 1
        method = best.method + (f" and {as_good} more" if as_good else "")
        ran = len(one.rows)
        label = "robust accuracy under" if ran == 1 else f"best of {ran} methods under"
        cell = seeds_cell([(one.held, one.texts) for one in best.counts], percent)
        note = f"{method}; {_spread(cell, len(best.counts))}"
        tiles.append(Tile(f"{cell.text} %", f"{label} {attack_name(attack)}", note))
    return tiles


def _share_tile(parts: Sequence[tuple[int, int]], label: str) -> Tile:
    cell = seeds_cell(parts)
    return Tile(cell.text, label, _spread(cell, len(parts)))


def _spread(cell: Cell, seeds: int) -> str:
    """What stands beside a share: its interval, or the spread of its seeds."""
    if seeds > 1:
        return f"{seeds} seeds: {cell.interval or 'all equal'}"
    return f"95 %: {cell.interval}" if cell.interval else ""
