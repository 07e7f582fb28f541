"""The paper's table of adversarial examples, and our own."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.paper.published import published
from ranmask.paper.report.blocks import Section, text
from ranmask.paper.report.tables import Cell, quiet, table
from ranmask.paper.run_data import Adversarial, Reproduction

_INTRODUCTION = """
    What certificates are against: a few letters or words are changed, and the label is another.
    The paper's examples are of a BERT; ours, on sentences of our own, of the encoder of `reviews`,
    read plainly.
    """
_LETTERS, _WORDS = "deepwordbug", "textfooler"


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The table; None where no sentence of ours was attacked."""
    found: dict[str, dict[str, Cell]] = {}
    for run in reproductions:
        for step, result in run.finished(Adversarial):
            for line in result.lines:
                fell = line["status"] == "succeeded"
                cell = Cell(str(line["adversarial"])) if fell else quiet("no example found")
                found.setdefault(line["text"], {})[str(step.place.get("attack"))] = cell
    if not found:
        return None
    rows: list[Sequence[Cell | str]] = [
        ("paper", entry["text"], quiet(entry["characters"]), quiet(entry["words"]))
        for entry in published().adversarial
    ]
    for sentence, cells in found.items():
        changed = [cells.get(attack, quiet("not run")) for attack in (_LETTERS, _WORDS)]
        rows.append(("ours", sentence, *changed))
    titles = ["<whose", "<sentence", "<letters changed", "<words changed"]
    shown = table("Sentences, and what makes their label another", titles, rows)
    return Section("Adversarial examples", "adversarial", [*text(_INTRODUCTION), shown])
