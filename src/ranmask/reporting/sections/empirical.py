"""Accuracy under attack: our tables with the paper's beside them, and the order of methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranmask.published import Cell as Printed
from ranmask.published import EmpiricalTable, published
from ranmask.reporting.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Paragraph,
    Picture,
    Prose,
    Section,
    prose,
)
from ranmask.reporting.condensed import Attacked, Reproduction
from ranmask.reporting.counting import (
    ATTACKS,
    Attacks,
    attack_name,
    count_attacks,
    finished,
    pairs_in_order,
    rank_correlation,
)
from ranmask.reporting.figures import method_dots
from ranmask.reporting.symbols import DASH
from ranmask.reporting.tables import (
    Cell,
    Column,
    Table,
    columns,
    difference,
    not_run,
    percent_cell,
    row,
    share,
)

_FIGURES = ("Cln", "Boa", "Succ")


@dataclass(frozen=True)
class Measured:
    """One method under one attack: our counts, the paper's figures; None where there are none."""

    method: str
    counts: Attacks | None
    printed: Printed | None

    @property
    def robust(self) -> float | None:
        """Boa in percent."""
        if self.counts is None or not self.counts.texts:
            return None
        return 100 * self.counts.held / self.counts.texts

    @property
    def printed_robust(self) -> float | None:
        """The paper's."""
        return None if self.printed is None else self.printed.boa


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All reproductions of attack tables; None where there is none."""
    chosen = [one for one in reproductions if one.kind == "empirical"]
    if not chosen:
        return None
    blocks: list[Block] = [*_glossary()]
    for one in chosen:
        blocks.append(Heading(one.title))
        blocks += _reproduction(one)
    return Section("Accuracy under attack", "attacks", tuple(blocks))


def measured(one: Reproduction) -> dict[str, list[Measured]]:
    """By attack: every method of the paper's table or of ours, the paper's order first."""
    table = published().empirical.get(one.paper)
    runs: dict[tuple[str, str], list[Attacked]] = {}
    planned: dict[str, None] = dict.fromkeys(table.methods if table else ())
    attacks: dict[str, None] = dict.fromkeys(table.attacks if table else ATTACKS)
    for step in one.steps:
        if step.measures == "attack" and {"method", "attack"} <= step.place.keys():
            planned.setdefault(str(step.place["method"]))
            attacks.setdefault(str(step.place["attack"]))
    for step, result in finished(one, Attacked):
        if {"method", "attack"} <= step.place.keys():
            place = str(step.place["method"]), str(step.place["attack"])
            runs.setdefault(place, []).append(result)
    return {
        attack: [_measured(method, attack, runs, table) for method in planned] for attack in attacks
    }


def order_of_methods(rows: Sequence[Measured]) -> tuple[float | None, int, int, int]:
    """Rank correlation of Boa with the paper's; pairs in its order, pairs compared, methods."""
    both = [one for one in rows if one.robust is not None and one.printed is not None]
    ours = [one.robust or 0.0 for one in both]
    paper = [one.printed.boa for one in both if one.printed is not None]
    return rank_correlation(ours, paper), *pairs_in_order(ours, paper), len(both)


def _measured(
    method: str,
    attack: str,
    runs: dict[tuple[str, str], list[Attacked]],
    table: EmpiricalTable | None,
) -> Measured:
    results = runs.get((method, attack))
    printed = table.cell(method, attack) if table else None
    return Measured(method, count_attacks(results) if results else None, printed)


def _glossary() -> list[Block]:
    return [
        Bullets(
            (
                prose("**Cln**: accuracy before the attack. **Boa**: accuracy after it."),
                prose("**Succ**: successes, of the texts that were attacked at all."),
                prose(
                    "**Gone**: successes that are none on fresh masks. Against a vote over random "
                    "masks an attacker asks hundreds of times and stops at the first lucky draw."
                ),
            )
        ),
        Paragraph(
            prose(
                "A robust accuracy says what one search found. It is no bound on what another "
                "could find; that is what certificates are for. All figures in percent."
            ),
            tone="quiet",
        ),
    ]


def _reproduction(one: Reproduction) -> list[Block]:
    by_attack = measured(one)
    table = published().empirical.get(one.paper)
    if not any(row.counts for rows in by_attack.values() for row in rows):
        return [Paragraph(prose("No attack is finished, so there is nothing to show."))]
    ran = {attack: rows for attack, rows in by_attack.items() if any(row.counts for row in rows)}
    return [
        _whole_table(by_attack, table),
        *_order(by_attack),
        Picture(
            name=f"{one.name}-methods",
            charts=tuple(
                method_dots(
                    attack_name(attack),
                    [(row.method, row.counts, row.printed_robust) for row in rows],
                )
                for attack, rows in ran.items()
            ),
            caption=prose(
                "Robust accuracy of each method. Filled: this run, with its 95 % interval; "
                "hollow: the paper."
            ),
        ),
        Fold(
            "Intervals, differences, and successes that vanish",
            tuple(_details(attack, rows) for attack, rows in ran.items()),
        ),
    ]


