"""Several base classifiers as one: the mean of their scores.

What each part says of a copy depends on the kept words and their positions alone, so their mean
does too, and it stays in [0, 1]: every certificate of a score ensemble holds for a blend as it
does for one classifier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranmask.certificates.votes import as_scores, largest_move
from ranmask.errors import ModelError, OptionError
from ranmask.models.base import BaseClassifier, MaskedCopies, Scores, by_text, check_gives_scores
from ranmask.words import Document, Hiding


class Blend(BaseClassifier):
    """The mean of the scores of two or more classifiers of the same classes.

    Its rows are scores: use ``ensemble="score"``.
    """

    outputs = "scores"

    def __init__(self, parts: Sequence[BaseClassifier]) -> None:
        if len(parts) < 2:
            raise OptionError(f"a blend needs at least two classifiers, not {len(parts)}")
        for part in parts:
            check_gives_scores(part, "a blend")
        names = {part.labels for part in parts}
        if len(names) > 1:
            shown = "; ".join(", ".join(labels or ["unnamed"]) for labels in names)
            raise ModelError(f"the parts of a blend must have the same classes, not {shown}")
        self.parts = tuple(parts)
        self.labels = self.parts[0].labels
        self.order_free = all(part.order_free for part in self.parts)
        self.repeatable = all(part.repeatable for part in self.parts)
        self.proves = all(part.proves for part in self.parts)
        self.blank = all(part.blank for part in self.parts)
        known = [part.pairs for part in self.parts if part.pairs is not None]
        self.pairs = all(known) if known else None

    def configured(self, *, hide: Hiding | None = None, mask_token: str | None = None) -> Blend:
        raise OptionError(
            f"hide={hide!r} and mask_token={mask_token!r} belong to the parts of a blend: "
            "configure those"
        )

    def words_read(self, document: Document) -> int:
        return min(part.words_read(document) for part in self.parts)

    @property
    def tolerance(self) -> float:
        moves = [largest_move(part.tolerance, part.outputs) for part in self.parts]
        return 2 * sum(moves) / len(moves)  # of a difference of two scores

    @property
    def assumes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for part in self.parts for line in part.assumes))

    def description(self) -> dict[str, object]:
        return {"kind": "blend", "parts": [part.description() for part in self.parts]}

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        said = [np.concatenate(part.score(copies)) for part in self.parts]
        classes = {rows.shape[1] for rows in said}
        if len(classes) > 1:
            raise ModelError(f"the parts of a blend score {sorted(classes)} classes, not the same")
        scores = [
            as_scores(rows, part.outputs) for rows, part in zip(said, self.parts, strict=True)
        ]
        return by_text(np.mean(scores, axis=0), copies)
