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
    Where every word counts, ``least`` may take the place of both: of all that is listed for a copy,
    the least difference of its text's winner and each class, shape (copies, classes).
    """

    sizes: Ints
    votes: Votes | None = None
    present: npt.NDArray[np.bool_] | None = None
    least: Ints | None = None

    def part(self, votes: Votes, first: int, last: int) -> Replacements:
        """Those of the texts from ``first`` up to ``last`` of ``votes``, the texts' own."""
        start, end = int(votes.starts[first]), int(votes.starts[last - 1] + votes.copies[last - 1])
        if self.least is not None:
            return Replacements(self.sizes[start:end], least=self.least[start:end])
        assert self.votes is not None and self.present is not None
        ends = np.append(self.votes.starts, len(self.present))
        present = self.present[int(ends[first]) : int(ends[last])]
        return Replacements(self.sizes[start:end], self.votes.part(first, last), present)

    def movable(self, votes: Votes) -> npt.NDArray[np.bool_]:
        """Which of the texts have a word for which another is listed."""
        return np.logical_or.reduceat(self.sizes > 0, votes.starts)

    def lowest(self, differences: Ints, votes: Votes) -> Ints:
        """The least difference of each word and its synonyms, shape (rivals, copies).

        ``differences`` are those of ``votes``, the texts' own, for every rival.
        """
        found, filled = differences.copy(), self.sizes > 0
        if not filled.any():
            return found
        if self.least is None:
            said = self._said(votes.winners)
            least = np.minimum.reduceat(said, self._first[filled], axis=1)
        else:
            labels = np.repeat(votes.winners, votes.copies)[filled]
            rivals = np.arange(votes.classes - 1)[:, None]
            of_filled = self.least[filled]
            least = of_filled[np.arange(len(labels)), rivals + (rivals >= labels)]
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
        assert self.present is not None
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
        assert self.votes is not None
        return self.votes.differences(labels, every=True)


def least_differences(votes: Votes, sizes: Ints) -> Ints:
    """For any label: the least difference of it and each class over so many rows each.

    Shape (groups, classes, classes), the label first; ``bound`` where a group is empty.
    """
    least = np.full((len(sizes), votes.classes, votes.classes), votes.bound, dtype=np.int64)
    filled = np.flatnonzero(sizes)
    for label in range(votes.classes if len(filled) else 0):
        said = votes.differences(np.full(len(votes.copies), label), every=True)
        of_groups = np.minimum.reduceat(said, (np.cumsum(sizes) - sizes)[filled], axis=1)
        rivals = [rival for rival in range(votes.classes) if rival != label]
        for rival, row in zip(rivals, of_groups, strict=True):
            least[filled, label, rival] = row
    return least
