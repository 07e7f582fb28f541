"""What detectors found, as people read it on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ranmask.cli.terminal import visible
from ranmask.metrics import aligned

if TYPE_CHECKING:
    from rich.table import Table

    from ranmask.runs.task import Outcome

_MARKED = "bold underline"


def detector_figures(values: Mapping[str, Any]) -> str:
    """Recall, certified recall and false positives in a line."""
    parts = []
    if values["recall"]["texts"]:
        certified = values["certified_recall"]
        shown = " ".join(f"{share['share']:.3f}" for share in certified.values())
        parts += [f"recall {_shown(values['recall'])}"]
        parts += [f"certified at {' '.join(certified)} changed words {shown}"]
    if values["false_positives"]["texts"]:
        parts += [f"false positives {_shown(values['false_positives'])}"]
    return ", ".join(parts)


def summary_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """What a run amounts to, line by line."""
    counted = f"{values['rows']} row{'s' * (values['rows'] != 1)}, {values['errors']} with errors"
    labelled = f", {values['labelled']} with labels" if values["labelled"] else ""
    yield f"{counted}, {values['flagged']} flagged{labelled}"
    if values["failed_windows"]:
        yield f"{values['failed_windows']} windows got no answer, and count as not flagged"
    if values["labelled"]:
        yield detector_figures(values)
        yield from rate_lines(values)


def rate_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """False positives by length, and, with recall, by each value of a column."""
    yield from table_lines("words", values["false_positives_by_words"])
    rates = {name: found["false_positives"] for name, found in values.get("by", {}).items()}
    recalls = {name: found["recall"] for name, found in values.get("by", {}).items()}
    yield from table_lines("false positives by", rates)
    yield from table_lines("recall by", recalls, "recall")


def table_lines(
    title: str, shares: Mapping[str, Mapping[str, Any]], figure: str = "false positives"
) -> list[str]:
    """Shares with their intervals, in columns; nothing where there are none."""
    rows = [
        [visible(name), f"{share['texts']:,}", _shown(share)]
        for name, share in shares.items()
        if share["texts"]
    ]
    return aligned([title, "texts", figure], rows) if rows else []


def result_table() -> Table:
    """An empty table for detections."""
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, expand=False)
    table.add_column("row", justify="right", style="dim")
    table.add_column("flagged", style="bold")
    table.add_column("score", justify="right")
    table.add_column("proved", overflow="fold")
    table.add_column("text", overflow="fold")
    return table


def add_outcome(table: Table, outcome: Outcome) -> None:
    """One row of the table; by what a text is flagged is underlined."""
    from rich.text import Text as RichText

    from ranmask.cli.printing import marked

    number, found = str(outcome.row.number), outcome.result
    found_any: Any = found
    if found is None:
        table.add_row(number, "", "", "", RichText(f"error: {outcome.error}", style="red"))
        return
    places = {place for start, stop in found_any.spans for place in range(start, stop)}
    table.add_row(
        number,
        found_any.positive if found_any.flagged else "no",
        f"{found_any.score:.3f}",
        found_any.proved if found_any.flagged else "",
        marked(outcome.row.text or "", _MARKED, places),
    )


def _shown(share: Mapping[str, Any]) -> str:
    low, high = share["interval"]
    return f"{share['share']:.3f} ({low:.3f} to {high:.3f})"
