"""A comparison as people read it: a table on a terminal, Markdown elsewhere."""

from __future__ import annotations

import re

from rich.console import Console
from rich.table import Table
from rich.text import Text as RichText

from ranmask.paper.comparing import EXPLANATION, Comparison
from ranmask.paper.paired_figures import Difference, p_digits
from ranmask.paper.report.svg import clean

_COLUMNS = (
    *("step", "figure", "texts", "A", "B", "A - B (95 %)", "higher on, A / B"),
    *("p", "p (Holm)", "verdict"),
)
_MARKS = re.compile(r"([\\`*_\[\]<>|~])")
_NUMBERS = range(2, 9)  # columns that are aligned to the right


def print_comparison(console: Console, comparison: Comparison) -> None:
    """A table with a verdict a row, then what was left out and what the tests are."""
    table = Table(show_edge=False, pad_edge=False, caption_justify="left")
    for place, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if place in _NUMBERS else "left", overflow="fold")
    step = None
    for found in comparison.differences:
        if step is not None and step != found.step:
            table.add_section()
        shown = _cells(found)
        style = "" if found.verdict == "no difference found" else "bold"
        cells = [RichText("" if step == found.step else shown[0]), *map(RichText, shown[1:-1])]
        table.add_row(*cells, RichText(shown[-1], style=style))
        step = found.step
    for name, what in (("A", comparison.a), ("B", comparison.b)):
        console.print(f"{name}: {_one_line(what)}", markup=False)
    console.print(table)
    for line in _remarks(comparison):
        console.print(_one_line(line), style="dim", markup=False, highlight=False)


def markdown(comparison: Comparison) -> str:
    """The same as Markdown, with every cell filled in."""
    rows = [_COLUMNS, tuple("---:" if place in _NUMBERS else "---" for place in range(10))]
    rows += map(_cells, comparison.differences)
    table = ["| " + " | ".join(_harmless(cell) for cell in row) + " |" for row in rows]
    title = f"A: {_harmless(comparison.a)}\n\nB: {_harmless(comparison.b)}\n\n"
    remarks = "\n".join(f"- {_harmless(line)}" for line in _remarks(comparison))
    return f"{title}{chr(10).join(table)}\n\n{remarks}\n"


def _harmless(text: str) -> str:
    """On one line, and without marks that Markdown would read; brackets may stay."""
    return _MARKS.sub(r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _remarks(comparison: Comparison) -> list[str]:
    starred = any((found.certificate or "").endswith("*") for found in comparison.differences)
    return [
        *(line for classes in comparison.classes for line in classes.lines()),
        *comparison.notes,
        *(["* this certificate guarantees nothing"] if starred else []),
        *EXPLANATION,
    ]


def _cells(found: Difference) -> tuple[str, ...]:
    difference = ""
    if found.difference is not None and found.interval is not None:
        low, high = found.interval
        difference = f"{found.difference:+.3f} ({low:+.3f} to {high:+.3f})"
    return (
        found.step,
        found.figure if found.certificate is None else f"{found.certificate}: {found.figure}",
        str(found.texts),
        _figure(found, found.a),
        _figure(found, found.b),
        difference,
        f"{found.higher_a} / {found.higher_b}",
        _chance(found.p_value),
        _chance(found.adjusted),
        found.verdict,
    )


def _figure(found: Difference, value: float | None) -> str:
    if found.figure == "radius":
        return "MCB N/A" if value is None else f"MCB {value:g}"
    return f"{value:.3f}"


def _chance(p_value: float) -> str:
    return "<0.0001" if p_value < 0.0001 else f"{p_value:.{p_digits(p_value, 4)}f}"
