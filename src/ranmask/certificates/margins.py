"""How much of the proof is left after each number of changed words: one curve a certificate.

The margin after ``d`` changed words is the share of all votes that the label can still lose
before it stops being proved, however badly the ``d`` words were chosen.  **A curve is above zero
exactly up to its certificate's radius**; the paper's radius *as printed* is the first number at
which its own curve is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Coverage, Ints, OutOfWorkError
from ranmask.certificates.distinct import most_removed
from ranmask.certificates.families import Family
from ranmask.certificates.kept import check_fixed
from ranmask.certificates.pyramid import costs_and_margins
from ranmask.certificates.sampled import sampled_margin
from ranmask.certificates.threats import new_words, step_costs
from ranmask.certificates.votes import Votes

BEYOND = 3
"""How many numbers of words past the radius a curve shows, where the text has so many."""

_WORK = 20_000_000  # steps of all searches against one rival: a fifth of a second
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class MarginCurve:
    """``margins[d]`` is what is left after ``d`` changed words, for d = 0, 1, 2, ...

    ``radius`` is the certificate's own.  ``known[d]`` is False where the margin is only a lower
    bound, because a search gave up.
    """

    kind: str
    radius: int | None
    margins: tuple[Fraction, ...]
    known: tuple[bool, ...]


def exact_margins(
    votes: Votes, family: Family, radius: int | None, threat: str = "substitutions"
) -> MarginCurve:
    """What is left of the exact certificate of one text's winner, whose radius this is.

    Against all threats but spans and synonyms.
    The lead over the strongest rival, less the most that ``d`` words can cost of it.  A copy
    that changes sides takes two from the lead, hence half the lead is shown.
    """
    shown = _shown(radius, family.words)
    if votes.classes == 1:  # nothing to lose against
        return MarginCurve("exact", radius, (_HALF,) * shown, (True,) * shown)
    left, known = least_leads(votes, family, int(votes.winners[0]), radius, shown, threat)
    whole = 2 * votes.bound * len(family)
    if votes.readings is not None:
        whole += 2 * int(votes.readings.bounds.sum())
        left = _beside_a_reader(votes, left, radius)
    return MarginCurve("exact", radius, tuple(Fraction(lead, whole) for lead in left), known)


def least_leads(
    votes: Votes,
    family: Family,
    label: int,
    radius: int | None,
    shown: int,
    threat: str = "substitutions",
) -> tuple[list[int], tuple[bool, ...]]:
    """The least that a class of one text leads by after 0, 1, 2, ... changed words.

    ``radius``: the text's own, where ``label`` is its winner; else None.  A reader's vote of the
    whole text is not in it.  And whether each number is more than a bound.
    """
    check_fixed(family.kind)
    labels = np.array([label])
    differences, bound = votes.differences(labels), votes.bound
    if family.places is not None:
        return _knapsack_costs(differences, bound, family.places, shown, threat)
    if votes.readings is not None and family.kept == 1 and threat == "substitutions":
        costs, leads = costs_and_margins(votes, [family], labels)
        dearest = np.cumsum(np.sort(costs, axis=1)[:, ::-1][:, : shown - 1], axis=1)
        least = [int(leads.min()), *(leads - dearest).min(axis=0).tolist()]
        return [lead + votes.readings.reserve for lead in least], (True,) * len(least)
    if family.single:
        return _sorted_costs(differences, bound, shown, threat)
    return _searched_costs(differences, bound, family, radius, shown)


def sampled_margins(
    kind: str,
    votes: Votes,
    family: Family,
    label: int,
    radius: int | None,
    *,
    alpha: float,
    seed: int = 0,
) -> MarginCurve:
    """What is left of a certificate of one text's ``label`` that was estimated from a sample."""
    margin = sampled_margin(kind, votes, family, label, alpha=alpha, seed=seed)
    margins = tuple(map(margin, range(_shown(radius, family.words))))
    return MarginCurve(kind, radius, margins, (True,) * len(margins))


def _shown(radius: int | None, words: int) -> int:
    """How many points a curve has."""
    return min(words, (-1 if radius is None else radius) + BEYOND) + 1


def _beside_a_reader(votes: Votes, left: list[int], radius: int | None) -> list[int]:
    """What is left where a vote of the whole text is lost with the first changed word."""
    readings = votes.readings
    assert readings is not None
    leads = votes.differences(votes.winners).sum(axis=1)
    unchanged = leads + readings.differences(votes.winners)[:, 0].sum(axis=1)
    first = int(unchanged.min()) if radius is not None else min(int(unchanged.min()), 0)
    return [first, *(lead - readings.reserve for lead in left[1:])]


