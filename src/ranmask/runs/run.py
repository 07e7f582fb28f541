"""Runs over files: results written as they come, resumed where they stopped, never twice.

A run writes one JSON line for each input row to OUTPUT, in input order, and a record of what it
did to ``OUTPUT.run.json``.  The same command again goes on after the last complete line; other
options, another model or another input are refused.  A killed run loses at most the few texts
that were being worked on.

A row that cannot be classified becomes a line with an ``error``, and the run goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias

from ranmask.data.rows import Row
from ranmask.errors import ClassifierError, OptionError, OutputError, RanmaskError, TextError
from ranmask.metrics import CertifiedSummary
from ranmask.results import BetaEstimate, Certificate, Prediction
from ranmask.runs.files import check_file
from ranmask.words import Text, document

RUN_VERSION = 1

Result: TypeAlias = Prediction | Certificate | BetaEstimate
Classify: TypeAlias = Callable[[Sequence[Text]], Sequence[Result]]
Trouble: TypeAlias = Callable[[str], None]
"""Who is told, in words, of something that went wrong and did no harm."""

_SECONDS_AT_ONCE = 2.0  # how much work a killed run may lose
_MOST_AT_ONCE = 512
_FAILURES_IN_A_ROW = 20
_SORTS = ("rows", "errors", "labelled")
_OTHER_FORMATS = (".csv", ".tsv", ".json", ".parquet", ".pq", ".xlsx", ".gz")
# The measured tolerance may vary between runs, and each result names its own.
_MAY_VARY = ("finished", "tolerance", "path")


@dataclass(frozen=True)
class Outcome:
    """One row with what became of it: a result, or an error."""

    row: Row
    result: Result | None = None
    error: str | None = None

    def to_dict(self, labels: tuple[str, ...] | None) -> dict[str, Any]:
        """The JSON line of this row."""
        line: dict[str, Any] = {"row": self.row.number}
        if isinstance(self.row.text, tuple):
            line["premise"], line["hypothesis"] = self.row.text
        elif self.row.text is not None:
            line["text"] = self.row.text
        if self.result is not None:
            line |= self.result.to_dict()
            if self.row.label is not None:
                line |= _judged(self.row.label, self.result, labels)
        if self.error is not None:
            line["error"] = self.error
        return line


_Answered: TypeAlias = tuple[Outcome, ClassifierError | None]
"""An outcome, and why the classifier failed on its row, where it did."""


@dataclass(frozen=True)
class KindSummary:
    """What one of several certificates of the same texts is worth, and whether it is a proof."""

    guarantee: bool
    summary: CertifiedSummary


@dataclass
class RunSummary:
    """What the lines of a run amount to, added as they come; memory does not grow with them.

    ``certified``: certified accuracy over the labelled lines.  ``counts``: how many lines there
    are of each sort.  ``kinds``: what each certificate of a `Comparison` is worth, exact first.
    """

    certified: CertifiedSummary = field(default_factory=CertifiedSummary)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_SORTS, 0))
    kinds: dict[str, KindSummary] = field(default_factory=dict)

    def add(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Count lines, as a run writes them."""
        for line in lines:
            self.counts["rows"] += 1
            self.counts["errors"] += "error" in line
            if "correct" in line:
                self.counts["labelled"] += 1
                radius, words = line.get("radius"), line["words"]
                self.certified.add(
                    correct=line["correct"],
                    radius=radius,
                    words=words,
                    expected=line["expected_id"],
                )
                if "others" in line:
                    self._add_kinds(line)

    def _add_kinds(self, line: Mapping[str, Any]) -> None:
        for kind, one in {"exact": line, **line["others"]}.items():
            known = self.kinds.setdefault(kind, KindSummary(one["guarantee"], CertifiedSummary()))
            known.summary.add(
                correct=one["label_id"] == line["expected_id"],
                radius=one["radius"],
                words=line["words"],
                expected=line["expected_id"],
            )


def _judged(label: object, result: Result, labels: tuple[str, ...] | None) -> dict[str, Any]:
    expected = label_id(label, labels, len(result.votes))
    if expected is None:
        names = ", ".join(labels) if labels else f"0 to {len(result.votes) - 1}"
        return {"expected_id": None, "error": f"unknown label {label!r}: the classes are {names}"}
    return {"expected_id": expected, "correct": expected == result.label_id}


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


