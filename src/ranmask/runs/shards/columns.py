"""Result lines as Parquet, and back, without loss.

Guarantee: the same lines become the same bytes, and the bytes become the same lines, keys in
their order.  The columns of a file depend on the command only.  What does not fit its column (a
text with half a surrogate pair, which is no Unicode; a pair where the column is for a text) and
what few results have (``others``, ``copies``, ``suspicion``) is kept as JSON in ``extra``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from ranmask.errors import DataError, OptionError

# A key is in every line, in those that have a result, or in those that have a value for it.
_Presence: TypeAlias = Literal["always", "result", "value"]

EXTRA = "extra"
_INTS, _FLOATS, _STRINGS = "list<int64>", "list<double>", "list<string>"
_CHANGES = "list<change>"
_ROWS_IN_A_GROUP = 1 << 16
_ROWS_READ_AT_ONCE = 1024


class Column(NamedTuple):
    """A key of lines and the type of its values."""

    name: str
    kind: str
    presence: _Presence = "always"


def _columns(presence: _Presence, **kinds: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind, presence) for name, kind in kinds.items())


_ROW = (
    Column("row", "int64"),
    *_columns("value", text="string", premise="string", hypothesis="string"),
)
_PREDICTED = _columns(
    "result",
    version="int64",
    label="string",
    label_id="int64",
    votes=_INTS,
    scores=_FLOATS,
    words="int64",
    words_read="int64",
    kept="int64",
    masks="int64",
    family="string",
    ensemble="string",
)
_CERTIFIED = _columns(
    "result",
    radius="int64",
    threat="string",
    uncertain="int64",
    certificate="string",
    guarantee="bool",
    alpha="double",
    tight="bool",
    critical_words=_INTS,
    assumes=_STRINGS,
)
_JUDGED = _columns("value", extra="string", expected_id="int64", correct="bool", error="string")
_ATTACKED = _columns(
    "always",
    version="int64",
    row="int64",
    text="string",
    label="int64",
    status="string",
    error="string",
    adversarial="string",
    clean_label="int64",
    final_label="int64",
    queries="int64",
    words="int64",
    words_changed="int64",
    changes=_CHANGES,
    budget="int64",
    radius="int64",
    clean_share="double",
    final_share="double",
    entropy="double",
    rechecked="bool",
    reverted="double",
)
_LAYOUTS: dict[str, tuple[Column, ...]] = {
    "certify": (*_ROW, *_PREDICTED, *_CERTIFIED, *_JUDGED),
    "predict": (*_ROW, *_PREDICTED, *_JUDGED),
    "attack": (*_ATTACKED, Column(EXTRA, "string", "value")),
}


def columns_of(command: str) -> tuple[Column, ...]:
    """The columns of a command's results."""
    if command not in _LAYOUTS:
        raise OptionError(f"{command!r} has no sharded runs; {', '.join(_LAYOUTS)} have")
    return _LAYOUTS[command]


def encoded(lines: Sequence[Mapping[str, Any]], command: str) -> bytes:
    """Lines as the bytes of a Parquet file."""
    import pyarrow
    from pyarrow import parquet

    columns = columns_of(command)
    names = {column.name for column in columns}
    extras: list[dict[str, Any]] = [
        {key: value for key, value in line.items() if key not in names} for line in lines
    ]
    arrays = []
    for column in columns:
        if column.name == EXTRA:
            values: list[Any] = []  # filled in when all misfits are known
        else:
            values = [line.get(column.name) for line in lines]
        if column.kind == "string":
            for place, value in enumerate(values):
                if value is not None and not _storable(value):
                    extras[place][column.name], values[place] = value, None
        arrays.append((column, values))
    shown = [json.dumps(extra) if extra else None for extra in extras]
    table = pyarrow.table(
        {
            column.name: pyarrow.array(
                shown if column.name == EXTRA else values, _arrow_type(column.kind)
            )
            for column, values in arrays
        }
    )
    sink = pyarrow.BufferOutputStream()
    # Every option that shapes the bytes, so that no default of a later pyarrow does.
    parquet.write_table(
        table,
        sink,
        row_group_size=_ROWS_IN_A_GROUP,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=3,
        use_dictionary=True,
        write_statistics=True,
        data_page_size=1 << 20,
        store_schema=True,
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decoded(path: Path, command: str) -> Iterator[dict[str, Any]]:
    """The lines of a Parquet file that `encoded` made, in their order."""
    columns = columns_of(command)
    for batch in batches(path, [column.name for column in columns]):
        for values in batch.to_pylist():
            yield _line(values, columns)


def batches(path: Path, names: Sequence[str]) -> Iterator[Any]:
    """Record batches of some columns of a Parquet file, which is never held whole."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            missing = [name for name in names if name not in file.schema_arrow.names]
            if missing:
                raise DataError(f"{path} has no column {missing[0]!r}: it is no part of a run")
            yield from file.iter_batches(_ROWS_READ_AT_ONCE, columns=list(names))
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _line(values: Mapping[str, Any], columns: Sequence[Column]) -> dict[str, Any]:
    extra: dict[str, Any] = json.loads(values[EXTRA]) if values[EXTRA] is not None else {}
    names = {column.name for column in columns}
    has_result = values["version"] is not None
    line: dict[str, Any] = {}
    for name, _, presence in columns:
        if name == EXTRA:
            line |= {key: value for key, value in extra.items() if key not in names}
        elif name in extra:
            line[name] = extra[name]
        elif values[name] is not None or presence == "always":
            line[name] = values[name]
        elif presence == "result" and has_result:
            line[name] = None
        elif name == "expected_id" and has_result and values["error"] is not None:
            line[name] = None  # the one error beside a result: a label that is none of the classes
    return line


def _storable(value: object) -> bool:
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _arrow_type(kind: str) -> Any:
    import pyarrow

    if kind == _CHANGES:
        word = pyarrow.string()
        change = [("position", pyarrow.int64()), ("before", word), ("after", word)]
        return pyarrow.list_(pyarrow.struct([*change, ("premise", pyarrow.bool_())]))
    if kind.startswith("list<"):
        return pyarrow.list_(_arrow_type(kind[5:-1]))
    return {
        "int64": pyarrow.int64(),
        "double": pyarrow.float64(),
        "string": pyarrow.string(),
        "bool": pyarrow.bool_(),
    }[kind]
