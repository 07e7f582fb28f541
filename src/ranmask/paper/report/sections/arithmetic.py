"""What follows from the paper's own numbers: its risk probability and its headline averages."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.paper.headlines import Headline, recomputed
from ranmask.paper.published import inconsistent_cells
from ranmask.paper.report.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Paragraph,
    Section,
    Span,
    prose,
)
from ranmask.paper.report.condensed import Reproduction
from ranmask.paper.report.counting import attack_name, corpus_name, rate_name
from ranmask.paper.report.symbols import GAMMA, MINUS
from ranmask.paper.report.tables import Cell, Column, Table, columns, difference, row, share
from ranmask.paper.risk import EXPLANATION, RiskTable, risk_table

_FEW = 6  # perturbed words that are shown at once


def risk_section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The risk probability; None where it was not asked for."""
    if not any(one.name == "risk-probability" for one in reproductions):
        return None
    blocks: list[Block] = [
        Paragraph(
            prose(
                "The paper's *risk probability* is the chance that a masked copy shows **every** "
                "perturbed word. A certificate has to reckon with copies that show **any** of "
                "them. Both, for a text of average length:"
            )
        )
    ]
    for table in risk_table():
        blocks.append(Heading(_risk_title(table)))
        blocks.append(_risk_table(table))
    blocks.append(Heading("What the text says, and what it must mean"))
    blocks.append(Bullets(tuple((Span(item),) for item in EXPLANATION)))
    return Section("The risk probability", "risk", tuple(blocks))


def headline_section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The averages in the paper's text, recomputed; None where they were not asked for."""
    if not any(one.name == "headline-averages" for one in reproductions):
        return None
    figures = recomputed()
    agreeing = sum(one.agrees for one in figures)
    blocks: list[Block] = [
        Paragraph(
            prose(
                "Each average in the paper's text, computed again from its own tables. No result "
                "of ours is used. **{agreeing} of {all}** agree to the second decimal.",
                agreeing=agreeing,
                all=len(figures),
            )
        ),
        _headline_table(figures),
    ]
    notes = [one for one in figures if one.note]
    if notes:
        items = tuple((Span(f"{one.claim}: ", "strong"), Span(one.note)) for one in notes)
        blocks.append(Fold("Notes on single figures", (Bullets(items),)))
    rows = tuple((Span(f"{one.claim}: ", "strong"), Span("; ".join(one.rows))) for one in figures)
    blocks.append(Fold("Which rows each figure is taken from", (Bullets(rows),)))
    cells = inconsistent_cells()
    if cells:
        blocks.append(Fold("Cells of the paper that contradict themselves", (_cells_table(),)))
    return Section("The headline averages", "headlines", tuple(blocks))


def _risk_title(table: RiskTable) -> str:
    return (
        f"{corpus_name(table.corpus)}: {table.words} words, {rate_name(table.rate)} masked, "
        f"{table.kept} visible"
    )


def _risk_table(table: RiskTable) -> Table:
    rows = [
        row(
            str(one.perturbed),
            share(one.share),
            share(one.every),
            Cell(share(one.every_unrounded), quiet=True),
            share(one.some),
        )
        for one in table.rows[: _FEW + 1]
    ]
    return Table(
        caption=f'The paper calls the risk "{table.statement.text}"',
        columns=(
            Column("perturbed words"),
            Column(f"share {GAMMA}"),
            *columns("copies that show every one", ("rounded", "unrounded")),
            Column("any one", "copies that show"),
        ),
        rows=tuple(rows),
        notes=(f"The unrounded risk is one half at {GAMMA} = {share(table.share_of_half)}.",),
    )


def _headline_table(figures: Sequence[Headline]) -> Table:
    rows = [
        row(
            Cell(one.claim),
            Cell(_decimal(one.printed), quiet=True),
            _decimal(one.recomputed),
            difference(one.recomputed - one.printed, 2),
            Cell("yes") if one.agrees else Cell("no", strong=True),
        )
        for one in figures
    ]
    return Table(
        caption="Printed, and recomputed from the paper's tables",
        columns=(
            Column("figure", numeric=False),
            Column("printed"),
            Column("recomputed"),
            Column("difference"),
            Column("agrees", numeric=False),
        ),
        rows=tuple(rows),
    )


def _cells_table() -> Table:
    rows = [
        row(
            one.table,
            one.method,
            attack_name(one.attack),
            f"{one.cell.cln:.1f}",
            f"{one.cell.boa:.1f}",
            f"{one.cell.succ:.1f}",
            f"{one.succ:.1f}",
        )
        for one in inconsistent_cells()
    ]
    return Table(
        caption=f"Succ should be (Cln {MINUS} Boa) / Cln",
        columns=(
            Column("table", numeric=False),
            Column("method", numeric=False),
            Column("attack", numeric=False),
            *columns("printed", ("Cln", "Boa", "Succ")),
            Column("Succ", "what follows"),
        ),
        rows=tuple(rows),
    )


def _decimal(value: float) -> str:
    return f"{value:.2f}".replace("-", MINUS)
