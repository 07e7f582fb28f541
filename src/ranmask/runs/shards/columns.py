"""Result lines as Parquet, and back, without loss.

Guarantee: the same lines become the same bytes, and the bytes become the same lines.  The columns
are the fields of the results (`Certificate`, `Prediction`, `AttackOutcome`), typed; what is the
same in every row (`CONSTANTS`) stands once, in the file's metadata.  What does not fit its column
(a text with half a surrogate pair, which is no Unicode; a pair where the column is for a text; a
value that is not the constant) and what few results have (``radii``, ``others``, ``copies``,
``suspicion``) is JSON in ``extra``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranmask.data.rows import arrow
from ranmask.errors import DataError
from ranmask.results import CONSTANTS
from ranmask.runs.result_file import constants_of, with_constants, without

EXTRA = "extra"
_METADATA = b"ranmask"
_INPUT = {"row": int, "id": str, "text": str, "premise": str, "hypothesis": str}
_JUDGED = {"expected_id": int, "correct": bool, "error": str}
_RENAMED = {"number": "row"}
_ROWS_IN_A_GROUP = 1 << 16
_ROWS_READ_AT_ONCE = 1024
# Every option that shapes the bytes, so that no default of a later pyarrow does.
_WRITTEN: dict[str, Any] = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": True,
    "write_statistics": True,
    "data_page_size": 1 << 20,
    "store_schema": True,
}


def _fields(record: type) -> dict[str, Any]:
    """The fields of a result that differ from row to row, with their types."""
    hints = typing.get_type_hints(record)
    names = [
        field.name
        for field in dataclasses.fields(record)
        if field.name not in CONSTANTS and field.default_factory is dataclasses.MISSING
    ]
    return {_RENAMED.get(name, name): hints[name] for name in names}


@functools.cache
def _schema(record: type) -> Any:
    """The columns of a class of results."""
    pyarrow = arrow()
    own = _fields(record)
    hints = {**own, "id": str, EXTRA: str}
    if "row" not in own:  # a result does not know of its row
        hints = {**_INPUT, **own, EXTRA: str, **_JUDGED}
    return pyarrow.schema([(name, _arrow_type(hint)) for name, hint in hints.items()])


def _table(lines: Sequence[Mapping[str, Any]], schema: Any, about: Mapping[str, Any]) -> Any:
    pyarrow = arrow()
    rows = [without(line, about["constants"]) for line in lines]
    extras = [{key: value for key, value in row.items() if key not in schema.names} for row in rows]
    arrays = {}
    for column in schema:
        values = [row.get(column.name) for row in rows]
        if column.type == pyarrow.string():
            for place, value in enumerate(values):
                if value is not None and not _storable(value):
                    extras[place][column.name], values[place] = value, None
        arrays[column.name] = pyarrow.array(values, column.type)
    shown = [json.dumps(extra) if extra else None for extra in extras]
    arrays[EXTRA] = pyarrow.array(shown, pyarrow.string())
    return pyarrow.table(arrays).replace_schema_metadata({_METADATA: json.dumps(about)})


def encoded(lines: Sequence[Mapping[str, Any]], record: type) -> bytes:
    """Lines as the bytes of a Parquet file; ``record``: the class of the results."""
    sink = arrow().BufferOutputStream()
    write_lines(lines, record, constants_of(lines) or {}, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def write_lines(
    lines: Iterable[Mapping[str, Any]], record: type, constants: Mapping[str, Any], place: Any
) -> int:
    """Write lines to a Parquet file, or a stream, a group at a time; returns how many there are."""
    # With its fields known, one that is null can be told from one that is not there.
    about = {"constants": dict(constants), "fields": list(_fields(record))}
    schema, left, rows = _schema(record), iter(lines), 0
    written = schema.with_metadata({_METADATA: json.dumps(about)})
    with arrow().parquet.ParquetWriter(place, written, **_WRITTEN) as writer:
        while group := list(itertools.islice(left, _ROWS_IN_A_GROUP)):
            writer.write_table(_table(group, schema, about), row_group_size=_ROWS_IN_A_GROUP)
            rows += len(group)
    return rows


def decoded(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a Parquet file that `encoded` made, in their order."""
    with _opened(path) as file:
        about = json.loads((file.schema_arrow.metadata or {}).get(_METADATA, "{}"))
        if "fields" not in about:
            raise DataError(f"{path} has no results of ranmask: it is no part of a run")
        for batch in file.iter_batches(_ROWS_READ_AT_ONCE):
            for values in batch.to_pylist():
                yield _line(values, about)


def with_constants_of(table: Any, schema: Any) -> Any:
    """A table with the constants of another one."""
    mine, theirs = (json.loads(each.metadata[_METADATA]) for each in (table.schema, schema))
    return _table([_line(row, mine) for row in table.to_pylist()], schema, theirs)


def batches(path: Path, names: Sequence[str]) -> Iterator[Any]:
    """Record batches of some columns of a Parquet file, which is never held whole."""
    with _opened(path) as file:
        missing = [name for name in names if name not in file.schema_arrow.names]
        if missing:
            raise DataError(f"{path} has no column {missing[0]!r}: it is no part of a run")
        yield from file.iter_batches(_ROWS_READ_AT_ONCE, columns=names)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    pyarrow = arrow()
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _line(values: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = json.loads(values[EXTRA]) if values[EXTRA] is not None else {}
    fields = about["fields"]
    keys = ("label_id", "status", "flagged")
    has_result = any(values.get(key) is not None for key in keys)
    line: dict[str, Any] = {}
    for name, value in values.items():
        if name == EXTRA:
            line |= {key: kept for key, kept in extra.items() if key not in values}
        elif name in extra:
            line[name] = extra[name]
        elif value is not None or (has_result and name in fields):
            line[name] = value
        elif name == "expected_id" and has_result and values["error"] is not None:
            line[name] = None  # a label that is none of the classes
    return with_constants(line, about["constants"])


def _storable(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _arrow_type(hint: Any) -> Any:
    """The type of a column, from that of a field; a text or a pair is a text."""
    pyarrow = arrow()
    simple = {
        bool: pyarrow.bool_(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        str: pyarrow.string(),
    }
    if hint in simple:
        return simple[hint]
    if typing.get_origin(hint) is typing.Literal:
        return pyarrow.string()
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _arrow_type(next(kind for kind in typing.get_args(hint) if kind is not type(None)))
    if typing.get_origin(hint) is tuple:
        return pyarrow.list_(_arrow_type(typing.get_args(hint)[0]))
    hints = typing.get_type_hints(hint)  # a record inside a record
    return pyarrow.struct([(name, _arrow_type(kind)) for name, kind in hints.items()])
