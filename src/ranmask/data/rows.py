"""Rows of texts from local files: txt, csv, tsv, jsonl and parquet, streamed.

Nothing is lost silently.  A row that cannot be used comes out as a `Row` with an ``error`` that
says why; a file that cannot be used raises `DataError` before any work is done.  Text files are
UTF-8; a row with other bytes is such an error.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ranmask.errors import DataError, MissingDependencyError, OptionError
from ranmask.results.files import line_bytes, reading
from ranmask.words import Text

_FORMATS = ("txt", "csv", "tsv", "jsonl", "parquet")
SUFFIXES = {f".{name}": name for name in _FORMATS} | {".ndjson": "jsonl", ".pq": "parquet"}
"""The formats of files, by how their names end."""
PAIR = ("premise", "hypothesis")
"""The columns of a pair, where nobody gives them other names."""
ID = "id"
"""The column that every result repeats, where there is one."""

_LABELS = {"label", "labels", "class", "target"}  # what columns of true labels are called
_ROWS_AT_ONCE = 1024
_FIRST_ROWS = 20  # JSON lines of which none can be read: then it is the file, not the rows
_FIRST_BYTES, _TEXT = 8192, 0.95  # of them, a text file has so many that are no controls
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f"))
_SEPARATORS = ";\t|,"  # of the columns of tables, as other programs write them
_FOREIGN = re.compile("[\udc80-\udcff]")  # what surrogateescape makes of bytes that are not UTF-8


@dataclass(frozen=True)
class Row:
    """One row of input, numbered from 1; either a text or an error.

    ``kept``: columns that the results repeat.
    """

    number: int
    text: Text | None
    label: object = None
    error: str | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)

    def kept_values(self) -> dict[str, Any]:
        """What the line of this row repeats: its ``id``, and other columns in ``columns``."""
        others = {name: value for name, value in self.kept.items() if name != ID}
        return {
            **({ID: self.kept[ID]} if self.kept.get(ID) is not None else {}),
            **({"columns": others} if others else {}),
        }


@dataclass(frozen=True)
class Columns:
    """Which columns hold the text (or the pair) and the label; None: find the text.

    ``keep``: other columns, which the results repeat.  A column ``id`` is always kept.
    """

    text: str | None = None
    pair: tuple[str, str] | None = None
    label: str | None = None
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.text is not None and self.pair is not None:
            raise OptionError(
                f"give a text column ({self.text!r}) or two pair columns "
                f"({', '.join(self.pair)}), not both"
            )

    @property
    def wanted(self) -> list[str]:
        """The columns to read."""
        texts = list(self.pair) if self.pair else [self.text] if self.text else []
        label = [self.label] if self.label is not None else []
        return list(dict.fromkeys([*texts, *label, *self.keep]))

    def found_in(self, names: list[str], where: str) -> Columns:
        """These columns, checked against those that there are."""
        missing = [name for name in self.wanted if name not in names]
        if missing:
            option = "label_column" if missing[0] == self.label else "text_column"
            given = {*(self.pair or ()), *self.keep}
            other = "" if missing[0] in given else f": name the right one ({option})"
            raise DataError(
                f"{where} has no column {missing[0]!r}; it has {', '.join(names)}{other}"
            )
        known = self
        if ID in names and ID not in self.wanted:
            known = replace(self, keep=(ID, *self.keep))
        if self.text is None and self.pair is None:
            known = known._with_text(names, where)
        for name in known.wanted:
            if names.count(name) > 1:
                raise DataError(
                    f"{where} has {names.count(name)} columns {name!r}: give each its own name"
                )
        return known

    def _with_text(self, names: list[str], where: str) -> Columns:
        """These columns, and the one that holds the text."""
        unlabelled = [name for name in names if name != self.label]
        others = [name for name in unlabelled if name not in self.keep] or unlabelled
        text = "text" if "text" in others else others[0] if len(others) == 1 else None
        if text is None:
            raise DataError(
                f"{where} has columns {', '.join(names)}: say which one holds the text "
                "(text_column), or which two hold a pair (pair_columns)"
            )
        return replace(self, text=text, keep=tuple(n for n in self.keep if n != text))


@dataclass(frozen=True)
class RowSource:
    """Rows, how many there are at most, and what the record of a run says of them.

    ``unread_label``: a column that is called as true labels are, where none was named.
    """

    rows: Iterable[Row]
    total: int
    description: dict[str, Any] = field(default_factory=dict)
    unread_label: str | None = None

    @property
    def label_names(self) -> Sequence[str] | None:
        """Names of the classes, where the data know them."""
        names: Sequence[str] | None = self.description.get("label_names")
        return names


def format_of(path: Path) -> str:
    """The format of a file, by how its name ends."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise DataError(
            f"cannot tell the format of {path}: its name must end in one of {', '.join(SUFFIXES)}"
        )
    return kind


