"""Result files in, one small record out: what reports and comparisons are made of.

Reads files only, never a model, and keeps no text of a dataset; only our own sentences, the
lines of an ``examples`` step, stay as they are.  Folders of the machine that made the files are
cut from paths, so that what `write` writes can be committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from ranmask.errors import DataError, folders_cut
from ranmask.paper.report.checking import check
from ranmask.paper.report.condensed import Reproduction, Step, Trained
from ranmask.paper.report.condensed_file import (
    FORMAT,
    listed,
    read_condensed,
    reproduction_of,
    step_of,
    write,
)
from ranmask.paper.report.files import Line, read_lines, read_object, without_folders
from ranmask.paper.report.lines import COMMANDS, condense, first_error
from ranmask.paper.reproduction.record import FILE_NAME as INDEX
from ranmask.paper.reproduction.record import FORMAT as INDEX_FORMAT
from ranmask.paper.reproduction.record import VERSION as INDEX_VERSION
from ranmask.paper.reproduction.record import Measures
from ranmask.results.files import check_format
from ranmask.runs.result_file import read_header, with_constants

__all__ = ["INDEX", "RESULTS", "read", "read_several", "sources", "write"]

RESULTS = "results"
"""The folder inside it that has the result files."""

_TRAINING_FORMAT, _TRAINING_VERSION = "ranmask-training", 1
_READABLE = (
    "give a folder that `ranmask reproduce` wrote, a condensed file, or the result file of one "
    "run (X.jsonl)"
)
_KINDS: dict[str, tuple[Measures, Literal["certified", "empirical", "entropy", "beta"]]] = {
    "certify": ("certified", "certified"),
    "attack": ("attack", "empirical"),
    "predict": ("predict", "entropy"),
    "beta": ("beta", "beta"),
}


def read(path: Path) -> Reproduction:
    """What a reproduction's folder, a condensed file or the result file of one run holds."""
    if path.is_dir():
        if not (path / INDEX).is_file():
            raise DataError(f"{path} is not a reproduction: there is no {INDEX} in it; {_READABLE}")
        return _read_folder(path)
    if not path.is_file():
        raise DataError(f"there is no file or folder {path}: {_READABLE}")
    if path.suffix == ".jsonl" or read_header(path) is not None:
        return _read_file(path)
    found = read_object(path)
    if found.get("format") != FORMAT:
        raise DataError(f"{path} has format {found.get('format')!r}, not {FORMAT!r}: {_READABLE}")
    return read_condensed(path)


def read_several(paths: Iterable[Path]) -> tuple[Reproduction, ...]:
    """Several reproductions for one report; refuses the same recipe in the same size twice."""
    found: dict[tuple[str, str], Path] = {}
    reproductions = []
    for path in paths:
        one = read(path)
        before = found.get((one.name, one.size))
        if before is not None:
            raise DataError(
                f"{before} and {path} are both {one.name} in the size {one.size!r}, and a report "
                f"shows one of each: leave one out, or see `ranmask compare {before} {path}`"
            )
        found[one.name, one.size] = path
        reproductions.append(one)
    return tuple(reproductions)


def sources(path: Path) -> set[Path]:
    """The files that `read` reads, none of which a report may be written over."""
    if path.is_dir():
        inside = (path / RESULTS).rglob("*")
        return {(path / INDEX).resolve(), *(one.resolve() for one in inside if one.is_file())}
    return {path.resolve()}


def _read_folder(folder: Path) -> Reproduction:
    found = read_object(folder / INDEX)
    check_format(found, INDEX_FORMAT, INDEX_VERSION, found.where)
    steps = [
        _read_step(folder, Line(step, f"{found.where}: step {number}"))
        for number, step in enumerate(listed(found, "steps"), 1)
    ]
    cleaned = Line(
        {**found, **without_folders({key: found[key] for key in ("settings", "machine")})},
        found.where,
    )
    return reproduction_of(cleaned, tuple(steps))


def _read_step(folder: Path, entry: Line) -> Step:
    step = step_of(entry)
    step = replace(
        step,
        command=folders_cut(step.command),
        error=None if step.error is None else folders_cut(step.error),
    )
    if step.state != "done":
        return step
    output = PurePosixPath(str(entry["output"]))
    if output.is_absolute() or ".." in output.parts:
        raise DataError(f"{entry.where}: output {str(output)!r} lies outside of {folder}")
    path = folder / output
    if not path.is_file():
        raise DataError(
            f"the step {step.name} is done, but its file {path} is gone: put it back, or delete "
            "the folder and reproduce again"
        )
    return _with_training(step, path) if step.measures == "training" else _with_lines(step, path)


