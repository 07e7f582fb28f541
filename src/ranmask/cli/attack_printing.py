"""Attacks as people read them on a terminal: before and after, side by side."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text as RichText

from ranmask.attacks.outcome import AttackOutcome, AttackSummary
from ranmask.cli.printing import marked
from ranmask.metrics import class_lines, class_name

_BEFORE, _AFTER = "bold green", "bold red"
_COLOURS = {"succeeded": "red", "failed": "green", "skipped": "dim", "error": "yellow"}
_FIGURES = {
    "clean_accuracy": "Cln {clean_accuracy:.1%}",
    "robust_accuracy": "Boa {robust_accuracy:.1%}",
    "success_rate": "Succ {success_rate:.1%}",
    "confirmed_success_rate": "Succ on fresh masks {confirmed_success_rate:.1%}",
    "queries": "queries {queries:.1f}",
    "words_changed": "words changed {words_changed:.1f} ({share_changed:.0%})",
    "entropy": "entropy {entropy:.3f}",
    "reverted": "right again with 10% of the words masked {reverted:.0%}",
}
_BY_CLASS = (
    "majority class alone {majority:.1%}  balanced Cln {balanced_clean_accuracy:.1%}  balanced Boa "
    "{balanced_robust_accuracy:.1%}"
)


def print_outcome(console: Console, outcome: AttackOutcome, labels: tuple[str, ...] | None) -> None:
    """One text before and after, changed words marked."""
    title = RichText(f"row {outcome.number}: ", style="bold")
    title.append(outcome.status, style=_COLOURS[outcome.status])
    if outcome.status == "error":
        title.append(f", {outcome.error}")
        console.print(title)
        return
    clean = _name(outcome.clean_label, labels)
    if outcome.status == "skipped" or outcome.text is None or outcome.adversarial is None:
        title.append(f", {clean} instead of {_name(outcome.label, labels)} before any attack")
        console.print(title)
        return
    title.append(
        f", {outcome.words_changed} of {outcome.words} words changed, {outcome.queries} queries"
    )
    if outcome.rechecked is False:
        title.append(", gone on fresh masks")
    table = Table(show_edge=False, pad_edge=False, expand=True, box=None, padding=(0, 2, 0, 0))
    table.add_column(_heading(clean, outcome.clean_share), ratio=1, overflow="fold")
    final = _name(outcome.final_label, labels)
    table.add_column(_heading(final, outcome.final_share), ratio=1, overflow="fold")
    changed = {change.position for change in outcome.changes if not change.premise}
    of_premise = {change.position for change in outcome.changes if change.premise}
    table.add_row(
        marked(outcome.text, _BEFORE, changed, of_premise),
        marked(outcome.adversarial, _AFTER, changed, of_premise),
    )
    console.print(title)
    console.print(table)


def print_attack_summary(console: Console, name: str, summary: AttackSummary) -> None:
    """The paper's figures, in percent, and what they leave out."""
    values = summary.values()
    say(
        console,
        f"{name}: {summary.texts} texts, {summary.attempted} attacked, {summary.skipped} skipped "
        f"(wrong before), {summary.errors} with errors",
    )
    if not summary.texts:
        return
    same = summary.confirmed == summary.succeeded
    figures = [
        figure.format(**values)
        for key, figure in _FIGURES.items()
        if values[key] is not None and not (key == "confirmed_success_rate" and same)
    ]
    say(console, "  ".join(figures))
    if "classes" in values:
        say(console, _BY_CLASS.format(**values))
        for line in class_lines(values["classes"]):
            say(console, line)


def print_pace(console: Console, copies: int, seconds: float) -> None:
    """How much was computed just now."""
    if copies:
        pace = copies / max(seconds, 1e-9)
        say(console, f"{copies:,} masked copies in {seconds:.1f} s, {pace:,.0f} a second")


def say(console: Console, line: str) -> None:
    """One line, as it is: no colours, no markup, no breaks."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _heading(label: str, share: float | None) -> RichText:
    return RichText(label if share is None else f"{label} (true class {share:.2f})")


def _name(label: int | None, labels: tuple[str, ...] | None) -> str:
    return "?" if label is None else class_name(label, labels)
