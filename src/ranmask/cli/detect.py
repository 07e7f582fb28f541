"""``ranmask detect``: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.cli.command import Given, command
from ranmask.cli.detect_printing import add_outcome, result_table, summary_lines
from ranmask.cli.options import (
    CACHE,
    ColumnOptions,
    InputOptions,
    OutputOptions,
    Printed,
    ShardingOptions,
    open_input,
)
from ranmask.cli.running import say_unread_label, shown_events
from ranmask.cli.terminal import printed_lines, progress, say, tame_libraries
from ranmask.data.rows import SUFFIXES, Columns, Row, RowSource, file_rows
from ranmask.data.splits import corpus_rows
from ranmask.errors import DataError, OptionError, OutputError
from ranmask.models import model_config
from ranmask.options import LABELS
from ranmask.options.fields import REQUIRED, Checked, option
from ranmask.training.detector_options import share_of
from ranmask.words import document, usable

if TYPE_CHECKING:
    from ranmask.smoothing.detectors import Detector

_OF_WINDOWS = ("positive", "labels", "threshold")
_CALIBRATION = ("save", "false_positives")
_RUN = (InputOptions, OutputOptions, ShardingOptions)


@dataclass(frozen=True, kw_only=True)
class DetectCommand(Checked, group="Detector"):
    """Which detector, and how it is made of a model."""

    model: str = option(
        "spam, spam-sms, toxicity or injection (they come with ranmask), or the folder of a "
        "detector; with --windows, a model: a folder, a hub id, or module:name of a pipeline or "
        "function.",
        REQUIRED,
        short="m",
        variable="RANMASK_MODEL",
    )
    windows: tuple[int, ...] | None = option(
        "Ask the model about windows of so many words, as 8,16,32.", least=1
    )
    positive: str | None = option("The class to flag.", unset="the second of two")
    labels: tuple[str, ...] | None = LABELS()
    threshold: float | None = option(
        "Score from which a window is flagged.", unset="0.5", above=0, most=1
    )
    reader: str | None = option(
        "The model of a detector whose folder cannot hold it: module:name, a folder, or a hub id."
    )
    cache: Path | None = CACHE()
    by: str | None = option("Column: rates are also given for each of its values, as of source.")


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions(Checked, group="Calibration"):
    """How a threshold is set."""

    calibrate: str | None = option(
        "Set the threshold on these labelled texts, a file or a corpus (its validation rows)."
    )
    false_positives: str = option(
        "Share of texts of other classes that may be flagged, as 1% or 0.01.", "1%"
    )
    save: Path | None = option("Folder for the detector with its threshold.")


@command(
    InputOptions,
    DetectCommand,
    CalibrationOptions,
    OutputOptions,
    ShardingOptions,
    ColumnOptions,
    without=("pair_columns",),
)
def detect(given: Given) -> bool | None:
    """Flag texts, and prove that what is flagged stays flagged.

    With --input and --output, results are appended as they come; the same command again resumes.
    With --calibrate and --save, sets the threshold of a detector, or of a model with --windows.

    Example: ranmask detect --model spam-sms --input mails.csv --output flagged.jsonl
    """
    asked, calibration = given.build(DetectCommand), given.build(CalibrationOptions)
    if asked.windows is None:
        given.refuse(_OF_WINDOWS, "without --windows")
    if calibration.calibrate is not None:
        given.refuse(given.of(*_RUN), "with --calibrate, which sets a threshold and no more")
        _calibrate(given, asked, calibration)
        return None
    given.refuse(_CALIBRATION, "without --calibrate")
    options = given.build(OutputOptions)
    output, given = options.output, _with_column(given, asked.by)
    sharding = given.build(ShardingOptions).sharding(output)
    source = open_input(given, output)
    if output is None:
        return _show(asked, _load(asked), source, options.printed)
    if _sizes(asked):  # read once more, before the first question
        again = source if isinstance(source.rows, list) else open_input(given, output)
        _say_cost(asked, _lengths(again))
    from ranmask.runs.detect import detect_file

    load: Any = partial(_load, asked)
    with shown_events(source.total, output, sharding) as events:
        summary = detect_file(load, source, output, by=asked.by, sharding=sharding, events=events)
    say(*summary_lines(summary.values()))
    say_unread_label(source, output)
    return summary.errors > 0


def _load(asked: DetectCommand) -> Detector:
    tame_libraries()
    from ranmask.smoothing import reader_store
    from ranmask.smoothing.detector_store import is_detector, load_detector
    from ranmask.smoothing.window_detector import WindowDetector

    if asked.windows is None:
        return load_detector(asked.model, reader=asked.reader, cache=asked.cache)
    if is_detector(asked.model):
        raise OptionError(
            f"--windows means nothing for {asked.model!r}, which is a detector: leave it out"
        )
    access = reader_store.Access(cache=asked.cache)
    reader = reader_store.named(asked.model, access, asked.labels)
    return WindowDetector(
        reader,
        sizes=asked.windows,
        threshold=0.5 if asked.threshold is None else asked.threshold,
        positive=asked.positive,
        labels=asked.labels,
    )


def _calibrate(given: Given, asked: DetectCommand, calibration: CalibrationOptions) -> None:
    from ranmask.runs.detect import DetectTask
    from ranmask.runs.task import class_ids, classify_rows
    from ranmask.smoothing.detectors import calibrated, too_few

    rate, save = share_of(calibration.false_positives), calibration.save
    if save is None:
        raise OptionError("--calibrate needs --save: the folder for the detector")
    if save.exists() and (not save.is_dir() or any(save.iterdir())):
        raise OutputError(f"{save} exists and is not an empty folder: name another one")
    columns = _with_column(given, asked.by).build(ColumnOptions).columns()
    source = _labelled(str(calibration.calibrate), columns)
    detector = _load(asked)
    if source.label_names:
        class_ids(source.label_names, detector.labels)
    every = list(source.rows)
    rows = [row for row in every if row.error is None and usable(row.text)]
    if len(rows) < len(every):
        say(f"{len(every) - len(rows)} of {len(every)} rows have no usable text: left out")
    expected = [_expected(row, detector) for row in rows]
    lengths = [len(document(row.text).words) for row in rows]
    harmless = [size for size, flag in zip(lengths, expected, strict=True) if not flag]
    _say_cost(asked, lengths, again=harmless)
    chosen = calibrated(detector, [row.text or "" for row in rows], expected, rate)
    task = DetectTask.of(chosen, asked.by)
    summary = task.summary()
    classify: Any = chosen.detect
    summary.add(task.line(outcome) for outcome in classify_rows(rows, classify, trouble=say))
    chosen.save_pretrained(save)
    say(*summary_lines(summary.values()))
    if note := too_few(expected.count(False), rate):
        say(f"warning: {note}")
    say(f"{save}: threshold {chosen.threshold:.6g}, flags {chosen.positive}")


def _expected(row: Row, detector: Detector) -> bool:
    from ranmask.runs.task import label_id

    place = label_id(row.label, detector.labels, len(detector.labels))
    if place is None:
        names = ", ".join(detector.labels)
        raise DataError(f"unknown label {row.label!r}: the classes are {names}", row.number)
    return detector.labels[place] == detector.positive


def _labelled(name: str, columns: Columns) -> RowSource:
    if not Path(name).is_file():
        if Path(name).suffix.lower() in SUFFIXES:
            raise DataError(f"there is no file {name}")
        if replace(columns, keep=()).wanted:
            raise OptionError("columns go with a file, not with a corpus by name")
        return corpus_rows(name, "validation", columns=columns)
    if columns.label is None:
        raise OptionError("a threshold is set by labels: name their column with --label-column")
    return file_rows(name, columns)


def _with_column(given: Given, by: str | None) -> Given:
    """The options, with the column that rates are given by among those to keep."""
    if by is None:
        return given
    kept = tuple(given.get("keep_columns") or ())
    return Given(given) if by in kept else Given({**given, "keep_columns": (*kept, by)})


def _lengths(source: RowSource) -> list[int]:
    return [len(row.text.split()) for row in source.rows if isinstance(row.text, str)]


def _say_cost(asked: DetectCommand, lengths: Sequence[int], again: Sequence[int] = ()) -> None:
    """Say how often a model is asked; ``again``: lengths of texts that are read twice."""
    from ranmask.smoothing.window_detector import window_count

    if sizes := _sizes(asked):
        windows = sum(window_count(sizes, length) for length in (*lengths, *again) if length)
        say(f"asking the model about at most {windows:,} windows of {len(lengths):,} texts")


def _sizes(asked: DetectCommand) -> tuple[int, ...]:
    """Of windows that a model is asked about; none of a word table."""
    from ranmask.smoothing.detector_store import detector_folder

    if asked.windows is not None:
        return asked.windows
    known = model_config.of_folder(detector_folder(asked.model))
    return () if known is None else tuple(known.smoothing.get("sizes", ()))


def _show(asked: DetectCommand, detector: Detector, source: RowSource, printed: Printed) -> bool:
    """Print results.  Returns whether a row failed."""
    from rich.console import Console

    from ranmask.runs.detect import DetectTask
    from ranmask.runs.task import class_ids, classify_groups

    if source.label_names:
        class_ids(source.label_names, detector.labels)  # told before the first row
    source = replace(source, rows=list(source.rows))
    _say_cost(asked, _lengths(source))
    task = DetectTask.of(detector, asked.by)
    summary = task.summary()
    table = result_table()
    classify: Any = detector.detect
    with progress(source.total) as advance, printed_lines(printed) as write:
        for group in classify_groups(source.rows, classify, trouble=say):
            for outcome in group:
                line = task.line(outcome)
                summary.add([line])
                if write is not None:
                    write(line)
                else:
                    add_outcome(table, outcome)
            advance(len(group))
    if printed is None:
        Console().print(table)
    if summary.values()["labelled"]:
        say(*summary_lines(summary.values()))
    say_unread_label(source, None)
    return summary.errors > 0
