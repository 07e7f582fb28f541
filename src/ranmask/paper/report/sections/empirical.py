"""Accuracy under attack: our tables with the paper's beside them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

from ranmask.paper.published import Cell as Printed
from ranmask.paper.published import EmpiricalTable, published
from ranmask.paper.report.axes import percent_axis
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
from ranmask.paper.report.charts import Dot, Dots
from ranmask.paper.report.counting import (
    ATTACKS,
    Attacks,
    attacks_by_seed,
    luck,
    maybe_luck,
    mean_robust,
    robust_accuracy,
    robust_on_the_same_texts,
    shared_texts,
)
from ranmask.paper.report.experiments import Configuration, Experiment, experiments
from ranmask.paper.report.tables import (
    NOT_RUN,
    NOTHING,
    SPREAD,
    Cell,
    Table,
    difference,
    percent,
    seeds_cell,
    share,
    table,
)
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


@dataclass(frozen=True)
class Measured:
    """One method under one attack: our counts of each seed, and the paper's figures.

    ``configuration``: the label of the one that it was measured in.
    """

    method: str
    counts: tuple[Attacks, ...]
    printed: Printed | None
    configuration: str = ""

    @property
    def robust(self) -> float | None:
        """Boa in percent, the mean of all seeds; None where nothing was measured."""
        return mean_robust(self.counts) if self.counts else None

    @property
    def name(self) -> str:
        """The row's name: another configuration is a row of its own."""
        return f"{self.method}, {self.configuration}" if self.configuration else self.method


ByAttack: TypeAlias = dict[str, list[Measured]]
"""Rows of a table, in the same order under every attack."""


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All reproductions of attack tables; None where there is none."""
    chosen = experiments(run for run in reproductions if run.kind == "empirical")
    blocks = [*text(_GLOSSARY), *_correlations(chosen)]
    for experiment in chosen:
        blocks += [Heading(experiment.run.title), *_experiment(experiment)]
    return Section("Accuracy under attack", "attacks", blocks) if chosen else None


def measured(experiment: Experiment) -> ByAttack:
    """By attack: every method of the paper's table or of ours, the paper's order first."""
    return _rows(experiment, experiment.main)


def _rows(experiment: Experiment, configuration: Configuration) -> ByAttack:
    """The rows of one configuration; of another than the first only methods that it has."""
    printed = published().empirical.get(experiment.run.paper)
    found = attacks_by_seed(configuration, "method", "attack")
    methods: dict[str, None] = dict.fromkeys(printed.methods if printed else ())
    methods |= dict.fromkeys(_places(configuration.runs, "method"))
    attacks: dict[str, None] = dict.fromkeys(printed.attacks if printed else ())
    attacks |= dict.fromkeys(_places(experiment.runs, "attack"))
    if configuration.label:
        had = {method for method, _ in found}
        methods = {method: None for method in methods if method in had}
    return {
        attack: [
            Measured(
                method,
                found.get((method, attack), ()),
                printed.cell(method, attack) if printed else None,
                configuration.label,
            )
            for method in methods
        ]
        for attack in attacks
    }


def _places(runs: Sequence[Reproduction], key: str) -> Iterator[str]:
    """Methods, or attacks, of all steps that have both."""
    for step in (step for run in runs for step in run.steps):
        if step.measures == "attack" and {"method", "attack"} <= step.place.keys():
            yield str(step.place[key])


def complete(rows: Sequence[Measured]) -> bool:
    """Whether every method that the paper has was run: else none is the best."""
    return all(row.robust is not None for row in rows if row.printed is not None)


def ranked(rows: Sequence[Measured]) -> list[Measured]:
    """The methods that one of is called the best: the paper's, or all where it has no table."""
    printed = [row for row in rows if row.printed is not None]
    return [row for row in printed or rows if row.counts]


def on_the_same_texts(rows: Sequence[Measured]) -> list[Measured]:
    """Rows as they are compared: over the texts that all of them met, where some met more."""
    runs = [one for row in rows for one in row.counts]
    shared = shared_texts(runs)
    if not shared or all(one.texts == len(shared) for one in runs):
        return list(rows)
    return [replace(row, counts=tuple(one.over(shared) for one in row.counts)) for row in rows]


