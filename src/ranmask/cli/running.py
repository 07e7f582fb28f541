"""Commands that work row by row: to the terminal, to a file, or to a folder of shards."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ranmask.cli.options import Printed
from ranmask.cli.terminal import error_console, printed_lines, progress, resumed_later, say, visible
from ranmask.data.rows import RowSource
from ranmask.models.model_config import PARTITIONS
from ranmask.results import CascadePrediction, Certificate

if TYPE_CHECKING:
    from ranmask.runs.shards.run import Sharding
    from ranmask.runs.task import ClassifyTask, Outcome, RunEvents

_TERMINATED = 128 + signal.SIGTERM


def classify(
    make: Callable[[], ClassifyTask],
    source: RowSource,
    output: Path | None,
    *,
    sharding: Sharding | None = None,
    printed: Printed = "json",
) -> bool:
    """Answer every row, and say what the results are worth.  Returns whether a row failed.

    ``printed`` says how they are shown where there is no ``output``.
    """
    if output is None:
        return _show(make(), source, printed)
    from ranmask.cli.printing import print_run
    from ranmask.runs.api import classify_file

    with shown_events(source.total, output, sharding) as events:
        summary = classify_file(make, source, output, sharding=sharding, events=events)
    print_run(error_console(), summary, output)
    say_unread_label(source, output)
    return summary.errors > 0


def say_unread_label(source: RowSource, output: Path | None) -> None:
    """After a run without labels: which column may hold them."""
    if (name := source.unread_label) is not None:
        say(
            f"the column {name!r} was not read: if it holds true labels, give --label-column "
            f"{name}{' and another --output' * (output is not None)} to have results compared with "
            "them"
        )


@contextmanager
def shown_events(total: int, output: Path, sharding: Sharding | None = None) -> Iterator[RunEvents]:
    """A progress bar, and a word where a run is resumed, in trouble or interrupted, or a row fails.

    Of failed rows the first one, for most often the others fail alike.
    """
    from ranmask.runs.task import RunEvents

    with progress(total) as advance, _ended_by_sigterm() if sharding else nullcontext():

        def started(rows: int, done: int) -> None:
            if done:
                say(f"resuming {output}: {done} rows are done")
                advance(done)

        told = False

        def failed(row: int, why: str) -> None:
            nonlocal told
            if not told:
                say(visible(f"row {row}: {why}"))
            told = True

        with resumed_later(output):
            yield RunEvents(
                started=started,
                progress=advance,
                cost=lambda cost: say(str(cost)),
                failed=failed,
                trouble=say,
            )


def cost_events(rows: int, watched: int | None = None) -> RunEvents:
    """Those of results that are printed as they come: what the rest will take."""
    from ranmask.runs.api import metered
    from ranmask.runs.task import RunEvents

    events = metered(RunEvents(cost=lambda cost: say(str(cost))), watched)
    events.started(rows, 0)
    return events


def _show(task: ClassifyTask, source: RowSource, printed: Printed) -> bool:
    """Print results.  Returns whether a row failed."""
    from rich.console import Console

    from ranmask.cli import printing
    from ranmask.runs.cost import endpoint_cost
    from ranmask.runs.task import class_ids, classify_rows, tell

    if source.label_names:
        class_ids(source.label_names, task.labels)  # told before the first row
    summary = task.summary()
    events = cost_events(source.total)
    if (sent := endpoint_cost(task.classifier, source.total)) is not None:
        say(str(sent))

    def outcomes() -> Iterator[tuple[Outcome, dict[str, Any]]]:
        for outcome in classify_rows(source.rows, task.classify, trouble=say):
            line = outcome.to_dict(task.labels)
            summary.add([line])
            tell(events, [line])
            yield outcome, line

    with printed_lines(printed) as write:
        if write is not None:
            for _, line in outcomes():
                write(line)
    if printed is None:
        console = Console()
        votes = task.classifier.get("kind") == PARTITIONS  # of tables that were trained apart
        beside = ("poisoned",) if votes else task.threats
        table = printing.result_table(summary.has_radii, task.compared, beside)
        last = None
        with progress(source.total) as advance:
            for outcome, line in outcomes():
                printing.add_outcome(table, outcome, line.get("error"))
                if isinstance(outcome.result, Certificate | CascadePrediction):
                    last = outcome
                advance(1)
        console.print(table)
        if last is not None and last.result is not None:
            printing.explain(console, last.result)
            printing.print_copies(console, last, task.labels)
    if summary.certified.texts or summary.errors:
        printing.print_summary(error_console(), summary)
    say_unread_label(source, None)
    return summary.errors > 0


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """A polite request to end is an exception, so that workers are ended too."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
