"""A base classifier that reads full texts: one copy of each, with every word shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranmask.errors import blaming
from ranmask.models.base import BaseClassifier, Scores, whole_copy
from ranmask.words import Document

_CHARACTERS_AT_ONCE = 1 << 21  # a list of long texts, laid out at once, would fill the memory


def score_full_texts(base: BaseClassifier, texts: Sequence[Document]) -> Scores:
    """What ``base`` says of each full text, a row each; at least one text."""
    rows: list[Scores] = []
    for start, stop in _parts(texts):
        with blaming(range(start, stop)):
            scores = base.score(
                [whole_copy(text, base.words_read(text)) for text in texts[start:stop]]
            )
        rows.append(np.concatenate(scores))  # a copy: the next call may use the memory again
    return np.concatenate(rows)


def _parts(texts: Sequence[Document]) -> Iterator[tuple[int, int]]:
    """Where to cut texts into parts of so many characters."""
    start = size = 0
    for stop, text in enumerate(texts, 1):
        size += len(text.premise or "") + sum(map(len, text.words))
        if size >= _CHARACTERS_AT_ONCE or stop == len(texts):
            yield start, stop
            start, size = stop, 0