def classify_rows(
    rows: Iterable[Row],
    classify: Classify,
    *,
    at_once: int | None = None,
    trouble: Trouble = lambda why: None,
) -> Iterator[Outcome]:
    """Classify rows in their order; those of `classify_groups`, one by one."""
    for group in classify_groups(rows, classify, at_once=at_once, trouble=trouble):
        yield from group


def classify_groups(
    rows: Iterable[Row],
    classify: Classify,
    *,
    at_once: int | None = None,
    trouble: Trouble = lambda why: None,
) -> Iterator[list[Outcome]]:
    """Classify rows a few at a time, in their order; rows that fail do not stop the others.

    ``at_once``: rows that are classified together, so that a model's last bits are the same every
    time; by default as many as take about two seconds.  ``trouble``: told of rows that could not
    be classified together, though each of them could alone.

    Stops with `ClassifierError` when the classifier fails on many rows in a row: then it is
    broken, not the rows.  What was classified before is given first.
    """
    failures = 0
    if at_once is None:
        groups = _groups(rows, classify, trouble)
    else:
        groups = _equal_groups(rows, classify, trouble, at_once)
    for group in groups:
        done = []
        for outcome, fault in group:
            failures = failures + 1 if fault is not None else 0
            done.append(outcome)
            if fault is not None and failures >= _FAILURES_IN_A_ROW:
                yield done
                raise ClassifierError(
                    f"stopped at row {outcome.row.number}: the classifier failed on "
                    f"{failures} rows in a row, last with: {fault.reason}"
                ) from fault
        yield done


def _groups(rows: Iterable[Row], classify: Classify, trouble: Trouble) -> Iterator[list[_Answered]]:
    """Groups of rows that take about `_SECONDS_AT_ONCE` together."""
    size = 1
    waiting: list[Row] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) >= size:
            start = time.monotonic()
            yield _classify_group(waiting, classify, trouble)
            each = max(time.monotonic() - start, 1e-9) / len(waiting)
            size = max(1, min(_MOST_AT_ONCE, int(_SECONDS_AT_ONCE / each), 4 * size))
            waiting = []
    if waiting:
        yield _classify_group(waiting, classify, trouble)


def _equal_groups(
    rows: Iterable[Row], classify: Classify, trouble: Trouble, size: int
) -> Iterator[list[_Answered]]:
    left = iter(rows)
    while group := list(itertools.islice(left, size)):
        yield _classify_group(group, classify, trouble)


def _classify_group(rows: list[Row], classify: Classify, trouble: Trouble) -> list[_Answered]:
    answers: dict[int, _Answered] = {}
    usable: list[tuple[Row, Text]] = []
    for row in rows:
        problem = row.error
        if problem is None:
            try:
                document(row.text)
            except TextError as error:
                problem = error.reason
        if problem is None and row.text is not None:
            usable.append((row, row.text))
        else:
            answers[row.number] = Outcome(row, error=problem), None
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


def check_result_file(path: Path) -> None:
    """Raise, before any work is done, where results cannot be appended to ``path``."""
    check_file(path)
    if path.suffix.lower() in _OTHER_FORMATS:
        raise OutputError(
            f"cannot write {path}: results are written as JSON lines, one for each row, not as "
            f"{path.suffix}; name it {path.with_suffix('.jsonl')}"
        )


