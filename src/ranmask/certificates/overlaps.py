"""How copies that show one of some positions vote: counts, by bits, for many choices at once.

A text has thousands of copies, and Algorithm 1 of the paper asks about hundreds of choices of
positions for each number of words.  A position is a row of bits, one for each copy that shows it;
the copies that a choice meets are the union of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.families import KeptSets
from ranmask.errors import check_cancelled

Bits: TypeAlias = npt.NDArray[np.uint8]
Counts: TypeAlias = npt.NDArray[np.int64]

_ONES = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)
_SETS_AT_ONCE = 1 << 12  # bounds memory for texts of many words


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Which copies show which word, and which of them vote for the label.  Build it by `of`."""

    shows: Bits
    for_label: Bits

    @classmethod
    def of(cls, sets: KeptSets, for_label: npt.NDArray[np.bool_], words: int) -> Overlaps:
        """From kept sets of ``words`` positions, and whether each of them votes for the label."""
        parts = []
        for start in range(0, len(sets), _SETS_AT_ONCE):
            check_cancelled()
            some = sets[start : start + _SETS_AT_ONCE]
            seen = np.zeros((words, len(some)), dtype=bool)
            seen[some, np.arange(len(some))[:, None]] = True
            parts.append(np.packbits(seen, axis=1))
        return cls(np.concatenate(parts, axis=1), np.packbits(for_label))

    def counts(self, choices: npt.NDArray[np.intp]) -> tuple[Counts, Counts]:
        """Two counts for each choice, which is a row of positions.

        Copies that show one of them and vote for the label, and copies that show one of them.
        """
        met = np.zeros((len(choices), self.shows.shape[1]), dtype=np.uint8)
        for column in choices.T:
            met |= self.shows[column]
        return self._counted(met)

    def greedy_counts(self, most: int) -> tuple[Counts, Counts]:
        """The same for greedy choices of 1 to ``most`` positions.

        Each adds to the last the position that makes the label's share largest; of equals, the
        first.  A better choice may exist: the largest share is only bounded from below.
        """
        met = np.zeros(self.shows.shape[1], dtype=np.uint8)
        free = np.ones(len(self.shows), dtype=bool)
        votes, copies = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
        for step in range(most):
            label, shown = self._counted(met | self.shows)
            # Two different fractions of less than 2**26 copies are different floats.
            shares = np.where(shown > 0, label / np.maximum(shown, 1), -1.0)
            best = int(np.argmax(np.where(free, shares, -2.0)))
            free[best] = False
            met |= self.shows[best]
            votes[step], copies[step] = label[best], shown[best]
        return votes, copies

    def _counted(self, met: Bits) -> tuple[Counts, Counts]:
        return _ones(met & self.for_label), _ones(met)


def random_positions(words: int, changed: int, draws: int, seed: int) -> npt.NDArray[np.intp]:
    """``draws`` random choices of ``changed`` of ``words`` positions, a row each.

    A pure function of its arguments; the first choices of more draws are those of fewer.
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, words, changed]))
    keys = bits.random_raw(draws * words).reshape(draws, words)
    return np.argsort(keys, axis=1)[:, :changed]


def _ones(bits: Bits) -> Counts:
    counted: Counts = _ONES[bits].sum(axis=-1, dtype=np.int64)
    return counted
