"""The certified tables: the paper's, ours counted the same way, and what is proved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ranmask.metrics import CertifiedSummary
from ranmask.paper.published import CertifiedRow, CertifiedTable, published
from ranmask.paper.report.blocks import Block, Fold, Heading, Picture, Section, prose, text
from ranmask.paper.report.counting import CORPORA, certificate_name, rate_name
from ranmask.paper.report.figures import by_length, certified_curves, frontier
from ranmask.paper.report.sections.coverage import unlike, verdict
from ranmask.paper.report.tables import (
    NOT_RUN,
    NOTHING,
    Cell,
    Column,
    Table,
    difference,
    quiet,
    share,
    share_cell,
    table,
    whole,
)
from ranmask.paper.run_data import Certified, Reading, Reproduction

ByRate: TypeAlias = dict[float | None, Certified]
"""Results by masking rate; None for a run without one."""

_LARGEST = 5
_COMPARED = {
    "paper-as-printed": Column("as printed", "no guarantee: MCB"),
    "paper": Column("off-by-one removed", "no guarantee: MCB"),
    "ablation": Column("MCB", "Levine–Feizi, 1 − α"),
}
_THREATS = {
    "synonyms": "A radius counts words replaced from a table of synonyms only; other words "
    "are not covered.",
    "edits": "A radius counts edits: words replaced, inserted or deleted, in any order.",
}
_GLOSSARY = """
    - **Accuracy**: share of texts with the right label, nothing changed.
    - **CR@d**: share of all texts that are right *and* certified when any d words are changed.
    - **MCB**: the median radius; a wrong label counts as less than none. **MCR**: the same as a
      share of the text's words. **N/A**: at least half of the texts have a wrong label, or one
      that is not certified even with nothing changed.
    - **Exact** counts the votes of a fixed list of copies: a proof, without luck. **Levine–Feizi**
      draws copies at random; for each text it is right with probability at least 1 − α.
    - **No guarantee** marks the paper's ways of counting, as printed and with its off-by-one
      removed. They are here to compare with its tables: an attacker may need fewer words than
      they say.
    """


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All certified reproductions; None where there is none."""
    chosen = [run for run in reproductions if run.kind == "certified"]
    blocks = text(_GLOSSARY)
    for run in chosen:
        blocks += [Heading(run.title), *_reproduction(run)]
    return Section("Certified robustness", "certified", blocks) if chosen else None


def results_by_rate(reproduction: Reproduction) -> ByRate:
    """Finished runs with texts, by masking rate; None for a run without one."""
    found = {
        float(step.place["rate"]) if "rate" in step.place else None: result
        for step, result in reproduction.finished(Certified)
        if result.rows and result.readings
    }
    return dict(sorted(found.items(), key=lambda pair: -1 if pair[0] is None else pair[0]))


def best_rate(results: ByRate) -> float | None:
    """The rate at which most is certified: the largest median, then the most texts there."""

    def worth(rate: float | None) -> tuple[int, float, float]:
        result = results[rate]
        exact = result.readings[0]
        median = result.summary(exact).median_radius
        reached = -1 if median is None else median
        # A median of 0 words says nothing of one word: that decides between such rates.
        return reached, exact.certified_at(max(reached, 1)) / len(result.rows), rate or 0.0

    return max(results, key=worth)


def _reproduction(run: Reproduction) -> list[Block]:
    results = results_by_rate(run)
    printed = published().certified.get(run.paper)
    if not results:
        return text("No certified run is finished, so there is nothing to show.")
    blocks: list[Block] = []
    if printed is not None:
        blocks += [*unlike(run, printed.base), _against_paper(printed, results)]
        blocks += [*verdict(_faults(printed, results)), *_agreement(printed, results)]
    return [
        *blocks,
        _proved(results),
        _curves(run, results),
        _aside(run, results),
        Fold("CR@1 to CR@5 with intervals", [_levels(results)]),
    ]


