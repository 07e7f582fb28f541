"""Changed characters, where the words that say something are known: a table with a vocabulary.

A word outside of the vocabulary says nothing.  So a changed character does not put in *any* word,
as `threats` must assume: most often it makes one that says nothing, and which others it can make
is known (`Spellings`).

Guarantee.  Let ``D`` be what a word says for the label minus for a rival, 0 for an unknown word, in
``-b`` to ``b``, and let a text's words add up to more than ``cost(d)`` against every rival.  Then
they do in every text that is ``d`` characters away from it (insert, delete or replace any, blanks
too), where ``cost(d)`` is the largest sum of these for ``d`` edits in all, with no word twice:

    one edit     a word                          D + made
                 two neighbours                  D + D + joined
    two edits    a word                          D + max(b + part, 3 part)
                 two neighbours                  D + D + b + the larger part
                 three neighbours                D + D + D + b
    any edit     (a new word; or one more of an edited word's)    b

``made``: the most that words speak for the rival which one edit makes of a word: those a letter
away, or both parts that a blank cuts it into.  ``joined``: the same of two words with at most a
letter between.  ``part``: of any part of the word, itself included.  None is below 0.

Proof.  Align the two texts by ``d`` edits; a letter is any character but a blank, read or not.  A
new word that holds no old letter, nor one in the place of such, takes an edit, and costs at most
``b``.  Otherwise two words are linked if they share a letter, or one of the new stands in the place
of one of the old.  What is linked, and old words between that are gone, is a cluster: ``J + 1`` old
neighbours, of which ``J`` blanks went, each by an edit.  With ``s`` new blanks inside, a cluster
holds at most ``s + 1`` new words; with ``m`` edits of letters besides, it takes ``e = J + s + m``
edits or more.  A new word with letters of one old word, none of them edited, is a *part* of it.
Every other holds one of the ``J + m``, so that there are ``q`` of them, ``q <= J + m``, and at most
``s + 1 - q`` parts.  The cluster costs its ``D`` and what its new words say for the rival.  With
one edit that is the first two lines above, exactly; or nothing, if all is read as before.  Else,
``q`` words cost at most ``b`` each:

* ``J = 0``: ``q <= e - s`` leaves ``e + 1 - 2 q`` parts: for ``e = 2`` the third line, and by ``b``
  more at most for each further edit.
* ``J = 1``: at least one word holds letters of both, so ``e = 2`` leaves one part: the fourth line,
  and by ``b`` more at most for each further edit.
* ``J >= 2``: at most ``e - J + 1`` new words: the fifth line for three of the old ones, one edit
  and its ``D`` for each of the others (first line), and ``b`` for each of the ``e - J`` left.  []

Assumptions.  What is read of a word is what is read of its characters, each of them as one
character or none, one after another (`normalising.letters`).  Integers decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import dearest_first, words_below
from ranmask.certificates.priced_edits import priced_radii
from ranmask.errors import check_cancelled

_NONE = -(2**61)  # no choice has this cost
_CELLS_AT_ONCE = 1 << 20
_LONG, _STEP = 1 << 21, 512  # work on a text; on each word, besides edits and rivals


@dataclass(frozen=True, eq=False)
class Spellings:
    """What known words speak for each class against their text's winner, at most: (words, classes).

    A row for each word of the texts: ``made`` of it by one edit, its ``part``, and ``joined`` with
    the next (of a text's last word: not used).  ``bound``: the most that any known word says for a
    class against another, at least 1.
    """

    made: Ints
    part: Ints
    joined: Ints
    bound: int

    def rows(self, start: int, end: int) -> Spellings:
        """Those of the words from ``start`` up to ``end``."""
        made, part, joined = (one[start:end] for one in (self.made, self.part, self.joined))
        return Spellings(made, part, joined, self.bound)

    def against(self, labels: Ints) -> tuple[Ints, Ints, Ints]:
        """The same by rivals, as `Votes.differences`: (rivals, words); ``labels`` of each word."""
        rivals = np.arange(self.made.shape[1] - 1)[:, None]
        rivals = rivals + (rivals >= labels)
        made, part, joined = (
            one[np.arange(len(labels)), rivals] for one in (self.made, self.part, self.joined)
        )
        return made, part, joined


def characters_proved(
    differences: Ints,
    spellings: tuple[Ints, Ints, Ints],
    margins: Ints,
    words: Ints,
    starts: Ints,
    bound: int,
) -> Ints:
    """How many changed characters are proved, shape (rivals, texts); 0 where none is.

    ``differences`` and ``spellings`` are (rivals, words of all texts); ``margins`` what must not be
    reached, (rivals, texts).  Long texts are left to `priced_edits`.
    """
    made, part, joined = spellings
    after, last = _shifted(differences, 1), _shifted(differences, 2)
    both = differences + after
    costs = (  # old words, edits, cost of a choice that begins at each word
        (1, 1, differences + made),
        (2, 1, both + joined),
        (1, 2, differences + np.maximum(bound + part, 3 * part)),
        (2, 2, both + bound + np.maximum(part, _shifted(part, 1))),
        (3, 2, both + last + bound),
    )
    # No more is proved than if every edit were one more, or joined an even word with the next.
    # (Of other rivals, less than is proved may be shown.)
    most = (margins.min(axis=0) - 1) // bound
    most = np.minimum(most, _even_pairs_below(both + joined, margins, words, starts))
    most = np.maximum(most, 0) + 1
    radii = np.zeros(margins.shape, dtype=np.int64)
    for text in np.flatnonzero(words * (_STEP + most * len(margins)) > _LONG).tolist():
        own = slice(starts[text], starts[text] + words[text])
        choices = [(size, edits, cost[:, own]) for size, edits, cost in costs]
        if (found := priced_radii(choices, margins[:, text], bound)) is not None:
            radii[:, text], most[text] = found, 0
    by_word = tuple((size, edits, np.ascontiguousarray(cost.T)) for size, edits, cost in costs)
    order, first = np.argsort(most, kind="stable")[np.count_nonzero(most == 0) :], 0
    while first < len(order):
        wide = len(differences) * (int(most[order[-1]]) + 1)
        rows = order[first : first + max(1, _CELLS_AT_ONCE // wide)]
        first += len(rows)
        rows = rows[np.argsort(words[rows], kind="stable")]
        totals = _totals(by_word, words[rows], starts[rows], int(most[rows].max()), bound)
        radii[:, rows] = (totals < margins[:, rows].T[:, :, None]).sum(axis=2).T - 1
    return np.maximum(radii, 0)


def _even_pairs_below(costs: Ints, margins: Ints, words: Ints, starts: Ints) -> Ints:
    """How many of the pairs that begin at even places cost less than the margins, dearest first."""
    pairs = words // 2
    ends = np.cumsum(pairs)
    places = np.repeat(starts - 2 * (ends - pairs), pairs) + 2 * np.arange(int(pairs.sum()))
    some = np.flatnonzero(pairs)
    found = np.full(margins.shape, np.iinfo(np.int64).max)
    if len(some):
        first, chosen = (ends - pairs)[some], np.maximum(costs[:, places], 0)
        order = dearest_first(chosen, pairs[some], first)
        below = words_below(chosen, order, margins[:, some], first, 0)
        found[:, some] = np.where(below < pairs[some], below, found[:, some])
    fewest: Ints = found.min(axis=0)
    return fewest


def _shifted(values: Ints, by: int) -> Ints:
    """What stands so many words later; 0 behind the end."""
    found = np.zeros_like(values)
    found[:, : max(values.shape[1] - by, 0)] = values[:, by:]
    return found


def _totals(
    costs: tuple[tuple[int, int, Ints], ...], words: Ints, starts: Ints, most: int, bound: int
) -> Ints:
    """``cost`` of 0 to ``most`` edits, (texts, rivals, most + 1), of texts by rising length."""
    shape = len(words), costs[0][2].shape[1], most + 1
    *before, best = (np.full(shape, _NONE) for _ in range(4))
    for one in before:  # the best up to one, two and three words before
        one[..., 0] = 0
    found = best.copy()
    for end in range(1, int(words[-1]) + 1):
        check_cancelled()
        first, last = np.searchsorted(words, [end, end + 1]).tolist()
        best[first:] = before[0][first:]
        for size, edits, cost in costs:
            if size <= end and edits <= most:
                at = cost[starts[first:] + end - size][:, :, None]
                chosen = before[size - 1][first:, :, :-edits] + at
                np.maximum(best[first:, :, edits:], chosen, out=best[first:, :, edits:])
        found[first:last] = best[first:last]
        best, before = before[2], [best, before[0], before[1]]
    extra = np.arange(most + 1) * bound
    totals: Ints = np.maximum.accumulate(found - extra, axis=2) + extra
    return totals
