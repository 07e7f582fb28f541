"""Tables of certified runs: the paper's beside ours, and what is proved."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ranmask.paper.published import CertifiedRow, CertifiedTable
from ranmask.paper.report.certified_runs import AS_PRINTED, ByRate, Figures, numbers_of_seeds
from ranmask.paper.report.names import CORPORA, certificate_name, either, listed, rate_name
from ranmask.paper.report.tables import (
    NOT_RUN,
    NOTHING,
    SPREAD,
    Cell,
    Table,
    difference,
    quiet,
    seeds_cell,
    share,
    signed_share,
    spread_cell,
    table,
    whole,
)

_LARGEST = 5
_EMPTY = [NOTHING] * 3
_INTERVALS = "Beside figures: 95 % intervals over texts, of medians by order statistics."
_COMPARED = {
    AS_PRINTED: ("no guarantee: MCB", ["as printed"]),
    "paper": ("no guarantee: MCB", ["off-by-one removed"]),
    "ablation": ("Levine–Feizi, 1 − α", ["MCB"]),
}
_THREATS = {
    "synonyms": "A radius counts words replaced from a table of synonyms only; other words "
    "are not covered.",
    "edits": "A radius counts edits: words replaced, inserted or deleted, in any order.",
}


def against_paper(printed: CertifiedTable, results: ByRate, every: bool = True) -> Table:
    """The paper's table, and the same counted on our votes; ``every``: also what was not run."""
    rates = {rate for rate in results if rate is not None}
    rates |= {row.rate for row in printed.rows} if every else set()
    titles = ("accuracy", "MCB", "MCR")
    return table(
        f"{CORPORA[printed.corpus]}: the paper's table, and ours counted as in the paper",
        [
            "masked",
            (f"paper ({printed.base}), no guarantee", titles),
            (f"{'our runs' if results.several_seeds else 'this run'}, no guarantee", titles),
            ("difference", ("accuracy", "MCB")),
        ],
        [
            (rate_name(rate), *_printed(row), *_counted(results.figures(rate, AS_PRINTED), row))
            for rate in sorted(rates)
            for row in [printed.row(rate)]
        ],
        _notes(results, first=_INTERVALS),
    )


def _printed(row: CertifiedRow | None) -> list[Cell]:
    if row is None:
        return [NOTHING] * 3
    rate = "N/A" if row.mcr is None else f"{row.mcr:.1f} %"
    return [quiet(share(row.accuracy / 100)), quiet(whole(row.mcb)), quiet(rate)]


def _counted(found: Figures, row: CertifiedRow | None) -> list[Cell]:
    if not found:
        return [NOT_RUN] * 3 + [NOTHING] * 2
    right, median = _accuracy_and_median(found)
    moved = by = NOTHING
    if row is not None:
        moved = Cell(signed_share(float(right.text) - row.accuracy / 100))  # of what is shown
        radii = [summary.median_radius for _, summary in found]
        known = [radius for radius in radii if radius is not None]
        if row.mcb is not None and len(known) == len(radii):
            by = Cell(listed(difference(radius - row.mcb, 0) for radius in known))
    return [right, median, _rate(found), moved, by]


def proved(results: ByRate, noted: bool = False) -> Table:
    """The first certificate of each run, and the medians of the others.

    ``noted``: a table above has the notes.
    """
    compared = [name for name in _COMPARED if any(results.figures(r, name, 1) for r in results)]
    rows: list[Sequence[Cell | str]] = []
    for rate in results:
        found = results.figures(rate)
        rows.append(
            (
                rate_name(rate),
                *(_other(results.figures(rate, name, 1)) for name in compared),
                *_accuracy_and_median(found, strong=True),
                _rate(found),
                _certified_cell(found, 1),
            )
        )
    first = [result.readings[0] for seeds in results.values() for result in seeds]
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
        [] if noted else _notes(results, first=_INTERVALS),
    )


def side_by_side(results: ByRate, others: Mapping[str, ByRate]) -> Table:
    """What the votes prove in each configuration."""
    by_label = {"as above": results, **others}
    titles = list(by_label)
    if any(found.several_seeds for found in by_label.values()):
        titles = [f"{label}, {numbers_of_seeds(found)}" for label, found in by_label.items()]
    rates = {rate for found in others.values() for rate in found}
    rows: list[Sequence[Cell | str]] = []
    for rate in sorted(rates, key=lambda rate: -1 if rate is None else rate):
        cells: list[Cell] = []
        for found in by_label.values():
            here = found.figures(rate)
            cells += [*_accuracy_and_median(here), _certified_cell(here, 1)] if here else _EMPTY
        rows.append((rate_name(rate), *cells))
    return table(
        "What the votes prove under other settings",
        ["masked", *((label, ("accuracy", "MCB", "CR@1")) for label in titles)],
        rows,
        _notes(*by_label.values(), spread=False),
    )


