"""A base classifier that reads whole texts: one copy of each, with every word shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranmask.errors import blaming
from ranmask.models.base import BaseClassifier, Scores, whole_copy
from ranmask.words import Document

_CHARACTERS_AT_ONCE = 1 << 21  # a list of long texts, laid out at once, would fill the memory


def score_whole(base: BaseClassifier, texts: Sequence[Document]) -> Scores:
    """What ``base`` says of each whole text, a row each; at least one text."""
    rows: list[Scores] = []
    done = 0
    for some in _few_at_once(texts):
        with blaming(range(done, done + len(some))):
            said = base.score([whole_copy(one, base.words_read(one)) for one in some])
        rows.append(np.concatenate(said))  # a copy: the next call may use the memory again
        done += len(some)
    return np.concatenate(rows)


def _few_at_once(texts: Sequence[Document]) -> Iterator[Sequence[Document]]:
    start = size = 0
    for place, text in enumerate(texts):
        size += len(text.premise or "") + sum(map(len, text.words))
        if size >= _CHARACTERS_AT_ONCE:
            yield texts[start : place + 1]
            start, size = place + 1, 0
    if start < len(texts):
        yield texts[start:]