def _faults(printed: CertifiedTable, results: ByRate) -> list[str]:
    """Medians that are not the paper's, counted as it counts."""
    faults = []
    for row in printed.rows:
        result = results.get(row.rate)
        ours = None if result is None else result.reading("paper-as-printed")
        if result is not None and ours is not None:
            found = result.summary(ours)
            if found.median_radius != row.mcb:
                faults.append(
                    f"At {rate_name(row.rate)} masked its median (MCB) is {whole(row.mcb)} with an "
                    f"accuracy of {row.accuracy:.1f} %, ours {whole(found.median_radius)} with "
                    f"{100 * found.correct / found.texts:.1f} %."
                )
    return faults


def _agreement(printed: CertifiedTable, results: ByRate) -> list[Block]:
    """At how many rates is the median the paper's, and what is proved?"""
    same = [
        result.summary(ours).median_radius == row.mcb
        for rate, result in results.items()
        if (row := None if rate is None else printed.row(rate)) is not None
        and (ours := result.reading("paper-as-printed")) is not None
    ]
    said = "No masking rate of the paper's table was counted as the paper counts."
    if same:
        said = """Counted as the paper counts, the median is the paper's at **{same} of {compared}**
            masking rates that were run."""
    medians = [
        result.summary(result.readings[0]).median_radius
        for result in results.values()
        if result.readings[0].guarantee
    ]
    best = max((-1 if median is None else median for median in medians), default=-1)
    if not medians:
        said += " Nothing here is *proved*."
    else:
        said += " What is *proved* is in the next table: there the largest median is {best}."
    if medians and any(rate is not None and rate <= 0.5 for rate in results):
        said += """ At 50 % masked or less none of these certificates can prove a single word,
            however good the model: some word stands in at least half of the copies."""
    words = "N/A" if best < 0 else "1 word" if best == 1 else f"{best} words"
    return text(said, same=sum(same), compared=len(same), best=words)


def _curves(run: Reproduction, results: ByRate) -> Picture:
    caption = """Certified accuracy against the number of changed words. The band is the 95 %
        interval of the first certificate, {first}."""
    if any(result.reading("paper-as-printed", 1) for result in results.values()):
        caption += """ Where the paper's lines lie above the others, more is claimed than is proved.
            The exact label is the vote of all copies; the other certificates choose theirs by a
            smaller sample, so they may start lower or higher."""
    charts = [certified_curves(rate, result) for rate, result in results.items()]
    first = certificate_name(next(iter(results.values())).readings[0])
    return Picture(f"{run.name}-curves", charts, prose(caption, first=first))


def _aside(run: Reproduction, results: ByRate) -> Picture:
    """Lengths at the rate that certifies most; the frontier, where there are several rates."""
    best = best_rate(results)
    name, charts, caption = "lengths", [by_length(best, results[best])], "By length:"
    if len(results) > 1:
        name, charts = "frontier", [frontier(results), *charts]
        caption = """First: each masking rate by its accuracy, and by the share that is certified at
            one word. Second:"""
    caption += """ shorter and longer texts, about a quarter in each group ({rate}). Bars are 95 %
        intervals."""
    return Picture(f"{run.name}-{name}", charts, prose(caption, rate=rate_name(best, " masked")))


# -- tables ------------------------------------------------------------------------------------


def _against_paper(printed: CertifiedTable, results: ByRate) -> Table:
    """The paper's table, and the same counted on our votes."""
    rates = {row.rate for row in printed.rows} | {rate for rate in results if rate is not None}
    figures = ("accuracy", "MCB", "MCR")
    return table(
        f"{CORPORA[printed.corpus]}: the paper's table, and ours counted as the paper counts",
        [
            "masked",
            (f"paper ({printed.base}), no guarantee", figures),
            ("this run, no guarantee", figures),
            ("difference", ("accuracy", "MCB")),
        ],
        [
            (rate_name(rate), *_printed(printed.row(rate)), *_counted(results.get(rate), row))
            for rate in sorted(rates)
            for row in [printed.row(rate)]
        ],
        ["Small figures are 95 % intervals over texts.", *_sizes(results)],
    )


