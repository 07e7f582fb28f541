"""What is done with rows: lines of results, and a line with an error for a row that fails."""

from __future__ import annotations

import itertools
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ranmask import __version__
from ranmask.data.rows import Row
from ranmask.errors import ClassifierError, OptionError, RanmaskError, TextError
from ranmask.results import BetaEstimate, Certificate, Prediction
from ranmask.runs.cost import RunCost
from ranmask.runs.result_file import RESULTS_FORMAT, RESULTS_VERSION, ResultFile
from ranmask.runs.summary import RunSummary
from ranmask.words import Text, document

ROWS_AT_ONCE = 1024
"""Rows of a shard that are classified together.  Fixed, because a model's last bits depend on the
company that a text is computed in; part of every manifest."""

ASKED_AGAIN = "the reader did not answer for {rows} of the rows that are done: it is asked again"

Result: TypeAlias = Prediction | Certificate | BetaEstimate
Classify: TypeAlias = Callable[[Sequence[Text]], Sequence[Result]]
Line: TypeAlias = Mapping[str, Any]
Tell: TypeAlias = Callable[[str], None]

_SECONDS_AT_ONCE = 2.0  # how much work a killed run may lose
_MOST_AT_ONCE = 512
_FAILURES_IN_A_ROW = 20
_UNKNOWN_CLASSES = 10**6  # a function does not say how many classes it has before it is asked
_log = logging.getLogger("ranmask")


@dataclass(frozen=True)
class RunEvents:
    """Callbacks of a run.  One that raises stops it; the same call goes on.

    ``started``: before the first row, how many rows there are at most and how many of them are
    done.  ``progress``: how many more rows are done; ``asked``: before it, how many copies or
    questions they took, and which of the two.  ``cost``: once, and only where it is long, what the
    rest will take.  ``failed``: the number of a row that became a line with an error, and why.
    ``trouble``: what went wrong and did no harm, in words.
    """

    started: Callable[[int, int], None] = lambda rows, done: None
    progress: Callable[[int], None] = lambda rows: None
    failed: Callable[[int, str], None] = lambda row, why: None
    trouble: Tell = _log.warning
    asked: Callable[[int, str], None] = lambda queries, kind: None
    cost: Callable[[RunCost], None] = lambda cost: None


class Summary(Protocol):
    """What the lines of a run amount to."""

    def add(self, lines: Iterable[Line]) -> None:
        """Count lines, as the run writes them."""

    def values(self) -> dict[str, Any]:
        """All figures as plain JSON values."""


class Task(Protocol):
    """What a run does with rows: one line for each, in their order."""

    @property
    def command(self) -> str:
        """The command whose results these are."""

    @property
    def record(self) -> type:
        """The class of its results, whose fields are the columns of a shard."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, where they are known."""

    @property
    def measured_rows(self) -> int | None:
        """How many rows tell what the others take; None: as many as take two seconds."""

    def description(self, *, sharded: bool = False) -> dict[str, Any]:
        """Everything but the input that the results depend on, as plain JSON values."""

    def summary(self) -> Summary:
        """An empty summary, to add lines to."""

    def lines(self, rows: Sequence[Row]) -> Iterable[Line]:
        """The lines of a shard.  They depend on its rows and on nothing else."""

    def groups(
        self, rows: Iterable[Row], results: ResultFile, events: RunEvents
    ) -> Iterator[list[Line]]:
        """Lines as they come, in the order of their rows; ``events`` are told of each row."""

    def effort(self) -> dict[str, Any]:
        """What this sitting took, for the record of a finished run."""


def run_description(command: str, classifier: Mapping[str, Any]) -> dict[str, Any]:
    """What the record of a run says, without its input."""
    return {
        "format": RESULTS_FORMAT,
        "version": RESULTS_VERSION,
        "ranmask": __version__,
        "command": command,
        "input": {},
        "classifier": dict(classifier),
    }


