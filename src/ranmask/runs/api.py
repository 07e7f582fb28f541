"""`certify_file` and `predict_file`: every row of a file, in one resumable call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ranmask.data.rows import Columns, RowSource, file_rows
from ranmask.results import Certificate, Prediction
from ranmask.runs.run import run
from ranmask.runs.shards.reading import summarise_folder
from ranmask.runs.shards.run import Sharding
from ranmask.runs.summary import RunSummary
from ranmask.runs.task import ClassifyTask, RunEvents
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


AnyClassifier: TypeAlias = Classifier | Callable[[], Classifier]
MakeClassifyTask: TypeAlias = Callable[[], ClassifyTask]


def certify_file(
    classifier: AnyClassifier,
    input: str | Path | RowSource,
    output: str | Path,
    *,
    columns: Columns | None = None,
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
        sharding: Cut the input into shards for worker processes; docs/scale.md.
        events: Who is told of the cost, of progress and of rows that failed.
    """
    return classify_file(
        functools.partial(certify_task, classifier), input, output, columns, sharding, events
    )


def predict_file(
    classifier: AnyClassifier,
    input: str | Path | RowSource,
    output: str | Path,
    *,
    columns: Columns | None = None,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
) -> RunSummary:
    """Label every row of a file, without certificates; arguments are those of `certify_file`."""
    return classify_file(
        functools.partial(predict_task, classifier), input, output, columns, sharding, events
    )


def classify_file(
    make: MakeClassifyTask,
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


def certify_task(classifier: AnyClassifier) -> ClassifyTask:
    """What `certify_file` does with rows."""
    loaded = _loaded(classifier)
    loaded.check_certifiable()  # told once, not for every row
    return ClassifyTask("certify", loaded.labels, loaded.certify, loaded.description())


def predict_task(classifier: AnyClassifier) -> ClassifyTask:
    """What `predict_file` does with rows."""
    loaded = _loaded(classifier)
    return ClassifyTask("predict", loaded.labels, loaded.predict, loaded.description())


def _loaded(classifier: AnyClassifier) -> Classifier:
    return classifier if hasattr(classifier, "certify") else classifier()  # type: ignore[return-value]
