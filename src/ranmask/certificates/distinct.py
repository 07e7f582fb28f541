"""Copies that show one word each, and each distinct word once, however often it stands in a text.

Guarantee.  Let ``g`` add up what a base classifier says of every *distinct* word of a text, where
what it says of a word depends on that word alone; and, it may be, of a *blank*, which is the same
for every text and which no edit meets.  (`DistinctWords`) ``g`` gives the same label, as the
only winner, to every text that at most ``radius`` edits make of it: a word replaced, inserted or
deleted, one occurrence an edit.  Reordering the words is free.

Assumptions.  Those of `exact` for edits, for substitutions too: the copy of a word stays the same
where another of its occurrences is the first one.

Proof (docs/certificates.md, "Each distinct word once").  After ``d`` edits, at most ``d``
occurrences are gone and at most ``d`` are new.  A distinct word is gone only if all its occurrences
are.  Against each rival the margin is at least ``margin - K(d) - d * bound``, where ``K(d)`` is the
largest sum of positive differences of words that have at most ``d`` occurrences together: a
knapsack, in which a word is as large as it is frequent.  Substitutions alone reach that, so both
threats have one radius, and it is tight.

A text of a great many different repeated words may need too large a knapsack.  There each word is
cut into as many equal shares, rounded up, as it has occurrences, which may be taken out one by
one: no less than the knapsack, so that the radius still holds, but is not called tight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import dearest_first, falling, steps_below
from ranmask.certificates.spans import shortest_runs_once
from ranmask.errors import check_cancelled

_MOST_CELLS = 1 << 26  # of one knapsack: a tenth of a second or two
_CELLS_AT_ONCE = 1 << 22  # of several knapsacks, which bounds memory


def most_removed(differences: Ints, sizes: Ints, most: int) -> tuple[Ints, bool]:
    """``K(d)`` of one text against one rival, for ``d`` from 0 to ``most``; or, and False, more.

    ``differences`` and ``sizes``, the numbers of occurrences, have an entry for each distinct word,
    and for a blank, whose size is 0.
    """
    words = np.flatnonzero((differences > 0) & (sizes > 0))
    rows = np.zeros(len(words), dtype=np.int64)
    items = _Items(rows, words, differences[words], sizes[words]).that_fit(np.array([most]))
    if len(items.rows) * (most + 1) > _MOST_CELLS:
        shares = np.zeros(most + int(sizes[words].sum()), dtype=np.int64)
        shares[most:] = np.repeat(-(-differences[words] // sizes[words]), sizes[words])
        return np.append(0, np.cumsum(np.sort(shares)[::-1][:most])), False
    return items.filled(1, most)[0][0], True


@dataclass(frozen=True, eq=False)
class _Items:
    """Words that knapsacks may take: the knapsack (row), name, value and size of each."""

    rows: Ints
    words: Ints
    values: Ints
    sizes: Ints

    def part(self, chosen: Ints) -> _Items:
        return _Items(
            self.rows[chosen], self.words[chosen], self.values[chosen], self.sizes[chosen]
        )

    def that_fit(self, capacities: Ints) -> _Items:
        """The dearest of each size, as many as fit; in an order that `steps` can cut."""
        ordered = self.part(np.lexsort((-self.values, self.sizes, self.rows)))
        other = np.ones(len(ordered.rows), dtype=bool)
        other[1:] = (np.diff(ordered.rows) != 0) | (np.diff(ordered.sizes) != 0)
        first = np.flatnonzero(other)
        runs = np.diff(np.append(first, len(other)))
        ranks = np.arange(len(other)) - np.repeat(first, runs)
        fit = np.flatnonzero((ranks + 1) * ordered.sizes <= capacities[ordered.rows])
        return ordered.part(fit[np.lexsort((ordered.rows[fit], ranks[fit], ordered.sizes[fit]))])

    def steps(self) -> list[tuple[slice, int]]:
        """Neighbours of one size, no two of one row, and that size."""
        if not len(self.rows):
            return []
        cuts = np.flatnonzero((np.diff(self.sizes) != 0) | (np.diff(self.rows) <= 0)) + 1
        ends = [0, *cuts.tolist(), len(self.rows)]
        return [(slice(a, b), int(self.sizes[a])) for a, b in pairwise(ends)]

    def filled(self, rows: int, most: int) -> tuple[Ints, list[npt.NDArray[np.bool_]]]:
        """The best value of each row at every capacity up to ``most``, and who is taken there."""
        best = np.zeros((rows, most + 1), dtype=np.int64)
        taken = []
        for step, size in self.steps():
            check_cancelled()
            row = self.rows[step]
            without = best[row, size:]
            with_it = best[row, : most + 1 - size] + self.values[step, None]
            taken.append(with_it > without)
            best[row, size:] = np.maximum(with_it, without)
        return best, taken

    def chosen(self, taken: list[npt.NDArray[np.bool_]], capacities: Ints) -> Ints:
        """The words of a best choice, of every row at its capacity."""
        left = capacities.copy()
        found = [np.zeros(0, dtype=np.int64)]
        for (step, size), yes in zip(reversed(self.steps()), reversed(taken), strict=True):
            row = self.rows[step]
            room = left[row] - size
            bought = (room >= 0) & yes[np.arange(len(row)), np.maximum(room, 0)]
            left[row[bought]] -= size
            found.append(self.words[step][bought])
        return np.concatenate(found)


class DistinctWords:
    """Several texts, of which each distinct word counts once, against all their rivals.

    ``differences`` are label minus rival for each distinct word, as for `exact.single_word_radii`.
    ``distinct``: how many of them each text has, where a blank counts as one.  ``places``: which
    of its text's distinct words stands at each position; ``words``: how many positions there are.
    ``reserve``: what every lead must exceed.
    """

    def __init__(
        self,
        differences: Ints,
        distinct: Ints,
        places: Ints,
        words: Ints,
        bound: int,
        reserve: int,
    ) -> None:
        self._bound, self._differences = bound, differences
        self._words, self._distinct = words, distinct
        self._starts = np.cumsum(distinct) - distinct
        text_at = np.repeat(np.arange(len(words)), words)
        self._word_at = places + self._starts[text_at]  # each position's distinct word
        self._text_of = np.repeat(np.arange(len(words)), distinct)  # of each distinct word
        self._sizes = np.bincount(self._word_at, minlength=differences.shape[1])
        self.margins = np.add.reduceat(differences, self._starts, axis=1) - reserve
        self._gains = np.where(self._sizes > 0, np.maximum(differences, 0), 0)
        # What is taken out of each text against each rival, as far as it is known.
        self._gone = np.zeros(differences.shape, dtype=bool)
        self.step: int | None = None  # for which that is known

    def proved(self, step: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """How many steps are proved, for each rival and text, and whether that is exact.

        A step takes out one occurrence of a word and costs ``step`` besides, for new words.  Where
        that is nothing (deletions), a word is left in every text.
        """
        self._gone[:], self.step = False, step
        radii = self._from_single_words(step)
        tight = self._with_repeated_words(radii, step)
        return radii if step else np.minimum(radii, self._words - 1), tight

    def shortest_runs(self) -> tuple[Ints, Ints]:
        """As `spans.shortest_runs`: of runs in whose place come as many new words."""
        values, at, bound = self._differences, self._word_at, self._bound
        return shortest_runs_once(values, at, self._words, bound, self.margins)

    def _from_single_words(self, step: int) -> Ints:
        """The radii if only words that stand there once are taken out: none is larger.

        Even nothing but new words, one for each distinct word and the blank, cost a margin or more;
        where there are none, all words may be taken out for less.
        """
        order, values = self._single_words
        radii = steps_below(values + step, self.margins, self._starts)
        radii = np.where(radii >= self._distinct, self._words, radii)
        ranks = np.arange(len(self._sizes)) - self._starts[self._text_of]
        rivals, at = np.nonzero(ranks <= radii[:, self._text_of])
        self._gone[rivals, order[rivals, at]] = values[rivals, at] > 0
        return radii

    @cached_property
    def _single_words(self) -> tuple[Ints, Ints]:
        """Words that stand there once, the dearest first, and their gains; 0 for others."""
        values = np.where(self._sizes == 1, self._gains, 0)
        order = dearest_first(values, self._distinct, self._starts)
        return order, np.take_along_axis(values, order, axis=1)

    def _from_shares(self, step: int) -> Ints:
        """Radii that hold: shares of repeated words are taken out one by one."""
        starts = np.cumsum(self._words) - self._words
        radii: Ints = steps_below(self._shares + step, self.margins, starts)
        return np.minimum(radii, self._words)

    @cached_property
    def _shares(self) -> Ints:
        """The shares of all words of each text, the largest first."""
        shares = -(-self._gains // np.maximum(self._sizes, 1))
        return falling(shares[:, self._word_at], self._words)

    def _with_repeated_words(self, radii: Ints, step: int) -> npt.NDArray[np.bool_]:
        """Lower the radii to what they are with repeated words; True for those that are exact."""
        tight = np.ones(radii.shape, dtype=bool)
        fit = (self._gains > 0) & (self._sizes > 1) & (self._sizes <= radii[:, self._text_of])
        open_ones = np.logical_or.reduceat(fit, self._starts, axis=1)
        open_ones &= self.margins.min(axis=0) > 0
        if not open_ones.any():
            return tight
        least = self._from_shares(step)
        # Nothing is open where both bounds agree, or where another rival allows fewer words.
        open_ones &= (least < radii) & (least <= radii.min(axis=0))
        rivals, texts = np.nonzero(open_ones)
        by_radius = radii[rivals, texts].argsort(kind="stable")
        rivals, texts = rivals[by_radius], texts[by_radius]
        capacities = radii[rivals, texts] + 1
        items = self._items(rivals, texts).that_fit(capacities)
        cells = np.bincount(items.rows, minlength=len(rivals)) * (capacities + 1)
        for first, last in _groups(cells):
            rival, text = rivals[first:last], texts[first:last]
            if cells[first] > _MOST_CELLS:
                radii[rival, text], tight[rival, text] = least[rival, text], False
                continue
            some = items.part(np.flatnonzero((items.rows >= first) & (items.rows < last)))
            some = replace(some, rows=some.rows - first)
            most = int(capacities[last - 1])
            best, taken = some.filled(last - first, most)
            costs = best + np.arange(most + 1) * step
            reached = costs >= self.margins[rival, text][:, None]
            number = np.where(reached.any(axis=1), reached.argmax(axis=1), capacities[first:last])
            radii[rival, text] = number - 1
            again = np.zeros(radii.shape, dtype=bool)
            again[rival, text] = True
            self._gone &= ~again[:, self._text_of]
            self._gone.reshape(-1)[some.chosen(taken, number)] = True
        return tight

    def _items(self, rivals: Ints, texts: Ints) -> _Items:
        """The words for the label, of some texts against some rivals: a row for each."""
        sizes = self._distinct[texts]
        rows = np.repeat(np.arange(len(texts)), sizes)
        before = np.cumsum(sizes) - sizes
        words = np.arange(len(rows)) + np.repeat(self._starts[texts] - before, sizes)
        values = self._gains[rivals[rows], words]
        names = rivals[rows] * len(self._sizes) + words
        return _Items(rows, names, values, self._sizes[words]).part(np.flatnonzero(values))

    def positions(self, rivals: Ints, sizes: Ints) -> list[int]:
        """So many positions of each text: of what is taken out first, then of others for the label.

        Text by text, rising positions in each.
        """
        at = self._word_at
        text_at = self._text_of[at]
        gone = self._gone[rivals[text_at], at]
        gains = self._gains[rivals[text_at], at] > 0
        order = np.argsort(3 * text_at + np.where(gone, 0, np.where(gains, 1, 2)), kind="stable")
        starts = np.cumsum(self._words) - self._words
        ranks = np.arange(len(order)) - starts[text_at]
        chosen = np.sort(order[ranks < sizes[text_at]])
        positions: list[int] = (chosen - starts[text_at[chosen]]).tolist()
        return positions


def _groups(cells: Ints) -> Iterator[tuple[int, int]]:
    """Runs of knapsacks that are filled together; one that is too large is by itself."""
    start, held = 0, 0
    for place, size in enumerate(cells.tolist()):
        if place > start and held + size > _CELLS_AT_ONCE:
            yield start, place
            start, held = place, 0
        held += size
    if start < len(cells):
        yield start, len(cells)