def _printed(row: CertifiedRow | None) -> list[Cell]:
    if row is None:
        return [NOTHING] * 3
    rate = "N/A" if row.mcr is None else f"{row.mcr:.1f} %"
    return [quiet(share(row.accuracy / 100)), quiet(whole(row.mcb)), quiet(rate)]


def _counted(result: Certified | None, row: CertifiedRow | None) -> list[Cell]:
    ours = None if result is None else result.reading("paper-as-printed")
    if result is None or ours is None:
        return [NOT_RUN] * 3 + [NOTHING] * 2
    figures = result.summary(ours)
    median, moved, by = figures.median_radius, NOTHING, NOTHING
    if row is not None:
        less = float(figures.accuracy) - row.accuracy / 100
        moved = Cell(("+" if less > 0 else "") + share(less))
        if median is not None and row.mcb is not None:
            by = Cell(difference(median - row.mcb, 0))
    correct = share_cell(figures.correct, figures.texts)
    return [correct, _median_cell(ours, figures), Cell(_rate(figures)), moved, by]


def _proved(results: ByRate) -> Table:
    """The first certificate of each run, and the medians of the others."""
    compared = [
        name for name in _COMPARED if any(found.reading(name, 1) for found in results.values())
    ]
    rows: list[Sequence[Cell | str]] = []
    for rate, result in results.items():
        exact = result.readings[0]
        figures = result.summary(exact)
        rows.append(
            (
                rate_name(rate),
                *(_other(result, name) for name in compared),
                share_cell(figures.correct, figures.texts),
                _median_cell(exact, figures, strong=True),
                _rate(figures),
                share_cell(exact.certified_at(1), figures.texts),
            )
        )
    first = [result.readings[0] for result in results.values()]
    names = ", ".join(dict.fromkeys(map(certificate_name, first)))
    caption = f"What the votes {'prove' if names == 'exact' else 'certify'}"
    worth = ", a proof" if names == "exact" else ""
    if not all(of.guarantee for of in first):
        caption, worth = "What is claimed of the votes, without guarantee", ", no guarantee"
    return table(
        caption,
        [
            "masked",
            *(_COMPARED[name] for name in compared),
            (names + worth, ("accuracy", "MCB", "MCR", "CR@1")),
        ],
        rows,
        [
            "Intervals of a median are those of order statistics; where there is none, there are "
            "too few texts for one.",
            *_sizes(results),
            *sorted({_THREATS.get(found.threat, "") for found in results.values()} - {""}),
        ],
    )


def _sizes(results: ByRate) -> list[str]:
    """How many texts and copies there were, and how many texts were left out."""
    texts = [len(result.rows) for result in results.values()]
    masks = max(result.masks for result in results.values())
    errors = sum(result.errors for result in results.values())
    least = "" if min(texts) == max(texts) else f"{min(texts):,} to "
    said = f"{least}{max(texts):,} texts, at most {masks:,} copies of each."
    return [f"{said} {errors:,} with errors are left out." if errors else said]


def _other(result: Certified, name: str) -> Cell:
    found = result.reading(name, 1)
    if found is None:
        return NOT_RUN
    return Cell(whole(result.summary(found).median_radius), quiet=not found.guarantee)


def _median_cell(of: Reading, figures: CertifiedSummary, strong: bool = False) -> Cell:
    ends = of.median_interval()
    spelt = "" if ends is None else f"{whole(ends[0])}–{whole(ends[1])}"
    return Cell(whole(figures.median_radius), interval=spelt, strong=strong)


def _rate(figures: CertifiedSummary) -> str:
    rate = figures.median_rate
    return "N/A" if rate is None else f"{float(100 * rate):.1f} %"


def _levels(results: ByRate) -> Table:
    """CR@1 to CR@5 of every certificate."""
    levels = range(1, _LARGEST + 1)
    return table(
        "Share of texts right and certified",
        ["masked", "<certificate", *(f"CR@{changed}" for changed in levels)],
        [
            (
                rate_name(rate),
                certificate_name(of, warned=True),
                *(share_cell(of.certified_at(changed), len(result.rows)) for changed in levels),
            )
            for rate, result in results.items()
            for of in result.readings
        ],
    )
