"""A base classifier that computes no copy twice, for the length of one request.

What is said of a copy depends on its visible words alone, so that the copies of one certificate
may be read by another.  Explaining a text reads several samples that share many copies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranmask.models.base import (
    BaseClassifier,
    DrawnCopies,
    MaskedCopies,
    Scores,
    WrappedClassifier,
)
from ranmask.words import Document


class CachingClassifier(WrappedClassifier):
    """Says of every copy what ``base`` said of it the first time.  Not for several threads."""

    def __init__(self, base: BaseClassifier) -> None:
        super().__init__(base)
        self._rows: dict[tuple[Document, int, bytes], Scores] = {}

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """As ``base``, which is asked only about copies that it was not asked about before."""
        wanted = [_names(one) for one in copies]
        new: list[MaskedCopies] = []
        unknown: list[tuple[Document, int, bytes]] = []
        for one, names in zip(copies, wanted, strict=True):
            places = {
                name: place for place, name in enumerate(names) if name not in self._rows
            }  # of copies that are alike, one
            if places:
                rows = one.kept[sorted(places.values())]
                new.append(MaskedCopies(one.document, one.words_read, rows))
                unknown += sorted(places, key=places.__getitem__)
        if new:
            scored = np.concatenate(self.inner.score(new))
            self._rows.update(zip(unknown, scored, strict=True))
        return [np.stack([self._rows[name] for name in names]) for names in wanted]

    @property
    def copies(self) -> int:
        """How many copies ``base`` was asked about."""
        return len(self._rows)

    def score_drawn(self, texts: Sequence[DrawnCopies]) -> list[Scores]:
        """As ``base``: random synonyms hardly ever repeat."""
        return self.inner.score_drawn(texts)

    @property
    def without_memory(self) -> BaseClassifier:
        """The base classifier, or what computes for it."""
        return self.inner.without_memory


def _names(copies: MaskedCopies) -> list[tuple[Document, int, bytes]]:
    kept = np.ascontiguousarray(copies.kept)
    return [(copies.document, copies.words_read, row.tobytes()) for row in kept]
