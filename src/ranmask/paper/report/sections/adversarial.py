"""The paper's table of adversarial examples, and our own."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.paper.published import published
from ranmask.paper.report.beside import SAME, Finding
from ranmask.paper.report.blocks import Section, text
from ranmask.paper.report.experiments import Experiment
from ranmask.paper.report.tables import Cell, quiet, table
from ranmask.paper.run_data import Adversarial, Reproduction

_INTRODUCTION = """
    What certificates defend against: a few changed characters or words flip the label. The paper's
    examples fool a BERT, from positive to negative. Ours fool the encoder of `reviews` without
    smoothing, on sentences of our own.
    """
_LETTERS, _WORDS = "deepwordbug", "textfooler"


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The table; None where no sentence of ours was attacked."""
    found: dict[str, dict[str, Cell]] = {}
    for run in reproductions:
        for step, result in run.finished(Adversarial):
            for line in result.lines:
                fell = line["status"] == "succeeded"
                sentence, adversarial = str(line["text"]), str(line["adversarial"])
                cell = _changed(sentence, adversarial) if fell else quiet("no example found")
                found.setdefault(sentence, {})[str(step.place.get("attack"))] = cell
    if not found:
        return None
    rows: list[Sequence[Cell | str]] = [
        (
            "paper",
            sentence,
            *(_changed(sentence, entry[how], True) for how in ("characters", "words")),
        )
        for entry in published().adversarial
        for sentence in [entry["text"]]
    ]
    for sentence, cells in found.items():
        changed = [cells.get(attack, quiet("not run")) for attack in (_LETTERS, _WORDS)]
        rows.append(("ours", sentence, *changed))
    titles = ["<whose", "<sentence", "<characters changed", "<words changed"]
    shown = table("Sentences, and changes that flip their label", titles, rows)
    return Section("Adversarial examples", "adversarial", [*text(_INTRODUCTION), shown])


def in_short(experiment: Experiment) -> list[Finding]:
    """Of how many sentences an example was found."""
    found = []
    for _, step, result in experiment.main.finished(Adversarial):
        fell = sum(line["status"] == "succeeded" for line in result.lines)
        what = {_LETTERS: "characters", _WORDS: "words"}.get(str(step.place.get("attack")), "")
        ours = f"{fell} of {len(result.lines)} sentences of our own"
        paper = f"{len(published().adversarial)} sentences shown"
        found.append(Finding(f"label flipped by changed {what}", ours, paper, SAME if fell else ""))
    return found


def _changed(sentence: str, adversarial: str, quiet: bool = False) -> Cell:
    """What a sentence became; below it, word for word, what was changed."""
    words, others = sentence.split(), adversarial.split()
    pairs = zip(words, others, strict=True) if len(words) == len(others) else ()
    changes = ", ".join(f"{old} → {new}" for old, new in pairs if old != new)
    return Cell(adversarial, beside=changes, quiet=quiet)
