"""Accuracy under attack: our tables with the paper's beside them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from ranmask.paper.published import Cell as Printed
from ranmask.paper.published import published
from ranmask.paper.report.attack_tables import all_figures, with_intervals
from ranmask.paper.report.axes import percent_axis
from ranmask.paper.report.beside import SAME, Finding, unlike
from ranmask.paper.report.blocks import Block, Fold, Heading, Picture, Section, prose, text
from ranmask.paper.report.charts import Dot, Dots
from ranmask.paper.report.counting import (
    attacks_by_seed,
    mean_robust,
    robust_accuracy,
    shared_texts,
)
from ranmask.paper.report.experiments import Configuration, Experiment, experiments
from ranmask.paper.report.method_order import contradictions, none_named, order
from ranmask.paper.report.methods import ByAttack, Measured, Ranking, Rows, measured, ranking
from ranmask.paper.report.names import attack_name, either, several
from ranmask.paper.report.tables import NOTHING, SPREAD, Cell, difference, share, table
from ranmask.paper.run_data import Reproduction

_GLOSSARY = """
    - **Cln**: accuracy before the attack. **Boa**: accuracy after it, the *robust accuracy*. Both
      of all texts, in percent.
    - **Succ**: the attack success rate, of the texts that were right before.
    - **Fixed masks** are the same for every text of a length. A certificate needs them, and they
      are what we deploy. All other RanMASK rows draw new masks for every query, as the paper does.
    - **Not confirmed**: successes that do not hold on redrawn masks. Against random masks an
      attacker asks hundreds of times and stops at the first favourable draw. A dash: no masks are
      drawn.
    - **p**: two-sided sign test over the texts that both methods met, with one seed McNemar's test.
      Significant: p ≤ .05. It covers other texts, not other seeds.

    ~ A robust accuracy says what one search found, and is no bound on what another could find;
    certificates are.
    """


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All reproductions of attack tables; None where there is none."""
    chosen = experiments(run for run in reproductions if run.kind == "empirical")
    blocks = text(_GLOSSARY)
    for experiment in chosen:
        blocks += [Heading(experiment.run.title), *_experiment(experiment)]
    return Section("Accuracy under attack", "attacks", blocks) if chosen else None


def in_short(experiment: Experiment) -> list[Finding]:
    """Which method is the most robust under each attack, here and in the paper."""
    found = []
    for attack, rows in measured(experiment).items():
        one = ranking(rows)
        if one is None:
            continue
        what = "most robust" if len(one.rows) > 1 else "robust accuracy"
        first = next(row for row in one.rows if row.method == one.leaders[0])
        ours = none_named(one) if one.missing else f"{several(one.leaders)}, {_with_spread(first)}"
        paper, said = "", ""
        if one.paper_leader:
            paper = "{}, {:.1f}".format(*one.paper_leader)
            said = "" if one.missing else _verdict(one, one.paper_leader[0])
        found.append(Finding(f"{what} under {attack_name(attack)}", ours, paper, said))
    return found


def _verdict(one: Ranking, its: str) -> str:
    if its in one.leaders:
        said = SAME + (", lead not significant" if one.close else "")
    elif its in one.close:
        said = f"another is first, not significant ({one.close[its]})"
    else:
        said = "contradicts the paper: another is first"
    rank = one.correlation
    return said if rank is None else f"{said}; rank correlation {share(rank, 2)}"


def _with_spread(row: Measured) -> str:
    """Boa, and the spread of its seeds or its interval."""
    mean, low, high = robust_accuracy(row.counts)
    seeds = [mean_robust([one]) for one in row.counts]
    if len(seeds) > 1:
        return f"{mean:.1f} ± {statistics.stdev(seeds):.1f}"
    return f"{mean:.1f} [{low:.1f}–{high:.1f}]"


