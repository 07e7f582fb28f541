"""The order of the methods under attack: is it the paper's, and who is first?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ranmask.metrics.ranking import pairs_in_order, rank_correlation, ranks
from ranmask.paper.published import published
from ranmask.paper.report.beside import verdict
from ranmask.paper.report.blocks import Block, Bullets, Heading, Prose, prose, text
from ranmask.paper.report.counting import luck, maybe_luck
from ranmask.paper.report.experiments import Experiment
from ranmask.paper.report.methods import (
    ByAttack,
    Rows,
    complete,
    first_in_the_paper,
    in_both,
    leaders,
    measured,
    not_run,
    on_the_same_texts,
    ranked,
)
from ranmask.paper.report.names import ATTACKS, attack_name, several
from ranmask.paper.report.tables import NOTHING, Cell, difference, share, table


def verdicts(main: ByAttack) -> list[Block]:
    """Who is first here and not in the paper; where that may be luck, quieter."""
    faults = [found for attack, rows in main.items() if (found := _first(attack, rows))]
    sure, perhaps = ([line for line, luck in faults if bool(luck) is one] for one in (False, True))
    return verdict(sure, perhaps)


def _first(attack: str, rows: Rows) -> tuple[str, str] | None:
    """Who is first here and not in the paper, and whether that may be luck.

    None where that agrees, or a method is missing.
    """
    both = in_both(rows)
    if len(both) < 2 or not complete(rows):
        return None
    ours = max(both, key=lambda one: one[1])
    theirs = max(both, key=lambda one: one[2])
    if ours[1] == theirs[1]:
        return None
    counts = {row.method: row.counts for row in rows}
    perhaps = luck(counts[ours[0]], counts[theirs[0]])
    said = (
        f"Under {attack_name(attack)} {ours[0]} is first with {ours[1]:.1f} %, and "
        f"{theirs[0]}, the paper's first ({theirs[2]:.1f} %), has {theirs[1]:.1f}"
        f"{maybe_luck(perhaps)}."
    )
    return said, perhaps


def order(by_attack: ByAttack) -> list[Block]:
    """Sentences on where the order of the methods is the paper's."""
    said = [line for attack, rows in by_attack.items() if (line := _order_line(attack, rows))]
    if not said:
        return []
    quiet = """~ Neighbours may stand in their order by luck: `ranmask compare` tests two methods on
        the same texts."""
    heading = Heading("Is the order of the methods the paper's?", 4)
    return [heading, Bullets(said), *text(quiet)]


def _order_line(attack: str, rows: Rows) -> Prose:
    both = in_both(rows)
    if len(both) < 2:
        return ()
    methods, ours, paper = zip(*both, strict=True)
    first, perhaps = leaders(rows)
    its = first_in_the_paper(rows)
    top = f"{several(first)} here, {its.method if its else ''} in the paper"
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
        attack=attack_name(attack),
        methods=len(both),
        texts=_over_which(rows),
        said=said if compared else "no pair can be compared",
        ties=f"; in {ties} more, the two are equal in one of them" if ties else "",
        top=f"Most robust: {top}{perhaps}" if complete(rows) else f"Not run: {not_run(rows)}",
        moved=_moved(methods, ours, paper),
        levels=_levels(rows),
    )


def _over_which(rows: Rows) -> str:
    """Over which texts methods are compared, where some met more."""
    counts = {one.texts for row in ranked(rows) for one in row.counts}
    if len(counts) < 2:
        return ""
    compared = [one.texts for row in on_the_same_texts(ranked(rows)) for one in row.counts]
    return f" over the {min(compared):,} texts that all met"


def _moved(methods: Sequence[str], ours: Sequence[float], paper: Sequence[float]) -> str:
    """The methods that are furthest from their places in the paper's order, where any is."""
    moves = [abs(here - there) for here, there in zip(ranks(ours), ranks(paper), strict=True)]
    if not max(moves):
        return ""
    if max(moves) <= 1:
        return ". None is further than a place from the paper's"
    far = [method for method, move in zip(methods, moves, strict=True) if move == max(moves)]
    its = "its place" if len(far) == 1 else "their places"
    return f". Furthest from {its} in the paper: {several(far)}, by {max(moves):g}"


def _levels(rows: Rows) -> str:
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


def correlations(found: Sequence[Experiment]) -> list[Block]:
    """How far the order of the methods is the paper's, of every table and attack at a glance."""
    rows: list[Sequence[Cell | str]] = []
    for experiment in found:
        printed = published().empirical.get(experiment.run.paper)
        if printed is None:
            continue
        for configuration in experiment.configurations:
            cells = [
                _correlation(in_both(rows), len(printed.methods))
                for attack, rows in measured(experiment, configuration).items()
                if attack in printed.attacks
            ]
            if not configuration.label:
                rows.append((experiment.run.title, *cells))
            elif any(cell is not NOTHING for cell in cells):
                rows.append((f"{experiment.run.title}, {configuration.label}", *cells))
    titles = ["<table", *ATTACKS.values()]
    caption = "Rank correlation of the methods' robust accuracies with the paper's"
    return [table(caption, titles, rows)] if len(rows) > 1 else []


def in_order(both: Sequence[tuple[str, float, float]]) -> float | None:
    """The rank correlation of ours with the paper's."""
    return rank_correlation([one for _, one, _ in both], [one for *_, one in both])


def _correlation(both: Sequence[tuple[str, float, float]], methods: int) -> Cell:
    found = in_order(both)
    of = f"{len(both)} of {methods} methods"
    return NOTHING if found is None else Cell(share(found, 2), beside=of)
