"""What follows from the paper's own numbers: its risk probability and its headline averages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from ranmask.paper.headlines import recomputed
from ranmask.paper.published import inconsistent_cells
from ranmask.paper.report.beside import SAME, Finding
from ranmask.paper.report.blocks import Block, Bullets, Fold, Heading, Section, Span, text
from ranmask.paper.report.experiments import Experiment
from ranmask.paper.report.names import ATTACKS, CORPORA, rate_name
from ranmask.paper.report.tables import Cell, Table, difference, quiet, share, table
from ranmask.paper.risk import EXPLANATION, RiskTable, risk_table
from ranmask.paper.run_data import Reproduction

_FEW = 6  # perturbed words that are shown at once
_RISK = """
    The paper's *risk probability* is the chance that a masked copy shows **every** perturbed word.
    A certificate has to reckon with copies that show **any** of them. Both, for a text of average
    length:
    """
_HEADLINES = """
    Each average in the paper's text, recomputed from its own tables. No result of ours is used.
    **{agreeing} of {all}** agree to within .01.
    """


def risk_section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The risk probability; None where it was not asked for."""
    if not any(run.name == "risk-probability" for run in reproductions):
        return None
    blocks = text(_RISK)
    for risks in risk_table():
        title = (
            f"{CORPORA[risks.corpus]}: {risks.words} words, {rate_name(risks.rate)} masked, "
            f"{risks.kept} visible"
        )
        blocks += [Heading(title), _risk_table(risks)]
    blocks.append(Heading("What the text says, and what it must mean"))
    blocks.append(Bullets([(Span(item),) for item in EXPLANATION]))
    return Section("The risk probability", "risk", blocks)


def headline_section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The averages in the paper's text, recomputed; None where they were not asked for."""
    if not any(run.name == "headline-averages" for run in reproductions):
        return None
    figures = recomputed()
    rows = [
        (
            figure.claim,
            quiet(_decimal(figure.printed)),
            _decimal(figure.recomputed),
            difference(figure.recomputed - figure.printed, 2),
            Cell("yes" if figure.agrees else "no", strong=not figure.agrees),
        )
        for figure in figures
    ]
    titles = ["<figure", "printed", "recomputed", "difference", "<agrees"]
    blocks: list[Block] = [
        *text(_HEADLINES, agreeing=sum(figure.agrees for figure in figures), all=len(figures)),
        table("Printed, and recomputed from the paper's tables", titles, rows),
    ]
    notes = {figure.claim: figure.note for figure in figures if figure.note}
    rows_used = {figure.claim: "; ".join(figure.rows) for figure in figures}
    for title, said in (
        ("Notes on single figures", notes),
        ("Which rows each figure is taken from", rows_used),
    ):
        items = [(Span(f"{claim}: ", "strong"), Span(note)) for claim, note in said.items()]
        blocks.append(Fold(title, [Bullets(items)]))
    blocks.append(Fold("Cells of the paper that contradict themselves", [_cells_table()]))
    return Section("The headline averages", "headlines", blocks)


def in_short(experiment: Experiment) -> list[Finding]:
    """How many averages agree; what the risk probability is at one and at two words."""
    if experiment.run.name == "headline-averages":
        figures = recomputed()
        agreeing = sum(figure.agrees for figure in figures)
        said = SAME if agreeing == len(figures) else f"all but {len(figures) - agreeing}"
        ours = f"{agreeing} of {len(figures)} agree"
        return [Finding("averages in the text, recomputed from its tables", ours, "", said)]
    if experiment.run.name == "risk-probability":
        return [
            Finding(
                f"{CORPORA[risks.corpus]}: chance that a copy shows every changed word",
                ", ".join(f"{share(row.every, 2)}" for row in risks.rows[1:3]) + " (1, 2 words)",
                risks.statement.text,
                "depends on how many are changed",
            )
            for risks in risk_table()
        ]
    return []


def _risk_table(risks: RiskTable) -> Table:
    return table(
        f'The paper calls the risk "{risks.statement.text}"',
        [
            "perturbed words",
            "share γ",
            ("copies that show every one", ("rounded", "unrounded")),
            ("copies that show", ("any one",)),
        ],
        [
            (
                str(row.perturbed),
                share(row.share),
                share(row.every),
                quiet(share(row.every_unrounded)),
                share(row.some),
            )
            for row in risks.rows[: _FEW + 1]
        ],
        [f"The unrounded risk is one half at γ = {share(risks.share_of_half)}."],
    )


def _cells_table() -> Table:
    return table(
        "Succ should be (Cln − Boa) / Cln",
        [
            *("<table", "<method", "<attack"),
            ("printed", ("Cln", "Boa", "Succ")),
            ("what follows", ("Succ",)),
        ],
        [
            (
                *(wrong.table, wrong.method, ATTACKS[wrong.attack]),
                *(f"{value:.1f}" for value in (*astuple(wrong.cell), wrong.succ)),
            )
            for wrong in inconsistent_cells()
        ],
    )


def _decimal(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