def text_line(text: Text | Sequence[str]) -> bytes:
    """A text, or a pair, as the JSON line that `file_rows` reads."""
    if isinstance(text, str):
        return line_bytes({"text": text})
    return line_bytes(dict(zip(PAIR, text, strict=True)))


def file_rows(path: str | Path, columns: Columns | None = None) -> RowSource:
    """The rows of a txt, csv, tsv, jsonl or parquet file in their order, streamed.

    The file is read once for its digest and its size, and its first row for the columns: what is
    wrong with them is told at once.
    """
    path, columns = Path(path), columns or Columns()
    if path.is_dir():
        raise DataError(
            f"{path} is a folder: name one file in it, whose name ends in one of "
            f"{', '.join(SUFFIXES)}"
        )
    kind = format_of(path)
    digest, lines, last = hashlib.sha256(), 0, b"\n"
    with reading(path), path.open("rb") as file:
        start = file.read(_FIRST_BYTES)
        file.seek(0)
        while block := file.read(1 << 20):
            digest.update(block)
            lines += block.count(b"\n")
            last = block[-1:]
    total = lines + (last != b"\n") - (kind in ("csv", "tsv"))
    if kind == "parquet":
        total = int(_open_parquet(path).metadata.num_rows)
    elif start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is UTF-16: convert it to UTF-8 first")
    elif len(start.translate(None, _CONTROLS)) < _TEXT * len(start):
        raise DataError(f"{path} is a binary file, not text: name a file of UTF-8 text")
    elif kind == "txt" and columns.wanted:
        raise DataError(f"{path} is plain text, one text a line: it has no columns")
    rows = _READERS[kind](path, columns)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path} has no rows")
    description = {"path": str(path), "sha256": digest.hexdigest(), "columns": columns.wanted}
    unread = None
    if columns.label is None and (names := _names(path, kind)):
        with contextlib.suppress(DataError):  # a bad row, which gets its error
            read = columns.found_in(names, str(path)).wanted
            others = (name for name in names if name not in read)
            unread = next((name for name in others if name.lower() in _LABELS), None)
    return RowSource(itertools.chain([first], rows), total, description, unread)


def _names(path: Path, kind: str) -> list[str]:
    """The columns of a file that can be read; of JSON lines those of the first."""
    if kind == "parquet":
        return list(_open_parquet(path).schema_arrow.names)
    lines = filter(str.strip, _lines(path))
    if kind == "jsonl":
        try:
            value = json.loads(next(lines))
        except (ValueError, RecursionError):  # a bad row, which gets its error
            return []
        return list(value) if isinstance(value, dict) else []
    delimiters = {"csv": ",", "tsv": "\t"}
    return next(csv.reader(lines, delimiter=delimiters[kind]), []) if kind in delimiters else []


def _read_txt(path: Path, _: Columns) -> Iterator[Row]:
    for number, line in enumerate(_lines(path), 1):
        yield _row(number, {"text": line}, Columns("text"))


def _read_jsonl(path: Path, columns: Columns) -> Iterator[Row]:
    lines = ((number, line) for number, line in enumerate(_lines(path), 1) if line.strip())
    parsed = ((number, _values(line, columns)) for number, line in lines)
    first = list(itertools.islice(parsed, _FIRST_ROWS))
    if first and all(isinstance(found, str) for _, found in first):
        raise DataError(f"{path}: {first[0][1]}", first[0][0])
    for number, found in itertools.chain(first, parsed):
        if isinstance(found, str):
            yield Row(number, None, error=found)
        else:
            yield _row(number, *found)


