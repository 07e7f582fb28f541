"""A base classifier that computes no copy twice, for the length of one request.

What is said of a copy depends on its visible words alone, so that the copies of one certificate
may be read by another.  Explaining a text reads several samples that share many copies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ranmask.models.base import BaseClassifier, DrawnCopies, MaskedCopies, Scores, WrappedClassifier
from ranmask.words import Document


class CachingClassifier(WrappedClassifier):
    """Says of every copy what ``base`` said of it the first time.  Not for several threads."""

    def __init__(self, base: BaseClassifier) -> None:
        super().__init__(base)
        # By text, which is long to look up: once for all its copies; then by kept words.
        self._rows: defaultdict[tuple[Document, int], dict[bytes, Scores]] = defaultdict(dict)

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """As ``base``, which is asked only about copies that it was not asked about before."""
        rows = [self._rows[one.document, one.words_read] for one in copies]
        names = [[row.tobytes() for row in np.ascontiguousarray(one.kept)] for one in copies]
        new: list[MaskedCopies] = []
        unknown: list[tuple[dict[bytes, Scores], bytes]] = []
        for one, said, wanted in zip(copies, rows, names, strict=True):
            # Of copies that are alike, one.
            places = {name: place for place, name in enumerate(wanted) if name not in said}
            if places:
                kept = one.kept[sorted(places.values())]
                new.append(MaskedCopies(one.document, one.words_read, kept))
                unknown += [(said, name) for name in sorted(places, key=places.__getitem__)]
        if new:
            scored = np.concatenate(self.inner.score(new))
            for (said, name), row in zip(unknown, scored, strict=True):
                said[name] = row
        return [
            np.stack([said[name] for name in wanted])
            for said, wanted in zip(rows, names, strict=True)
        ]

    def score_drawn(self, texts: Sequence[DrawnCopies]) -> list[Scores]:
        """As ``base``: random synonyms hardly ever repeat."""
        return self.inner.score_drawn(texts)

    @property
    def without_memory(self) -> BaseClassifier:
        """The base classifier, or what computes for it."""
        return self.inner.without_memory
