"""Commands that answer text by text: to the terminal, or to a file that is resumed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask import __version__
from ranmask.cli.inputs import Source
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.data.rows import Row
    from ranmask.runs.run import Classify, Outcome

_SUMMARISED = (
    *("error", "correct", "radius", "words"),
    *("label_id", "expected_id", "guarantee", "others"),
)


@dataclass(frozen=True)
class Task:
    """What a command does with texts, and what its run's record says of how.

    ``readable``: whether a terminal gets a table; JSON lines otherwise.  ``compared``: the
    certificates of each `Comparison`, exact first; nothing where results are of another sort.
    """

    command: str
    labels: tuple[str, ...] | None
    classify: Classify
    description: Mapping[str, Any]
    readable: bool = True
    compared: tuple[str, ...] = ()

    @property
    def certified(self) -> bool:
        """Whether results have radii."""
        return self.command == "certify"


def check_output(output: Path | None, source: Source, *, sharded: bool = False) -> None:
    """Refuse a place that results cannot be written to; call it before a model is loaded."""
    if output is None:
        return
    if source.origin is None:
        raise OptionError("--output goes with --input or --data; texts given here are printed")
    if sharded:
        from ranmask.runs.shards.folder import check_folder

        check_folder(output)
    else:
        from ranmask.runs.run import check_result_file

        check_result_file(output)


def run_task(task: Task, source: Source, output: Path | None, as_json: bool) -> bool:
    """Answer every row.  Returns whether a row failed."""
    if source.origin is not None and source.origin.get("label_names"):
        from ranmask.runs.run import class_ids

        class_ids(source.origin["label_names"], task.labels)  # told before the first row
    if output is None or source.origin is None:
        return _show(source.rows, task, as_json, total=source.total)
    return _write(source, task, output)


def say_trouble(why: str) -> None:
    """Tell of something that went wrong and did no harm."""
    from rich.console import Console

    Console(stderr=True).print(why, markup=False, highlight=False, soft_wrap=True)


def _show(rows: Iterable[Row], task: Task, as_json: bool, total: int) -> bool:
    """Print results: a table on a terminal, else JSON lines.  Returns whether a row failed."""
    from rich.console import Console

    from ranmask.cli import printing
    from ranmask.cli.terminal import progress
    from ranmask.results import CascadePrediction, Certificate
    from ranmask.runs import run

    lines: list[dict[str, Any]] = []

    def outcomes() -> Iterator[tuple[Outcome, dict[str, Any]]]:
        for outcome in run.classify_rows(rows, task.classify, trouble=say_trouble):
            line = outcome.to_dict(task.labels)
            lines.append({key: line[key] for key in _SUMMARISED if key in line})
            yield outcome, line

    if as_json or not task.readable or not sys.stdout.isatty():
        for _, line in outcomes():
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    else:
        console = Console()
        table = printing.result_table(task.certified, task.compared)
        last = None
        with progress(total) as advance:
            for outcome, _ in outcomes():
                printing.add_outcome(table, outcome)
                if isinstance(outcome.result, Certificate | CascadePrediction):
                    last = outcome
                advance(1)
        console.print(table)
        if last is not None and last.result is not None:
            printing.explain(console, last.result)
            printing.print_copies(console, last, task.labels)
    summary, counts = run.summarise(lines)
    if counts["labelled"]:
        notes = Console(stderr=True)
        printing.print_summary(notes, summary, counts, task.certified, task.labels)
        printing.print_kinds(notes, run.summarise_kinds(lines))
    return counts["errors"] > 0


def _write(source: Source, task: Task, output: Path) -> bool:
    """Append results to a file and resume it.  Returns whether a row failed."""
    from rich.console import Console

    from ranmask.cli import printing
    from ranmask.cli.terminal import progress
    from ranmask.runs import run

    origin = source.origin or {}
    description = run.run_description(task.command, origin, task.description, __version__)
    console = Console(stderr=True)
    example = None
    summary = run.RunSummary()
    with run.ResultFile(output, description) as results:
        todo = (row for row in source.rows if row.number > results.done)
        if results.done:
            console.print(f"resuming {output} after row {results.done}")
            summary.add(results.lines())
        try:
            with progress(source.total, done=results.done) as advance:
                for outcomes in run.classify_groups(todo, task.classify, trouble=say_trouble):
                    lines = [outcome.to_dict(task.labels) for outcome in outcomes]
                    results.write(lines)
                    summary.add(lines)
                    results_of = (one.result for one in outcomes if one.result is not None)
                    example = next(results_of, example)
                    advance(len(outcomes))
        except KeyboardInterrupt:
            console.print(f"interrupted: the same command resumes {output}")
            raise
        certified, counts = summary.certified, summary.counts
        values = printing.summary_values(certified, counts, task.certified, task.labels)
        results.finish({**values, **printing.kind_values(summary.kinds, task.labels)})
        printing.print_summary(console, certified, counts, task.certified, task.labels)
        printing.print_kinds(console, summary.kinds)
    if example is not None and printing.needs_words(example):
        printing.explain(console, example)
    return counts["errors"] > 0
