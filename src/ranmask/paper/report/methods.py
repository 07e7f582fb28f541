"""Methods under attack, ours and the paper's: the rows of tables, charts and rankings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ranmask.paper.published import Cell as Printed
from ranmask.paper.published import published
from ranmask.paper.report.counting import (
    Attacks,
    attacks_by_seed,
    luck,
    mean_robust,
    shared_texts,
)
from ranmask.paper.report.experiments import Configuration, Experiment
from ranmask.paper.report.names import several
from ranmask.paper.run_data import Reproduction


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


Rows: TypeAlias = Sequence[Measured]
ByAttack: TypeAlias = dict[str, list[Measured]]
"""Rows of a table, in the same order under every attack."""


def measured(experiment: Experiment, configuration: Configuration | None = None) -> ByAttack:
    """By attack: every method of the paper's table or of ours, the paper's order first.

    Of the first configuration, or of another: then only methods that it has.
    """
    configuration = configuration or experiment.main
    printed = published().empirical.get(experiment.run.paper)
    found = attacks_by_seed(configuration, "method", "attack")
    methods = [*(printed.methods if printed else ()), *_places(configuration.runs, "method")]
    attacks = [*(printed.attacks if printed else ()), *_places(experiment.runs, "attack")]
    if configuration.label:
        had = {method for method, _ in found}
        methods = [method for method in methods if method in had]
    return {
        attack: [
            Measured(
                method,
                found.get((method, attack), ()),
                printed.cell(method, attack) if printed else None,
                configuration.label,
            )
            for method in dict.fromkeys(methods)
        ]
        for attack in dict.fromkeys(attacks)
    }


def _places(runs: Sequence[Reproduction], key: str) -> Iterator[str]:
    """Methods, or attacks, of all steps that have both."""
    for step in (step for run in runs for step in run.steps):
        if step.measures == "attack" and {"method", "attack"} <= step.place.keys():
            yield str(step.place[key])


def complete(rows: Rows) -> bool:
    """Whether every method that the paper has was run: else none is the best."""
    return all(row.robust is not None for row in rows if row.printed is not None)


def ranked(rows: Rows) -> list[Measured]:
    """The methods that one of is called the best: the paper's, or all where it has no table."""
    printed = [row for row in rows if row.printed is not None]
    return [row for row in printed or rows if row.counts]


def not_run(rows: Rows) -> str:
    """Methods of the paper that were not run, and what follows."""
    missing = [row.method for row in rows if row.printed is not None and row.robust is None]
    return f"{', '.join(missing)}, so none is called the best"


def on_the_same_texts(rows: Rows) -> list[Measured]:
    """Rows as they are compared: over the texts that all of them met, where some met more."""
    runs = [one for row in rows for one in row.counts]
    shared = shared_texts(runs)
    if not shared or all(one.texts == len(shared) for one in runs):
        return list(rows)
    return [replace(row, counts=tuple(one.over(shared) for one in row.counts)) for row in rows]


def leaders(rows: Rows) -> tuple[list[str], str]:
    """The most robust of the methods that are ranked, and of whom that may be luck."""
    order = sorted(on_the_same_texts(ranked(rows)), key=lambda row: row.robust or 0.0, reverse=True)
    first = [row.method for row in order if row.robust == order[0].robust]
    counts = {row.method: row.counts for row in rows}
    others = [row.method for row in order if row.method not in first]
    near = [f"{name} ({by})" for name in others if (by := luck(counts[first[0]], counts[name]))]
    said = f". The lead here over {several(near)} may be luck of the texts" if near else ""
    return first, said


def in_both(rows: Rows) -> list[tuple[str, float, float]]:
    """Methods that both have, with our robust accuracy over the same texts and the paper's."""
    return [
        (row.method, row.robust, row.printed.boa)
        for row in on_the_same_texts(ranked(rows))
        if row.robust is not None and row.printed is not None
    ]


def first_in_the_paper(rows: Rows) -> Measured | None:
    """The method that the paper has first; None where it has none."""
    printed = [(row.printed.boa, row) for row in rows if row.printed is not None]
    return max(printed, key=lambda pair: pair[0])[1] if printed else None