def _experiment(experiment: Experiment) -> list[Block]:
    run = experiment.run
    main = measured(experiment)
    others = {one.label: measured(experiment, one) for one in experiment.others}
    every = {
        attack: _by_method([*rows, *(row for other in others.values() for row in other[attack])])
        for attack, rows in main.items()
    }
    printed = published().empirical.get(run.paper)
    ran = {attack: rows for attack, rows in every.items() if any(row.counts for row in rows)}
    if not ran:
        return text("No attack is finished, so there is nothing to show.")
    caption = prose(
        "Robust accuracy of each method. Filled: {ours}, with its 95 % interval{paper}.",
        ours="ours, the mean of all seeds" if _several(every) else "this run",
        paper="; hollow: the paper" if printed else "",
    )
    charts = [_dots(attack, rows) for attack, rows in ran.items()]
    return [
        *unlike(experiment, *([printed.base] if printed else [])),
        all_figures(every, main, printed),
        *contradictions(main),
        *order(experiment, printed),
        *_other_settings(experiment, main),
        Picture(f"{run.name}-methods", charts, caption),
        Fold(
            "Intervals, differences, and successes that do not hold on redrawn masks",
            [
                *(text("~ {said}", said=SPREAD) if _several(every) else []),
                *(with_intervals(attack, rows) for attack, rows in ran.items()),
            ],
        ),
    ]


def _by_method(rows: Rows) -> list[Measured]:
    """Each method's rows together, those of other configurations after the first one's."""
    methods = list(dict.fromkeys(row.method for row in rows))
    return sorted(rows, key=lambda row: methods.index(row.method))


def _several(by_attack: ByAttack) -> bool:
    return any(len(row.counts) > 1 for rows in by_attack.values() for row in rows)


def _dots(attack: str, rows: Rows) -> Dots:
    """Robust accuracy of each method: ours with its interval, and the paper's."""
    dots = []
    before = ""
    for row in (row for row in rows if row.counts or not row.configuration):
        ours: tuple[float | None, float | None, float | None] = (None, None, None)
        if row.counts:
            ours = robust_accuracy(row.counts)
        name = f"with {row.configuration}" if row.method == before else row.name
        dots.append(Dot(name, *ours, row.printed.boa if row.printed else None))
        before = row.method
    return Dots(
        title=attack_name(attack),
        description="Robust accuracy of each method, in percent; the table has the figures.",
        x=percent_axis("robust accuracy (Boa), %"),
        rows=dots,
        names=("ours, 95 % interval", "paper"),
    )


def _other_settings(experiment: Experiment, main: ByAttack) -> list[Block]:
    """What other configurations change, over the cells and texts that both have."""
    printed: dict[tuple[str, ...], Printed | None] = {
        (row.method, attack): row.printed for attack, rows in main.items() for row in rows
    }
    rows = [row for one in experiment.others if (row := _changes(experiment.main, one, printed))]
    if not rows:
        return []
    titles = [
        *("<setting", "cells", "higher", "lower", "mean change"),
        *("nearer to the paper's", "<largest change"),
    ]
    note = "Over the cells and texts that both settings have; changes in points of Boa."
    shown = table("Robust accuracy under other settings", titles, rows, [note])
    return [Heading("What other settings change", 4), shown]


def _changes(
    first: Configuration, other: Configuration, printed: Mapping[tuple[str, ...], Printed | None]
) -> list[Cell | str]:
    before, after = (attacks_by_seed(side, "method", "attack") for side in (first, other))
    found = {
        place: (mean_robust(before[place], texts), mean_robust(after[place], texts))
        for place in before.keys() & after.keys()
        if (texts := shared_texts([*before[place], *after[place]]))
    }
    if not found:
        return []
    changes = {place: there - here for place, (here, there) in found.items()}
    known = [(cell.boa, *found[place]) for place in found if (cell := printed.get(place))]
    nearer = sum(abs(there - boa) < abs(here - boa) for boa, here, there in known)
    method, attack = max(sorted(changes), key=lambda place: abs(changes[place]))
    here, there = found[method, attack]
    seeds = [either(len(side[place]) for place in found) for side in (after, before)]
    return [
        Cell(
            other.full, beside="seeds: {}; above: {}".format(*seeds) if seeds != ["1"] * 2 else ""
        ),
        str(len(found)),
        str(sum(change > 0 for change in changes.values())),
        str(sum(change < 0 for change in changes.values())),
        difference(statistics.fmean(changes.values())),
        f"{nearer} of {len(known)}" if known else NOTHING,
        f"{here:.1f} to {there:.1f}: {method} under {attack_name(attack)}",
    ]
