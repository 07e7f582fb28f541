"""Lists of words and tokens as flat arrays: one list after another, and how long each one is."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Ids: TypeAlias = npt.NDArray[np.int64]
_T = TypeVar("_T")


def number_words(texts: Sequence[Sequence[_T]]) -> tuple[Ids, Ids, list[_T]]:
    """The words of texts as numbers in a list of distinct ones; how many each has; that list."""
    counts = np.fromiter(map(len, texts), np.int64, len(texts))
    known = defaultdict[_T, int](itertools.count().__next__)
    every = map(known.__getitem__, itertools.chain.from_iterable(texts))
    return np.fromiter(every, np.int64, int(counts.sum())), counts, list(known)


def flat_tokens(words: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    """The number of tokens of each word, and all tokens."""
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    every = itertools.chain.from_iterable(words)
    return sizes, np.fromiter(every, np.int64, int(sizes.sum()))


def numbered(counts: Ids) -> tuple[Ids, Ids]:
    """``counts`` items of each kind: the kind of each, and its number within it."""
    kind = np.repeat(np.arange(len(counts)), counts)
    return kind, np.arange(len(kind)) - np.repeat(np.cumsum(counts) - counts, counts)


def ranges(starts: Ids, counts: Ids) -> Ids:
    """``counts`` numbers from each of ``starts`` on."""
    first = starts - (np.cumsum(counts) - counts)
    return np.asarray(np.repeat(first, counts) + np.arange(int(counts.sum())))
