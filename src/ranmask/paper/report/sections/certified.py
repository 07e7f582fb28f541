"""The certified tables: the paper's, ours counted the same way, and what is proved."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ranmask.metrics import CertifiedSummary
from ranmask.paper.published import CertifiedRow, CertifiedTable, published
from ranmask.paper.report.beside import SAME, Finding, unlike, verdict
from ranmask.paper.report.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Picture,
    Prose,
    Section,
    prose,
    text,
)
from ranmask.paper.report.counting import CORPORA, certificate_name, rate_name
from ranmask.paper.report.experiments import Configuration, Experiment, experiments
from ranmask.paper.report.figures import by_length, by_rate, certified_curves
from ranmask.paper.report.tables import (
    NOT_RUN,
    NOTHING,
    SPREAD,
    Cell,
    Column,
    Table,
    difference,
    quiet,
    seeds_cell,
    share,
    spread_cell,
    table,
    whole,
)
from ranmask.paper.run_data import Certified, Reading, Reproduction

ByRate: TypeAlias = dict[float | None, tuple[Certified, ...]]
"""Results by masking rate, one for each seed; None for a run without a rate."""
Figures: TypeAlias = list[tuple[Reading, CertifiedSummary]]
"""What one certificate makes of the votes, for each seed."""

_LARGEST = 5
_PRINTED = "paper-as-printed"
_EMPTY = [NOTHING] * 3
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
    - **MCB**: the median radius, which more than half of the texts reach; a wrong label counts as
      less than none. **MCR**: the same as a share of the text's words. **N/A**: at least half of
      the texts have a wrong label, or one that is not certified even with nothing changed.
    - **Exact** counts the votes of a fixed list of copies: a proof, without luck. **Levine–Feizi**
      draws copies at random; for each text it is right with probability at least 1 − α.
    - **No guarantee** marks the paper's ways of counting, as printed and with its off-by-one
      removed. They are here to compare with its tables: an attacker may need fewer words than
      they say.
    """


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All certified reproductions; None where there is none."""
    chosen = experiments(run for run in reproductions if run.kind == "certified")
    blocks = text(_GLOSSARY)
    for experiment in chosen:
        blocks += [Heading(experiment.run.title), *_experiment(experiment)]
    return Section("Certified robustness", "certified", blocks) if chosen else None


def results_by_rate(configuration: Configuration) -> ByRate:
    """Finished runs with texts, by masking rate and seed; None for a run without a rate."""
    found: dict[float | None, dict[str, Certified]] = {}
    for seed, step, result in configuration.finished(Certified):
        if result.rows and result.readings:
            rate = float(step.place["rate"]) if "rate" in step.place else None
            found.setdefault(rate, {}).setdefault(seed, result)
    ordered = sorted(found.items(), key=lambda pair: -1 if pair[0] is None else pair[0])
    return {rate: tuple(seeds.values()) for rate, seeds in ordered}


def figures(seeds: Sequence[Certified], certificate: str = "", start: int = 0) -> Figures:
    """What a certificate makes of each seed's votes; without a name, the first one of each."""
    found = [
        (result, result.reading(certificate, start) if certificate else result.readings[0])
        for result in seeds
    ]
    return [(of, result.summary(of)) for result, of in found if of is not None]


def best_rate(results: ByRate) -> float | None:
    """The rate at which most is certified: the largest median, then the most texts there."""

    def worth(rate: float | None) -> tuple[int, float, float]:
        found = figures(results[rate])
        reached = _middle(found)
        # A median of 0 words says nothing of one word: that decides between such rates.
        return reached, _share(found, max(reached, 1)), rate or 0.0

    return max(results, key=worth)


