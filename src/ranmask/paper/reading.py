"""Result files in, one small record out: what reports and comparisons are made of.

Reads files only, never a model, and keeps no text of a dataset; only our own sentences, the
lines of an ``examples`` step, stay as they are.  Folders of the machine that made the files are
cut from paths, so that the condensed file which `write` writes can be committed.  Guarantee: what
`write` wrote `read` reads back, equal in every field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from ranmask.errors import DataError, folders_cut
from ranmask.paper.result_lines import COMMANDS, condense, first_error
from ranmask.paper.run_data import RESULTS, Kind, Measures, Reproduction, Step, Trained
from ranmask.paper.typed_json import (
    JsonObject,
    from_json,
    read_json,
    read_lines,
    read_object,
    to_json,
    without_folders,
)
from ranmask.results.files import write_file
from ranmask.runs.result_file import read_header, with_constants

INDEX = "reproduction.json"
INDEX_FORMAT, INDEX_VERSION = "ranmask-reproduction", 1
FORMAT, VERSION = "ranmask-condensed", 1

_RESULTS = "results"  # the folder inside a reproduction's that has the result files
_RECIPE = ("name", "title", "kind", "paper", "about")
_SPREAD = 5  # levels with a line for each entry: the whole, steps, a step, its result, readings
_TRAINING_FORMAT, _TRAINING_VERSION = "ranmask-training", 1
_READABLE = (
    "give a folder that `ranmask reproduce` wrote, a condensed file, or the result file of one "
    "run (X.jsonl)"
)
_SINGLE: dict[str, tuple[Measures, Kind]] = {
    "certify": ("certified", "certified"),
    "attack": ("attack", "empirical"),
    "predict": ("predict", "entropy"),
    "beta": ("beta", "beta"),
}
"""What a single run measures, by its command, and how a report shows it."""


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
    try:
        found = read_object(path)
    except DataError as error:
        if path.suffix == ".json":
            raise
        raise DataError(f"{path} is no result of ranmask: {_READABLE}") from error
    if found.get("format") != FORMAT:
        raise DataError(f"{path} has format {found.get('format')!r}, not {FORMAT!r}: {_READABLE}")
    return _from_content(read_object(path, FORMAT, VERSION), _with_stored)


def read_several(paths: Iterable[Path]) -> tuple[Reproduction, ...]:
    """Several reproductions for one report; refuses the same recipe, size and variant twice.

    A folder that is none itself stands for what is in it.
    """
    found: dict[str, Path] = {}
    runs = []
    for path in (inner for outer in paths for inner in _inside(outer)):
        run = read(path)
        before = found.get(run.folder_name)
        if before is not None:
            raise DataError(
                f"{before} and {path} are both {run.name} in the size {run.size!r} with the same "
                "settings, and a report shows one of each: leave one out, or see `ranmask compare "
                f"{before} {path}`"
            )
        found[run.folder_name] = path
        runs.append(run)
    return tuple(runs)


def _inside(path: Path) -> list[Path]:
    """Reproductions, condensed files and result files of a folder; or what is one itself."""
    if not path.is_dir() or (path / INDEX).is_file():
        return [path]
    found = [inner for inner in sorted(path.iterdir()) if _is_result(inner)]
    if not found:
        raise DataError(f"{path} has no reproduction and no result file in it; {_READABLE}")
    return found


def _is_result(path: Path) -> bool:
    if path.suffix == ".json" and path.is_file():
        found = read_json(path)  # one that is cut off is refused: it may have been a result
        return isinstance(found, Mapping) and found.get("format") == FORMAT
    return path.suffix == ".jsonl" or (path / INDEX).is_file()


def sources(path: Path) -> set[Path]:
    """The files that are read, none of which a report may be written over."""
    if path.is_dir() and not (path / INDEX).is_file():
        return set().union(*map(sources, _inside(path)))
    if path.is_dir():
        inside = (path / _RESULTS).rglob("*")
        return {(path / INDEX).resolve(), *(file.resolve() for file in inside if file.is_file())}
    return {path.resolve()}


def content(run: Reproduction, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """What every file says of a reproduction in the same words."""
    return {
        "recipe": {key: getattr(run, key) for key in _RECIPE},
        "size": run.size,
        "settings": run.settings,
        "variant": run.variant,
        "machine": run.machine,
        "steps": steps,
    }


def write(run: Reproduction, path: Path) -> None:
    """Write the condensed file of a reproduction, whole or not at all."""
    values = content(run, [to_json(step) for step in run.steps])
    if run.remarks:
        values["remarks"] = list(run.remarks)
    text = _text({"format": FORMAT, "version": VERSION, **values}, _SPREAD)
    write_file(path, text + "\n")


def _text(value: Any, levels: int) -> str:
    """JSON with a line for each entry of the uppermost levels, and without blanks below them."""
    if levels and value and isinstance(value, Mapping):
        lines = [f"{json.dumps(key)}: {_text(entry, levels - 1)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(lines) + "\n}"
    if levels and value and isinstance(value, list) and isinstance(value[0], Mapping):
        return "[\n" + ",\n".join(_text(entry, levels - 1) for entry in value) + "\n]"
    return json.dumps(value, separators=(",", ":"))


def _from_content(found: JsonObject, read_step: Callable[[Step, JsonObject], Step]) -> Reproduction:
    """The reproduction that a file describes; ``read_step`` adds the result of a step."""
    if not isinstance(found["steps"], list):
        raise DataError(f"{found.where}: steps is a {type(found['steps']).__name__}, not a list")
    steps = []
    for number, values in enumerate(found["steps"], 1):
        entry = JsonObject(values, f"{found.where}: step {number}")
        without = {key: value for key, value in entry.items() if key != "result"}
        steps.append(read_step(from_json(Step, without, entry.where), entry))
    recipe = found.inner("recipe")
    for key in _RECIPE:
        recipe[key]  # says what is missing there, and not in the whole
    values = {**{key: found[key] for key in ("size", "settings", "machine")}, **recipe}
    values["variant"] = found.get("variant", {})  # older files have none
    values["remarks"] = found.get("remarks", [])
    return from_json(Reproduction, {**values, "steps": tuple(steps)}, f"{found.where}: recipe")


def _with_stored(step: Step, entry: JsonObject) -> Step:
    """The step with the result that a condensed file holds."""
    where = f"{entry.where}: result of {step.name}"
    if entry["result"] is None:
        if step.state == "done":
            raise DataError(f"{where}: none, although it is done: the file was changed")
        return step
    return replace(step, result=from_json(RESULTS[step.measures], entry["result"], where))


def _read_folder(folder: Path) -> Reproduction:
    found = read_object(folder / INDEX, INDEX_FORMAT, INDEX_VERSION)
    found.setdefault("variant", {})
    for key in ("settings", "variant", "machine"):
        found[key] = without_folders(found[key])

    def with_result(step: Step, entry: JsonObject) -> Step:
        error = None if step.error is None else folders_cut(step.error)
        step = replace(step, command=folders_cut(step.command), error=error)
        if step.state != "done":
            return step
        output = PurePosixPath(str(entry["output"]))
        if output.is_absolute() or ".." in output.parts:
            raise DataError(f"{entry.where}: output {str(output)!r} lies outside of {folder}")
        path = folder / output
        if not path.is_file():
            raise DataError(
                f"the step {step.name} is done, but its file {path} is gone: put it back, or "
                "delete the folder and reproduce again"
            )
        add = _with_training if step.measures == "training" else _with_lines
        return add(step, path)

    return _from_content(found, with_result)


def _with_training(step: Step, path: Path) -> Step:
    found = read_object(path, _TRAINING_FORMAT, _TRAINING_VERSION)
    if "validation" not in found:
        return replace(step, state="todo", error="not finished: the same command goes on")
    return replace(step, result=from_json(Trained, without_folders(found), str(path)))


def _with_lines(step: Step, path: Path) -> Step:
    """The step with what its result file says; not done where the run was not finished."""
    record = _read_record(path)
    if record["command"] != COMMANDS[step.measures]:
        raise DataError(
            f"{path} was written by `ranmask {record['command']}`, and a step that measures "
            f"{step.measures!r} is written by `ranmask {COMMANDS[step.measures]}`"
        )
    step = replace(step, data=JsonObject(without_folders(record["input"]), f"{path}: input"))
    step.check(str(path))
    if "finished" not in record:
        rows = max(path.read_bytes().count(b"\n") - 1, 0)
        note = f"not finished (rows so far: {rows}): the same command goes on"
        return replace(step, state="todo", error=note)
    lines = [
        JsonObject(with_constants(line, record["constants"]), line.where)
        for line in read_lines(path)[1:-1]
    ]
    finished = record.inner("finished")
    # An attack counts its texts without those that have errors.
    counted = ("rows",) if "rows" in finished else ("texts", "errors")
    if len(lines) != sum(finished[key] for key in counted if isinstance(finished[key], int)):
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
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise DataError(
            f"{path} does not hold lines of `ranmask {record['command']}`: {error}"
        ) from error
    return replace(step, result=from_json(type(result), vars(result), str(path)))


def _read_file(path: Path) -> Reproduction:
    """The result file of one run, as a reproduction of one step."""
    record = _read_record(path)
    if record["command"] not in _SINGLE:
        raise DataError(
            f"{path} was written by `ranmask {record['command']}`: only files of "
            f"{', '.join(_SINGLE)} can be read"
        )
    measures, kind = _SINGLE[record["command"]]
    name, machine = path.name.removesuffix(".jsonl"), {"ranmask": record["ranmask"]}
    # The record says what was run, but not the line that was typed.
    step = Step(name, measures, command="", place=_place(name, record), state="done")
    step.check(f"{path}: step 1")
    steps = (_with_lines(step, path),)
    return Reproduction(name, name, kind, "", "", "single run", {}, machine, steps)


def _place(name: str, record: JsonObject) -> dict[str, Any]:
    """Where the result of a single run belongs, as far as its record says."""
    if record["command"] == "attack":
        return {"method": name, "attack": record.inner("recipe")["name"]}
    if record["command"] == "predict":
        return {"method": name}
    options = JsonObject(
        record.inner("classifier").get("options") or {}, f"{record.where}: options"
    )
    rate = options.get("mask_rate")
    place: dict[str, Any] = {} if rate is None else {"rate": rate}
    if record["command"] == "beta":
        return {"corpus": record.inner("input").get("name", name), **place}
    return place


def _read_record(path: Path) -> JsonObject:
    record = read_header(path)
    if record is None:
        raise DataError(
            f"{path} was not written by a run of ranmask: its first line is not the record of one; "
            f"{_READABLE}"
        )
    found = JsonObject(record, f"{path}, line 1")
    if not isinstance(found["command"], str):
        raise DataError(f"{found.where}: command is {found['command']!r}, not the name of one")
    return found
