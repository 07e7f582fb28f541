"""What a run reads: the rows of a file, or of a corpus by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranmask.data.rows import Columns, Row, open_source, read_rows
from ranmask.data.splits import load_corpus
from ranmask.errors import DataError, OptionError


@dataclass(frozen=True)
class RowSource:
    """Rows, how many there are at most, and what the record of a run says of them."""

    rows: Iterable[Row]
    total: int
    description: dict[str, Any] = field(default_factory=dict)

    @property
    def label_names(self) -> Sequence[str] | None:
        """Names of the classes, where the data know them."""
        names: Sequence[str] | None = self.description.get("label_names")
        return names


def file_rows(path: str | Path, columns: Columns | None = None) -> RowSource:
    """The rows of a txt, csv, tsv, jsonl or parquet file, streamed."""
    wanted = columns or Columns()
    source = open_source(Path(path))
    read = read_rows(source, wanted)
    # The first row is read before a model is loaded: a wrong column is told at once.
    first = next(iter(read), None)
    if first is None:
        raise DataError(f"{path} has no rows")
    description = {"path": str(source.path), "sha256": source.sha256, "columns": wanted.wanted}
    return RowSource(itertools.chain([first], read), source.rows, description)


def first_rows(source: RowSource, texts: int | None) -> RowSource:
    """The first ``texts`` rows of a file; None: all."""
    if texts is not None and texts < 1:
        raise OptionError(f"texts must be at least 1, not {texts}")
    total = source.total if texts is None else min(texts, source.total)
    first = itertools.islice(source.rows, texts)
    return RowSource(first, total, {**source.description, "texts": texts})


def corpus_rows(
    name: str,
    split: str | None = None,
    rows: int | None = None,
    *,
    skip_bad_rows: bool = False,
) -> RowSource:
    """The first ``rows`` rows of a corpus, with their labels; ``split`` is test by default."""
    corpus = load_corpus(name, split or "test", skip_bad_rows=skip_bad_rows).take(rows)
    labelled = enumerate(zip(corpus.texts, corpus.labels, strict=True), 1)
    found = [Row(number, text, corpus.label_names[label]) for number, (text, label) in labelled]
    return RowSource(found, len(found), corpus.description())