def _with_training(step: Step, path: Path) -> Step:
    found = read_object(path)
    check_format(found, _TRAINING_FORMAT, _TRAINING_VERSION, found.where)
    if "validation" not in found:
        return replace(step, state="todo", error="not finished: the same command goes on")
    trained = Trained(without_folders(found["run"]), without_folders(found["validation"]))
    check(trained, str(path))
    return replace(step, result=trained)


def _with_lines(step: Step, path: Path) -> Step:
    """The step with what its result file says; not done where the run was not finished."""
    record = _read_record(path)
    if record["command"] != COMMANDS[step.measures]:
        raise DataError(
            f"{path} was written by `ranmask {record['command']}`, and a step that measures "
            f"{step.measures!r} is written by `ranmask {COMMANDS[step.measures]}`"
        )
    step = replace(step, data=without_folders(record["input"]))
    if "finished" not in record:
        note = f"not finished (rows so far: {_complete_rows(path)}): the same command goes on"
        return replace(step, state="todo", error=note)
    lines = [
        Line(with_constants(line, record["constants"]), line.where)
        for line in read_lines(path)[1:-1]
    ]
    finished = Line(record["finished"], f"{record.where}: finished")
    # An attack counts its texts without those that have errors.
    counted = ("rows",) if "rows" in finished else ("texts", "errors")
    if [len(lines)] != [sum(finished[key] for key in counted if isinstance(finished[key], int))]:
        said = " and ".join(f"{finished[key]!r} {key}" for key in counted)
        raise DataError(
            f"{path} has {len(lines)} lines, and its record says {said}: the file was "
            "changed after the run; run again"
        )
    problem = first_error(lines)
    if problem is not None:
        return replace(step, state="failed", error=folders_cut(problem))
    try:
        result = condense(step.measures, lines, record)
    except DataError:
        raise
    except (
        *(TypeError, ValueError, AttributeError, IndexError, KeyError),
        ArithmeticError,
    ) as error:
        raise DataError(
            f"{path} does not hold lines of `ranmask {record['command']}`: {error}"
        ) from error
    check(result, str(path))
    return replace(step, result=result)


def _read_file(path: Path) -> Reproduction:
    """The result file of one run, as a reproduction of one step."""
    record = _read_record(path)
    if record["command"] not in _KINDS:
        raise DataError(
            f"{path} was written by `ranmask {record['command']}`: only files of "
            f"{', '.join(_KINDS)} can be read"
        )
    measures, kind = _KINDS[record["command"]]
    name = path.name.removesuffix(".jsonl")
    # The record says what was run, but not the line that was typed.
    step = Step(name, measures, "", _place(name, record), "done")
    step = _with_lines(step, path)
    made = Reproduction(
        name=name,
        title=name,
        kind=kind,
        paper="",
        about="",
        size="single run",
        settings={},
        machine={"ranmask": record["ranmask"]},
        steps=(step,),
    )
    check(made, str(path))
    return made


def _place(name: str, record: Line) -> dict[str, Any]:
    """Where the result of a single run belongs, as far as its record says."""
    if record["command"] == "attack":
        recipe = Line(record["recipe"], f"{record.where}: recipe")
        return {"method": name, "attack": recipe["name"]}
    if record["command"] == "predict":
        return {"method": name}
    classifier = Line(record["classifier"], f"{record.where}: classifier")
    options = Line(classifier.get("options") or {}, f"{record.where}: options")
    rate = options.get("mask_rate")
    place: dict[str, Any] = {} if rate is None else {"rate": rate}
    if record["command"] == "beta":
        data = Line(record["input"], f"{record.where}: input")
        return {"corpus": data.get("name", name), **place}
    return place


def _read_record(path: Path) -> Line:
    record = read_header(path)
    if record is None:
        raise DataError(
            f"{path} was not written by a run of ranmask: its first line is not the record of one"
        )
    found = Line(record, f"{path}, line 1")
    if not isinstance(found["command"], str):
        raise DataError(f"{found.where}: command is {found['command']!r}, not the name of one")
    return found


def _complete_rows(path: Path) -> int:
    return max(path.read_bytes().count(b"\n") - 1, 0)
