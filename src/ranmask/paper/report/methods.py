"""Methods under attack, ours and the paper's: the rows of tables, charts and rankings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ranmask.metrics.ranking import rank_correlation
from ranmask.paper.published import Cell as Printed
from ranmask.paper.published import published
from ranmask.paper.report.counting import Attacks, attacks_by_seed, mean_robust, noise, shared_texts
from ranmask.paper.report.experiments import Configuration, Experiment
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


@dataclass(frozen=True)
class Ranking:
    """Methods under one attack by robust accuracy: the paper's, or all where it has no table.

    ``compared``: over the texts that all of them met, where some met more.  ``missing``: methods
    of the paper that were not run; with one missing, none is called the most robust.
    ``paper_leader``: the most robust in the paper, with its figure; None where it has no table.
    """

    rows: Rows
    compared: Rows
    missing: Sequence[str]
    paper_leader: tuple[str, float] | None

    @property
    def leaders(self) -> list[str]:
        """The most robust: several where they tie."""
        best = max(row.robust or 0.0 for row in self.compared)
        return [row.method for row in self.compared if row.robust == best]

    @property
    def close(self) -> dict[str, str]:
        """Methods that the leader is not significantly ahead of, with the p value."""
        counts = {row.method: row.counts for row in self.rows}
        first, *tied = self.leaders
        rivals = [name for name in counts if name not in (first, *tied)]
        return {name: p for name in rivals if (p := noise(counts[first], counts[name]))}

    @property
    def contradiction(self) -> tuple[str, float] | None:
        """The paper's leader, where another method is first here by more than noise."""
        if self.paper_leader is None or self.missing:
            return None
        return None if self.paper_leader[0] in (*self.leaders, *self.close) else self.paper_leader

    @property
    def both(self) -> tuple[list[float], list[float]]:
        """Robust accuracies, ours and the paper's, of the methods that both have."""
        pairs = [(row.robust or 0.0, row.printed.boa) for row in self.compared if row.printed]
        return [ours for ours, _ in pairs], [paper for _, paper in pairs]

    @property
    def correlation(self) -> float | None:
        """Spearman's, of ours with the paper's."""
        return rank_correlation(*self.both)


def ranking(rows: Rows) -> Ranking | None:
    """The ranking of a table's rows; None where nothing was run."""
    printed = {row.method: row.printed.boa for row in rows if row.printed is not None}
    named = [row for row in rows if row.method in printed or not printed]
    ran = [row for row in named if row.counts]
    missing = [row.method for row in named if printed and not row.counts]
    leader = max(printed.items(), key=lambda pair: pair[1], default=None)
    return Ranking(ran, _on_the_same_texts(ran), missing, leader) if ran else None


def _on_the_same_texts(rows: Rows) -> Rows:
    runs = [one for row in rows for one in row.counts]
    shared = shared_texts(runs)
    if not shared or all(one.texts == len(shared) for one in runs):
        return rows
    return [replace(row, counts=tuple(one.over(shared) for one in row.counts)) for row in rows]
