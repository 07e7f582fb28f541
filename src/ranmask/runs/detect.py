"""Every row of a file through a detector, resumable: `detect_file`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

from ranmask.data.rows import Columns, RowSource, file_rows
from ranmask.results import Detection
from ranmask.runs.api import run
from ranmask.runs.flag_counts import FlagCounts
from ranmask.runs.shards.reading import folder_lines
from ranmask.runs.shards.run import Sharding
from ranmask.runs.task import Line, Outcome, RowByRow, RunEvents, label_id
from ranmask.words import Text

COMMAND = "detect"


class AnyDetector(Protocol):
    """What a run needs of a detector."""

    @property
    def labels(self) -> tuple[str, ...]:
        """All classes of its data or model."""

    @property
    def positive(self) -> str:
        """The class that is flagged."""

    def detect(self, texts: Sequence[Text]) -> Sequence[Detection]:
        """Whether each text is flagged, by what, and what is proved."""

    def description(self) -> dict[str, Any]:
        """What determines the results, as plain JSON values."""


DetectorOrLoader: TypeAlias = AnyDetector | Callable[[], AnyDetector]


def detect_file(
    detector: DetectorOrLoader,
    input: str | Path | RowSource,
    output: str | Path,
    *,
    columns: Columns | None = None,
    by: str | None = None,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
) -> DetectionSummary:
    """Flag every row of a file, or not.  The same call again goes on where it stopped.

    ``detector`` may be a function without arguments that loads one, which shards need.  ``by``
    names a kept column: false alarms and recall are then counted for each of its values, too.
    Other arguments are those of `certify_file`.
    """
    source = input if isinstance(input, RowSource) else file_rows(input, columns)
    make = functools.partial(DetectTask.of, detector, by)
    summary = run(make, source, Path(output), sharding=sharding, events=events)
    if isinstance(summary, DetectionSummary):
        return summary
    return summarise_folder(Path(output), by)


def summarise_folder(folder: Path, by: str | None = None) -> DetectionSummary:
    """What all parts of a sharded run amount to."""
    summary = DetectionSummary(by)
    summary.add(folder_lines(folder))
    return summary


@dataclass
class DetectionSummary:
    """What the lines of ``detect`` amount to, added as they come; memory does not grow with them.

    ``counts``: of lines with labels, also those with each value of the column ``by``.
    """

    by: str | None = None
    rows: int = 0
    errors: int = 0
    flagged: int = 0
    failed: int = 0
    counts: FlagCounts = field(default_factory=FlagCounts)

    def add(self, lines: Iterable[Line]) -> None:
        """Count lines, as a run writes them."""
        for line in lines:
            self.rows += 1
            self.errors += line.get("error") is not None
            self.flagged += bool(line.get("flagged"))
            self.failed += line.get("failed") or 0
            if line.get("correct") is None:
                continue
            expected = line["flagged"] == line["correct"]
            found = (line["flagged"], line["radius"], line["words"], expected)
            self.counts.add(*found, group=self._group(line))

    def _group(self, line: Line) -> object:
        if self.by == "id":
            return line.get("id")
        return None if self.by is None else line.get("columns", {}).get(self.by)

    def values(self) -> dict[str, Any]:
        """All figures as plain JSON values."""
        labelled = self.counts.recall.whole + self.counts.false_positives.whole
        values: dict[str, Any] = {
            "rows": self.rows,
            "errors": self.errors,
            "flagged": self.flagged,
            "failed_windows": self.failed,
            "labelled": labelled,
        }
        return values | (self.counts.values() if labelled else {})


@dataclass(frozen=True)
class DetectTask(RowByRow):
    """Rows to detections of the class ``positive``; ``classifier`` describes the detector."""

    labels: tuple[str, ...]
    positive: str
    classify: Any  # from texts to a `Detection` for each
    classifier: Mapping[str, Any]
    by: str | None = None
    command: str = COMMAND
    record: type = Detection

    @classmethod
    def of(cls, detector: DetectorOrLoader, by: str | None = None) -> Self:
        """The task of a detector, or of a function that loads one."""
        loaded: Any = detector if hasattr(detector, "detect") else detector()
        return cls(loaded.labels, loaded.positive, loaded.detect, loaded.description(), by)

    def summary(self) -> DetectionSummary:
        """An empty summary."""
        return DetectionSummary(self.by)

    def line(self, outcome: Outcome) -> Line:
        """The JSON line of a row."""
        row = outcome.row
        found: Any = outcome.result
        line: dict[str, Any] = {"row": row.number, **row.kept_values()}
        others = {"columns": line.pop("columns")} if "columns" in line else {}
        if isinstance(row.text, str):
            line["text"] = row.text
        if isinstance(found, Detection):
            line |= found.to_dict()
        line |= others
        if isinstance(found, Detection) and row.label is not None:
            self._judge(line, row.label)
        if outcome.error is not None:
            line["error"] = outcome.error
        return line

    def _judge(self, line: dict[str, Any], label: object) -> None:
        place = label_id(label, self.labels, len(self.labels))
        line["expected_id"] = place
        if place is None:
            names = ", ".join(self.labels)
            line["error"] = f"unknown label {label!r}: the classes are {names}"
        else:
            line["correct"] = line["flagged"] == (self.labels[place] == self.positive)
