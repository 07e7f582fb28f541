"""Result lines as CSV: a column for each field, lists as JSON, ``radii.characters`` for what is in.

For people and spreadsheets; JSON lines and Parquet are what `read_results` reads.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ranmask.errors import OutputError

_FIRST, _LAST = ("row", "id"), ("expected_id", "correct", "error")  # which not every row has


class CsvLines:
    """Lines, written as they come.  Columns are the fields of the first that has a result."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._writer: csv.DictWriter[str] | None = None
        self._waiting: list[dict[str, Any]] = []

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line; rows with errors wait for the first result."""
        found = dict(_flat(line))
        if self._writer is None:
            self._waiting.append(found)
            if not found.get("error"):
                self.flush()
            return
        strange = found.keys() - self._writer.fieldnames
        if strange:
            raise OutputError(
                f"row {line.get('row')} has the field {min(strange)!r}, which the first result has "
                "not: write JSON lines"
            )
        self._writer.writerow(found)

    def flush(self) -> None:
        """Write the rows that wait, where no row has a result yet."""
        if self._writer is not None or not self._waiting:
            return
        seen = dict.fromkeys(name for found in self._waiting for name in found)
        fixed = (*_FIRST, *_LAST)
        own = [name for name in seen if name not in fixed]
        self._writer = csv.DictWriter(self._file, [*_FIRST, *own, *_LAST], lineterminator="\n")
        self._writer.writeheader()
        self._writer.writerows(self._waiting)


def write_csv(lines: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write all lines to a file; returns how many there are."""
    rows = 0
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        table = CsvLines(file)
        for line in lines:
            table.write(line)
            rows += 1
        table.flush()
    return rows


def _flat(line: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in line.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", _cell(one)) for inner, one in value.items())
        else:
            yield name, _cell(value)


def _cell(value: Any) -> Any:
    plain = value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))
    return value if plain else json.dumps(value)