def leaders(rows: Sequence[Measured]) -> tuple[list[str], str]:
    """The most robust of the methods that are ranked, and of whom that may be luck."""
    order = sorted(on_the_same_texts(ranked(rows)), key=lambda row: row.robust or 0.0, reverse=True)
    first = [row.method for row in order if row.robust == order[0].robust]
    counts = {row.method: row.counts for row in rows}
    others = [row.method for row in order if row.method not in first]
    near = [f"{name} ({by})" for name in others if (by := luck(counts[first[0]], counts[name]))]
    said = f". The lead here over {_and(near)} may be luck of the texts" if near else ""
    return first, said


def _and(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def in_short(experiment: Experiment) -> list[Finding]:
    """Which method is the most robust under each attack, here and in the paper."""
    found = []
    for attack, rows in measured(experiment).items():
        chosen = {row.method: row for row in ranked(rows)}
        if not chosen:
            continue
        under = f"under {ATTACKS.get(attack, attack)}"
        what = f"{'most robust' if len(chosen) > 1 else 'still right'} {under}"
        first, perhaps = leaders(rows)
        ours = f"{_and(first)}, {_with_spread(chosen[first[0]])}"
        its = _first_in_the_paper(rows)
        if its is None:
            found.append(Finding(what, ours))
            continue
        paper = f"{its.method}, {its.printed.boa:.1f}" if its.printed else ""
        if not complete(rows):
            found.append(Finding(what, f"not all run: {_listed(rows)}", paper))
            continue
        said = SAME
        if its.method not in first:
            said, perhaps = "another is first", luck(chosen[first[0]].counts, its.counts)
        said += ", perhaps by luck" if perhaps else ""
        correlation = _correlation_of(_both(rows))
        rank = "" if correlation is None else f"; rank correlation {share(correlation, 2)}"
        found.append(Finding(what, ours, paper, said + rank))
    return found


def _first_in_the_paper(rows: Sequence[Measured]) -> Measured | None:
    printed = [(row.printed.boa, row) for row in rows if row.printed is not None]
    return max(printed, key=lambda pair: pair[0])[1] if printed else None


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
    others = {one.label: _rows(experiment, one) for one in experiment.others}
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
        _whole_table(every, main, printed),
        *_verdict(main),
        *_order(main),
        *_moves(experiment, main),
        Picture(f"{run.name}-methods", charts, caption),
        Fold(
            "Intervals, differences, and successes that vanish",
            [
                *(text("~ {said}", said=SPREAD) if _several(every) else []),
                *(_details(attack, rows) for attack, rows in ran.items()),
            ],
        ),
    ]


def _verdict(main: ByAttack) -> list[Block]:
    faults = [found for attack, rows in main.items() if (found := _first(attack, rows))]
    sure, perhaps = ([line for line, luck in faults if bool(luck) is one] for one in (False, True))
    return verdict(sure, perhaps)


def _by_method(rows: Sequence[Measured]) -> list[Measured]:
    """Each method's rows together, those of other configurations after the first one's."""
    methods = list(dict.fromkeys(row.method for row in rows))
    return sorted(rows, key=lambda row: methods.index(row.method))


def _several(by_attack: ByAttack) -> bool:
    return any(len(row.counts) > 1 for rows in by_attack.values() for row in rows)


def _dots(attack: str, rows: Sequence[Measured]) -> Dots:
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
        title=ATTACKS.get(attack, attack),
        description="Robust accuracy of each method, in percent; the table has the figures.",
        x=percent_axis("robust accuracy (Boa), %"),
        rows=dots,
        names=("ours, 95 % interval", "paper"),
    )


# -- the order of the methods ------------------------------------------------------------------


def _order(by_attack: dict[str, list[Measured]]) -> list[Block]:
    """Sentences on where the order of the methods is the paper's."""
    said = [line for attack, rows in by_attack.items() if (line := _order_line(attack, rows))]
    if not said:
        return []
    quiet = """~ Neighbours may stand in their order by luck: `ranmask compare` tests two methods on
        the same texts."""
    heading = Heading("Is the order of the methods the paper's?", 4)
    return [heading, Bullets(said), *text(quiet)]


