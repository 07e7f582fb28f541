"""JSON from files that others may have touched: what is wrong is said with file and entry.

`from_json` turns an object into a dataclass.  Guarantee: it has no entry of a wrong type and no
number that is negative or not finite, and it has passed its own ``check``.  Whoever shows it need
not look again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ranmask.errors import DataError
from ranmask.results.files import check_format, reading

_Record = TypeVar("_Record")
_SPELT = {tuple: "a list", Mapping: "a table of names and values"}
_MOST_ROWS = 10_000_000  # a range is a few letters, whatever it says
_LONGEST = 60  # characters of a wrong value that a message shows


class JsonObject(dict[str, Any]):
    """A JSON object that knows where it stands: a key that is missing is a `DataError`."""

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, Mapping):
            raise DataError(f"{where}: expected a JSON object, not {type(values).__name__}")
        super().__init__(values)
        self.where = where

    def __missing__(self, key: str) -> Any:
        raise DataError(f"{self.where}: no {key!r} in it")

    def inner(self, key: str) -> JsonObject:
        """The object that an entry has to be."""
        return JsonObject(self[key], f"{self.where}: {key}")


@dataclass(frozen=True)
class Packed:
    """How a list is written as a short text: ``Annotated[tuple[...], Packed(...)]``."""

    pack: Callable[[Any], str]
    unpack: Callable[[str], tuple[Any, ...]]


def _ranges(rows: Sequence[int]) -> str:
    """Rows that follow each other by their first and last."""
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


RANGES = Packed(_ranges, _from_ranges)
"""Rows as ``1-3,7``."""


def letters(spelt: Mapping[Any, str]) -> Packed:
    """A letter for each value."""
    back = {letter: value for value, letter in spelt.items()}
    return Packed(
        lambda values: "".join(spelt[value] for value in values),
        lambda text: tuple(back[letter] for letter in text),
    )


def read_object(path: Path, format: str = "", version: int = 0) -> JsonObject:
    """The JSON object that a file holds; refused where it has another format or version."""
    found = JsonObject(read_json(path), str(path))
    if format:
        check_format(found, format, version, str(path))
    return found


def read_json(path: Path) -> object:
    """What a JSON file holds, whatever it is."""
    return _parsed(_text(path), str(path))


def read_lines(path: Path) -> list[JsonObject]:
    """The JSON objects that a file holds, one a line."""
    # Not splitlines(): texts may hold other characters that it takes for ends of lines.
    lines = _text(path).removesuffix("\n").split("\n")
    places = ((line, f"{path}, line {number}") for number, line in enumerate(lines, 1))
    return [JsonObject(_parsed(line, where), where) for line, where in places]


def from_json(kind: type[_Record], values: object, where: str, *, by_hand: bool = False) -> _Record:
    """A dataclass from a JSON object; its own ``check(where)``, if it has one, has the last word.

    Lists become tuples; a field that is not there gets its default.  ``by_hand``: people write
    such files, so that names which are not known are refused.
    """
    given = JsonObject(values, where)
    hints = get_type_hints(kind, include_extras=True)
    unknown = given.keys() - hints.keys()
    if by_hand and unknown:
        raise DataError(f"{where}: unknown {', '.join(map(repr, sorted(unknown)))}")
    found = {
        field.name: converted(given[field.name], hints[field.name], field.name, where, by_hand)
        for field in fields(kind)  # type: ignore[arg-type]
        if field.name in given or (field.default is field.default_factory is MISSING)
    }
    record = kind(**found)
    if hasattr(record, "check"):
        record.check(where)
    return record


def to_json(record: Any) -> dict[str, Any]:
    """What `from_json` reads back, equal in every field."""
    hints = get_type_hints(type(record), include_extras=True)
    return {
        field.name: _plain(getattr(record, field.name), hints[field.name])
        for field in fields(record)
    }


def check_entries(
    values: Mapping[str, Any], hints: Mapping[str, object], where: str, *, by_hand: bool = False
) -> None:
    """Refuse entries of a wrong type among those that have a hint; they need not be there."""
    for key, hint in hints.items():
        if key in values:
            converted(values[key], hint, key, where, by_hand)


def converted(value: Any, hint: Any, name: str, where: str, by_hand: bool = False) -> Any:
    """The value as its annotation says, or a `DataError` that names it."""
    origin, inner = get_origin(hint), get_args(hint)
    if NoneType in inner:
        if value is None:
            return None
        [hint] = [kind for kind in inner if kind is not NoneType]
        return converted(value, hint, name, where, by_hand)
    if origin is Annotated:
        if isinstance(value, str):
            try:
                value = inner[1].unpack(value)
            except (ValueError, KeyError) as error:
                raise DataError(f"{where}: {name} cannot be read: {error}") from error
        return converted(value, inner[0], name, where)
    if origin is tuple and isinstance(value, list | tuple):
        numbered = is_dataclass(inner[0])
        return tuple(
            converted(entry, inner[0], f"{name} {number}" if numbered else name, where, by_hand)
            for number, entry in enumerate(value, 1)
        )
    if is_dataclass(hint) and isinstance(hint, type):
        values = vars(value) if isinstance(value, hint) else value  # made of lines: as they are
        return from_json(hint, values, f"{where}: {name}", by_hand=by_hand)
    if not _fits(value, hint, origin):
        shown = ascii(value)  # the entry that is wrong may stand in a long list: cut it
        shown = shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."
        if origin is Literal:
            raise DataError(f"{where}: {name} {shown} is none of {', '.join(inner)}")
        spelt = hint.__name__ if isinstance(hint, type) and not inner else _SPELT.get(origin, hint)
        touched = "" if by_hand else ": the file was changed after it was written"
        raise DataError(f"{where}: {name} is {shown}, not {spelt}{touched}")
    return value


def without_folders(value: Any) -> Any:
    """Plain JSON values, with the last part only of every string that is an absolute path."""
    if isinstance(value, Mapping):
        return {key: without_folders(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [without_folders(entry) for entry in value]
    if isinstance(value, str):
        for path in (PurePosixPath(value), PureWindowsPath(value)):
            if path.is_absolute() and path.name:
                return path.name
    return value


def _fits(value: Any, hint: Any, origin: Any) -> bool:
    if hint is Any:
        return True
    if origin is Literal:
        return value in get_args(hint)
    if hint is float:
        # True is an int to Python.  Shares, times and entropies have no sign either.
        return type(value) in (int, float) and 0 <= value < math.inf
    if hint is int:
        return type(value) is int and 0 <= value < 10**15
    if origin is not None and origin is not tuple:  # a mapping has the names of a JSON object
        return isinstance(value, Mapping)
    return origin is None and isinstance(value, hint)


def _plain(value: Any, hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return get_args(hint)[1].pack(value)
    if is_dataclass(value):
        return to_json(value)
    if isinstance(value, tuple):
        return [_plain(entry, None) for entry in value]
    return value


def _text(path: Path) -> str:
    try:
        with reading(path):
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"cannot read {path}: it is not UTF-8 ({error.reason})") from error


def _parsed(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{where}, line {error.lineno}" if error.lineno > 1 else where
        raise DataError(f"{place}: not valid JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # a number, or a nesting, beyond all measure
        raise DataError(f"{where}: not JSON that can be read: {error}") from error
