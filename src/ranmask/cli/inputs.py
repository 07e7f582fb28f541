"""What a command reads: texts given to it, a file, or a corpus by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.data.rows import Columns
    from ranmask.data.sources import RowSource


def open_input(
    texts: list[str] | None,
    input_path: Path | None,
    data: str | None,
    split: str | None,
    rows: int | None,
    columns: Columns,
    *,
    output: Path | None = None,
    skip_bad_rows: bool = False,
) -> RowSource:
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
    if texts and output is not None:
        raise OptionError("--output goes with --input or --data; texts given here are printed")
    from ranmask.data.sources import RowSource, corpus_rows, file_rows

    if data is not None:
        return corpus_rows(data, split, rows, skip_bad_rows=skip_bad_rows)
    if input_path is not None:
        return file_rows(input_path, columns)
    from ranmask.data.rows import Row

    given = [Row(number, text) for number, text in enumerate(texts or [], 1)]
    return RowSource(given, len(given))