class RowByRow(ABC):
    """A task that answers each row by itself.  ``classifier`` describes what does."""

    command: str
    classify: Callable[[Sequence[Text]], Sequence[Any]]
    classifier: Mapping[str, Any]
    measured_rows = None

    @abstractmethod
    def line(self, outcome: Outcome) -> Line:
        """The JSON line of a row."""

    def description(self, *, sharded: bool = False) -> dict[str, Any]:
        """Everything but the input that the results depend on."""
        return run_description(self.command, self.classifier)

    def lines(self, rows: Sequence[Row]) -> Iterator[Line]:
        """One line for each row of a shard."""
        return map(self.line, classify_rows(rows, self.classify, at_once=ROWS_AT_ONCE))

    def groups(
        self, rows: Iterable[Row], results: ResultFile, events: RunEvents
    ) -> Iterator[list[Line]]:
        """Lines of so many rows as take about two seconds."""
        for outcomes in classify_groups(rows, self.classify, trouble=events.trouble):
            lines = list(map(self.line, outcomes))
            yield list(lines)
            tell(events, lines)

    def effort(self) -> dict[str, Any]:
        """Nothing: the summary says it all."""
        return {}


@dataclass(frozen=True)
class ClassifyTask(RowByRow):
    """Rows to predictions, certificates or other results of a classifier.

    ``compared``: the certificates of each `Comparison`, exact first.  ``positive``: the class that
    its summary holds against all others.
    """

    command: str
    labels: tuple[str, ...] | None
    classify: Classify
    classifier: Mapping[str, Any]
    compared: tuple[str, ...] = ()
    positive: int | None = None

    @property
    def threats(self) -> tuple[str, ...]:
        """Threats whose radii stand beside the radius."""
        options = self.classifier.get("options", {})
        asked = options.get("threats") or () if self.command == "certify" else ()
        return tuple(name for name in asked if name != options["threat"])

    @property
    def record(self) -> type:
        """The class whose fields all its results have."""
        kinds = {"certify": Certificate, "predict": Prediction}
        if self.command not in kinds:
            raise OptionError(f"{self.command!r} has no sharded runs; {', '.join(kinds)} have")
        return kinds[self.command]

    def summary(self) -> RunSummary:
        """An empty summary."""
        return RunSummary(self.command, self.labels, positive=self.positive)

    def line(self, outcome: Outcome) -> Line:
        """The JSON line of a row."""
        return outcome.to_dict(self.labels)


def tell(events: RunEvents, lines: Sequence[Line]) -> None:
    """Report rows that are done."""
    for line in lines:
        if line.get("error") is not None:
            events.failed(line["row"], line["error"])
    if queries := sum(line.get("queries") or 0 for line in lines):
        events.asked(queries, "questions")
    elif copies := sum(line.get("masks") or 0 for line in lines):
        events.asked(copies, "copies")
    events.progress(len(lines))


@dataclass(frozen=True)
class Outcome:
    """One row with what became of it: a result, or an error."""

    row: Row
    result: Result | None = None
    error: str | None = None

    def to_dict(self, labels: tuple[str, ...] | None) -> dict[str, Any]:
        """The JSON line of this row."""
        line: dict[str, Any] = {"row": self.row.number, **self.row.kept_values()}
        others = {"columns": line.pop("columns")} if "columns" in line else {}
        if isinstance(self.row.text, tuple):
            line["premise"], line["hypothesis"] = self.row.text
        elif self.row.text is not None:
            line["text"] = self.row.text
        if self.result is not None:
            line |= self.result.to_dict()
        line |= others
        if self.result is not None and self.row.label is not None:
            classes = len(self.result.votes)
            line["expected_id"] = expected = label_id(self.row.label, labels, classes)
            if expected is not None:
                line["correct"] = expected == self.result.label_id
            else:
                names = ", ".join(labels) if labels else f"0 to {classes - 1}"
                line["error"] = f"unknown label {self.row.label!r}: the classes are {names}"
        if self.error is not None:
            line["error"] = self.error
        return line


_Answered: TypeAlias = tuple[Outcome, ClassifierError | None]
"""An outcome, and why the classifier failed on its row, where it did."""


def label_id(label: object, labels: tuple[str, ...] | None, classes: int) -> int | None:
    """The class that a label in a file means: its name, or its number; None if neither.

    True and false are names; where classes have none, they are 1 and 0.
    """
    if isinstance(label, bool):
        label = int(label) if labels is None else str(label)
    if isinstance(label, str):
        if labels is not None:
            if label in labels:
                return labels.index(label)
            folded = [name.casefold() for name in labels]
            if folded.count(label.strip().casefold()) == 1:
                return folded.index(label.strip().casefold())
        if not label.strip().isdecimal():
            return None
        label = int(label)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, int) and 0 <= label < classes:
        return label
    return None


