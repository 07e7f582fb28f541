"""What changed characters can make of the words of texts, if a table knows its words."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranmask.certificates.characters import Spellings
from ranmask.certificates.coverage import Ints
from ranmask.models.known_words import KnownWords
from ranmask.models.normalising import letters

_LONGEST = 200  # letters: of a longer word, any part is reckoned with
_MOST_KEPT = 1 << 17  # words


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
        self._numbers: dict[str, int]
        self._found: list[_Found]
        self._joins: npt.NDArray[np.bool_]  # (words, 3): begins, ends a known word; has no letter
        self._rows: npt.NDArray[np.int32]  # (words, winners): of the two below; -1 where not asked
        self._made: Ints
        self._part: Ints
        self._forget()

    def of(self, texts: Sequence[Sequence[str]], winners: Ints) -> Spellings:
        """Of the words of texts, each with its winner."""
        words = list(chain.from_iterable(texts))
        sizes = [len(own) for own in texts]
        labels = np.repeat(winners, sizes)
        with self._lock:
            numbers = self._numbered(words)
            rows = self._asked(numbers, labels)
            made, part = self._made[rows], self._part[rows]
            before, after = self._joins[numbers[:-1]], self._joins[numbers[1:]]
            able = (before[:, 0] & after[:, 1]) | before[:, 2] | after[:, 2]
            able[np.cumsum(sizes)[:-1] - 1] = False  # a text's last word and another's first
            first = np.flatnonzero(able)
            forms = [
                (self._found[one].form, self._found[other].form)
                for one, other in zip(numbers[first], numbers[first + 1], strict=True)
            ]
        pairs = [
            (place, own)
            for place, form in zip(first.tolist(), forms, strict=True)
            if (own := self._known.joined(*form))
        ]
        joined, places = np.zeros_like(made), np.array([place for place, _ in pairs], dtype=np.intp)
        joined[places] = self._most([self._said[own] for _, own in pairs], labels[places])
        return Spellings(made, part, joined, self._bound)

    def _numbered(self, words: Sequence[str]) -> npt.NDArray[np.intp]:
        """The number of each word; what characters make of it has been looked up."""
        if len(self._numbers) > _MOST_KEPT:
            self._forget()
        fresh = [word for word in dict.fromkeys(words) if word not in self._numbers]
        if fresh:
            self._numbers.update(zip(fresh, count(len(self._numbers)), strict=False))
            found = [*map(self._looked_up, fresh)]
            self._found += found
            joins = [(*self._known.begins_and_ends(one.form), not one.form) for one in found]
            self._joins = np.concatenate([self._joins, np.array(joins)])
            unasked = np.full((len(fresh), self._said.shape[1]), -1, dtype=np.int32)
            self._rows = np.concatenate([self._rows, unasked])
        return np.fromiter(map(self._numbers.__getitem__, words), np.intp, len(words))

    def _asked(self, numbers: npt.NDArray[np.intp], labels: Ints) -> npt.NDArray[np.int32]:
        """The row of ``made`` and ``part`` of each word with its winner."""
        classes = self._said.shape[1]
        missing = self._rows[numbers, labels] < 0
        if missing.any():
            pairs = np.unique(numbers[missing] * classes + labels[missing])
            own, labels_of = np.divmod(pairs, classes)
            self._rows[own, labels_of] = len(self._made) + np.arange(len(pairs))
            found = [self._found[number] for number in own]
            made = self._most([self._said[one.made].sum(axis=1) for one in found], labels_of)
            part = self._most([self._said[one.parts] for one in found], labels_of)
            part[[len(one.form) > _LONGEST for one in found]] = self._bound
            self._made = np.concatenate([self._made, made])
            self._part = np.concatenate([self._part, part])
        return self._rows[numbers, labels]

    def _forget(self) -> None:
        self._numbers, self._found = {}, []
        classes = self._said.shape[1]
        self._joins = np.zeros((0, 3), dtype=np.bool_)
        self._rows = np.zeros((0, classes), dtype=np.int32)
        self._made = self._part = np.zeros((0, classes), dtype=np.int64)

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
