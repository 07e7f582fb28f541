"""Runs of neighbouring words: the shortest whose replacement costs a margin or more.

There are only so many runs as a text has words, so that what one costs is looked at for each: exact
for every family of kept sets, without a search.  Costs never fall where a run grows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints
from ranmask.certificates.families import KeptSets

FAR = np.iinfo(np.int64).max // 4
"""The length of a run that does not exist."""


def run_lengths(before: Ints, through: Ints, margins: Ints, words: Ints) -> Ints:
    """For each rival and word, how long the shortest run from there is that costs a margin.

    ``before`` (rivals, words of all texts) is the cost of all that comes before a run which begins
    at a word, ``through`` of all up to the end of one which ends there: a run costs ``through`` at
    its end less ``before`` at its start.  `FAR` where none within the text does.
    """
    places = np.arange(before.shape[1])
    ends = np.repeat(np.cumsum(words), words)
    wanted = before + np.repeat(margins, words, axis=1)
    lengths = np.empty_like(before)
    for row, costs, targets in zip(lengths, through, wanted, strict=True):
        found = np.maximum(costs.searchsorted(targets), places)
        row[:] = np.where(found < ends, found - places + 1, FAR)
    return lengths


def first_words(lengths: Ints, words: Ints, rivals: Ints) -> Ints:
    """Where the shortest run of each text against its rival begins, counted in the text."""
    starts = np.cumsum(words) - words
    texts = np.repeat(np.arange(len(words)), words)
    own = lengths[rivals[texts], np.arange(len(texts))]
    shortest = np.minimum.reduceat(own, starts)
    hits = np.flatnonzero(own == shortest[texts])
    first: Ints = hits[np.searchsorted(texts[hits], np.arange(len(words)))] - starts
    return first


def run_lengths_of_sets(sets: KeptSets, weights: Ints, words: int, margins: Ints) -> Ints:
    """The same for one text over any family: a run costs the weights of the sets that it meets."""
    following = np.full(len(sets), words)  # the first kept position from the start of the run on
    lengths = np.full((len(weights), words), FAR)
    for start in reversed(range(words)):
        following[(sets == start).any(axis=1)] = start
        for row, own, margin in zip(lengths, weights, margins.tolist(), strict=True):
            # Sums stay below 2**53, so that doubles add them exactly.
            met = np.bincount(following, own, words + 1)[start:words].cumsum()
            found = int(met.searchsorted(margin))
            if found < len(met):
                row[start] = found + 1
    return lengths


def run_lengths_once(
    values: Ints, places: npt.NDArray[np.integer], bound: int, margin: int
) -> Ints:
    """The same for one text and rival where each distinct word counts once.

    A run costs ``bound`` for each word in it, and the ``values`` of distinct words that stand
    nowhere else; ``places`` says which of them each word is.
    """
    words = len(places)
    last = np.zeros(len(values), dtype=np.int64)
    last[places] = np.arange(words)
    first = np.zeros(len(values), dtype=np.int64)
    first[places[::-1]] = np.arange(words)[::-1]
    ended = np.full(words, bound, dtype=np.int64)  # what is added where a run comes to this word
    lengths, shortest = np.full(words, FAR), words
    for start in reversed(range(words)):
        word = places[start]
        if first[word] == start:
            ended[last[word]] += values[word]
        costs = ended[start : start + shortest].cumsum()
        found = int(costs.searchsorted(margin))
        if found < len(costs):
            lengths[start] = shortest = found + 1
    return lengths
