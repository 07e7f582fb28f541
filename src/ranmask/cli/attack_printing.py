"""Attacks as people read them on a terminal: before and after, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text as RichText

from ranmask.attacks.outcome import AttackOutcome, AttackSummary, Change
from ranmask.cli.printing import marked
from ranmask.cli.terminal import print_lines
from ranmask.metrics import class_lines, class_name

_BEFORE, _AFTER = "bold green", "bold red"
_COLOURS = {"succeeded": "red", "failed": "green", "skipped": "dim", "error": "yellow"}
_FIGURES = {
    "clean_accuracy": "Cln {clean_accuracy:.1%}",
    "robust_accuracy": "Boa {robust_accuracy:.1%}",
    "success_rate": "Succ {success_rate:.1%}",
    "confirmed_success_rate": "Succ on fresh masks {confirmed_success_rate:.1%}",
    "queries": "queries {queries:.1f}",
    "distance": "{unit} {distance:.1f}",
    "words_changed": "words changed {words_changed:.1f} ({share_changed:.0%})",
    "entropy": "entropy {entropy:.3f}",
    "reverted": "right again with 10% of the words masked {reverted:.0%}",
}
_GAP = (
    "certified {certified:.1f} {unit} on average, broken by {broken_by:.1f}: {apart:.1f} apart, "
    "over the {broken} texts that were broken"
)
_PROVED, _OPEN, _WIDTH, _ROWS = "█", "░", 40, 16
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
    far = f"{outcome.words_changed} of {outcome.words} words changed"
    if outcome.unit != "substitutions":
        far = f"{outcome.distance} {outcome.unit}, {far}"
    proved = "" if outcome.radius is None else f", {outcome.radius} certified"
    title.append(f", {far}{proved}, {outcome.queries} queries")
    if outcome.rechecked is False:
        title.append(", gone on fresh masks")
    table = Table(show_edge=False, pad_edge=False, expand=True, box=None, padding=(0, 2, 0, 0))
    table.add_column(_heading(clean, outcome.clean_share), ratio=1, overflow="fold")
    final = _name(outcome.final_label, labels)
    table.add_column(_heading(final, outcome.final_share), ratio=1, overflow="fold")
    before, after = _places(outcome.changes, premise=False)
    premise_before, premise_after = _places(outcome.changes, premise=True)
    table.add_row(
        marked(outcome.text, _BEFORE, before, premise_before),
        marked(outcome.adversarial, _AFTER, after, premise_after),
    )
    console.print(title)
    console.print(table)


def _places(changes: Iterable[Change], premise: bool) -> tuple[set[int], set[int]]:
    """Where changed words stand, before and after."""
    before, after, shift = set(), set(), 0
    for change in changes:
        if change.premise == premise:
            before |= {change.position} if change.before else set()
            after |= {change.position + shift} if change.after else set()
            shift += bool(change.after) - bool(change.before)
    return before, after


def print_attack_summary(console: Console, name: str, summary: AttackSummary) -> None:
    """The paper's figures, in percent, and what they leave out."""
    values = summary.values()
    print_lines(
        console,
        f"{name}: {summary.texts} texts, {summary.attempted} attacked, {summary.skipped} skipped "
        f"(wrong before), {summary.errors} with errors",
    )
    if not summary.texts:
        return
    same = summary.confirmed == summary.succeeded
    if summary.unit == "substitutions":
        values["distance"] = None
    figures = [
        figure.format(**values)
        for key, figure in _FIGURES.items()
        if values[key] is not None and not (key == "confirmed_success_rate" and same)
    ]
    print_lines(console, "  ".join(figures))
    if "gap" in values:
        unit = "words" if summary.unit == "substitutions" else summary.unit
        _print_gap(console, values["gap"], unit)
    if "classes" in values:
        by_class = _BY_CLASS.format(**values)
        print_lines(console, by_class, *class_lines(values["classes"]))


def _print_gap(console: Console, gap: dict[str, Any], unit: str) -> None:
    """How far certificates and attacks are apart; on a terminal, for each number of changes."""
    if gap["broken"]:
        print_lines(console, _GAP.format(**gap, unit=unit))
    if not console.is_terminal:
        return
    print_lines(
        console, f"{unit}  certified  not broken  ({_PROVED} certified, {_OPEN} nobody knows)"
    )
    step = -(-len(gap["curve"]) // _ROWS)
    for steps, (certified, left) in list(enumerate(gap["curve"]))[::step]:
        proved, unbroken = round(certified * _WIDTH), round(left * _WIDTH)
        bar = _PROVED * proved + _OPEN * (unbroken - proved)
        print_lines(console, f"{steps:{len(unit)}}  {certified:9.1%}  {left:10.1%}  {bar}")


def print_pace(console: Console, copies: int, seconds: float) -> None:
    """How much was computed just now."""
    if copies:
        pace = copies / max(seconds, 1e-9)
        print_lines(console, f"{copies:,} masked copies in {seconds:.1f} s, {pace:,.0f} a second")


def _heading(label: str, share: float | None) -> RichText:
    return RichText(label if share is None else f"{label} (true class {share:.2f})")


def _name(label: int | None, labels: tuple[str, ...] | None) -> str:
    return "?" if label is None else class_name(label, labels)