def changes(main: ByRate, others: Mapping[str, ByRate], printed: CertifiedTable | None) -> Table:
    """What other configurations change on average, over the rates that both have."""
    rows: list[Sequence[Cell | str]] = []
    for label, other in others.items():
        pairs = [(main.figures(rate), other.figures(rate)) for rate in other if rate in main]
        right = [there.accuracy - here.accuracy for here, there in pairs]
        shares = [[found.certified_share(1) for found in pair] for pair in pairs]
        gains = [there - here for here, there in shares if here or there]
        moved = [there.middle - here.middle for here, there in pairs]
        same = list(other.same_medians(printed).values()) if printed else []
        rows.append(
            (
                label,
                str(len(pairs)),
                signed_share(statistics.fmean(right)) if right else NOTHING,
                signed_share(statistics.fmean(gains)) if gains else NOTHING,
                f"{sum(by > 0 for by in moved)}, {sum(by < 0 for by in moved)}",
                f"{sum(map(all, same))} of {len(same)}" if same else NOTHING,
            )
        )
    titles = [
        "<setting",
        "shared rates",
        "accuracy",
        "CR@1",
        "MCB higher, lower",
        "MCB equal to the paper's",
    ]
    note = "CR@1: over rates where either is above 0. Last column: medians counted as in the paper."
    return table("Mean changes under other settings", titles, rows, [note])


def by_certificate(results: ByRate) -> Table:
    """CR@1 to CR@5 of every certificate."""
    levels = range(1, _LARGEST + 1)
    return table(
        "Certified accuracy of each certificate",
        ["masked", "<certificate", *(f"CR@{changed}" for changed in levels)],
        [
            (
                rate_name(rate),
                certificate_name(of, warned=True),
                *(_certified_cell(found, changed) for changed in levels),
            )
            for rate, seeds in results.items()
            for of in seeds[0].readings
            if (found := Figures.of(seeds, of.certificate)).certified_share(1)
        ],
        [
            "Certificates that certify no text at one word are left out.",
            *([SPREAD] if results.several_seeds else []),
        ],
    )


def _notes(*found: ByRate, first: str = "", spread: bool = True) -> list[str]:
    """What the small figures are; how many texts and copies there were, and what was left out."""
    results = [result for one in found for seeds in one.values() for result in seeds]
    several = any(one.several_seeds for one in found)
    texts = [len(result.rows) for result in results]
    errors = sum(result.errors for result in results)
    least = "" if min(texts) == max(texts) else f"{min(texts):,} to "
    masks = either(result.masks for result in results)
    size = f"{least}{max(texts):,} texts, at most {masks} copies of each."
    notes = [first] if first and not several else []
    if several and spread:
        notes.append(f"{numbers_of_seeds(*found)}. {SPREAD} Where medians differ, all are listed.")
    notes.append(f"{size} {errors:,} texts with errors are left out." if errors else size)
    return [*notes, *sorted({_THREATS.get(result.threat, "") for result in results} - {""})]


def _accuracy_and_median(found: Figures, strong: bool = False) -> list[Cell]:
    right = seeds_cell([(summary.correct, summary.texts) for _, summary in found])
    ends = found[0][0].median_interval() if len(found) == 1 else None
    spelt = "" if ends is None else f"{whole(ends[0])}–{whole(ends[1])}"
    return [right, Cell(found.medians, interval=spelt, strong=strong)]


def _certified_cell(found: Figures, changed: int) -> Cell:
    return seeds_cell([(of.certified_at(changed), summary.texts) for of, summary in found])


def _other(found: Figures) -> Cell:
    if not found:
        return NOT_RUN
    return Cell(found.medians, quiet=not all(of.guarantee for of, _ in found))


def _rate(found: Figures) -> Cell:
    """The median of radius over words in percent; of several seeds the mean and its spread."""
    rates = [summary.median_rate for _, summary in found]
    known = [100 * rate for rate in rates if rate is not None]
    several = spread_cell(known, lambda rate: f"{float(rate):.1f}")
    if several is None or len(known) < len(rates):
        spelt = ("N/A" if rate is None else f"{float(100 * rate):.1f} %" for rate in rates)
        return Cell(listed(spelt))
    return replace(several, text=f"{several.text} %")
