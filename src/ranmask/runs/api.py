"""Every row of a file in one resumable call, into one file or a folder of shards.

Results are written as they come.  The same call again goes on after the last row that is complete;
other options, another model or another input are refused.  A killed run loses at most the rows
that were being worked on.  Rows whose reader did not answer are done again first.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ranmask.data.rows import Columns, Row, RowSource, file_rows
from ranmask.results import Certificate, Prediction
from ranmask.runs.cost import CostMeter, endpoint_cost
from ranmask.runs.result_file import ResultFile, check_result_file
from ranmask.runs.shards.folder import check_folder
from ranmask.runs.shards.reading import summarise_folder
from ranmask.runs.shards.run import Sharding, run_shards
from ranmask.runs.summary import RunSummary
from ranmask.runs.task import (
    ASKED_AGAIN,
    ClassifyTask,
    RunEvents,
    Summary,
    Task,
    class_ids,
    class_number,
)
from ranmask.words import Text


class Classifier(Protocol):
    """What a run needs of a smoothed classifier."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, where they are known."""

    def predict(self, texts: Sequence[Text]) -> Sequence[Prediction]:
        """The label of each text, without a certificate."""

    def certify(self, texts: Sequence[Text]) -> Sequence[Certificate]:
        """The label of each text, and what is proved about it."""

    def check_certifiable(self) -> None:
        """Raise where nothing can be certified as things are set."""

    def description(self) -> dict[str, Any]:
        """What determines the results, as plain JSON values."""


MakeTask: TypeAlias = Callable[[], Task]
"""Loads the model.  For shards it is called in each worker, and must be picklable."""

AnyClassifier: TypeAlias = Classifier | Callable[[], Classifier]


def certify_file(
    classifier: AnyClassifier,
    input: str | Path | RowSource,
    output: str | Path,
    *,
    columns: Columns | None = None,
    positive: str | None = None,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
) -> RunSummary:
    """Certify every row of a file.  The same call again goes on where it stopped.

    Args:
        classifier: A smoothed classifier, or a function without arguments that loads one.  Shards
            need a function that can be pickled, as ``functools.partial(load_default, "news")``:
            each worker calls it.
        input: A txt, csv, tsv, jsonl or parquet file; or rows, as `corpus_rows` has them.
        output: The file of results, JSON lines; for shards, a folder.
        columns: Where texts and labels stand in the file.
        positive: A class, by its name, that the summary holds against all others: precision,
            ROC, recall at rates of false positives, certified where scores are (results are then
            `MarginCertificate`).
        sharding: Cut the input into shards for worker processes; docs/scale.md.
        events: Who is told of the cost, of progress and of rows that failed.
    """
    make = functools.partial(classify_task, "certify", classifier, positive)
    return classify_file(make, input, output, columns, sharding, events)


def predict_file(
    classifier: AnyClassifier,
    input: str | Path | RowSource,
    output: str | Path,
    *,
    columns: Columns | None = None,
    positive: str | None = None,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
) -> RunSummary:
    """Label every row of a file, without certificates; arguments are those of `certify_file`."""
    make = functools.partial(classify_task, "predict", classifier, positive)
    return classify_file(make, input, output, columns, sharding, events)


def classify_file(
    make: Callable[[], ClassifyTask],
    input: str | Path | RowSource,
    output: str | Path,
    columns: Columns | None = None,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
) -> RunSummary:
    """Run a task over a file: as `certify_file`, for any results of a classifier."""
    source = input if isinstance(input, RowSource) else file_rows(input, columns)
    summary = run(make, source, Path(output), sharding=sharding, events=events)
    return summary if isinstance(summary, RunSummary) else summarise_folder(Path(output))


def run(
    make: MakeTask,
    source: RowSource,
    output: Path,
    *,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
) -> Summary | None:
    """Work on every row and write the results to ``output``.

    Returns their summary; None for shards, whose folder is summarised by whoever knows its results.
    The place of the output is checked before the model is loaded.
    """
    told = events or RunEvents()
    checked = functools.partial(_checked, make, source.label_names)
    if sharding is not None:
        check_folder(output)
        told = metered(told, (sharding.workers or 1) * sharding.rows)
        run_shards(checked, source, output, sharding, told)
        return None
    check_result_file(output)
    task = checked()
    told = metered(told, task.measured_rows)
    summary = task.summary()
    description = {**task.description(), "input": source.description}
    with ResultFile(output, description) as results:
        rows = iter(source.rows)
        told.started(source.total, results.rows - len(results.unread))
        left = source.total - results.rows + len(results.unread)
        if (sent := endpoint_cost(description["classifier"], left)) is not None:
            told.cost(sent)
        if results.unread:
            told.trouble(ASKED_AGAIN.format(rows=len(results.unread)))
            again = task.groups(_numbered(rows, results.unread), results, told)
            results.replace(itertools.chain.from_iterable(again))
        summary.add(results.lines())
        todo = (row for row in rows if row.number > results.done)
        new = False
        for lines in task.groups(todo, results, told):
            results.write(lines)
            summary.add(lines)
            new = True
        if new or not results.finished:
            results.finish({**summary.values(), **task.effort()})
    return summary


def metered(events: RunEvents, rows: int | None = None) -> RunEvents:
    """Events of a run whose cost is told when so many rows are done, or two seconds are over."""
    meter = CostMeter(events.cost, rows)

    def started(rows: int, done: int) -> None:
        events.started(rows, done)
        meter.start(rows - done)

    def progress(rows: int) -> None:
        meter.advance(rows)
        events.progress(rows)

    return replace(events, started=started, progress=progress, asked=meter.ask)


def _numbered(rows: Iterator[Row], numbers: Sequence[int]) -> Iterator[Row]:
    """The rows with these numbers, which rise; no row behind the last of them is taken."""
    for number in numbers:
        yield next(row for row in rows if row.number == number)


def _checked(make: MakeTask, label_names: Sequence[str] | None) -> Task:
    """The task; classes of the data that the model does not know are told before the first row."""
    task = make()
    if label_names:
        class_ids(label_names, task.labels)
    return task


def classify_task(
    command: str, classifier: AnyClassifier, positive: str | None = None
) -> ClassifyTask:
    """What `certify_file` (or ``predict``) does with rows."""
    loaded: Any = classifier if hasattr(classifier, "certify") else classifier()
    if command == "certify":
        loaded.check_certifiable()  # told once, not for every row
    classify, about = getattr(loaded, command), loaded.description()
    if positive is None:
        return ClassifyTask(command, loaded.labels, classify, about)
    number = class_number(positive, loaded.labels)
    if command == "certify" and getattr(loaded, "gives_margins", False):
        classify = functools.partial(loaded.certify_margins, positive=number)
    about = {**about, "options": {**about.get("options", {}), "positive": number}}
    return ClassifyTask(command, loaded.labels, classify, about, positive=number)
