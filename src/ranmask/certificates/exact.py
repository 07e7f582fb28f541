"""The exact certificate: a proof, without probability, from the votes over a fixed family.

Guarantee.  Let ``g`` vote over a fixed family ``F`` of kept sets, and let ``radius`` be what
`exact_radius` returns for a text.  Then ``g`` gives the same label, as the only winner, to every
text with the same number of words that differs from it in at most ``radius`` words.

Assumptions.  (1) ``F`` depends on the number of words only.  (2) What the base classifier says
of a copy is a function of the kept words and their positions: a hidden word leaves no trace.
(3) A copy whose kept words did not change moves by no more than the caller allowed for when it
counted votes as uncertain (`vote_differences`) or lowered scores (`ranmask.smoothing.smoothed`).

Proof.  Only sets that meet a changed position can change what they say, and each of those can
move, at worst, to the lowest possible difference ``-bound`` between label and rival.  So against
each rival the margin falls by at most the weight ``difference + bound`` of the sets that the
changed positions meet, and the label stays while that is less than the margin.  The largest such
weight over all choices of ``d`` positions is a maximum coverage problem (`coverage`).

This module knows nothing of texts, models or probabilities; integers decide.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import DEFAULT_WORK, Answer, Coverage, Ints
from ranmask.certificates.families import KeptSets
from ranmask.certificates.radius import Radius


def sets_met(words: int, kept: int, changed: int) -> int:
    """How many of all ``C(words, kept)`` sets meet ``changed`` given positions."""
    return math.comb(words, kept) - math.comb(max(words - changed, 0), kept)


def vote_differences(
    votes: npt.NDArray[np.integer], uncertain: npt.NDArray[np.bool_], label: int, classes: int
) -> Ints:
    """Each copy's vote as label minus rival, one row for each rival: 1, 0 or -1.

    An uncertain vote is counted as a vote for the rival, *against every rival separately*.
    Counting it once, for the strongest rival only, is unsound with three classes.  Rivals that
    received no vote at all look alike and share one row.
    """
    return all_vote_differences(
        votes, uncertain, np.array([len(votes)]), np.array([label]), classes
    )


def all_vote_differences(
    votes: npt.NDArray[np.integer],
    uncertain: npt.NDArray[np.bool_],
    copies: Ints,
    labels: Ints,
    classes: int,
) -> Ints:
    """The `vote_differences` of several texts with ``copies`` copies each, side by side.

    Each text has a label of its own, and so its own rivals.  All have as many rows as the one
    that needs most: further rows of a text repeat its last.
    """
    texts = np.repeat(np.arange(len(copies)), copies)
    counts = np.bincount(texts * classes + votes, minlength=len(copies) * classes)
    absent = (counts.reshape(-1, classes) == 0).astype(np.int8)
    absent[np.arange(len(copies)), labels] = 2  # behind the rivals without a vote: never a rival
    rows = min(int((absent == 0).sum(axis=1).max()) + 1, classes - 1)
    rivals = np.argsort(absent, axis=1, kind="stable")[:, :rows]
    for_label = (votes == labels[texts]) & ~uncertain
    against = (votes == rivals[texts].T) | uncertain
    differences: Ints = for_label.astype(np.int64) - against
    return differences


def exact_radius(
    sets: KeptSets,
    differences: Ints,
    words: int,
    *,
    bound: int = 1,
    complete: bool = False,
    work: int = DEFAULT_WORK,
) -> Radius:
    """The largest number of changed words under which the label stays the only winner.

    Args:
        sets: The family, shape (sets, kept).
        differences: Label minus rival for each copy, shape (rivals, sets), each value at least
            ``-bound``; already lowered by whatever an untouched copy may move.
        words: How many words the text has.
        bound: The lowest difference is ``-bound``: 1 for votes.
        complete: The family holds every set of that size exactly once, which allows a cheap
            bound that needs no search.
        work: Limit on the search.  Where it is spent, a smaller radius that is still proved is
            returned, with ``tight=False``.
    """
    if differences.size and int(differences.min()) < -bound:
        raise ValueError(f"a difference lies below -{bound}")
    margins = differences.sum(axis=1)
    if len(margins) and int(margins.min()) <= 0:
        return Radius(None)
    answer = Radius(words)  # nothing to lose against: a single class
    for rival in np.argsort(margins, kind="stable"):
        margin = int(margins[rival])
        # Against no rival can more words be certified than against an earlier one.
        ceiling = words if answer.words is None else answer.words
        weights = differences[rival] + bound
        problem = Coverage(sets, weights, words, work)
        cheap = _SortedWeights(weights, words, sets.shape[1]) if complete else None
        against = _radius_against_one(problem, margin, ceiling, cheap)
        if against is not None:
            answer = against
    return answer


class _SortedWeights:
    """A bound for complete families: the heaviest sets, as many as the positions meet."""

    def __init__(self, weights: Ints, words: int, kept: int) -> None:
        self._heaviest = np.concatenate(([0], np.cumsum(np.sort(weights)[::-1])))
        self._words = words
        self._kept = kept

    def cost(self, changed: int) -> int:
        return int(self._heaviest[sets_met(self._words, self._kept, changed)])


def _radius_against_one(
    problem: Coverage, margin: int, ceiling: int, cheap: _SortedWeights | None
) -> Radius | None:
    """The radius against one rival, or None where it is ``ceiling`` or more."""
    worst, cost = problem.greedy(margin, ceiling)
    attack = worst if cost >= margin else None  # the smallest choice known to break the label
    proved, open_or_broken = 0, len(worst) if attack else ceiling + 1
    step_down = True
    changed = open_or_broken - 1
    while open_or_broken - proved > 1:
        if cheap is not None and cheap.cost(changed) < margin:
            answer = Answer(None, proved=True)
        else:
            answer = problem.search(changed, margin)
        if answer.proved:
            proved = changed
        else:
            open_or_broken = changed
            if answer.positions is not None:
                attack = _filled(answer.positions, worst, changed)
            else:
                step_down = False
        # Greedy is nearly always best, so its size less one is tried first.  Once the work is
        # spent, what is left is a bound that only grows with the number of words: bisect.
        changed = open_or_broken - 1 if step_down else (proved + open_or_broken) // 2
    if proved == ceiling:
        return None
    if attack is not None and len(attack) == proved + 1:
        return Radius(proved, True, tuple(sorted(attack)))
    return Radius(proved, False, tuple(sorted(worst[: proved + 1])))


def _filled(found: tuple[int, ...], spare: list[int], size: int) -> list[int]:
    """``found`` with positions of ``spare`` added up to ``size``: costs never fall by adding."""
    extra = [position for position in spare if position not in found]
    return [*found, *extra][:size]
