"""Accuracy under attack: our tables with the paper's beside them."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.paper.published import EmpiricalTable, published
from ranmask.paper.report.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Paragraph,
    Picture,
    Section,
    prose,
)
from ranmask.paper.report.condensed import Attacked, Reproduction
from ranmask.paper.report.counting import (
    attack_name,
    count_attacks,
    finished,
)
from ranmask.paper.report.figures import method_dots
from ranmask.paper.report.sections.methods import Measured, order
from ranmask.paper.report.symbols import DASH
from ranmask.paper.report.tables import (
    Cell,
    Column,
    Table,
    columns,
    difference,
    not_run,
    percent_cell,
    row,
)

_FIGURES = ("Cln", "Boa", "Succ")


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
    attacks: dict[str, None] = dict.fromkeys(table.attacks if table else ())
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
                prose(
                    "**Cln**: accuracy before the attack. **Boa**: accuracy after it, the *robust "
                    "accuracy*; both of all texts."
                ),
                prose(
                    "**Succ**: successful attacks, of the texts that were right before, for only "
                    "those are attacked."
                ),
                prose(
                    "**Gone**: successes that are none when other copies are drawn. Against a vote "
                    "over random copies an attacker asks hundreds of times and stops at the first "
                    "lucky draw. A dash: nothing is drawn, so there is nothing to draw again."
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
        *order(by_attack),
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
                "Robust accuracy of each method. Filled: this run, with its 95 % interval{paper}.",
                paper="; hollow: the paper" if table else "",
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
    bold = "Bold: the best that was run. " if max(best.values()) > (0,) else ""
    texts = [one.counts.texts for some in by_attack.values() for one in some if one.counts]
    size = f"{min(texts):,} texts each. "
    if min(texts) != max(texts):
        size = f"{min(texts):,} to {max(texts):,} texts: figures over other texts compare badly. "
    return Table(
        caption="Cln, Boa and Succ, in percent",
        columns=(
            Column("method", numeric=False),
            *(column for attack in attacks for column in columns(attack_name(attack), _FIGURES)),
        ),
        rows=tuple(rows),
        notes=(f"{beside}{bold}{size}Intervals are in the folded tables below.",),
    )


def _best(rows: Sequence[Measured]) -> tuple[float, float, float]:
    """The best Cln, Boa and Succ that were run; one alone is not the best of anything."""
    counted = [row.counts for row in rows if row.counts is not None and row.counts.texts]
    if len(counted) < 2:
        return -1.0, -1.0, -1.0
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
            gone = percent_cell(counts.vanished, counts.rechecked, counts.runs)
        texts = str(counts.texts)
        if counts.runs > 1:
            texts += f" in {counts.runs} runs"
        if counts.errors:
            texts += f" (+{counts.errors} errors)"
        shown.append(
            row(
                one.method,
                texts,
                percent_cell(counts.attempted, counts.texts, counts.runs),
                percent_cell(counts.held, counts.texts, counts.runs),
                moved,
                percent_cell(counts.succeeded, counts.attempted, counts.runs),
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
