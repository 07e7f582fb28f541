"""The certificate of the RanMASK paper, kept to reproduce its tables: **no guarantee**.

Two faults make its radii untrue (docs/certificates.md has the worked counterexample):

* ``beta``, the chance that a copy which shows a changed word still votes for the label, is
  averaged over random positions (Algorithm 1) or replaced by ``p_c`` (Algorithm 2); the attacker
  chooses the positions, so neither bounds it.
* Algorithm 2 returns the first number of words that *fails* its own test: `printed_radius`.

`paper_radius` is Algorithm 2 with the second fault removed; the first remains in both.
Everything that shows these numbers must say that they are not a guarantee.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ranmask.certificates.ablation import delta, lower_bound
from ranmask.certificates.exact import Radius
from ranmask.certificates.families import KeptSets
from ranmask.certificates.kept import kept_count, round_half_up
from ranmask.certificates.overlaps import Counts, Overlaps, random_positions

_HALF = Fraction(1, 2)


def paper_radius(
    votes: int,
    samples: int,
    words: int,
    kept: int,
    *,
    alpha: float = 0.05,
    beta: Callable[[int], Fraction] | None = None,
) -> Radius:
    """Algorithm 2 without the off-by-one: the last number of words that passes its test.

    ``beta`` maps a number of changed words to an estimate (`estimated_beta` is the paper's
    Algorithm 1); by default it is ``votes / samples``, as in Algorithm 2.
    """
    share = Fraction(votes, samples)
    low = Fraction(lower_bound(votes, samples, alpha))
    radius = None
    for changed in range(words + 1):
        kept_vote = share if beta is None or changed == 0 else beta(changed)
        if low - kept_vote * delta(words, kept, changed) <= _HALF:
            break
        radius = changed
    return Radius(radius, tight=False)


def printed_radius(
    votes: int, samples: int, words: int, kept: int, *, alpha: float = 0.05
) -> Radius:
    """Algorithm 2 as printed: one more than `paper_radius`.

    Where even the unchanged text fails the test, Algorithm 2 returns 0 and calls it certified at
    0; here that is ``None``, as for every other certificate.
    """
    last = paper_radius(votes, samples, words, kept, alpha=alpha).words
    # The printed loop runs d from 0 to the number of words and cannot return more than that.
    return Radius(None if last is None else min(last + 1, words), tight=False)


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