class ResultFile:
    """The output of a run: opened for one writer, resumed after its last complete line.

    Use as a context manager.  ``done`` is the number of the last input row that is in the file.
    """

    def __init__(self, path: Path, description: Mapping[str, Any]) -> None:
        check_result_file(path)
        self.path = path
        self.record = path.with_name(path.name + ".run.json")
        self.done = 0
        self._description = json.loads(json.dumps(description))
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ResultFile:
        with reported(self.path, begun=False):
            self._file = self.path.open("a+b")
        try:
            take_lock(self._file, self.path)
            self._check_record()
            self._find_end()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # reported when it was written
                self._file.close()

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Append lines and hand them to the operating system at once."""
        if self._file is None:
            raise ValueError("the result file is not open")
        data = b"".join(map(line_bytes, lines))
        with reported(self.path):
            written = 0
            while written < len(data):
                written += os.write(self._file.fileno(), data[written:])

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Record that every input row is in the file."""
        self._write_record({**self._description, "finished": dict(summary)})

    def lines(self) -> Iterator[dict[str, Any]]:
        """All lines in the file, in their order."""
        with reported(self.path), self.path.open("rb") as file:
            for line in file:
                yield json.loads(line)

    def _check_record(self) -> None:
        if not self.record.exists():
            if self.path.stat().st_size:
                raise OutputError(
                    f"{self.path} exists and was not written by ranmask: "
                    "choose another output, or delete it"
                )
            self._write_record(self._description)
            return
        try:
            recorded = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OutputError(f"cannot read {self.record}: {error}") from error
        differing = sorted(differences(recorded, self._description))
        if differing:
            raise OutputError(
                f"{self.path} belongs to a run with another {', '.join(differing)}: "
                "give the same options to resume it, or choose another output"
            )

    def _find_end(self) -> None:
        """Cut an unfinished last line off and find the last row that is complete."""
        assert self._file is not None
        self._file.seek(0)
        end = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                self.done = int(json.loads(line)["row"])
            except (ValueError, KeyError, TypeError) as error:
                raise OutputError(
                    f"{self.path} has a broken line after row {self.done}: repair or delete it"
                ) from error
            end += len(line)
        with reported(self.path):
            self._file.truncate(end)

    def _write_record(self, record: Mapping[str, Any]) -> None:
        with reported(self.record):
            draft = self.record.with_name(self.record.name + ".tmp")
            draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            draft.replace(self.record)


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
                "are the same classes, give --labels in the model's order"
            )
        found.append(place)
    return found


def run_description(
    command: str, source: Mapping[str, Any], classifier: Mapping[str, Any], ranmask: str
) -> dict[str, Any]:
    """What a run's record holds: everything that its results depend on."""
    return {
        "format": "ranmask-run",
        "version": RUN_VERSION,
        "ranmask": ranmask,
        "command": command,
        "input": dict(source),
        "classifier": dict(classifier),
    }


def fingerprint(description: Mapping[str, Any]) -> str:
    """A digest that two descriptions share where one run may go on with the other's results."""
    spelt = json.dumps(_settled(description), sort_keys=True)
    return hashlib.sha256(spelt.encode()).hexdigest()


def _settled(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _settled(one) for key, one in value.items() if key not in _MAY_VARY}


def summarise(lines: Iterable[Mapping[str, Any]]) -> tuple[CertifiedSummary, dict[str, int]]:
    """Certified accuracy over the labelled lines, and how many lines there are of each sort."""
    whole = RunSummary()
    whole.add(lines)
    return whole.certified, whole.counts


def summarise_kinds(lines: Iterable[Mapping[str, Any]]) -> dict[str, KindSummary]:
    """What each certificate of a `Comparison` is worth, exact first, over the labelled lines."""
    whole = RunSummary()
    whole.add(lines)
    return whole.kinds


def line_bytes(values: Mapping[str, Any]) -> bytes:
    """A line of a result file."""
    try:
        return (json.dumps(values, ensure_ascii=False) + "\n").encode("utf-8")
    except UnicodeEncodeError:
        # A text read from a file can hold half a surrogate pair; ASCII escapes keep it as it was.
        return (json.dumps(values) + "\n").encode("ascii")


def differences(one: object, other: object, path: str = "") -> Iterator[str]:
    """Names of the settings in which two records differ, but for those that may."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            if key not in _MAY_VARY:
                yield from differences(one.get(key), other.get(key), key)
    elif one != other:
        yield path


def take_lock(file: IO[bytes] | int, path: Path) -> None:
    """Be the only writer of ``path``, until ``file``, or its descriptor, is closed."""
    try:
        import fcntl
    except ImportError:
        return  # not a POSIX system: two writers are not noticed there
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise OutputError(f"another run is writing {path}") from error


@contextlib.contextmanager
def reported(path: Path, *, begun: bool = True) -> Iterator[None]:
    """What goes wrong with a file, as an `OutputError`; ``begun``: results may be in it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        kept = ". What was written before is complete; the same command resumes" if begun else ""
        raise OutputError(f"cannot write {path}: {reason}{kept}") from error
