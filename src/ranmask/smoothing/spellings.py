"""What changed characters can make of the words of texts, if a table knows its words."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain, count, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranmask.certificates.characters import Spellings
from ranmask.certificates.coverage import Ints
from ranmask.models.known_words import KnownWords
from ranmask.models.normalising import letters

_LONGEST = 200  # letters: of a longer word, any part is reckoned with
_MOST_KEPT = 1 << 16  # words


class _Found(NamedTuple):
    """What is known of a word: its form, and places of known words."""

    form: str
    made: npt.NDArray[np.int32]  # by one edit, (ways, 2); of one word, -1 is the other
    parts: npt.NDArray[np.int32]


class KnownSpellings:
    """Finds `Spellings`; what is found of a word is remembered.

    ``points``: what is said of the known words, (words, classes).
    """

    def __init__(self, known: KnownWords, points: Ints) -> None:
        self._known = known
        self._bound = max(1, int(np.ptp(points, axis=1).max()))
        # Of an unknown word, at -1, all classes have the same.
        self._said = np.concatenate([points, np.zeros((1, points.shape[1]), dtype=np.int64)])
        self._lock = threading.Lock()  # of all below
        self._found: dict[str, _Found]
        self._numbers: dict[tuple[str, int], int]  # of words, each with its text's winner
        self._made: Ints
        self._part: Ints
        self._forget()

    def of(self, texts: Sequence[Sequence[str]], winners: Ints) -> Spellings:
        """Of the words of texts, each with its winner."""
        words = list(chain.from_iterable(texts))
        labels = np.repeat(winners, [len(own) for own in texts])
        with self._lock:
            numbers = self._numbered(words, labels)
            made, part = self._made[numbers], self._part[numbers]
            found = list(map(self._found.__getitem__, words))
        # (Of a text's last word and another's first, too: no certificate looks at it.)
        pairs = [
            (place, own)
            for place, (one, other) in enumerate(pairwise(found))
            if (own := self._known.joined(one.form, other.form))
        ]
        joined, places = np.zeros_like(made), np.array([place for place, _ in pairs], dtype=np.intp)
        joined[places] = self._most([self._said[own] for _, own in pairs], labels[places])
        return Spellings(made, part, joined, self._bound)

    def _numbered(self, words: Sequence[str], labels: Ints) -> npt.NDArray[np.intp]:
        """The number of each word with its label; what is kept of it is there."""
        if len(self._numbers) > _MOST_KEPT:
            self._forget()
        asked = list(zip(words, labels.tolist(), strict=True))
        fresh = [one for one in dict.fromkeys(asked) if one not in self._numbers]
        if fresh:
            for word, _ in fresh:
                if word not in self._found:
                    self._found[word] = self._looked_up(word)
            self._numbers.update(zip(fresh, count(len(self._numbers)), strict=False))
            own = np.array([label for _, label in fresh])
            found = [self._found[word] for word, _ in fresh]
            made = self._most([self._said[one.made].sum(axis=1) for one in found], own)
            part = self._most([self._said[one.parts] for one in found], own)
            part[[len(one.form) > _LONGEST for one in found]] = self._bound
            self._made = np.concatenate([self._made, made])
            self._part = np.concatenate([self._part, part])
        return np.fromiter(map(self._numbers.__getitem__, asked), np.intp, len(asked))

    def _forget(self) -> None:
        self._found, self._numbers = {}, {}
        self._made = self._part = np.zeros((0, self._said.shape[1]), dtype=np.int64)

    def _looked_up(self, word: str) -> _Found:
        known, form = self._known, letters(word)
        made = [*((place, -1) for place in known.changed(form)), *known.cuts(form)]
        parts = known.parts(form) if len(form) <= _LONGEST else ()
        return _Found(
            form,
            np.array(made, dtype=np.int32).reshape(-1, 2),
            np.array([*parts], dtype=np.int32),
        )

    def _most(self, groups: Sequence[Ints], labels: Ints) -> Ints:
        """The most that a row of each group says for a class against its label, at least 0.

        Shape (groups, classes).
        """
        if not groups:
            return np.zeros((0, self._said.shape[1]), dtype=np.int64)
        sizes = np.array([len(own) + 1 for own in groups])
        nothing = self._said[-1:]
        flat = np.concatenate([one for own in groups for one in (nothing, own)])
        said = flat[np.arange(len(flat)), np.repeat(labels, sizes)]
        most: Ints = np.maximum.reduceat(flat - said[:, None], np.cumsum(sizes) - sizes)
        return most