def _both(rows: Sequence[Measured]) -> list[tuple[str, float, float]]:
    """Methods that both have, with our robust accuracy over the same texts and the paper's."""
    return [
        (row.method, row.robust, row.printed.boa)
        for row in on_the_same_texts([row for row in rows if row.printed is not None])
        if row.robust is not None and row.printed is not None
    ]


def _correlations(found: Sequence[Experiment]) -> list[Block]:
    """How far the order of the methods is the paper's, of every table and attack at a glance."""
    rows: list[Sequence[Cell | str]] = []
    for experiment in found:
        printed = published().empirical.get(experiment.run.paper)
        if printed is None:
            continue
        for configuration in experiment.configurations:
            cells = [
                _correlation(_both(rows), len(printed.methods))
                for attack, rows in _rows(experiment, configuration).items()
                if attack in printed.attacks
            ]
            if not configuration.label:
                rows.append((experiment.run.title, *cells))
            elif any(cell is not NOTHING for cell in cells):
                rows.append((f"{experiment.run.title}, {configuration.label}", *cells))
    titles = ["<table", *ATTACKS.values()]
    caption = "Rank correlation of the methods' robust accuracies with the paper's"
    return [table(caption, titles, rows)] if len(rows) > 1 else []


def _correlation_of(both: Sequence[tuple[str, float, float]]) -> float | None:
    return rank_correlation([one for _, one, _ in both], [one for *_, one in both])


def _correlation(both: Sequence[tuple[str, float, float]], methods: int) -> Cell:
    found = _correlation_of(both)
    of = f"{len(both)} of {methods} methods"
    return NOTHING if found is None else Cell(share(found, 2), beside=of)


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
        (ATTACKS.get(attack, attack), method, here, there, printed_of.get((method, attack)))
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


def _first(attack: str, rows: Sequence[Measured]) -> tuple[str, str] | None:
    """Who is first here and not in the paper, and whether that may be luck.

    None where that agrees, or a method is missing.
    """
    both = _both(rows)
    if len(both) < 2 or not complete(rows):
        return None
    ours = max(both, key=lambda one: one[1])
    theirs = max(both, key=lambda one: one[2])
    if ours[1] == theirs[1]:
        return None
    counts = {row.method: row.counts for row in rows}
    perhaps = luck(counts[ours[0]], counts[theirs[0]])
    said = (
        f"Under {ATTACKS.get(attack, attack)} {ours[0]} is first with {ours[1]:.1f} %, and "
        f"{theirs[0]}, the paper's first ({theirs[2]:.1f} %), has {theirs[1]:.1f}"
        f"{maybe_luck(perhaps)}."
    )
    return said, perhaps


def _order_line(attack: str, rows: Sequence[Measured]) -> Prose:
    both = _both(rows)
    if len(both) < 2:
        return ()
    methods, ours, paper = zip(*both, strict=True)
    first, perhaps = leaders(rows)
    its = _first_in_the_paper(rows)
    top = f"{_and(first)} here, {its.method if its else ''} in the paper"
    if its is not None and [its.method] == first:
        top = f"{its.method} in both"
    correlation = rank_correlation(ours, paper)
    rank = "" if correlation is None else f", rank correlation {share(correlation, 2)}"
    same, compared = pairs_in_order(ours, paper)
    ties = math.comb(len(both), 2) - compared
    pairs = "pair" if compared == 1 else "pairs"
    verb = "is" if 1 in (same, compared) else "are"
    said = f"{same} of {compared} {pairs} {verb} in the paper's order{rank}"
    return prose(
        "**{attack}**, {methods} methods{texts}: {said}{ties}. {top}{moved}. {levels}.",
        attack=ATTACKS.get(attack, attack),
        methods=len(both),
        texts=_over_which(rows),
        said=said if compared else "no pair can be compared",
        ties=f"; in {ties} more, the two are equal in one of them" if ties else "",
        top=f"Most robust: {top}{perhaps}" if complete(rows) else f"Not run: {_listed(rows)}",
        moved=_moved(methods, ours, paper),
        levels=_levels(rows),
    )


