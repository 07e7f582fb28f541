"""A corpus: labelled texts of one split in a fixed order, and what a result says about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ranmask.data.known import KNOWN
from ranmask.errors import DataError, OptionError
from ranmask.words import Text

_SEED = 20_230_523  # fixed for good: another one makes other splits of every corpus


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled texts of one split; ``labels`` are places in ``label_names``."""

    name: str
    split: str
    texts: tuple[Text, ...]
    labels: tuple[int, ...]
    label_names: tuple[str, ...]
    note: str | None = None
    """What to know about these rows: partial files, rows carved or left out."""
    sha256: str = ""
    """Of the texts and labels in their order, so that a result can name its data."""
    source_rows: int | None = None
    """How many rows there were to take these from; None where several sources were joined."""
    kept: tuple[Mapping[str, Any], ...] = ()
    """Of each row the columns that were asked for besides; empty where none was."""

    def __post_init__(self) -> None:
        if not self.sha256:
            digest = hashlib.sha256()
            for row in zip(self.texts, self.labels, strict=True):
                digest.update(json.dumps(row).encode() + b"\n")
            object.__setattr__(self, "sha256", digest.hexdigest())

    def description(self) -> dict[str, Any]:
        """What a result has to say about its data, as plain JSON."""
        return {
            "name": self.name,
            "split": self.split,
            "rows": len(self.texts),
            "label_names": list(self.label_names),
            "note": self.note,
            "terms": self.terms,
            "sha256": self.sha256,
        }

    @property
    def terms(self) -> str | None:
        """What is known of the terms that the data is offered on."""
        known = [KNOWN[name].terms for name in self.name.split("+") if name in KNOWN]
        return " ".join(terms for terms in known if terms) or None

    def column(self, name: str) -> list[Any]:
        """The values of a column that was asked for besides texts and labels."""
        if not self.kept:
            raise DataError(f"{self.name} {self.split} was read without its column {name!r}")
        return [row.get(name) for row in self.kept]

    def take(self, rows: int | None) -> Corpus:
        """The first ``rows`` rows, or all where there are not that many; None: all."""
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
            raise OptionError(f"rows must be a whole number of at least 1, not {rows!r}")
        if rows is None or rows >= len(self.texts):
            return self
        note = one_note(self.note, f"the first {rows:,} of {len(self.texts):,} rows")
        texts, labels = self.texts[:rows], self.labels[:rows]
        kept = self.kept[:rows]
        return replace(self, texts=texts, labels=labels, note=note, sha256="", kept=kept)


def joined(first: Corpus, more: Corpus, *, without: Corpus) -> Corpus:
    """Both corpora as one to train on, in the fixed order.

    ``first`` is left whole; the rows of ``more`` whose text is in ``without`` are left out.
    """
    if first.label_names != more.label_names:
        raise DataError(
            f"{first.name} has the classes {', '.join(first.label_names)}, {more.name} "
            f"{', '.join(more.label_names)}: they must be the same to be trained on together"
        )
    held_out = set(without.texts)
    rows = [*zip(first.texts, first.labels, strict=True)]
    added = [row for row in zip(more.texts, more.labels, strict=True) if row[0] not in held_out]
    rows += added
    rows = [rows[place] for place in permutation(len(rows))]
    note = one_note(first.note, f"with {len(added):,} rows of {more.name}", more.note)
    texts, labels = zip(*rows, strict=True)
    name = f"{first.name}+{more.name}"
    added_up: dict[str, Any] = {"sha256": "", "source_rows": None, "kept": ()}
    return replace(first, name=name, texts=texts, labels=labels, note=note, **added_up)


def permutation(rows: int) -> list[int]:
    """The numbers below ``rows`` in the order in which a corpus of so many rows is read.

    A pure function, pinned by a test: it uses only numpy's raw bit stream (whose values numpy
    promises to keep) and a stable sort, so the splits of today are those of ten years from now.
    """
    import numpy as np

    bits = np.random.PCG64(np.random.SeedSequence([_SEED, rows]))
    order: list[int] = np.argsort(bits.random_raw(rows), kind="stable").tolist()
    return order


def one_note(*notes: str | None) -> str | None:
    """These notes as one; None where there are none."""
    return "; ".join(note for note in notes if note) or None
