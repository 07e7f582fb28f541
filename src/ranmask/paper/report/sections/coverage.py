"""What of the paper is done, before anything else is said: its own cells, and those of ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ranmask.paper.published import published
from ranmask.paper.report.beside import count, from_to, shortened, sizes, told_texts
from ranmask.paper.report.blocks import Block, Bullets, Paragraph, Section, Span, prose, text
from ranmask.paper.report.experiments import Configuration, Experiment, experiments
from ranmask.paper.report.names import ATTACKS, CORPORA, rate_name
from ranmask.paper.report.tables import Cell, quiet, table
from ranmask.paper.run_data import Reproduction, Step, model_name

_INTRODUCTION = """
    A cell is a figure that the paper prints or describes: a method under an attack, a masking
    rate, or a single number. **{done} of {cells}** are filled: {measured} measured, {computed}
    recomputed from the paper's own numbers. Bold: fewer cells than the paper, or fewer texts or
    seeds in some of them.
    """


@dataclass(frozen=True)
class Covered:
    """A table or figure of the paper: its cells, and our finished steps of each.

    ``base``, ``texts``, ``seeds``: the paper's, of each cell, where it says so; ``seem``: of how
    many texts it seems to be instead.  ``experiments``: ours; none where nothing of it was run.
    ``cells``: for each its steps in all of them, with the configuration and the seed; ``why``: why
    it has none.  Of what follows from the paper's numbers alone all is done where it was asked for.
    """

    title: str
    base: str
    experiments: Sequence[Experiment]
    cells: Mapping[str, Sequence[tuple[Configuration, str, Step]]]
    computed: bool = False
    texts: int | None = None
    seem: int | None = None
    seeds: int | None = None
    why: Mapping[str, str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Cells that are filled."""
        if self.computed:
            return len(self.cells) if self.experiments else 0
        return sum(map(bool, self.cells.values()))

    @property
    def open(self) -> list[str]:
        """Cells that are not."""
        return [] if self.computed else [cell for cell, steps in self.cells.items() if not steps]


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The table, and what is open; None where no run is of a table or figure of the paper."""
    found = covered(reproductions)
    if not found:
        return None
    blocks: list[Block] = [*text(_INTRODUCTION, **total(found))]
    blocks.append(
        table(
            "Coverage of the paper's tables and figures",
            ["<table or figure", "filled", "<texts", "<seeds", "<base model, and other settings"],
            [_row(one) for one in found],
        )
    )
    left = [line for one in found for line in _open(one)]
    if left:
        heading = Paragraph(prose("**Not filled**, and why:"))
        blocks += [heading, Bullets([(Span(line),) for line in left])]
    return Section("Coverage", "coverage", blocks)


def total(found: Iterable[Covered]) -> dict[str, int]:
    """Cells in all, and those that are filled: measured, or computed from the paper's numbers."""
    done = {True: 0, False: 0}
    cells = 0
    for one in found:
        done[one.computed] += one.done
        cells += len(one.cells)
    sums = {"measured": done[False], "computed": done[True]}
    return {"done": sum(done.values()), "cells": cells, **sums}


def covered(reproductions: Sequence[Reproduction]) -> list[Covered]:
    """The whole paper where several runs are of it, else what the one run is of."""
    ours = experiments(run for run in reproductions if run.paper and run.size != "smoke")
    whole = [one for one in _paper(ours) if len(ours) > 1 or one.experiments]
    return whole if ours else []


def _row(one: Covered) -> list[Cell | str]:
    done = Cell(f"{one.done} of {len(one.cells)}", strong=one.done < len(one.cells))
    if one.computed or not one.experiments:
        return [one.title, done, *[quiet("–")] * 3]
    # Of each cell, the run of most texts: other settings may have fewer.
    by_cell = [max(sizes(step for *_, step in found), default=0) for found in one.cells.values()]
    most = set(by_cell) - {0}
    least = one.seem or one.texts
    fewer = least is not None and min(most, default=least) < least
    its = told_texts(one.texts, one.seem) if one.texts and one.seem else one.texts
    texts = Cell(count(from_to(most)) if most else "–", beside=_paper_has(its), strong=fewer)
    seeds = Cell(_seeds(one), beside=_paper_has(one.seeds) if one.seeds else "")
    seeds = replace(seeds, strong=bool(one.seeds) and seeds.text != str(one.seeds))
    return [one.title, done, texts, seeds, Cell(_bases(one), beside=_paper_has(one.base))]


def _paper_has(value: object) -> str:
    return f"paper: {count(value or 'not stated')}"