def _over_which(rows: Sequence[Measured]) -> str:
    """Over which texts methods are compared, where some met more."""
    counts = {one.texts for row in ranked(rows) for one in row.counts}
    if len(counts) < 2:
        return ""
    compared = [one.texts for row in on_the_same_texts(ranked(rows)) for one in row.counts]
    return f" over the {min(compared):,} texts that all met"


def _listed(rows: Sequence[Measured]) -> str:
    missing = [row.method for row in rows if row.printed is not None and row.robust is None]
    return f"{', '.join(missing)}, so none is called the best"


def _moved(methods: Sequence[str], ours: Sequence[float], paper: Sequence[float]) -> str:
    """The methods that are furthest from their places in the paper's order, where any is."""
    moves = [abs(here - there) for here, there in zip(_ranks(ours), _ranks(paper), strict=True)]
    if not max(moves):
        return ""
    if max(moves) <= 1:
        return ". None is further than a place from the paper's"
    far = [method for method, move in zip(methods, moves, strict=True) if move == max(moves)]
    its = "its place" if len(far) == 1 else "their places"
    return f". Furthest from {its} in the paper: {_and(far)}, by {max(moves):g}"


def _levels(rows: Sequence[Measured]) -> str:
    """By how much robust accuracies are not the paper's: the two ends."""
    gains = [
        (row.robust - row.printed.boa, row.method)
        for row in rows
        if row.robust is not None and row.printed is not None
    ]
    (low, lowest), (high, highest) = min(gains), max(gains)
    return (
        f"Ours less the paper's: {difference(low)} ({lowest}) to {difference(high)} ({highest}) "
        "points"
    )


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1 up, ties sharing theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's, ties sharing their ranks; None below three pairs, or where all are alike.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return statistics.correlation(_ranks(first), _ranks(second))


def pairs_in_order(first: Sequence[float], second: Sequence[float]) -> tuple[int, int]:
    """Pairs that both lists put in the same order, of those that neither ties.

    >>> pairs_in_order([1, 2, 3], [1, 3, 2])
    (2, 3)
    """
    pairs = combinations(zip(first, second, strict=True), 2)
    same = [(a < c) == (b < d) for (a, b), (c, d) in pairs if a != c and b != d]
    return sum(same), len(same)


# -- tables ------------------------------------------------------------------------------------


_Parts: TypeAlias = list[tuple[int, int]]
"""A part and a total for each seed."""


def _shares(seeds: Sequence[Attacks]) -> tuple[_Parts, _Parts, _Parts]:
    """Cln, Boa and Succ, each as parts of wholes; of Succ only where something was attacked."""
    return (
        [(one.attempted, one.texts) for one in seeds],
        [(one.held, one.texts) for one in seeds],
        [(one.succeeded, one.attempted) for one in seeds if one.attempted],
    )


def _mean(parts: _Parts) -> float:
    return float(statistics.mean(Fraction(*pair) for pair in parts))


def _whole_table(by_attack: ByAttack, main: ByAttack, printed: EmpiricalTable | None) -> Table:
    best = {attack: _best(rows) for attack, rows in main.items()}
    rows = [
        (
            under[0].name,
            *(
                cell
                for attack, row in zip(by_attack, under, strict=True)
                for cell in _three(row, best[attack])
            ),
        )
        for under in zip(*by_attack.values(), strict=True)
    ]
    texts = [one.texts for some in by_attack.values() for row in some for one in row.counts]
    size, over = f"{min(texts):,} texts each. ", ""
    if min(texts) != max(texts):
        size = f"{min(texts):,} to {max(texts):,} texts. "
        over = ", compared over the texts that all of them met (see the folded tables)"
    beside = f"Beside ours: the paper's figure ({printed.base}). " if printed else ""
    bold = ""
    if any(method for attack in best.values() for method in attack):
        of = "of the paper's methods, under attacks that all of them met" if printed else "of all"
        bold = f"Bold: the best {of}{over}. "
    return table(
        "Cln, Boa and Succ, in percent",
        ["<method", *((ATTACKS.get(name, name), ("Cln", "Boa", "Succ")) for name in by_attack)],
        rows,
        [f"{beside}{bold}{size}{_seeds(by_attack)}Intervals are in the folded tables below."],
    )


