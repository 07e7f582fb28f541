"""Runs of neighbouring words: the shortest whose replacement costs a margin or more.

There are only so many runs as a text has words, so that what one costs is looked at for each: exact
for every family of kept sets, without a search.  Costs never fall where a run grows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints
from ranmask.certificates.families import KeptSets
from ranmask.errors import check_cancelled

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


def shortest_runs(lengths: Ints, words: Ints) -> tuple[Ints, Ints]:
    """The shortest of each text's `run_lengths` and where it begins, each (rivals, texts)."""
    starts = np.cumsum(words) - words
    texts = np.repeat(np.arange(len(words)), words)
    shortest: Ints = np.minimum.reduceat(lengths, starts, axis=1)
    return shortest, _first_of_texts(lengths == shortest[:, texts], texts, starts)


def _first_of_texts(chosen: npt.NDArray[np.bool_], texts: Ints, starts: Ints) -> Ints:
    """Where, in each text, the first chosen word stands; ``texts``: the text of each word."""
    first = np.empty((len(chosen), len(starts)), dtype=np.int64)
    for row, own in zip(first, chosen, strict=True):
        hits = np.flatnonzero(own)
        row[:] = hits[np.searchsorted(texts[hits], np.arange(len(starts)))] - starts
    return first


def run_lengths_of_sets(sets: KeptSets, weights: Ints, words: int, margins: Ints) -> Ints:
    """The same for one text over any family: a run costs the weights of the sets that it meets."""
    following = np.full(len(sets), words)  # the first kept position from the start of the run on
    lengths = np.full((len(weights), words), FAR)
    for start in reversed(range(words)):
        check_cancelled()
        following[(sets == start).any(axis=1)] = start
        for row, own, margin in zip(lengths, weights, margins.tolist(), strict=True):
            # Sums stay below 2**53, so that doubles add them exactly.
            met = np.bincount(following, own, words + 1)[start:words].cumsum()
            found = int(met.searchsorted(margin))
            if found < len(met):
                row[start] = found + 1
    return lengths


def shortest_runs_once(
    values: Ints, word_at: Ints, words: Ints, bound: int, margins: Ints
) -> tuple[Ints, Ints]:
    """As `shortest_runs`, where each distinct word counts once.

    A run costs ``bound`` for each word in it, and the ``values`` (rivals, distinct words) of those
    that stand nowhere else; ``word_at`` says which of them each word is.
    """
    places, texts = np.arange(len(word_at)), np.repeat(np.arange(len(words)), words)
    starts = np.cumsum(words) - words
    first, last, text_of = np.zeros((3, values.shape[1]), dtype=np.int64)
    last[word_at], first[word_at[::-1]], text_of[word_at] = places, places[::-1], texts
    repeated = first < last
    costs = np.where(repeated, 0, values)[:, word_at] + bound
    sums = np.zeros((len(costs), len(places) + 1), dtype=np.int64)
    costs.cumsum(axis=1, out=sums[:, 1:])
    shortest, begin = shortest_runs(run_lengths(sums[:, :-1], sums[:, 1:], margins, words), words)
    # A repeated word that fits into so short a run may be gone with it.  If it went with its last
    # occurrence alone, no run would cost less: no shorter run can reach the margin.
    fits = repeated & (values != 0) & (last - first < shortest[:, text_of])
    rows, fitting = np.nonzero(fits)
    costs[rows, last[fitting]] += np.maximum(values[rows, fitting], 0)
    through = costs.cumsum(axis=1)
    least, _ = shortest_runs(run_lengths(through - costs, through, margins, words), words)
    for row, own in enumerate(fits):
        again = np.zeros(len(words), dtype=bool)
        again[text_of[own]] = True
        again &= margins[row] > 0
        lengths, held = least[row].copy(), np.flatnonzero(own)
        while again.any():
            check_cancelled()
            inside = held[again[text_of[held]] & (last - first < lengths[text_of])[held]]
            added = np.zeros(len(places) + 1, dtype=np.int64)
            earliest = np.maximum(last - lengths[text_of] + 1, starts[text_of])[inside]
            np.add.at(added, earliest, values[row, inside])
            np.add.at(added, first[inside] + 1, -values[row, inside])
            length = np.minimum(lengths, words)[texts]
            ends = places + length
            whole = again[texts] & (ends <= (starts + words)[texts])
            cost = sums[row, np.minimum(ends, len(places))] - sums[row, :-1]
            reached = whole & (cost + added[:-1].cumsum() >= margins[row][texts])
            done = again & np.logical_or.reduceat(reached, starts)
            begun = _first_of_texts((reached | ~done[texts])[None], texts, starts)[0]
            shortest[row] = np.where(done, lengths, shortest[row])
            begin[row] = np.where(done, begun, begin[row])
            again &= ~done
            lengths = lengths + again
    return shortest, begin
