"""Words of a table in the place of words of a text: what the worst of them cost.

Every copy shows one word.  Where each word counts, changing one costs what it says less what the
worst of itself and its synonyms says.  Where each distinct word counts once (`costs_once`), a
synonym that stands in the text already adds nothing, and a word is gone only with its last
occurrence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import dearest_first
from ranmask.certificates.votes import Votes


@dataclass(frozen=True, eq=False)
class Replacements:
    """What a table lists for the words that copies show, and what is said of it.

    ``sizes``: how many words are listed for each copy of the texts, one copy after another (0 for a
    copy that shows no word).  ``least``, where every word counts: their `least_said`.  Where each
    distinct word counts once: ``votes``, what is said of them, each in that copy's place; a text
    has as many as its sizes add up to.  ``names`` are the same words, numbered, and ``shown`` those
    of the copies: equal words have equal numbers.
    """

    sizes: Ints
    least: Ints | None = None
    votes: Votes | None = None
    names: Ints | None = None
    shown: Ints | None = None

    def part(self, votes: Votes, first: int, last: int) -> Replacements:
        """Those of the texts from ``first`` up to ``last`` of ``votes``, the texts' own."""
        start, end = int(votes.starts[first]), int(votes.starts[last - 1] + votes.copies[last - 1])
        sizes = self.sizes[start:end]
        if self.least is not None:
            return Replacements(sizes, self.least[:, start:end])
        assert self.votes is not None and self.names is not None and self.shown is not None
        ends = np.append(self.votes.starts, len(self.names))
        names = self.names[int(ends[first]) : int(ends[last])]
        said = self.votes.part(first, last)
        return Replacements(sizes, None, said, names, self.shown[start:end])

    def movable(self, votes: Votes) -> npt.NDArray[np.bool_]:
        """Which of the texts have a word for which another is listed."""
        return np.logical_or.reduceat(self.sizes > 0, votes.starts)

    def lowest(self, differences: Ints) -> Ints:
        """The least difference of each word and its synonyms, shape (rivals, copies).

        ``differences`` are those of the texts' votes, for every rival.
        """
        assert self.least is not None
        return np.minimum(differences, self.least)

    def costs_once(self, differences: Ints, votes: Votes, word_at: Ints) -> Ints:
        """At each position of the texts, what another changed occurrence of its word may cost.

        ``votes``: the texts' own.  ``word_at``: the copy that shows the word of each position.  The
        ``d`` largest costs add up to no less than ``d`` changes cost.  Proof: a text loses what
        is said of the words that are gone, less what is said of new ones.

        - A word is gone if all its occurrences are changed and no word is changed to it.  So one
          that speaks for the rival is counted only where no other word of the text lists it.
        - A new word that speaks for the rival is counted for each word that lists it.  One for the
          label is shared out among these, rounded down: together they count it once at most.
        - Changing ``r`` of ``n`` occurrences brings in ``r`` words, the worst first, and takes the
          word out if ``r = n``, which is cut into ``n`` equal shares, rounded up.
        """
        assert self.votes is not None and self.names is not None and self.shown is not None
        costs = np.zeros((len(differences), len(word_at)), dtype=np.int64)
        listing = np.flatnonzero(self.sizes)
        if not len(listing):
            return costs
        lists, present = self._met(votes)
        rows = len(self.names)
        said = self.votes.differences(votes.winners, every=True)
        said = np.where(said > 0, said // lists[:rows], said)
        said[:, present[:rows]] = 0
        back = lists[rows:][listing] > 0
        gone = np.where(back, differences[:, listing].clip(0), differences[:, listing])
        sizes = self.sizes[listing]
        first = np.cumsum(sizes) - sizes
        least = np.minimum.reduceat(said, first, axis=1)
        occurrences = np.bincount(word_at, minlength=len(self.sizes))[listing]
        place = np.full(len(self.sizes), -1)
        place[listing] = np.arange(len(listing))
        place = place[word_at]  # among those that list something, or -1
        alone = np.append(occurrences == 1, False)[place]
        costs[:, alone] = (gone - least).clip(0)[:, place[alone]]
        again = np.flatnonzero(np.append(occurrences > 1, False)[place])
        if len(again):
            again = again[np.argsort(place[again], kind="stable")]
            word = place[again]
            ranks = np.arange(len(word)) - np.searchsorted(word, word)
            some = occurrences > 1
            said = said[:, np.repeat(some, sizes)]
            sizes = np.where(some, sizes, 0)
            first = np.cumsum(sizes) - sizes
            order = dearest_first(-said, sizes[some], first[some])
            worst = np.minimum(ranks, sizes[word] - 1) + first[word]
            brought = -np.take_along_axis(said, order[:, worst], axis=1)
            shares = -(-(gone - least.clip(0)).clip(0) // occurrences)
            costs[:, again] = np.where(ranks < sizes[word], brought.clip(0), 0) + shares[:, word]
        return costs

    def _met(self, votes: Votes) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """How many words of its text list each listed and then each shown word; which are shown."""
        assert self.votes is not None and self.names is not None and self.shown is not None
        names = np.concatenate([self.names, self.shown])
        texts = np.arange(len(votes.copies))
        texts = np.concatenate([np.repeat(texts, one.copies) for one in (self.votes, votes)])
        bits = len(names).bit_length()
        keys = ((texts * (int(names.max()) + 1) + names) << bits) + np.arange(len(names))
        keys.sort()  # equal words of a text stand together
        place = keys & ((1 << bits) - 1)
        first = np.flatnonzero(np.diff(keys >> bits, prepend=-1))
        counts = np.diff(np.append(first, len(keys)))
        listed = np.add.reduceat(place < len(self.names), first, dtype=np.int64)
        lists, present = np.empty_like(place), np.empty(len(place), dtype=bool)
        lists[place] = np.repeat(listed, counts)
        present[place] = np.repeat(listed < counts, counts)
        return lists, present


def least_said(votes: Votes, sizes: Ints, labels: Ints) -> Ints:
    """Of so many rows each, the least difference of label and rival, shape (rivals, groups).

    ``labels``: one for each text of ``votes``.  The bound where a group is empty.
    """
    least = np.full((votes.classes - 1, len(sizes)), votes.bound, dtype=np.int64)
    filled = np.flatnonzero(sizes)
    if len(filled):
        said = votes.differences(labels, every=True)
        first = (np.cumsum(sizes) - sizes)[filled]
        least[:, filled] = np.minimum.reduceat(said, first, axis=1)
    return least