def _sorted_costs(
    differences: Ints, bound: int, shown: int, threat: str
) -> tuple[list[int], tuple[bool, ...]]:
    """What is left of the lead where each copy shows one word: the dearest words are a sort."""
    dearest = np.sort(differences, axis=1)[:, ::-1][:, : shown - 1]
    costs = np.cumsum(step_costs(threat, dearest, bound), axis=1)
    leads = differences.sum(axis=1)
    left = [int(leads.min()), *(leads[:, None] - costs).min(axis=0).tolist()]
    return left, (True,) * len(left)


def _knapsack_costs(
    differences: Ints, bound: int, places: npt.NDArray[np.int32], shown: int, threat: str
) -> tuple[list[int], tuple[bool, ...]]:
    """What is left of the lead where each distinct word counts once.

    Substitutions may cost less where there are fewer occurrences of words for the label than are
    to be changed, which is beyond any radius.
    """
    sizes = np.bincount(places, minlength=differences.shape[1])
    numbers = np.arange(shown)
    left, known = [], np.ones(shown, dtype=bool)
    for row in differences:
        removed, exact = most_removed(row, sizes, shown - 1)
        if threat == "insertions":
            removed, exact = np.zeros_like(removed), True
        left.append(int(row.sum()) - removed - numbers * bound * new_words(threat))
        known &= exact
        if threat == "substitutions":
            known &= numbers <= sizes[row > 0].sum()
    return np.min(left, axis=0).tolist(), tuple(known.tolist())


def _searched_costs(
    differences: Ints, bound: int, family: Family, radius: int | None, shown: int
) -> tuple[list[int], tuple[bool, ...]]:
    """What is left of the lead over any family; where a search gives up, at the least."""
    rivals = sorted(
        (_Rival(row, bound, family, shown - 1) for row in differences), key=lambda rival: rival.lead
    )
    left, known = [], []
    for changed in range(shown):
        least: int | None = None
        sure = True
        for rival in rivals:
            if least is not None and rival.lead - rival.at_most(changed) >= least:
                continue  # nothing that is found here could be the least
            cost, exact = rival.cost(changed)
            if least is None or rival.lead - cost < least:
                least, sure = rival.lead - cost, exact
        assert least is not None
        # The certificate may know more, or less, than these shorter searches: both are bounds.
        proved = radius is not None and changed <= radius
        agreed = max(least, 1) if proved else min(least, 0)
        left.append(agreed)
        known.append(sure and agreed == least)
    return left, tuple(known)


class _Rival:
    """One rival: the lead over it, and the most of it that a number of words can cost.

    Costs are submodular, which bounds them without a search: whatever is already met, ``d`` words
    add at most the ``d`` largest gains that are left; and ``d`` words cost at most ``d / (d - 1)``
    times what ``d - 1`` can, since some ``d - 1`` of them cost at least their share.
    """

    def __init__(self, differences: Ints, bound: int, family: Family, most: int) -> None:
        self.lead = int(differences.sum())
        self._family = family
        self._weights: Ints = differences + bound
        complete = family.kind == "all"
        self._problem = Coverage(family.sets, self._weights, family.words, _WORK, complete)
        self._greedy = self._problem.greedy(int(self._weights.sum()) + 1, most)[0]
        self._costs, self._at_most = self._bounds(most)

    def at_most(self, changed: int) -> int:
        """A number that so many words cannot cost more than, as far as is known by now."""
        if changed > 1:
            before = self._at_most[changed - 1]
            self._at_most[changed] = min(self._at_most[changed], before * changed // (changed - 1))
        return self._at_most[changed]

    def cost(self, changed: int) -> tuple[int, bool]:
        """The most that so many words can cost; or, and False, no less than that."""
        best = self._costs[changed]
        while best < self.at_most(changed):
            try:
                found = self._problem.search(changed, best + 1)
            except OutOfWorkError:
                return self.at_most(changed), False
            if found is None:
                break
            best = int(self._weights[self._met(found)].sum())
        self._at_most[changed] = best
        return best, True

    def _bounds(self, most: int) -> tuple[list[int], list[int]]:
        """For each number of words: what a greedy choice costs, and what none can exceed."""
        family = self._family
        whole = int(self._weights.sum())
        costs = []
        at_most = [self._problem.most_met(changed) or whole for changed in range(most + 1)]
        for size in range(most + 1):
            met = self._met(tuple(self._greedy[:size]))
            costs.append(int(self._weights[met].sum()))
            held = np.repeat(self._weights[~met], family.kept)
            # Sums stay below 2**53, which `Coverage` checks: doubles add them exactly.
            gains = np.bincount(family.sets[~met].ravel(), held, family.words).astype(np.int64)
            added = np.cumsum(np.sort(gains)[::-1][:most])
            for changed in range(1, most + 1):
                at_most[changed] = min(at_most[changed], costs[size] + int(added[changed - 1]))
        at_most[0] = 0
        return costs, at_most

    def _met(self, positions: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Which sets hold one of the positions."""
        held = np.zeros(self._family.words, dtype=bool)
        held[list(positions)] = True
        return np.asarray(held[self._family.sets].any(axis=1))
