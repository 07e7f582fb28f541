"""The paper's ``beta``, by counting how the copies that show some positions vote; and its risk.

A text has thousands of copies, and Algorithm 1 of the paper asks about hundreds of choices of
positions for each number of words.  A position is a row of bits, one for each copy that shows it;
the copies that a choice meets are the union of its rows.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.families import KeptSets
from ranmask.certificates.kept import kept_count, round_half_up
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
        label, shown = (
            _ONES[bits].sum(axis=-1, dtype=np.int64) for bits in (met & self.for_label, met)
        )
        return label, shown


def random_positions(words: int, changed: int, draws: int, seed: int) -> npt.NDArray[np.intp]:
    """``draws`` random choices of ``changed`` of ``words`` positions, a row each.

    A pure function of its arguments; the first choices of more draws are those of fewer.
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, words, changed]))
    keys = bits.random_raw(draws * words).reshape(draws, words)
    return np.argsort(keys, axis=1)[:, :changed]


def estimated_beta(
    sets: KeptSets,
    for_label: npt.NDArray[np.bool_],
    words: int,
    changed: int,
    *,
    draws: int = 200,
    seed: int = 0,
) -> Fraction:
    """Algorithm 1: the share of votes for the label among sets that meet random positions.

    Averaged over ``draws`` random choices of ``changed`` positions.  The votes are drawn once
    and filtered by overlap, which is the same estimate as Algorithm 1's at a fraction of its
    cost (it evaluates a fresh sample of copies for every choice).  A choice that no set meets
    is left out of the average, as it says nothing; where all are, this is 0.
    """
    choices = random_positions(words, changed, draws, seed)
    votes, met = Overlaps.of(sets, for_label, words).counts(choices)
    return average_share(votes, met) or Fraction(0)


def average_share(votes: Counts, copies: Counts) -> Fraction | None:
    """The mean of ``votes / copies``, leaving out those of no copy; None where all are."""
    by_size: Counter[int] = Counter()
    for some, all_of_them in zip(votes.tolist(), copies.tolist(), strict=True):
        by_size[all_of_them] += some
    del by_size[0]
    used = int(np.count_nonzero(copies))
    if not used:
        return None
    return sum((Fraction(n, size) for size, n in by_size.items()), Fraction(0)) / used


def risk_probability(words: int, mask_rate: float, perturbed_rate: float) -> Fraction:
    """The paper's eq. (10): the chance that a masked copy still shows *every* perturbed word.

    The binomials of the paper take real arguments; here the number of kept words is that of
    `kept_count`, and the number of perturbed words is rounded by the same rule.
    The paper's text asks that this be "greater than 0.5"; its argument needs *less*.
    """
    hidden = words - kept_count(words, mask_rate=mask_rate)
    perturbed = round_half_up(Fraction(str(perturbed_rate)) * words)
    if not 0 <= perturbed <= words:
        raise ValueError(f"perturbed_rate must lie between 0 and 1, not {perturbed_rate!r}")
    return Fraction(math.comb(words - perturbed, hidden), math.comb(words, hidden))
