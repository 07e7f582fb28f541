"""JSON from files that others may have touched: what is wrong is said with file and line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from ranmask.errors import DataError


class Line(dict[str, Any]):
    """A JSON object that knows where it stands: a key that is missing is a `DataError`."""

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, Mapping):
            raise DataError(f"{where}: expected a JSON object, not {type(values).__name__}")
        super().__init__(values)
        self.where = where

    def __missing__(self, key: str) -> Any:
        raise DataError(f"{self.where}: no {key!r} in it")


def read_object(path: Path) -> Line:
    """The JSON object that a file holds."""
    text = _text(path)
    return Line(_parsed(text, str(path)), str(path))


def read_lines(path: Path) -> list[Line]:
    """The JSON objects that a file holds, one a line."""
    # Not splitlines(): texts may hold other characters that it takes for ends of lines.
    lines = _text(path).removesuffix("\n").split("\n")
    found = []
    for number, line in enumerate(lines if lines != [""] else [], 1):
        where = f"{path}, line {number}"
        found.append(Line(_parsed(line, where), where))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
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


def without_folders(value: Any) -> Any:
    """Plain JSON values, with the last part only of every string that is an absolute path."""
    if isinstance(value, Mapping):
        return {key: without_folders(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_folders(one) for one in value]
    if isinstance(value, str):
        for path in (PurePosixPath(value), PureWindowsPath(value)):
            if path.is_absolute() and path.name:
                return path.name
    return value
