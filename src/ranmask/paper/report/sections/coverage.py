"""What of the paper is done, before anything else is said: its own cells, and those of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranmask.paper.published import published
from ranmask.paper.report.blocks import Block, Bullets, Paragraph, Section, Span, prose, text
from ranmask.paper.report.counting import ATTACKS, CORPORA, rate_name
from ranmask.paper.report.experiments import Configuration, Experiment, experiments
from ranmask.paper.report.tables import Cell, quiet, table
from ranmask.paper.run_data import Reproduction, Step, Trained, model_name

_INTRODUCTION = """
    The cells that the paper prints, or speaks of, and how many of them are filled here. A cell is
    a method under an attack, a masking rate, or a single figure. **{done} of {cells}** are filled.
    Bold: fewer cells than the paper has, or fewer texts in some of them.
    """
_MASKS = {"certified": "masks", "beta": "masks"}  # else as many as where a classifier is attacked
_NOT_STATED = "not stated"


@dataclass(frozen=True)
class Covered:
    """A table or figure of the paper: its cells, and our finished steps of each.

    ``base``: the paper's.  ``experiments``: ours; none where nothing of it was run.  ``cells``:
    for each its steps in all of them, with the configuration and the seed.  Of what follows from
    the paper's numbers alone all is done where it was asked for.  ``texts``: the paper's, of each
    cell, where it says so.
    """

    title: str
    base: str
    experiments: Sequence[Experiment]
    cells: Mapping[str, Sequence[tuple[Configuration, str, Step]]]
    computed: bool = False
    texts: int | None = None

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
            "The paper's tables and figures, and what of them is here",
            [
                *("<of the paper", "cells", "filled", "texts", "paper's texts", "seeds"),
                *("<base", "<paper's base"),
            ],
            [_row(one) for one in found],
        )
    )
    left = [line for one in found for line in _open(one)]
    if left:
        heading = Paragraph(prose("**Open**, and why:"))
        blocks += [heading, Bullets([(Span(line),) for line in left])]
    return Section("What is done, and what is not", "coverage", blocks)


def total(found: Iterable[Covered]) -> dict[str, int]:
    """Cells in all, and those that are filled."""
    pairs = [(one.done, len(one.cells)) for one in found]
    return {"done": sum(done for done, _ in pairs), "cells": sum(cells for _, cells in pairs)}


def covered(reproductions: Sequence[Reproduction]) -> list[Covered]:
    """The whole paper where several runs are of it, else what the one run is of."""
    ours = experiments(run for run in reproductions if run.paper and run.size != "smoke")
    whole = [one for one in _paper(ours) if len(ours) > 1 or one.experiments]
    return whole if ours else []


def unlike(experiment: Experiment, base: str = _NOT_STATED) -> list[Block]:
    """One line beside a table: in what the settings of its first configuration are not the paper's.

    Other configurations say themselves in what they differ from it.
    """
    run, seeds = experiment.run, len(experiment.main.seeds)
    if not run.paper or not run.settings:
        return []
    stated, ours = published().settings, run.settings
    masks = published().beta if run.kind == "beta" else stated
    pairs: list[tuple[str, Any, Any]] = [
        ("base", model_name(str(ours.get("base", ""))), base),
        (
            "texts",
            _texts(_sizes(step for step in run.steps if step.place)),
            None if run.kind == "beta" else stated["texts"],
        ),
        ("masks", ours.get("masks"), masks[_MASKS.get(run.kind, "attacked_masks")]),
        ("hidden words", "left out" if ours.get("hide") == "drop" else None, "masked"),
        ("seeds", *((seeds, published().rates["runs"]) if run.kind == "rates" else (None, None))),
    ]
    said = [
        f"{name} {_n(mine)} (paper: {_n(its or _NOT_STATED)})"
        for name, mine, its in pairs
        if mine and mine != its
    ]
    for pattern, words in (
        (r"--longest (\d+)", "texts cut at {} tokens"),
        (r"--most-queries (\d+)", "an attack asks at most {} times"),
        (
            r"attack .*--neighbours (\S+)",
            "TextFooler's words from the table {} (50 neighbours by GloVe)",
        ),
        (r"(--sentence-encoder) ", "attackers compare texts by another encoder than USE"),
        (r"--attack-lm (\S+)", "BERT-Attack's language model {} (BERT)"),
        (r"attack .*--dtype (float16|bfloat16)", "victims computed in {}"),
        (
            r"--defence augment .*?--share ([\d.]+)",
            "a share of {} attacked for augmentation (not stated)",
        ),
    ):
        values = {value for step in run.steps for value in re.findall(pattern, step.command)}
        said += [words.format(" or ".join(sorted(values)))] if values else []
    sets = [step.result.run.get("train") for step, _ in run.finished(Trained) if _is_victim(step)]
    known = [one.get("rows") for one in sets if isinstance(one, Mapping)]
    rows = sorted({one for one in known if isinstance(one, int)})
    said += [f"trained on {' or '.join(map(_n, rows))} rows"] if rows else []
    return [Paragraph(prose("*Unlike the paper:* {said}.", said="; ".join(said)), "quiet")]


def verdict(faults: Sequence[str]) -> list[Block]:
    """What ours contradicts, set off; nothing where it contradicts nothing."""
    return text("> **Contradicts the paper.** {said}", said=" ".join(faults)) if faults else []


def _is_victim(step: Step) -> bool:
    return "--kind mlm" not in step.command  # that is the attacker's


def _n(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _sizes(steps: Iterable[Step]) -> set[int]:
    """Numbers of texts that occur."""
    listed = [getattr(step.result, "rows", getattr(step.result, "lines", ())) for step in steps]
    return {len(some) for some in listed if some}


def _texts(sizes: set[int]) -> int | str:
    if len(sizes) < 2:
        return max(sizes, default=0)
    return f"{min(sizes):,} to {max(sizes):,}"


def _row(one: Covered) -> list[Cell | str]:
    done = Cell(str(one.done), strong=one.done < len(one.cells))
    if one.computed or not one.experiments:
        return [one.title, str(len(one.cells)), done, *[quiet("–")] * 5]
    # Of each cell, the run of most texts: other settings may have fewer.
    most = {max(_sizes(step for *_, step in found), default=0) for found in one.cells.values()} - {
        0
    }
    fewer = one.texts is not None and min(most, default=one.texts) < one.texts
    texts = Cell(_n(_texts(most)), strong=fewer)
    return [
        *(one.title, str(len(one.cells)), done, texts, quiet(_n(one.texts or _NOT_STATED))),
        *(_seeds(one), _bases(one), quiet(one.base)),
    ]


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
        model_name(str(experiment.run.settings.get("base", _NOT_STATED)))
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
    if not one.open:
        return
    steps = [step for experiment in one.experiments for step in experiment.run.missing]
    reasons = list(dict.fromkeys(step.error for step in steps if step.error))
    why = " ".join(reasons) or "Not run."
    yield f"{one.title}, {len(one.open)}: {'; '.join(one.open)}. {why}"


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
        return Covered(title, base, mine, filled, texts=texts)

    kinds = {"letters": "deepwordbug", "words": "textfooler"}
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
        yield made(title, table_.base, of("empirical", table_.name), cells)
    bounds = {CORPORA[corpus]: {"corpus": corpus} for corpus in published().beta["below"]}
    yield made("Beta and p_c (figure)", _NOT_STATED, of("beta", "fig:js-divergence"), bounds, None)
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
    yield made("The masking rate (figure)", _NOT_STATED, of("rates", "fig:rate_ablation"), cells)
    entropies = {method: {"method": method} for method in published().entropy["mean"]}
    yield made("Entropies (footnote)", _NOT_STATED, of("entropy"), entropies)
    for title, name, claims in (
        ("Averages in the text", "headline-averages", published().claims),
        ("Risk probability", "risk-probability", published().risk),
    ):
        mine = [one for one in found if one.run.name == name]
        yield Covered(title, "", mine, {claim: [] for claim in claims}, computed=True)