def in_short(experiment: Experiment) -> list[Finding]:
    """Medians as the paper counts and as they are proved, and what is proved at one word."""
    results = results_by_rate(experiment.main)
    printed = published().certified.get(experiment.run.paper)
    found = []
    counted = {rate: some for rate in results if (some := figures(results[rate], _PRINTED))}
    if printed is not None and counted:
        ours = {rate: _middle(some) for rate, some in counted.items()}
        its = {row.rate: -1 if row.mcb is None else row.mcb for row in printed.rows}
        more = max(ours.values()) - max(its.values())
        same = _same_medians(printed, results)
        said = f"{abs(more)} {'higher' if more > 0 else 'lower'}" if more else SAME
        said += f"; medians the same at {sum(map(all, same.values()))} of {len(same)} rates"
        what = "largest median as the paper counts, no guarantee"
        found.append(Finding(what, _largest_median(ours), _largest_median(its), said))
    if results:
        first = results[best_rate(results)][0].readings[0]
        sure = "proved" if first.guarantee and first.certificate == "exact" else "certified"
        sure = sure if first.guarantee else "claimed, no guarantee"
        most = _largest_median({rate: _middle(figures(some)) for rate, some in results.items()})
        beside = ("none is", "its radii are one too high") if printed and sure == "proved" else ()
        found.append(Finding(f"largest median that is {sure}", most, *beside))
        share_of = {rate: _share(figures(results[rate]), 1) for rate in results}
        rate = max(share_of, key=lambda rate: share_of[rate])
        masked = "" if rate is None else f" ({rate_name(rate)} masked)"
        found.append(
            Finding(f"texts right and {sure} at 1 word, most", share(share_of[rate]) + masked)
        )
    return found


def _largest_median(by_rate: Mapping[float | None, int] | Mapping[float, int]) -> str:
    """The largest median, -1 for N/A, and at which masking rates it is reached."""
    most = max(by_rate.values())
    rates = [rate_name(rate) for rate, median in by_rate.items() if median == most]
    spelt = whole(None if most < 0 else most)
    if len(rates) == len(by_rate):
        return spelt if len(rates) == 1 else f"{spelt} (at every rate)"
    return f"{spelt} ({' and '.join(rates)} masked)"


def _share(found: Figures, changed: int) -> float:
    """The mean share of texts that are certified at so many changed words."""
    return statistics.fmean(of.certified_at(changed) / summary.texts for of, summary in found)


def _experiment(experiment: Experiment) -> list[Block]:
    run = experiment.run
    results = results_by_rate(experiment.main)
    others = {one.label: found for one in experiment.others if (found := results_by_rate(one))}
    printed = published().certified.get(run.paper)
    if not results:
        return text("No certified run is finished, so there is nothing to show.")
    blocks: list[Block] = []
    if printed is not None:
        blocks += [*unlike(experiment, printed.base), _against_paper(printed, results)]
        blocks += [*verdict(*_faults(printed, results)), *_agreement(printed, results)]
    return [
        *blocks,
        _proved(results),
        *_beside(printed, results, others, {one.label: one.full for one in experiment.others}),
        _curves(run, results),
        _aside(run, results),
        Fold("CR@1 to CR@5 with intervals", [_levels(results)]),
    ]


def _faults(printed: CertifiedTable, results: ByRate) -> tuple[list[str], list[str]]:
    """Medians that are the paper's in no seed, counted as it counts.

    First those that are more than luck: in no seed the interval of the median holds the paper's.
    """
    sure: list[str] = []
    perhaps: list[str] = []
    for row in printed.rows:
        found = figures(results.get(row.rate, ()), _PRINTED)
        if not found or any(summary.median_radius == row.mcb for _, summary in found):
            continue
        held = sum(_held(of, row.mcb) for of, _ in found)
        luck = f" (its 95 % interval holds the paper's in {held} of {len(found)} seeds)"
        (perhaps if held else sure).append(
            f"At {rate_name(row.rate)} masked its median (MCB) is {whole(row.mcb)} with an "
            f"accuracy of {row.accuracy:.1f} %, ours {medians(found)}{luck if held else ''} with "
            f"{100 * _accuracy(found):.1f} %."
        )
    return sure, perhaps


def _held(of: Reading, median: int | None) -> bool:
    """Whether the interval of the median radius holds another one."""
    ends = of.median_interval()
    if ends is None:
        return True
    low, high, at = (-1 if value is None else value for value in (*ends, median))
    return low <= at <= high


