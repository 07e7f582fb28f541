"""The condensed record as a file: versioned JSON, one list a line, small enough to commit.

Guarantee: what `write` wrote `read_condensed` reads back, equal in every field.  Rows are written
as ranges, right and wrong as a string of 1 and 0, statuses as letters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, get_args

from ranmask.errors import DataError
from ranmask.paper.report.checking import check
from ranmask.paper.report.condensed import (
    Attacked,
    Betas,
    Certified,
    Examples,
    Predicted,
    Reading,
    Reproduction,
    Result,
    Step,
    Trained,
)
from ranmask.paper.report.files import Line, read_object
from ranmask.paper.reproduction.record import Measures
from ranmask.results.files import check_format, write_file

FORMAT = "ranmask-condensed"
VERSION = 1

Codec: TypeAlias = tuple[Callable[[Any], Any], Callable[[Any], Any]]

_RECIPE = ("name", "title", "kind", "paper", "about")
_KINDS = ("certified", "empirical", "beta", "rates", "entropy", "arithmetic")
_STATES = ("done", "failed", "todo")
_RESULTS: dict[Measures, type[Result]] = {
    "training": Trained,
    "certified": Certified,
    "attack": Attacked,
    "predict": Predicted,
    "beta": Betas,
    "examples": Examples,
}
_OF_EACH_TEXT: dict[type, tuple[str, ...]] = {
    Certified: ("words",),
    Attacked: ("words", "statuses", "changed", "queries", "confirmed"),
    Predicted: ("correct", "vote_entropy", "score_entropy"),
    Betas: ("words", "share"),
}
_MOST_ROWS = 10_000_000  # a range is a few letters, whatever it says
_SPREAD = 5  # levels with a line for each entry: the whole, steps, a step, its result, readings


def write(reproduction: Reproduction, path: Path) -> None:
    """Write the condensed file of a reproduction, whole or not at all."""
    values = {
        "format": FORMAT,
        "version": VERSION,
        "recipe": {key: getattr(reproduction, key) for key in _RECIPE},
        "size": reproduction.size,
        "settings": reproduction.settings,
        "machine": reproduction.machine,
        "steps": [
            {**_values(step), "result": None if step.result is None else _encoded(step.result)}
            for step in reproduction.steps
        ],
    }
    write_file(path, _text(values, _SPREAD) + "\n")


def read_condensed(path: Path) -> Reproduction:
    """The reproduction that `write` wrote."""
    found = read_object(path)
    check_format(found, FORMAT, VERSION, found.where)
    steps = []
    for number, values in enumerate(listed(found, "steps"), 1):
        entry = Line(values, f"{path}: step {number}")
        step = step_of(entry)
        if entry["result"] is not None:
            where = f"{path}: result of {step.name}"
            result = _decoded(_RESULTS[step.measures], Line(entry["result"], where))
            step = replace(step, result=result)
        steps.append(step)
    return reproduction_of(found, tuple(steps))


def listed(found: Line, key: str) -> list[Any]:
    """An entry that has to be a list."""
    if not isinstance(found[key], list):
        raise DataError(f"{found.where}: {key} is a {type(found[key]).__name__}, not a list")
    return list(found[key])


def reproduction_of(found: Line, steps: tuple[Step, ...]) -> Reproduction:
    """A reproduction from what every file says of it in the same words."""
    recipe = Line(found["recipe"], f"{found.where}: recipe")
    made = Reproduction(
        name=recipe["name"],
        title=recipe["title"],
        kind=_one_of(recipe, "kind", _KINDS),
        paper=recipe["paper"],
        about=recipe["about"],
        size=found["size"],
        settings=found["settings"],
        machine=found["machine"],
        steps=steps,
    )
    check(made, found.where)
    return made


def step_of(found: Line) -> Step:
    """A step without its result, from what every file says of it in the same words."""
    step = Step(
        name=found["name"],
        measures=_one_of(found, "measures", get_args(Measures)),
        command=found["command"],
        place=found["place"],
        state=_one_of(found, "state", _STATES),
        seconds=found["seconds"],
        error=found["error"],
        data=found.get("data"),
    )
    check(step, found.where)
    return step


def _one_of(found: Line, key: str, known: Sequence[str]) -> Any:
    if found[key] not in known:
        raise DataError(f"{found.where}: {key} {found[key]!r} is none of {', '.join(known)}")
    return found[key]


def _values(record: Step | Result | Reading) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _encoded(record: Result | Reading) -> dict[str, Any]:
    return {
        key: value if value is None or key not in _CODECS else _CODECS[key][0](value)
        for key, value in _values(record).items()
    }


def _decoded(kind: type[Any], found: Line) -> Any:
    """The record of a kind, with lists that are all as long as there are texts."""
    given: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in found and field.default is not MISSING:
            continue
        value = found[field.name]
        if value is not None and field.name in _CODECS:
            try:
                value = _CODECS[field.name][1](value)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise DataError(f"{found.where}: {field.name} cannot be read: {error}") from error
        given[field.name] = value
    record = kind(**given)
    check(record, found.where)
    if "rows" in given:
        for name, length in _lengths(record):
            if length != len(record.rows):
                raise DataError(
                    f"{found.where}: {name} has {length} entries for {len(record.rows)} rows: the "
                    "file was changed after it was written"
                )
    return record


def _lengths(record: Any) -> Iterator[tuple[str, int]]:
    """How long each list of a result is that has an entry for each text."""
    for name in _OF_EACH_TEXT[type(record)]:
        values = getattr(record, name)
        if values is not None:
            yield name, len(values)
    if getattr(record, "expected", ()):
        yield "expected", len(record.expected)
    for reading in getattr(record, "readings", ()):
        yield f"correct of {reading.certificate}", len(reading.correct)
        yield f"radius of {reading.certificate}", len(reading.radius)
    for name in ("average", "largest"):
        for values in getattr(record, name, ()):
            yield name, len(values)


def _text(value: Any, levels: int) -> str:
    """JSON with a line for each entry of the uppermost levels, and without blanks below them."""
    if levels and value and isinstance(value, Mapping):
        lines = [f"{json.dumps(key)}: {_text(one, levels - 1)}" for key, one in value.items()]
        return "{\n" + ",\n".join(lines) + "\n}"
    if levels and value and isinstance(value, list) and isinstance(value[0], Mapping):
        return "[\n" + ",\n".join(_text(one, levels - 1) for one in value) + "\n]"
    return json.dumps(value, separators=(",", ":"))


# -- how single fields are written and read ----------------------------------------------------

_STATUSES = {"succeeded": "s", "failed": "f", "skipped": "k", "error": "e"}
_MARKS = {True: "1", False: "0", None: "-"}


def _ranges(rows: Sequence[int]) -> str:
    """``1-3,7``: rows that follow each other by their first and last."""
    found: list[list[int]] = []
    for row in rows:
        if found and row == found[-1][1] + 1:
            found[-1][1] = row
        else:
            found.append([row, row])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _from_ranges(text: str) -> tuple[int, ...]:
    rows: list[int] = []
    for part in text.split(",") if text else []:
        low, _, high = part.partition("-")
        if int(high or low) - int(low) > _MOST_ROWS:
            raise ValueError(f"{part} are more than {_MOST_ROWS:,} rows")
        rows += range(int(low), int(high or low) + 1)
    return tuple(rows)


def _letters(table: Mapping[Any, str]) -> Codec:
    back = {letter: value for value, letter in table.items()}
    return (
        lambda values: "".join(table[value] for value in values),
        lambda text: tuple(back[letter] for letter in text),
    )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _readings(values: list[Any]) -> tuple[Reading, ...]:
    return tuple(
        _decoded(Reading, Line(one, f"certificate {number}"))
        for number, one in enumerate(values, 1)
    )


_CODECS: dict[str, Codec] = {
    "rows": (_ranges, _from_ranges),
    "correct": _letters(_MARKS),
    "confirmed": _letters(_MARKS),
    "statuses": _letters(_STATUSES),
    "readings": (lambda readings: [_encoded(one) for one in readings], _readings),
    "lines": (list, tuple),
    "labels": (list, tuple),
    **dict.fromkeys(
        (
            *("words", "radius", "changed", "queries", "vote_entropy", "score_entropy", "expected"),
            *("share", "average", "largest"),
        ),
        (list, _tuples),
    ),
}