def _seeds(one: Covered) -> str:
    """Of how many seeds filled cells are, in the configuration that has most."""
    counts = []
    for found in one.cells.values():
        by_label: dict[str, set[str]] = {}
        for configuration, seed, _ in found:
            by_label.setdefault(configuration.label, set()).add(seed)
        counts += [max(map(len, by_label.values()))] if by_label else []
    if not counts or min(counts) == max(counts):
        return str(max(counts, default=0))
    most = counts.count(max(counts))
    return f"{min(counts)} to {max(counts)} ({max(counts)} in {_cells(most)})"


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _bases(one: Covered) -> str:
    """The base, and the other configurations with how many cells each has."""
    bases = dict.fromkeys(
        model_name(str(experiment.run.settings.get("base", "not stated")))
        for experiment in one.experiments
    )
    others = dict.fromkeys(
        other.label for experiment in one.experiments for other in experiment.others
    )
    counted = []
    for label in others:
        cells = sum(
            any(configuration.label == label for configuration, _, _ in found)
            for found in one.cells.values()
        )
        counted += [f"{label} ({_cells(cells)})"] if cells else []
    return "; ".join([*bases, *counted])


def _open(one: Covered) -> Iterator[str]:
    """A line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for cell in one.open:
        by_reason.setdefault(one.why.get(cell, "not run"), []).append(cell)
    for why, cells in by_reason.items():
        yield f"{one.title}, {len(cells)}: {'; '.join(cells)}: {why}"


def _reason(mine: Sequence[Experiment], place: Mapping[str, Any]) -> str | None:
    """What the step of a cell ended with."""
    errors = (
        step.error
        for experiment in mine
        for run in experiment.runs
        for step in run.missing
        if step.error and place.items() <= step.place.items()
    )
    error = next(errors, None)
    return None if error is None else shortened(error)


# -- the paper's cells ---------------------------------------------------------------------------


def _paper(found: Sequence[Experiment]) -> Iterator[Covered]:
    def of(kind: str, label: str | None = None) -> list[Experiment]:
        return [one for one in found if one.run.kind == kind and label in (None, one.run.paper)]

    stated = int(published().settings["texts"])

    def made(
        title: str,
        base: str,
        mine: Sequence[Experiment],
        cells: Mapping[str, dict[str, Any]],
        texts: int | None = stated,
        seem: int | None = None,
        seeds: int | None = None,
    ) -> Covered:
        done = [
            (configuration, seed, step)
            for experiment in mine
            for configuration in experiment.configurations
            for seed, step, _ in configuration.finished(object)
            if step.result is not None
        ]
        filled = {
            name: [entry for entry in done if place.items() <= entry[2].place.items()]
            for name, place in cells.items()
        }
        reasons = {name: _reason(mine, place) for name, place in cells.items()}
        why = {name: reason for name, reason in reasons.items() if reason}
        return Covered(title, base, mine, filled, texts=texts, seem=seem, seeds=seeds, why=why)

    kinds = {"characters": "deepwordbug", "words": "textfooler"}
    examples = {f"examples with {what} changed": {"attack": by} for what, by in kinds.items()}
    sentences = len(published().adversarial)
    yield made("Adversarial examples", "BERT", of("adversarial"), examples, sentences)
    for printed in published().certified.values():
        rates = {rate_name(row.rate): {"rate": row.rate} for row in printed.rows}
        title = f"Certified robustness, {CORPORA[printed.corpus]}"
        yield made(title, printed.base, of("certified", printed.name), rates)
    for table_ in published().empirical.values():
        cells = {
            f"{method} under {ATTACKS[attack]}": {"method": method, "attack": attack}
            for method, attack in table_.cells
        }
        beside = "Beside SAFER" if table_.name == "tb-safer" else "Under attack"
        title = f"{beside}, {CORPORA[table_.corpus]}"
        mine = of("empirical", table_.name)
        yield made(title, table_.base, mine, cells, seem=table_.texts)
    bounds = {CORPORA[corpus]: {"corpus": corpus} for corpus in published().beta["below"]}
    yield made("Beta and p_c (figure)", "", of("beta", "fig:js-divergence"), bounds, None)
    cells = {
        f"{rate} %, {ensemble}, {ATTACKS[attack]}": {
            "rate": rate / 100,
            "ensemble": ensemble,
            "attack": attack,
        }
        for rate in published().rates["named"]
        for ensemble in ("logit", "vote")
        for attack in ATTACKS
    }
    runs = int(published().rates["runs"])
    mine = of("rates", "fig:rate_ablation")
    yield made("The masking rate (figure)", "", mine, cells, seeds=runs)
    entropies = {method: {"method": method} for method in published().entropy["mean"]}
    yield made("Entropies (footnote)", "", of("entropy"), entropies)
    for title, name, claims in (
        ("Averages in the text", "headline-averages", published().claims),
        ("Risk probability", "risk-probability", published().risk),
    ):
        mine = [one for one in found if one.run.name == name]
        yield Covered(title, "", mine, {claim: [] for claim in claims}, computed=True)
