"""Commands that work row by row: to the terminal, to a file, or to a folder of shards."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.data.sources import RowSource
    from ranmask.runs.shards.run import Sharding
    from ranmask.runs.task import ClassifyTask, Outcome, RunEvents

_TERMINATED = 128 + signal.SIGTERM


def sharding_from(
    rows: int | None,
    engine: str | None,
    workers: int | None,
    address: str | None,
    cpus: int | None,
    gpus: float | None,
    *,
    output: Path | None,
) -> Sharding | None:
    """How a run is cut into shards; None where it is not."""
    flags = {
        "--shard-rows": rows,
        "--engine": engine,
        "--workers": workers,
        "--address": address,
        "--cpus-per-worker": cpus,
        "--gpus-per-worker": gpus,
    }
    if rows is None:
        for flag, value in flags.items():
            if value is not None:
                raise OptionError(f"{flag} {value} goes with --shard-rows")
        return None
    if engine not in (None, "local", "ray"):
        raise OptionError(f"--engine must be local or ray, not {engine!r}")
    for flag in ("--shard-rows", "--workers", "--cpus-per-worker"):
        value = flags[flag]
        if value is not None and int(value) < 1:
            raise OptionError(f"{flag} must be at least 1, not {value}")
    if gpus is not None and gpus < 0:
        raise OptionError(f"--gpus-per-worker must be at least 0, not {gpus}")
    if output is None:
        raise OptionError("--shard-rows needs --output: the folder for its files")
    for flag in ("--address", "--gpus-per-worker"):
        if engine != "ray" and flags[flag] is not None:
            raise OptionError(f"{flag} {flags[flag]} goes with --engine ray")
    from ranmask.runs.shards.run import Sharding

    return Sharding(rows, engine or "local", workers, address, cpus or 1, gpus or 0)


def classify(
    make: Callable[[], ClassifyTask],
    source: RowSource,
    output: Path | None,
    *,
    sharding: Sharding | None = None,
    as_json: bool = False,
) -> bool:
    """Answer every row, and say what the results are worth.  Returns whether a row failed."""
    if output is None:
        return _show(make(), source, as_json)
    from rich.console import Console

    from ranmask.cli import printing
    from ranmask.runs.api import classify_file
    from ranmask.runs.stored import first_result

    with shown_events(source.total, output, sharding) as events:
        summary = classify_file(make, source, output, sharding=sharding, events=events)
    console = Console(stderr=True)
    printing.print_summary(console, summary)
    example = first_result(output)
    if example is not None and printing.needs_words(example):
        printing.explain(console, example)
    return summary.errors > 0


@contextmanager
def shown_events(total: int, output: Path, sharding: Sharding | None = None) -> Iterator[RunEvents]:
    """A progress bar, and a word where a run is resumed, in trouble or interrupted."""
    from ranmask.cli.progress import progress
    from ranmask.runs.task import RunEvents

    with progress(total) as advance, _ended_by_sigterm() if sharding else nullcontext():

        def started(rows: int, done: int) -> None:
            if done:
                say(f"resuming {output}: {done} rows are done")
                advance(done)

        try:
            yield RunEvents(started=started, progress=advance, trouble=say)
        except (KeyboardInterrupt, SystemExit):
            say(f"interrupted: the same command resumes {output}")
            raise


def say(words: str) -> None:
    """A line on standard error, as it is: no colours, no markup, no breaks."""
    from rich.console import Console

    Console(stderr=True).print(words, markup=False, highlight=False, soft_wrap=True)


def _show(task: ClassifyTask, source: RowSource, as_json: bool) -> bool:
    """Print results: a table on a terminal, else JSON lines.  Returns whether a row failed."""
    from rich.console import Console

    from ranmask.cli import printing
    from ranmask.cli.progress import progress
    from ranmask.results import CascadePrediction, Certificate
    from ranmask.runs.task import class_ids, classify_rows

    if source.label_names:
        class_ids(source.label_names, task.labels)  # told before the first row
    summary = task.summary()

    def outcomes() -> Iterator[tuple[Outcome, dict[str, Any]]]:
        for outcome in classify_rows(source.rows, task.classify, trouble=say):
            line = outcome.to_dict(task.labels)
            summary.add([line])
            yield outcome, line

    if as_json or task.command == "beta" or not sys.stdout.isatty():
        for _, line in outcomes():
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    else:
        console = Console()
        table = printing.result_table(summary.has_radii, task.compared)
        last = None
        with progress(source.total) as advance:
            for outcome, _ in outcomes():
                printing.add_outcome(table, outcome)
                if isinstance(outcome.result, Certificate | CascadePrediction):
                    last = outcome
                advance(1)
        console.print(table)
        if last is not None and last.result is not None:
            printing.explain(console, last.result)
            printing.print_copies(console, last, task.labels)
    if summary.certified.texts:
        printing.print_summary(Console(stderr=True), summary)
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
