"""Accuracy under attack: our tables with the paper's beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ranmask.paper.published import published
from ranmask.paper.report.attack_tables import all_figures, with_intervals
from ranmask.paper.report.axes import percent_axis
from ranmask.paper.report.beside import SAME, Finding, unlike
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
from ranmask.paper.report.charts import Dot, Dots
from ranmask.paper.report.counting import (
    attacks_by_seed,
    luck,
    mean_robust,
    robust_accuracy,
    robust_on_the_same_texts,
)
from ranmask.paper.report.experiments import Configuration, Experiment, experiments
from ranmask.paper.report.method_order import correlations, in_order, order, verdicts
from ranmask.paper.report.methods import (
    ByAttack,
    Measured,
    Rows,
    complete,
    first_in_the_paper,
    in_both,
    leaders,
    measured,
    not_run,
    ranked,
)
from ranmask.paper.report.names import attack_name, several
from ranmask.paper.report.tables import SPREAD, difference, share
from ranmask.paper.run_data import Reproduction

_GLOSSARY = """
    - **Cln**: accuracy before the attack. **Boa**: accuracy after it, the *robust accuracy*; both
      of all texts.
    - **Succ**: successful attacks, of the texts that were right before, for only those are
      attacked.
    - **Fixed masks** are the same for every text of a length: what a certificate needs, and what we
      deploy. The other rows of RanMASK draw masks afresh for every query, as the paper does.
    - **Gone**: successes that are none when other copies are drawn. Against a vote over random
      copies an attacker asks hundreds of times and stops at the first lucky draw. A dash: nothing
      is drawn, so there is nothing to draw again.

    ~ A robust accuracy says what one search found. It is no bound on what another could find; that
    is what certificates are for. All figures in percent. p: a sign test over the texts that both
    met, of one seed McNemar's; it knows of other texts, not of other seeds.
    """


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All reproductions of attack tables; None where there is none."""
    chosen = experiments(run for run in reproductions if run.kind == "empirical")
    blocks = [*text(_GLOSSARY), *correlations(chosen)]
    for experiment in chosen:
        blocks += [Heading(experiment.run.title), *_experiment(experiment)]
    return Section("Accuracy under attack", "attacks", blocks) if chosen else None


def in_short(experiment: Experiment) -> list[Finding]:
    """Which method is the most robust under each attack, here and in the paper."""
    found = []
    for attack, rows in measured(experiment).items():
        chosen = {row.method: row for row in ranked(rows)}
        if not chosen:
            continue
        under = f"under {attack_name(attack)}"
        what = f"{'most robust' if len(chosen) > 1 else 'still right'} {under}"
        first, perhaps = leaders(rows)
        ours = f"{several(first)}, {_with_spread(chosen[first[0]])}"
        its = first_in_the_paper(rows)
        if its is None:
            found.append(Finding(what, ours))
            continue
        paper = f"{its.method}, {its.printed.boa:.1f}" if its.printed else ""
        if not complete(rows):
            found.append(Finding(what, f"not all run: {not_run(rows)}", paper))
            continue
        said = SAME
        if its.method not in first:
            said, perhaps = "another is first", luck(chosen[first[0]].counts, its.counts)
        said += ", perhaps by luck" if perhaps else ""
        correlation = in_order(in_both(rows))
        rank = "" if correlation is None else f"; rank correlation {share(correlation, 2)}"
        found.append(Finding(what, ours, paper, said + rank))
    return found


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
        ours="ours, the mean of the seeds that there are" if _several(every) else "this run",
        paper="; hollow: the paper" if printed else "",
    )
    charts = [_dots(attack, rows) for attack, rows in ran.items()]
    return [
        *unlike(experiment, *([printed.base] if printed else [])),
        all_figures(every, main, printed),
        *verdicts(main),
        *order(main),
        *_moves(experiment, main),
        Picture(f"{run.name}-methods", charts, caption),
        Fold(
            "Intervals, differences, and successes that vanish",
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


def _moves(experiment: Experiment, main: ByAttack) -> list[Block]:
    """What other configurations change: a sentence each."""
    said = [
        line for other in experiment.others if (line := _moved_by(experiment.main, other, main))
    ]
    heading = Heading("What other settings change", 4)
    return [heading, Bullets(said)] if said else []


def _moved_by(first: Configuration, other: Configuration, main: ByAttack) -> Prose:
    printed_of = {
        (row.method, attack): row.printed for attack, rows in main.items() for row in rows
    }
    found = robust_on_the_same_texts(first, other, "method", "attack")
    both = [
        (attack_name(attack), method, here, there, printed_of.get((method, attack)))
        for (method, attack), (there, here) in found.items()
    ]
    if not both:
        return ()
    counted = [attacks_by_seed(side, "method", "attack") for side in (other, first)]
    seeds = [sorted({len(side[place]) for place in found}) for side in counted]
    gains = [here - there for *_, here, there, _ in both]
    attack, method, here, there, _ = max(both, key=lambda cell: abs(cell[2] - cell[3]))
    printed = [
        abs(here - cell.boa) < abs(there - cell.boa) for *_, here, there, cell in both if cell
    ]
    return prose(
        """**{label}**: robust accuracy is higher in {more} and lower in {less} of {cells}
        that both have, on average by {mean} points, over the same texts{seeds}{nearer}. Furthest:
        {method} under {attack}, {here} instead of {there}.""",
        label=other.full,
        more=sum(gain > 0 for gain in gains),
        less=sum(gain < 0 for gain in gains),
        cells=f"{len(both)} cell{'s' if len(both) > 1 else ''}",
        mean=difference(statistics.fmean(gains)),
        seeds=""
        if seeds == [[1], [1]]
        else f", of {_seeds_of(seeds[0])} beside {_seeds_of(seeds[1])}",
        nearer=f"; nearer to the paper's in {sum(printed)} of {len(printed)}" if printed else "",
        method=method,
        attack=attack,
        here=f"{here:.1f}",
        there=f"{there:.1f}",
    )


def _seeds_of(counts: Sequence[int]) -> str:
    several = f"the mean of {' or '.join(map(str, counts))}"
    return "one seed" if list(counts) == [1] else several
