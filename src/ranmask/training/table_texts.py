"""Training texts of a word table in flat arrays: words as numbers, and the features of those."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranmask.errors import DataError
from ranmask.models.flat import ranges
from ranmask.models.known_words import KnownWords
from ranmask.models.normalising import Normaliser, letters
from ranmask.models.synonyms import SynonymSets
from ranmask.models.word_features import WHOLE, features
from ranmask.training.table_loss import Floats, Ints
from ranmask.words import document, split

_LETTERS = range(3, 31)
"""How many letters a known word has.  Shorter ones are made by two changed characters."""


class Batch(NamedTuple):
    """Some texts: features of their distinct words, and which of these stand in which text."""

    buckets: Ints
    """Features, those of a distinct word side by side: their rows in the table."""
    weights: Floats
    """What each feature counts."""
    counts: Ints
    """How many features each distinct word has."""
    words: Ints
    """Texts one after another, word by word: the numbers of distinct words."""
    lengths: Ints
    """How many words each text has."""
    shares: Floats | float
    """How much of a word each one is; see `table_loss.margins`."""
    labels: Ints
    others: Ints | None = None
    """What may take the place of each word of the texts, itself among it: (words, most of them)."""


class TableTexts:
    """Labelled texts, to be read in batches.

    Args:
        texts: Single texts, of which the first ``most_words`` words are read.
        labels: Of each, below ``classes``.
        buckets: Rows of the table, among which features are spread.
        normaliser: The normal form of a word, which is read in its place.
        synonyms: What may take a word's place, if that is trained for.
        known: The only words that say something, rows of the table; others are left out.
    """

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[int],
        classes: int,
        *,
        buckets: int,
        most_words: int,
        normaliser: Normaliser | None = None,
        synonyms: SynonymSets | None = None,
        known: KnownWords | None = None,
    ) -> None:
        if not len(texts) or len(texts) != len(labels):
            raise DataError(f"{len(texts)} texts and {len(labels)} labels cannot be trained on")
        check_single(texts)
        numbers = defaultdict[str, int](count().__next__)
        flat = array("i")
        lengths = []
        for row, (text, label) in enumerate(zip(texts, labels, strict=True), 1):
            if not 0 <= label < classes:
                raise DataError(f"label {label!r} is none of the {classes} classes", row)
            words = document(text, row - 1).words[:most_words]
            flat.extend(map(numbers.__getitem__, words))
            lengths.append(len(words))
        self.labels: Ints = np.array([int(label) for label in labels])
        self._lengths: Ints = np.array(lengths)
        self._starts = np.cumsum(self._lengths) - self._lengths
        self._spelt = self._words = np.array(flat)
        normal = Normaliser() if normaliser is None else normaliser
        if normal.name != "none":
            spelt, numbers = list(numbers), defaultdict(count().__next__)
            self._words = np.array([numbers[normal(word)] for word in spelt])[self._spelt]
        self._shares: Floats | None = None
        self._others: Ints | None = None
        if synonyms is not None:
            sets = [
                [numbers[normal(other)] for other in synonyms.replacements(word)]
                for word in list(numbers)
            ]
            most = max(map(len, sets))
            self._others = np.array([(own * most)[:most] for own in sets])  # repeated to fit
        if known is not None:
            read = np.array([known.places.get(word, -1) for word in numbers])
            unknown = read < 0
            if self._others is not None:  # an unknown word may be replaced by a known one
                unknown = np.logical_and.reduce(unknown[self._others], axis=1)
            self._leave_out(unknown)
            hashes, weights = np.maximum(read, 0), np.where(read < 0, 0, WHOLE)
            starts = np.arange(len(read))
        else:
            hashes, weights, starts = features(numbers)
        self._buckets = hashes % buckets
        self._weights = (weights / WHOLE).astype(np.float32)
        self._feature_starts = starts
        self._feature_counts = np.diff(starts, append=len(hashes))
        self._numbers: Ints = np.zeros(len(numbers), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def _leave_out(self, words: npt.NDArray[np.bool_]) -> None:
        """Leave these words out of texts; of a text that has no others, all but the first."""
        stays = ~words[self._words]
        none = np.add.reduceat(stays, self._starts, dtype=np.int64) == 0
        stays[self._starts[none]] = True
        self._lengths = np.add.reduceat(stays, self._starts, dtype=np.int64)
        self._starts = np.cumsum(self._lengths) - self._lengths
        self._words, self._spelt = self._words[stays], self._spelt[stays]

    def count_words_once(self) -> None:
        """Let the occurrences of a word in a text share what it says."""
        text = np.repeat(np.arange(len(self)), self._lengths)
        keys = text * (int(self._spelt.max(initial=0)) + 1) + self._spelt
        _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
        self._shares = (1 / counts[place]).astype(np.float32)

    def batch(self, rows: Ints) -> Batch:
        """The texts in ``rows``."""
        lengths = self._lengths[rows]
        at = ranges(self._starts[rows], lengths)
        words = self._words[at]
        distinct = self._distinct(words)
        instead = None if self._others is None else self._others[distinct]
        if instead is not None:  # words of the texts come first, then what may take their place
            more = np.setdiff1d(self._distinct(instead), distinct, assume_unique=True)
            distinct = np.concatenate([distinct, more])
        self._numbers[distinct] = np.arange(len(distinct))
        counts = self._feature_counts[distinct]
        of_words = ranges(self._feature_starts[distinct], counts)
        return Batch(
            buckets=self._buckets[of_words],
            weights=self._weights[of_words],
            counts=counts,
            words=self._numbers[words],
            lengths=lengths,
            shares=1.0 if self._shares is None else self._shares[at],
            labels=self.labels[rows],
            others=None if instead is None else self._numbers[instead],
        )

    def _distinct(self, words: Ints) -> Ints:
        """The words among these, once each, in order."""
        seen = np.zeros(len(self._numbers), dtype=bool)
        seen[words] = True
        return np.flatnonzero(seen)


def check_single(texts: Sequence[object]) -> None:
    """Refuse pairs."""
    for row, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise DataError(f"a word table reads single texts, not {type(text).__name__}", row)


def vocabulary(texts: Sequence[str], most_words: int, most: int) -> KnownWords:
    """The words (`letters`) that a table is to know: of `_LETTERS`, in two texts or more.

    Of those in fewest texts, beyond ``most``, the last in the alphabet are left out.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(map(letters, split(text)[:most_words])))
    found = [word for word, texts in counts.items() if texts > 1 and len(word) in _LETTERS]
    found.sort(key=lambda word: (-counts[word], word))
    if not found:
        raise DataError(
            f"no word of {_LETTERS[0]} to {_LETTERS[-1]} letters stands in two of the texts, so "
            "that there is no vocabulary to learn: give more texts, or an open lexicon"
        )
    return KnownWords(sorted(found[:most]))