def class_number(name: str, labels: tuple[str, ...] | None) -> int:
    """The number of a class of the model that is named by a user; raises where there is none."""
    number = label_id(name, labels, _UNKNOWN_CLASSES if labels is None else len(labels))
    if number is None:
        known = ", ".join(labels) if labels else "numbers from 0"
        raise OptionError(f"positive must be one of the classes, {known}; not {name!r}")
    return number


def class_ids(names: Sequence[str], labels: tuple[str, ...] | None) -> list[int]:
    """The classes of a corpus as numbers of the model's classes; raises where one is unknown."""
    if labels is None:
        return list(range(len(names)))
    found = []
    for name in names:
        place = label_id(name, labels, len(labels))
        if place is None:
            raise OptionError(
                f"the data have the class {name!r}, the model has {', '.join(labels)}: if they "
                "are the same classes, give labels in the model's order"
            )
        found.append(place)
    return found


def classify_rows(rows: Iterable[Row], classify: Classify, **how: Any) -> Iterator[Outcome]:
    """Classify rows in their order; those of `classify_groups`, one by one."""
    return itertools.chain.from_iterable(classify_groups(rows, classify, **how))


def classify_groups(
    rows: Iterable[Row],
    classify: Classify,
    *,
    at_once: int | None = None,
    trouble: Tell = _log.warning,
) -> Iterator[list[Outcome]]:
    """Classify rows a few at a time, in their order; rows that fail do not stop the others.

    ``at_once``: rows that are classified together, so that a model's last bits are the same every
    time; by default as many as take about two seconds.  ``trouble``: told of rows that could not
    be classified together, though each of them could alone.

    Stops with `ClassifierError` when the classifier fails on many rows in a row: then it is
    broken, not the rows.  What was classified before is given first.
    """
    failures, size = 0, at_once or 1
    left = iter(rows)
    while group := list(itertools.islice(left, size)):
        start = time.monotonic()
        answered = _classify_group(group, classify, trouble)
        if at_once is None:
            each = max(time.monotonic() - start, 1e-9) / len(group)
            size = max(1, min(_MOST_AT_ONCE, int(_SECONDS_AT_ONCE / each), 4 * size))
        done = []
        for outcome, fault in answered:
            failures = failures + 1 if fault is not None else 0
            done.append(outcome)
            if fault is not None and failures >= _FAILURES_IN_A_ROW:
                yield done
                raise ClassifierError(
                    f"stopped at row {outcome.row.number}: the classifier failed on "
                    f"{failures} rows in a row, last with: {fault.reason}"
                ) from fault
        yield done


def _classify_group(rows: list[Row], classify: Classify, trouble: Tell) -> list[_Answered]:
    answers: dict[int, _Answered] = {}
    usable: list[tuple[Row, Text]] = []
    for row in rows:
        try:
            if row.error is not None:
                raise TextError(row.error)
            document(row.text)
            assert row.text is not None
            usable.append((row, row.text))
        except TextError as error:
            answers[row.number] = Outcome(row, error=error.reason), None
    try:
        results = classify([text for _, text in usable]) if usable else []
        for (row, _), result in zip(usable, results, strict=True):
            answers[row.number] = Outcome(row, result), None
    except RanmaskError as error:
        alone = _one_by_one(usable, classify, error)
        if all(outcome.error is None for outcome, _ in alone):
            trouble(
                f"rows {usable[0][0].number} to {usable[-1][0].number} were classified one by one, "
                f"because together they failed: {error}"
            )
        answers |= {answered[0].row.number: answered for answered in alone}
    return [answers[row.number] for row in rows]


def _one_by_one(
    usable: Sequence[tuple[Row, Text]], classify: Classify, together: RanmaskError
) -> list[_Answered]:
    """Rows that failed together, each by itself, so that only those are lost that fail.

    A row that is to blame already is not asked again: what fails only sometimes fails.
    """
    blamed = together.index if isinstance(together, ClassifierError) else None
    if len(usable) == 1:
        blamed = 0
    found: list[_Answered] = []
    for place, (row, text) in enumerate(usable):
        try:
            if place == blamed:
                raise together
            found.append((Outcome(row, classify([text])[0]), None))
        except RanmaskError as error:
            fault = error if isinstance(error, ClassifierError) else None
            # An index counts texts of a call, which nobody knows but this module.
            reason = error.reason if isinstance(error, ClassifierError | TextError) else str(error)
            found.append((Outcome(row, error=reason), fault))
    return found
