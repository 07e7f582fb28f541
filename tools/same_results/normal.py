"""Records in a form that can be compared: volatile fields out, old names replaced by new ones."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("renamed.toml")

VOLATILE = {
    *("seconds", "seconds_per_text", "started", "ended", "time", "created", "updated"),
    *("host", "hostname", "pid", "port", "path", "url", "machine", "machines", "hardware"),
    *("command", "stderr", "request_id", "threads", "bytes"),
    *("version", "versions", "ranmask", "python", "torch", "transformers", "numpy"),
}
"""Keys that are left out wherever they stand: times, places, versions of code and of formats."""

WORDING = {
    *("error", "message", "reason", "detail", "traceback"),
    *("about", "title", "note", "terms", "explanation"),
}
"""Keys whose sentences are for people: that there is one is compared, not what it says."""

VOLATILE_PATHS = (
    "*/manifest.json/parts/*/sha256",  # Parquet holds versions
    *("tune/*/stdout/*", "train/tune/stdout/*"),  # seconds in a table; its figures are in the file
)
"""Paths that may differ."""

SAID = "(said)"
_TIME = re.compile(r"\b[\d.,]+ (ms|s|min|h)\b")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?%?")


@dataclass(frozen=True)
class Table:
    """What the new code calls otherwise; ``renamed.toml`` explains each part."""

    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    header: Mapping[str, Any] = field(default_factory=dict)
    ignored: Sequence[Mapping[str, str]] = ()

    @classmethod
    def read(cls, path: Path = TABLE) -> Table:
        """The committed table, or another one."""
        return cls(**tomllib.loads(path.read_text(encoding="utf-8")))

    def command(self, arguments: Sequence[str]) -> list[str]:
        """A command line with the new names of its options."""
        known = {**self.options.get("all", {}), **self.options.get(arguments[0], {})}
        replaced = {tuple(old.split()): new.split() for old, new in known.items()}
        longest_first = sorted(replaced, key=len, reverse=True)
        made: list[str] = []
        place = 0
        while place < len(arguments):
            for old in longest_first:
                if tuple(arguments[place : place + len(old)]) == old:
                    made += replaced[old]
                    place += len(old)
                    break
            else:
                made.append(arguments[place])
                place += 1
        return made


def normal(record: Any, table: Table, names: str) -> Any:
    """A record of code with ``old`` or ``new`` names, as it is compared."""
    if names == "old":
        record = _renamed(record, table)
    elif table.header:
        record = _without_headers(record, table.header)
    return _plain(record)


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two records differ, in their order: the path, and both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            place = f"{path}/{key}"
            if key not in old or key not in new:
                yield place, old.get(key, "(absent)"), new.get(key, "(absent)")
            else:
                yield from differences(old[key], new[key], place)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}/length", len(old), len(new)
        for number, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from differences(before, after, f"{path}/{number}")
    elif type(old) is bool or type(new) is bool:
        if old is not new:
            yield path, old, new
    elif old != new and not (old != old and new != new):  # two NaN are the same
        yield path, old, new


def ignored(path: str, table: Table) -> bool:
    """Whether this path may differ; the table says why."""
    patterns = (*VOLATILE_PATHS, *(entry["path"] for entry in table.ignored))
    return any(fnmatchcase(path, pattern) for pattern in patterns)


# -- steps -----------------------------------------------------------------------------------------


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {
            key: SAID if key in WORDING and _sentences(inside) else _plain(inside, key)
            for key, inside in value.items()
            if key not in VOLATILE
        }
    if isinstance(value, list):
        return [_plain(inside) for inside in value]
    if isinstance(value, str) and (
        name in ("stdout", "text file") or name.endswith((".md", ".txt"))
    ):
        return figures(value, tables_only=name.endswith(".md"))
    return value


def _sentences(value: Any) -> bool:
    return all(isinstance(one, str) for one in (value if isinstance(value, list) else [value]))


def figures(text: str, tables_only: bool = False) -> list[str]:
    """The numbers of a text for people, times left out; of Markdown, those in its tables."""
    lines = [line for line in text.splitlines() if line.startswith("|") or not tables_only]
    return [found for line in lines for found in _NUMBER.findall(_TIME.sub("", line))]


def _renamed(value: Any, table: Table) -> Any:
    if isinstance(value, list):
        return [_renamed(inside, table) for inside in value]
    if isinstance(value, str):
        return table.values.get(value, value)
    if not isinstance(value, dict):
        return value
    made = {table.keys.get(key, key): _renamed(inside, table) for key, inside in value.items()}
    for old, new in table.moves.items():
        _move(made, old.split("."), new.split("."))
    if isinstance(files := made.get("files"), dict):
        made["files"] = {
            named: content
            for name, content in files.items()
            if (named := _file_name(name, table.files)) is not None
        }
    return made


def _file_name(name: str, known: Mapping[str, str]) -> str | None:
    for old, new in known.items():
        if name.endswith(old):
            return name.removesuffix(old) + new if new else None
    return name


def _move(record: dict[str, Any], old: Sequence[str], new: Sequence[str]) -> None:
    holder: Any = record
    for key in old[:-1]:
        holder = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or old[-1] not in holder:
        return
    value = holder.pop(old[-1])
    place = record
    for key in new[:-1]:
        place = place.setdefault(key, {})
    place[new[-1]] = value


def _without_headers(value: Any, header: Mapping[str, Any]) -> Any:
    """Every list of rows with what its header says put into the rows, and no header."""
    if isinstance(value, list):
        return [_without_headers(inside, header) for inside in _pushed(value, header)[0]]
    if not isinstance(value, dict):
        return value
    made = {key: _without_headers(inside, header) for key, inside in value.items()}
    if header.get("file") and isinstance(files := value.get("files"), dict):
        for name, rows in files.items():
            if isinstance(rows, list) and (found := _pushed(rows, header)[1]):
                made["files"][name + header["file"]] = found
    return made


def _pushed(rows: list[Any], header: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any] | None]:
    """Rows with their constants, and the header with what the last line adds to it."""
    if not rows or not isinstance(rows[0], dict) or header["marked_by"] not in rows[0]:
        return rows, None
    first, *rest = rows
    constants = first.get(header["constants"], {})
    said = {key: value for key, value in first.items() if key != header["constants"]}
    if rest and isinstance(rest[-1], dict) and rest[-1].keys() == {header["last"]}:
        said |= rest.pop()
    marks = set(header["rows_with"])
    return [
        {**constants, **row} if isinstance(row, dict) and marks & row.keys() else row
        for row in rest
    ], said
