"""A base classifier that computes no copy twice, for the length of one request.

What is said of a copy depends on its visible words alone, so that the copies of one certificate
may be read by another.  Explaining a text reads several samples that share many copies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranmask.models.base import BaseClassifier, DrawnCopies, Hiding, MaskedCopies, Scores
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.words import Document


class RememberingClassifier(BaseClassifier):
    """Says of every copy what ``base`` said of it the first time.  Not for several threads."""

    def __init__(self, base: BaseClassifier) -> None:
        self._base = base
        self._rows: dict[tuple[Document, int, bytes], Scores] = {}
        self.outputs = base.outputs
        self.labels = base.labels
        self.order_free = base.order_free
        self.repeatable = base.repeatable
        self.blank = base.blank
        self.votes_only = base.votes_only

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
            scored = np.concatenate(self._base.score(new))
            self._rows.update(zip(unknown, scored, strict=True))
        return [np.stack([self._rows[name] for name in names]) for names in wanted]

    @property
    def copies(self) -> int:
        """How many copies ``base`` was asked about."""
        return len(self._rows)

    def score_drawn(self, texts: Sequence[DrawnCopies]) -> list[Scores]:
        """As ``base``: random synonyms hardly ever repeat."""
        return self._base.score_drawn(texts)

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> BaseClassifier:
        """Another classifier, which remembers nothing yet."""
        return RememberingClassifier(self._base.configured(hide=hide, mask_token=mask_token))

    def words_read(self, document: Document) -> int:
        """As ``base``."""
        return self._base.words_read(document)

    @property
    def tolerance(self) -> float:
        """As ``base``: a copy that is not computed again does not move."""
        return self._base.tolerance

    @property
    def without_memory(self) -> BaseClassifier:
        """The base classifier, or what computes for it."""
        return self._base.without_memory

    @property
    def assumes(self) -> tuple[str, ...]:
        """As ``base``."""
        return self._base.assumes

    def description(self) -> dict[str, object]:
        """As ``base``, which determines the answers."""
        return self._base.description()


def remembering(smoothed: SmoothedClassifier, base: RememberingClassifier) -> SmoothedClassifier:
    """The same classifier over a base that remembers, which others may share."""
    # None where the base classifier's own is in force; some allow no other.
    own = smoothed.tolerance == smoothed.base.tolerance
    return SmoothedClassifier(
        base,
        **smoothed.options.to_dict(),
        labels=smoothed.labels,
        tolerance=None if own else smoothed.tolerance,
        recheck=smoothed.recheck,
    )


def _names(copies: MaskedCopies) -> list[tuple[Document, int, bytes]]:
    kept = np.ascontiguousarray(copies.kept)
    return [(copies.document, copies.words_read, row.tobytes()) for row in kept]
