"""A pile of texts, labelled or not: several files as one, without empty rows and duplicates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask.data.rows import Columns, file_rows
from ranmask.data.sentences import sentences
from ranmask.errors import DataError, TextError
from ranmask.words import document, join, listed


@dataclass(frozen=True)
class Pile:
    """Different texts, each with single blanks between its words, in the order they came in.

    ``labels``: of each, as they were written, None for a text that has none; or None for all.
    ``rows`` is how many there were; ``duplicates``, ``empty`` and ``unusable`` of them were left
    out, and ``problem`` says what was wrong with the first that could not be used.  ``files``: name
    and digest of each.
    """

    texts: tuple[str, ...]
    labels: tuple[str | None, ...] | None = None
    rows: int = 0
    duplicates: int = 0
    empty: int = 0
    unusable: int = 0
    problem: str = ""
    files: tuple[tuple[str, str], ...] = ()

    def description(self) -> dict[str, Any]:
        """Plain JSON values; ``sha256`` is that of texts and labels."""
        counts = {name: getattr(self, name) for name in ("rows", "duplicates", "empty", "unusable")}
        files = [{"name": name, "sha256": digest} for name, digest in self.files]
        spelt = json.dumps([self.texts, self.labels]).encode()
        digest = hashlib.sha256(spelt).hexdigest()
        return {"texts": len(self.texts), **counts, "files": files, "sha256": digest}


_Read = tuple[object, object, str]  # a text, its label, and what is wrong with the row


def pile_of(texts: Iterable[object], labels: Sequence[object] | None = None) -> Pile:
    """The pile of some texts in memory."""
    given = listed(texts)
    if labels is not None and len(labels) != len(given):
        raise DataError(f"{len(given)} texts have {len(labels)} labels: give one label a text")
    of_each: Sequence[object] = [None] * len(given) if labels is None else labels
    rows = ((text, label, "") for text, label in zip(given, of_each, strict=True))
    return _piled(rows, labelled=labels is not None)


def read_pile(
    files: Sequence[Path], columns: Columns | None = None, *, by_sentence: bool = False
) -> Pile:
    """The pile of all rows of some files; ``by_sentence`` cuts each row into its sentences."""
    columns = columns or Columns()
    if columns.pair is not None:
        raise DataError("pairs of texts cannot be protected: a word table reads single texts")
    if by_sentence and columns.label is not None:
        raise DataError(
            f"column {columns.label!r} labels whole rows, not their sentences: leave out the "
            "labels, or do not split"
        )
    plain = Columns() if columns.label is None else columns  # a txt file has no columns
    sources = [
        (path.name, file_rows(path, plain if path.suffix.lower() == ".txt" else columns))
        for path in files
    ]

    def rows() -> Iterator[_Read]:
        for name, source in sources:
            for row in source.rows:
                if row.error is not None or not isinstance(row.text, str):
                    yield "", None, f"{name}, row {row.number}: {row.error}"
                    continue
                for text in (sentences(row.text) or [""]) if by_sentence else [row.text]:
                    yield text, row.label, ""

    named = tuple((name, source.description["sha256"]) for name, source in sources)
    return _piled(rows(), labelled=columns.label is not None, files=named)


def _piled(
    rows: Iterable[_Read], *, labelled: bool, files: tuple[tuple[str, str], ...] = ()
) -> Pile:
    kept: dict[str, str | None] = {}
    count = duplicates = empty = unusable = 0
    first = ""
    for count, (text, label, problem) in enumerate(rows, 1):
        if isinstance(text, str) and not text.split() and not problem:
            empty += 1
            continue
        if not problem:
            try:
                words = join(document(text).words)
            except TextError as error:
                problem = f"text {count}: {error.reason}"
        if problem:
            unusable += 1
            first = first or problem
        else:
            duplicates += words in kept
            if kept.get(words) is None:
                kept[words] = _written(label)
    labels = tuple(kept.values()) if labelled else None
    return Pile(tuple(kept), labels, count, duplicates, empty, unusable, first, files)


def _written(label: object) -> str | None:
    missing = label is None or label == "" or label != label  # as a table has NaN
    return None if missing else str(label)