def _whole_table(by_attack: dict[str, list[Measured]], table: EmpiricalTable | None) -> Table:
    attacks = list(by_attack)
    best = {attack: _best(rows) for attack, rows in by_attack.items()}
    rows = []
    for place, first in enumerate(by_attack[attacks[0]]):
        cells: list[Cell] = []
        for attack in attacks:
            cells += _three(by_attack[attack][place], best[attack])
        rows.append(row(first.method, *cells))
    beside = f"Small: the paper's figure ({table.base}). " if table else ""
    return Table(
        caption="Cln, Boa and Succ, in percent",
        columns=(
            Column("method", numeric=False),
            *(column for attack in attacks for column in columns(attack_name(attack), _FIGURES)),
        ),
        rows=tuple(rows),
        notes=(f"{beside}Bold: the best that was run. Intervals are in the folded tables below.",),
    )


def _best(rows: Sequence[Measured]) -> tuple[float, float, float]:
    """The best Cln, Boa and Succ that were run."""
    counted = [row.counts for row in rows if row.counts is not None and row.counts.texts]
    clean = max((one.attempted / one.texts for one in counted), default=-1.0)
    robust = max((one.held / one.texts for one in counted), default=-1.0)
    least = min((one.succeeded / one.attempted for one in counted if one.attempted), default=-1.0)
    return clean, robust, least


def _three(one: Measured, best: tuple[float, float, float]) -> list[Cell]:
    printed = one.printed
    paper = ["", "", ""]
    if printed is not None:
        paper = [f"{value:.1f}" for value in (printed.cln, printed.boa, printed.succ)]
    counts = one.counts
    if counts is None or not counts.texts:
        return [Cell("not run", beside=value, quiet=True) for value in paper]
    pairs = (
        (counts.attempted, counts.texts),
        (counts.held, counts.texts),
        (counts.succeeded, counts.attempted),
    )
    return [
        Cell(
            f"{100 * part / total:.1f}" if total else DASH,
            beside=value,
            strong=bool(total) and part / total == top,
        )
        for (part, total), value, top in zip(pairs, paper, best, strict=True)
    ]


def _order(by_attack: dict[str, list[Measured]]) -> list[Block]:
    """Sentences on where the order of the methods is the paper's."""
    items = [item for attack, rows in by_attack.items() for item in _order_item(attack, rows)]
    if not items:
        return []
    return [Heading("Is the order of the methods the paper's?", 4), Bullets(tuple(items))]


def _order_item(attack: str, rows: Sequence[Measured]) -> list[Prose]:
    correlation, same, compared, methods = order_of_methods(rows)
    if methods < 2:
        return []
    both = [one for one in rows if one.robust is not None and one.printed is not None]
    ours = max(both, key=lambda one: one.robust or 0.0)
    paper = max(both, key=lambda one: one.printed.boa if one.printed else 0.0)
    if ours.method == paper.method:
        top = prose("The most robust is {method} in both.", method=ours.method)
    else:
        top = prose(
            "The most robust is {method} here, {other} in the paper.",
            method=ours.method,
            other=paper.method,
        )
    rank = ""
    if correlation is not None:
        rank = f", rank correlation {share(correlation, 2)}"
    return [
        (
            *prose(
                "**{attack}**, {methods} methods: {same} of {compared} pairs are in the paper's "
                "order{rank}. ",
                attack=attack_name(attack),
                methods=methods,
                same=same,
                compared=compared,
                rank=rank,
            ),
            *top,
        )
    ]


def _details(attack: str, rows: Sequence[Measured]) -> Table:
    shown = []
    for one in rows:
        counts, printed = one.counts, one.printed
        if counts is None:
            shown.append(row(one.method, *[not_run() for _ in range(6)]))
            continue
        moved = Cell(DASH, quiet=True)
        if printed is not None and one.robust is not None:
            moved = Cell(difference(one.robust - printed.boa))
        gone = Cell(DASH, quiet=True)
        if counts.rechecked:
            gone = percent_cell(counts.vanished, counts.rechecked)
        texts = str(counts.texts)
        if counts.errors:
            texts += f" (+{counts.errors} errors)"
        shown.append(
            row(
                one.method,
                texts,
                percent_cell(counts.attempted, counts.texts),
                percent_cell(counts.held, counts.texts),
                moved,
                percent_cell(counts.succeeded, counts.attempted),
                gone,
            )
        )
    return Table(
        caption=attack_name(attack),
        columns=(
            Column("method", numeric=False),
            Column("texts"),
            Column("Cln"),
            Column("Boa"),
            Column("Boa less paper's"),
            Column("Succ"),
            Column("gone"),
        ),
        rows=tuple(shown),
    )
