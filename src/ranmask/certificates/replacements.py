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
    copy that shows no word).  ``votes``: what is said of them, each in that copy's place; a text
    has as many as its sizes add up to.  ``present``: which of them stand in the text already.
    """

    sizes: Ints
    votes: Votes
    present: npt.NDArray[np.bool_]

    def part(self, votes: Votes, first: int, last: int) -> Replacements:
        """Those of the texts from ``first`` up to ``last`` of ``votes``, the texts' own."""
        start, end = int(votes.starts[first]), int(votes.starts[last - 1] + votes.copies[last - 1])
        ends = np.append(self.votes.starts, len(self.present))
        present = self.present[int(ends[first]) : int(ends[last])]
        return Replacements(self.sizes[start:end], self.votes.part(first, last), present)

    def lowest(self, differences: Ints, labels: Ints) -> Ints:
        """The least difference of each word and its synonyms, shape (rivals, copies).

        ``differences`` are the words' own, of every rival.
        """
        found, filled = differences.copy(), self.sizes > 0
        if filled.any():
            least = np.minimum.reduceat(self._said(labels), self._first[filled], axis=1)
            found[:, filled] = np.minimum(found[:, filled], least)
        return found

    def costs_once(self, differences: Ints, labels: Ints, word_at: Ints) -> Ints:
        """At each position of the texts, what another changed occurrence of its word may cost.

        ``word_at``: the copy that shows the word of each position.  Changing ``r`` of ``n``
        occurrences brings in at most ``r`` synonyms that are not in the text yet, the worst first,
        and takes the word out if ``r = n``, which is cut into ``n`` equal shares, rounded up.  So
        the ``d`` largest costs add up to no less than ``d`` changes cost.  That a word which speaks
        for the rival is taken out, or one for the label brought in, is not counted: another change
        may bring in the same word.
        """
        sizes, first = self.sizes, self._first
        costs = np.zeros((len(differences), len(word_at)), dtype=np.int64)
        filled = sizes > 0
        if not filled.any():
            return costs
        brought = -self._said(labels)
        brought[:, self.present] = 0
        order = dearest_first(brought, sizes[filled], first[filled])
        brought = np.take_along_axis(brought, order, axis=1)
        occurrences = np.bincount(word_at, minlength=len(sizes))
        shares = -(-np.maximum(differences, 0) // np.maximum(occurrences, 1))
        by_word = np.argsort(word_at, kind="stable")
        ranks = np.empty_like(word_at)  # which occurrence of its word each position is
        ranks[by_word] = np.arange(len(word_at)) - np.repeat(
            np.cumsum(occurrences) - occurrences, occurrences
        )
        listed = ranks < sizes[word_at]
        of_rank = brought[:, (first[word_at] + ranks)[listed]]
        costs[:, listed] = np.maximum(of_rank, 0)
        costs[:, filled[word_at]] += shares[:, word_at[filled[word_at]]]
        return costs

    @property
    def _first(self) -> Ints:
        """Where what is listed for each copy begins."""
        return np.cumsum(self.sizes) - self.sizes

    def _said(self, labels: Ints) -> Ints:
        return self.votes.differences(labels, every=True)