def _same_medians(printed: CertifiedTable, results: ByRate) -> dict[float, list[bool]]:
    """At each rate that both have: whether the median is the paper's, counted so, by seed."""
    return {
        row.rate: [summary.median_radius == row.mcb for _, summary in found]
        for row in printed.rows
        if (found := figures(results.get(row.rate, ()), _PRINTED))
    }


def _agreement(printed: CertifiedTable, results: ByRate) -> list[Block]:
    """At how many rates is the median the paper's, and what is proved?"""
    found = _same_medians(printed, results)
    same = [all(seeds) for seeds in found.values()]
    some = sum(any(seeds) and not all(seeds) for seeds in found.values())
    said = "No masking rate of the paper's table was counted as the paper counts."
    if same:
        said = """Counted as the paper counts, the median is the paper's at **{same} of {compared}**
            masking rates that were run."""
        if some:
            said += " At {some} more it is in some seeds and not in others."
    medians = [
        summary.median_radius
        for seeds in results.values()
        for of, summary in figures(seeds)
        if of.guarantee
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
    return text(said, same=sum(same), compared=len(same), some=some, best=words)


def _several(results: ByRate) -> bool:
    return any(len(seeds) > 1 for seeds in results.values())


def _first_seeds(results: ByRate) -> tuple[dict[float | None, Certified], str]:
    """One result for each rate, as charts show it; and what a caption says of that."""
    said = " Of several seeds, the first is drawn." if _several(results) else ""
    return {rate: seeds[0] for rate, seeds in results.items()}, said


def _curves(run: Reproduction, results: ByRate) -> Picture:
    caption = """Certified accuracy against the number of changed words. The band is the 95 %
        interval of the first certificate, {first}."""
    drawn, said = _first_seeds(results)
    if any(result.reading("paper-as-printed", 1) for result in drawn.values()):
        caption += """ Where the paper's lines lie above the others, more is claimed than is proved.
            The exact label is the vote of all copies; the other certificates choose theirs by a
            smaller sample, so they may start lower or higher."""
    charts = [certified_curves(rate, result) for rate, result in drawn.items()]
    first = certificate_name(next(iter(drawn.values())).readings[0])
    return Picture(f"{run.name}-curves", charts, prose(caption + said, first=first))


def _aside(run: Reproduction, results: ByRate) -> Picture:
    """Lengths at the rate that certifies most; before it all rates, where there are several."""
    best = best_rate(results)
    drawn, said = _first_seeds(results)
    name, charts, caption = "lengths", [by_length(best, drawn[best])], "By length:"
    rates = {rate: result for rate, result in drawn.items() if rate is not None}
    if len(rates) > 1:
        name, charts = "rates", [by_rate(rates), *charts]
        caption = "First: every masking rate. Second:"
    caption += """ shorter and longer texts, about a quarter in each group ({rate}). Bars are 95 %
        intervals."""
    rate = rate_name(best, " masked")
    return Picture(f"{run.name}-{name}", charts, prose(caption + said, rate=rate))


# -- other configurations ----------------------------------------------------------------------


def _beside(
    printed: CertifiedTable | None,
    results: ByRate,
    others: Mapping[str, ByRate],
    full: Mapping[str, str],
) -> list[Block]:
    """What other settings change: side by side, in a sentence each, and their own tables."""
    if not others:
        return []
    blocks: list[Block] = [Heading("What other settings change", 4), _side_by_side(results, others)]
    blocks.append(
        Bullets([_change(full[label], printed, results, found) for label, found in others.items()])
    )
    for label, found in others.items():
        tables = [_proved(found)]
        if printed is not None:
            tables.insert(0, _against_paper(printed, found, every=False))
        blocks.append(Fold(f"The tables of {label}", tables))
    return blocks


def _side_by_side(results: ByRate, others: Mapping[str, ByRate]) -> Table:
    by_label = {"as above": results, **others}
    titles = list(by_label)
    if any(map(_several, by_label.values())):
        titles = [f"{label}, {_numbers_of_seeds(found)}" for label, found in by_label.items()]
    rates = {rate for found in others.values() for rate in found}
    rows: list[Sequence[Cell | str]] = []
    for rate in sorted(rates, key=lambda rate: -1 if rate is None else rate):
        cells: list[Cell] = []
        for found in by_label.values():
            here = figures(found.get(rate, ()))
            cells += [*_accuracy_and_median(here), _certified_cell(here, 1)] if here else _EMPTY
        rows.append((rate_name(rate), *cells))
    return table(
        "What the votes prove, beside the settings above",
        ["masked", *((label, ("accuracy", "MCB", "CR@1")) for label in titles)],
        rows,
        _notes(*by_label.values()),
    )


def _numbers_of_seeds(*found: ByRate) -> str:
    counts = sorted({len(seeds) for one in found for seeds in one.values()})
    return f"{' or '.join(map(str, counts))} {'seed' if counts == [1] else 'seeds'}"


def _change(label: str, printed: CertifiedTable | None, main: ByRate, other: ByRate) -> Prose:
    """How another configuration differs, over the rates that both have."""
    pairs = [(figures(other[rate]), figures(main[rate])) for rate in other if rate in main]
    if not pairs:
        return prose("**{label}**: at other masking rates only.", label=label)
    right = [_accuracy(here) - _accuracy(there) for here, there in pairs]
    certified = [(_share(here, 1), _share(there, 1)) for here, there in pairs]
    proved = [here - there for here, there in certified if here or there]
    said = "**{label}**: over {rates} that both have, accuracy differs by {right} on average"
    if proved:
        said += """, and the share certified at one word, where there is any, by {proved}"""
    medians = [(_middle(here), _middle(there)) for here, there in pairs]
    said += ". The median radius is "
    if all(here == there for here, there in medians):
        said += "the same."
    else:
        said += "larger at {more} of them and smaller at {less}."
    same = _same_medians(printed, other) if printed is not None else {}
    if same:
        said += " Counted as the paper counts, it is the paper's at {same} of {compared}."
    return prose(
        said,
        label=label,
        rates="one masking rate" if len(pairs) == 1 else f"{len(pairs)} masking rates",
        right=_signed(statistics.fmean(right)),
        proved=_signed(statistics.fmean(proved)) if proved else "",
        more=sum(here > there for here, there in medians),
        less=sum(here < there for here, there in medians),
        same=sum(map(all, same.values())),
        compared=len(same),
    )


def _accuracy(found: Figures) -> float:
    return statistics.fmean(summary.correct / summary.texts for _, summary in found)


def _middle(found: Figures) -> int:
    """The median radius of the middle seed, of two the lower; -1 for N/A."""
    radii = [summary.median_radius for _, summary in found]
    return statistics.median_low(-1 if radius is None else radius for radius in radii)


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + share(value)


# -- tables ------------------------------------------------------------------------------------


def _against_paper(printed: CertifiedTable, results: ByRate, every: bool = True) -> Table:
    """The paper's table, and the same counted on our votes; ``every``: also what was not run."""
    rates = {rate for rate in results if rate is not None}
    rates |= {row.rate for row in printed.rows} if every else set()
    titles = ("accuracy", "MCB", "MCR")
    return table(
        f"{CORPORA[printed.corpus]}: the paper's table, and ours counted as the paper counts",
        [
            "masked",
            (f"paper ({printed.base}), no guarantee", titles),
            (f"{'our runs' if _several(results) else 'this run'}, no guarantee", titles),
            ("difference", ("accuracy", "MCB")),
        ],
        [
            (rate_name(rate), *_printed(printed.row(rate)), *_counted(results.get(rate, ()), row))
            for rate in sorted(rates)
            for row in [printed.row(rate)]
        ],
        _notes(results, first="Beside figures: their 95 % intervals over texts."),
    )


def _printed(row: CertifiedRow | None) -> list[Cell]:
    if row is None:
        return [NOTHING] * 3
    rate = "N/A" if row.mcr is None else f"{row.mcr:.1f} %"
    return [quiet(share(row.accuracy / 100)), quiet(whole(row.mcb)), quiet(rate)]


def _counted(seeds: Sequence[Certified], row: CertifiedRow | None) -> list[Cell]:
    found = figures(seeds, _PRINTED)
    if not found:
        return [NOT_RUN] * 3 + [NOTHING] * 2
    right, median = _accuracy_and_median(found)
    moved = by = NOTHING
    if row is not None:
        moved = Cell(_signed(float(right.text) - row.accuracy / 100))  # of what is shown
        radii = [summary.median_radius for _, summary in found]
        known = [radius for radius in radii if radius is not None]
        if row.mcb is not None and len(known) == len(radii):
            by = Cell(_listed(difference(radius - row.mcb, 0) for radius in known))
    return [right, median, _rate(found), moved, by]


def _accuracy_and_median(found: Figures, strong: bool = False) -> list[Cell]:
    right = seeds_cell([(summary.correct, summary.texts) for _, summary in found])
    return [right, _median_cell(found, strong)]


def _certified_cell(found: Figures, changed: int) -> Cell:
    return seeds_cell([(of.certified_at(changed), summary.texts) for of, summary in found])


def _proved(results: ByRate) -> Table:
    """The first certificate of each run, and the medians of the others."""
    compared = [
        name for name in _COMPARED if any(figures(found, name, 1) for found in results.values())
    ]
    rows: list[Sequence[Cell | str]] = []
    for rate, seeds in results.items():
        found = figures(seeds)
        rows.append(
            (
                rate_name(rate),
                *(_other(seeds, name) for name in compared),
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
        _notes(
            results,
            first="Intervals of a median are those of order statistics; where there is none, there "
            "are too few texts for one.",
        ),
    )


def _notes(*found: ByRate, first: str = "") -> list[str]:
    """What the small figures are; how many texts and copies there were, and what was left out."""
    results = [result for one in found for seeds in one.values() for result in seeds]
    several = any(map(_several, found))
    texts = [len(result.rows) for result in results]
    errors = sum(result.errors for result in results)
    least = "" if min(texts) == max(texts) else f"{min(texts):,} to "
    masks = " or ".join(f"{most:,}" for most in sorted({result.masks for result in results}))
    size = f"{least}{max(texts):,} texts, at most {masks} copies of each."
    notes = [first] if first and not several else []
    if several:
        spread = f"{_numbers_of_seeds(*found)}. {SPREAD} Medians are listed where seeds differ."
        notes.append(spread)
    notes.append(f"{size} {errors:,} with errors are left out." if errors else size)
    return [*notes, *sorted({_THREATS.get(result.threat, "") for result in results} - {""})]


def _other(seeds: Sequence[Certified], name: str) -> Cell:
    found = figures(seeds, name, 1)
    if not found:
        return NOT_RUN
    return Cell(medians(found), quiet=not all(of.guarantee for of, _ in found))


def medians(found: Figures) -> str:
    """The median radius; of seeds that differ, all of them."""
    return _listed(whole(summary.median_radius) for _, summary in found)


def _listed(values: Iterable[str]) -> str:
    """One value where all are alike, else all."""
    every = list(values)
    return every[0] if len(set(every)) == 1 else ", ".join(every)


def _median_cell(found: Figures, strong: bool = False) -> Cell:
    ends = found[0][0].median_interval() if len(found) == 1 else None
    spelt = "" if ends is None else f"{whole(ends[0])}–{whole(ends[1])}"
    return Cell(medians(found), interval=spelt, strong=strong)


def _rate(found: Figures) -> Cell:
    """The median of radius over words in percent; of several seeds the mean and its spread."""
    rates = [summary.median_rate for _, summary in found]
    known = [100 * rate for rate in rates if rate is not None]
    several = spread_cell(known, lambda rate: f"{float(rate):.1f}")
    if several is None or len(known) < len(rates):
        spelt = ("N/A" if rate is None else f"{float(100 * rate):.1f} %" for rate in rates)
        return Cell(_listed(spelt))
    return replace(several, text=f"{several.text} %")


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
                *(_certified_cell(figures(seeds, of.certificate), changed) for changed in levels),
            )
            for rate, seeds in results.items()
            for of in seeds[0].readings
            if any(found.certified_at(1) for found, _ in figures(seeds, of.certificate))
        ],
        [
            "Certificates that certify no text at one word are left out.",
            *([SPREAD] if _several(results) else []),
        ],
    )
