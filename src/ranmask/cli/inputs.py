"""What a command reads: texts given to it, a file, or a corpus by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import DataError, OptionError

if TYPE_CHECKING:
    from ranmask.data.rows import Columns, Row


@dataclass(frozen=True)
class Source:
    """What is read: the rows, how many at most, and what a run's record says of them.

    ``origin`` is None for texts given on the command line.
    """

    rows: Iterable[Row]
    total: int
    origin: dict[str, Any] | None


def open_input(
    texts: list[str] | None,
    input_path: Path | None,
    data: str | None,
    split: str | None,
    rows: int | None,
    columns: Columns,
    *,
    skip_bad_rows: bool = False,
) -> Source:
    """The rows to read; exactly one of texts, a file and a corpus must be given."""
    if sum((bool(texts), input_path is not None, data is not None)) != 1:
        raise OptionError(
            "give texts, or a file with --input, or a corpus with --data: one of them"
        )
    if data is None and (split is not None or rows is not None):
        raise OptionError("--split and --rows go with --data")
    if data is None and skip_bad_rows:
        raise OptionError("--skip-bad-rows goes with --data; bad rows of --input get their error")
    if input_path is None and columns.wanted:
        raise OptionError("columns go with --input")
    from ranmask.data.rows import Row

    if data is not None:
        from ranmask.data import load_corpus

        corpus = load_corpus(data, split or "test", skip_bad_rows=skip_bad_rows).take(rows)
        labelled = enumerate(zip(corpus.texts, corpus.labels, strict=True), 1)
        return Source(
            [Row(number, text, corpus.label_names[label]) for number, (text, label) in labelled],
            len(corpus.texts),
            corpus.description(),
        )
    if input_path is None:
        given = [Row(number, text) for number, text in enumerate(texts or [], 1)]
        return Source(given, len(given), None)
    from ranmask.data.rows import open_source, read_rows

    source = open_source(input_path)
    read = read_rows(source, columns)
    # The first row is read before the model is loaded: a wrong column is told at once.
    first = next(iter(read), None)
    if first is None:
        raise DataError(f"{input_path} has no rows")
    read = itertools.chain([first], read)
    origin = {"path": str(source.path), "sha256": source.sha256, "columns": columns.wanted}
    return Source(read, source.rows, origin)