def _values(line: str, columns: Columns) -> tuple[dict[str, Any], Columns] | str:
    """The values of a line and the columns that hold what is wanted, or what is wrong."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        return f"not valid JSON: {error}"
    except RecursionError:
        return "not valid JSON: nested too deeply"
    if isinstance(value, str) and not columns.wanted:
        return {"text": value}, Columns("text")
    if not isinstance(value, dict):
        return f"expected a JSON object, not {_shown(value)}"
    try:
        return value, columns.found_in(list(value), "the row")
    except DataError as error:
        return error.reason


def _read_table(path: Path, columns: Columns, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    with (
        reading(path),
        path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file,
    ):
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            names = next(reader, None)
            if not names:
                raise DataError(f"{path} is empty: expected a first line with column names")
            other = next((one for one in _SEPARATORS if one in names[0]), None)
            if len(names) == 1 and other and names[0] not in columns.wanted:
                raise DataError(
                    f"{path} has one column, {names[0]!r}: separate its columns by {delimiter!r} "
                    f"instead of {other!r}, or name that one (text_column)"
                )
            columns = columns.found_in(names, str(path))
            for number, fields in enumerate(filter(None, reader), 1):
                if len(fields) != len(names):
                    problem = f"{len(fields)} fields where the first line names {len(names)}"
                    yield Row(number, None, error=problem)
                else:
                    yield _row(number, dict(zip(names, fields, strict=True)), columns)
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: {error}") from error


def arrow() -> Any:
    """The library that reads and writes Parquet; an extra, since it is larger than all others."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow, for Parquet files,", "parquet") from error
    return pyarrow


def _read_parquet(path: Path, columns: Columns) -> Iterator[Row]:
    file = _open_parquet(path)
    columns = columns.found_in(list(file.schema_arrow.names), str(path))
    number = 0
    try:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=columns.wanted):
            for values in batch.to_pylist():
                number += 1
                yield _row(number, values, columns)
    except (arrow().ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged after row {number}: {error}") from error


def _open_parquet(path: Path) -> Any:
    pyarrow = arrow()
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"cannot read {path} as parquet: {error}") from error


def _lines(path: Path) -> Iterator[str]:
    with reading(path), path.open("rb") as file:
        for number, line in enumerate(file):
            text = line.decode("utf-8", errors="surrogateescape").rstrip("\r\n")
            yield text.removeprefix("\ufeff") if number == 0 else text


def _row(number: int, values: dict[str, Any], columns: Columns) -> Row:
    kept = {name: _plain(values[name]) for name in columns.keep}
    parts = []
    for name in columns.pair or (columns.text or "text",):
        value = values[name]
        problem = None
        if value is None or (isinstance(value, float) and math.isnan(value)):
            problem = "is missing a value"
        elif not isinstance(value, str):
            problem = f"holds {_shown(value)} ({type(value).__name__}), not text"
        elif foreign := _FOREIGN.search(value):
            byte = ord(foreign.group()) - 0xDC00
            problem = f"is not valid UTF-8 (byte 0x{byte:02x}): convert the file"
        if problem:
            return Row(number, None, error=f"column {name!r} {problem}", kept=kept)
        parts.append(value)
    text: Text = (parts[0], parts[1]) if columns.pair else parts[0]
    label = values[columns.label] if columns.label is not None else None
    return Row(number, text, label, kept=kept)


def _plain(value: Any) -> Any:
    """A value as JSON has it; a date, or what else a table holds, as text."""
    number = isinstance(value, float) and not math.isfinite(value)
    simple = value is None or isinstance(value, str | int | float)
    return value if simple and not number else str(value)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


_READERS: dict[str, Callable[[Path, Columns], Iterator[Row]]] = {
    "txt": _read_txt,
    "csv": partial(_read_table, delimiter=","),
    "tsv": partial(_read_table, delimiter="\t"),
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
}