def _seeds(by_attack: ByAttack) -> str:
    """Of how many seeds cells are the mean, where any are."""
    counts = sorted({len(row.counts) for rows in by_attack.values() for row in rows} - {0, 1})
    if not counts:
        return ""
    return (
        f"Rows with ±: means of {' or '.join(map(str, counts))} seeds, and ± the sample standard "
        "deviation of Boa; without: one seed. "
    )


_Best: TypeAlias = tuple[set[str], set[str], set[str]]
"""The methods with the best Cln, Boa and Succ."""


def _best(rows: Sequence[Measured]) -> _Best:
    """Of those that were run, over the same texts; one alone is not the best of anything."""
    best: _Best = set(), set(), set()
    ran = on_the_same_texts(ranked(rows))
    if len(ran) < 2 or not complete(rows):
        return best
    for place, (found, choose) in enumerate(zip(best, (max, max, min), strict=True)):
        means = {row.method: _mean(parts) for row in ran if (parts := _shares(row.counts)[place])}
        found |= {method for method in means if means[method] == choose(means.values())}
    return best


def _three(row: Measured, best: _Best) -> list[Cell]:
    paper = ["", "", ""]
    if row.printed is not None:
        paper = [f"{value:.1f}" for value in (row.printed.cln, row.printed.boa, row.printed.succ)]
    if not row.counts:
        empty = "–" if row.configuration else "not run"
        return [Cell(empty, beside=value, quiet=True) for value in paper]
    shares = _shares(row.counts)
    robust = [Fraction(*pair) for pair in shares[1]]
    spread = f" ± {percent(statistics.stdev(robust))}" if len(robust) > 1 else ""
    return [
        Cell(
            percent(_mean(parts)) + (spread if place == 1 else "") if parts else "–",
            beside=paper[place],
            strong=not row.configuration and row.method in best[place],
        )
        for place, parts in enumerate(shares)
    ]


def _details(attack: str, rows: Sequence[Measured]) -> Table:
    """Every method with its intervals; columns that say nothing here are left out."""
    met = shared_texts([one for row in rows for one in row.counts])
    differ = bool(met) and any(one.texts > len(met) for row in rows for one in row.counts)
    printed = any(row.printed is not None for row in rows)
    titles = ["<method", "texts", "Cln", "Boa"]
    titles += [f"Boa, the {len(met):,} texts of all"] if differ else []
    titles += ["Boa less paper's"] if printed else []
    titles += ["Succ", "gone"]
    shown: list[Sequence[Cell | str]] = []
    for row in (row for row in rows if row.counts or not row.configuration):
        cells = [NOT_RUN] * (len(titles) - 1)
        if row.counts:
            cells = _detail(row, met if differ else None, printed)
        shown.append((row.name, *cells))
    return table(ATTACKS.get(attack, attack), titles, shown)


def _detail(row: Measured, met: Sequence[int] | None, printed: bool) -> list[Cell]:
    seeds = row.counts
    moved = gone = NOTHING
    if row.printed is not None and row.robust is not None:
        moved = Cell(difference(row.robust - row.printed.boa))
    rechecked = [(one.vanished, one.rechecked) for one in seeds if one.rechecked]
    if rechecked:
        gone = seeds_cell(rechecked, percent)
    errors = sum(one.errors for one in seeds)
    texts = " or ".join(f"{count:,}" for count in sorted({one.texts for one in seeds}))
    texts += f" (+{errors} errors)" if errors else ""
    of = f"{len(seeds)} seeds" if len(seeds) > 1 else ""
    clean, robust, success = (seeds_cell(parts, percent) for parts in _shares(seeds))
    of_all = [] if met is None else [Cell(f"{mean_robust(seeds, met):.1f}")]
    less = [moved] if printed else []
    return [Cell(texts, interval=of), clean, robust, *of_all, *less, success, gone]
