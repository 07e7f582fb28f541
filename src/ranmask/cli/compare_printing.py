"""A comparison as people read it: a table on a terminal, Markdown elsewhere."""

from __future__ import annotations

import re

from rich.console import Console
from rich.table import Table
from rich.text import Text as RichText

from ranmask.paper.comparing import EXPLANATION, Comparison
from ranmask.paper.paired_figures import Difference
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
    for one in comparison.differences:
        if step is not None and step != one.step:
            table.add_section()
        shown = _cells(one)
        style = "" if one.verdict == "no difference found" else "bold"
        cells = [RichText("" if step == one.step else shown[0]), *map(RichText, shown[1:-1])]
        table.add_row(*cells, RichText(shown[-1], style=style))
        step = one.step
    for name, what in (("A", comparison.a), ("B", comparison.b)):
        console.print(f"{name}: {_one_line(what)}", markup=False)
    console.print(table)
    for line in _remarks(comparison):
        console.print(_one_line(line), style="dim", markup=False, highlight=False)


def markdown(comparison: Comparison) -> str:
    """The same as Markdown, with every cell filled in."""
    rows = [_COLUMNS, tuple("---:" if place in _NUMBERS else "---" for place in range(10))]
    rows += [_cells(one) for one in comparison.differences]
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
    starred = any((one.certificate or "").endswith("*") for one in comparison.differences)
    return [
        *(line for one in comparison.classes for line in one.lines()),
        *comparison.notes,
        *(["* this certificate guarantees nothing"] if starred else []),
        *EXPLANATION,
    ]


def _cells(one: Difference) -> tuple[str, ...]:
    difference = ""
    if one.difference is not None and one.interval is not None:
        low, high = one.interval
        difference = f"{one.difference:+.3f} ({low:+.3f} to {high:+.3f})"
    return (
        one.step,
        one.figure if one.certificate is None else f"{one.certificate}: {one.figure}",
        str(one.texts),
        _figure(one, one.a),
        _figure(one, one.b),
        difference,
        f"{one.higher_a} / {one.higher_b}",
        _chance(one.p_value),
        _chance(one.adjusted),
        one.verdict,
    )


def _figure(one: Difference, value: float | None) -> str:
    if one.figure == "radius":
        return "MCB N/A" if value is None else f"MCB {value:g}"
    return f"{value:.3f}"


def _chance(p_value: float) -> str:
    return "<0.0001" if p_value < 0.0001 else f"{p_value:.4f}"
