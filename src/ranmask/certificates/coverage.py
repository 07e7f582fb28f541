"""Weighted maximum coverage: the largest weight of kept sets that ``d`` positions can meet.

The question behind every exact certificate: given kept sets with non-negative integer weights,
can some ``d`` positions meet sets of total weight ``target`` or more?  `Coverage.search` answers
with such positions, or None with a proof, or `OutOfWorkError` when its work limit is spent.  The
bounds that make it short are derived in docs/certificates.md, "Finding the worst positions".

All numbers are integers.  ``bincount`` adds weights as doubles, which is exact while totals stay
below 2**53; the constructor checks that.  This module knows nothing of votes or texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.families import KeptSets
from ranmask.certificates.kept import sets_met
from ranmask.errors import check_cancelled

Ints: TypeAlias = npt.NDArray[np.int64]

DEFAULT_WORK = 100_000_000
"""Elementary steps a search may take: about a second on one core.  Counted, not timed, so that
the same text gets the same answer on every machine."""

_LEAST_WORK = 2_000_000  # what each search may still take when earlier ones spent the rest
_EXACT_IN_DOUBLE = 2**53
_MOST_CANDIDATES = 1024  # overlaps are a table of candidates squared
_MOST_PAIRS = 20_000_000  # pairs of positions looked at to build that table
_FAR = np.iinfo(np.int64).max // 4


class OutOfWorkError(Exception):
    """A search ended without an answer."""


@dataclass
class _Node:
    """A partial choice: candidates still open, their gains and pairwise overlaps."""

    chosen: tuple[int, ...]
    free: int
    need: int
    candidates: Ints
    gains: Ints
    overlaps: Ints

    def restrict(self, places: npt.NDArray[np.intp]) -> None:
        self.candidates = self.candidates[places]
        self.gains = self.gains[places]
        self.overlaps = self.overlaps[np.ix_(places, places)]

    def leave_out(self, place: int) -> None:
        self.restrict(np.flatnonzero(np.arange(len(self.candidates)) != place))


class Coverage:
    """One weighted family.

    ``work`` is shared by all searches on it, in their order.  ``complete``: it holds every set of
    that size exactly once, which allows a cheap bound that needs no search.
    """

    def __init__(
        self,
        sets: KeptSets,
        weights: Ints,
        words: int,
        work: int = DEFAULT_WORK,
        complete: bool = False,
    ) -> None:
        if weights.shape != (len(sets),) or (len(weights) and int(weights.min()) < 0):
            raise ValueError("one non-negative weight for each kept set is needed")
        heavy = np.flatnonzero(weights)
        self._sets = sets[heavy].astype(np.int64)
        self._weights = weights[heavy].astype(np.int64)
        self._words = words
        self._kept = int(sets.shape[1])
        self._work = work
        self._heaviest = np.append(0, np.cumsum(np.sort(weights)[::-1])) if complete else None
        self._holding: list[npt.NDArray[np.intp]] | None = None
        if self._kept * int(self._weights.sum()) >= _EXACT_IN_DOUBLE:
            raise ValueError("weights are too large to be added exactly")

    def greedy(self, target: int, most: int) -> tuple[list[int], int]:
        """Positions taken greedily until their cost reaches ``target`` or ``most`` are taken."""
        alive = np.ones(len(self._sets), dtype=bool)
        gains = self._all_gains()
        chosen: list[int] = []
        cost = 0
        while cost < target and len(chosen) < most:
            best = int(gains.argmax())
            chosen.append(best)
            cost += int(gains[best])
            held = self._sets_holding(best)
            newly = held[alive[held]]
            alive[newly] = False
            gains -= self._tally(self._sets[newly], self._weights[newly])
            gains[best] = -1  # not to be taken again when nothing else gains either
        return chosen, cost

    def most_met(self, positions: int) -> int | None:
        """Of a complete family, the weight of as many of the heaviest sets as positions meet."""
        if self._heaviest is None:
            return None
        return int(self._heaviest[sets_met(self._words, self._kept, positions)])

    def search(self, positions: int, target: int) -> tuple[int, ...] | None:
        """Positions, at most so many, that meet sets of total weight ``target`` or more, if any."""
        if target <= 0:
            return ()
        most = self.most_met(positions)
        if most is not None and most < target:
            return None
        self._work = max(self._work, _LEAST_WORK)
        gains = self._all_gains()
        candidates = np.flatnonzero(gains).astype(np.int64)
        order = candidates[np.argsort(-gains[candidates], kind="stable")]
        # The plain bound: the sum of the largest gains.
        left = _possible(gains[order], min(positions, len(order)), target)
        candidates = np.sort(order[left])
        if not len(candidates):
            return None
        pairs = self._kept * (self._kept - 1) // 2 * len(self._sets)
        if len(candidates) > _MOST_CANDIDATES or pairs > _MOST_PAIRS:
            raise OutOfWorkError
        overlaps = self._overlaps(self._sets, self._weights, candidates)
        root = _Node((), positions, target, candidates, gains[candidates], overlaps)
        return self._branch(root, np.ones(len(self._sets), dtype=bool))

    def _spend(self, steps: int) -> None:
        check_cancelled()
        self._work -= steps
        if self._work < 0:
            raise OutOfWorkError

    def _branch(self, node: _Node, alive: npt.NDArray[np.bool_]) -> tuple[int, ...] | None:
        """Positions that complete ``node`` to its target, or None when none can."""
        if node.need <= 0:
            return node.chosen
        while True:
            leader = self._tighten(node)
            if leader is None:
                return None
            if node.free <= 2:
                return _last_two(node)
            # Either the leader is part of the answer ...
            held = self._sets_holding(int(node.candidates[leader]))
            newly = held[alive[held]]
            alive[newly] = False
            found = self._branch(self._with(node, leader, newly), alive)
            if found is not None:
                return found
            # ... or it is not, and the others are searched without it.
            alive[newly] = True
            node.leave_out(leader)

    def _tighten(self, node: _Node) -> int | None:
        """Strike out candidates until the bound is stable; the most promising one is left.

        None means that no choice of ``node.free`` candidates reaches ``node.need``.
        """
        while True:
            size = len(node.candidates)
            self._spend(size * size + 500)
            node.free = min(node.free, size)
            if node.free == 0:
                return None
            scale = min(self._kept, node.free)
            bounds = scale * node.gains
            if node.free > 1:
                others = node.overlaps.copy()
                np.fill_diagonal(others, _FAR)
                smallest = np.partition(others, node.free - 2, axis=1)[:, : node.free - 1]
                bounds = bounds - smallest.sum(axis=1)
            order = np.argsort(-bounds, kind="stable")
            possible = _possible(bounds[order], node.free, scale * node.need)
            if not len(possible):
                return None
            if len(possible) == size:
                return int(order[0])
            node.restrict(np.sort(order[possible]))

    def _with(self, node: _Node, leader: int, newly: npt.NDArray[np.intp]) -> _Node:
        """The node in which ``leader`` is chosen and the sets ``newly`` are covered by it."""
        chosen = (*node.chosen, int(node.candidates[leader]))
        need = node.need - int(node.gains[leader])
        gains = node.gains - node.overlaps[leader]
        child = _Node(chosen, node.free - 1, need, node.candidates, gains, node.overlaps)
        child.leave_out(leader)
        if self._kept > 2:  # with two kept words, a covered set holds one other position only
            self._spend(len(newly) * self._kept * self._kept)
            covered = self._sets[newly], self._weights[newly]
            child.overlaps = child.overlaps - self._overlaps(*covered, child.candidates)
        return child

    def _all_gains(self) -> Ints:
        return self._tally(self._sets, self._weights)

    def _tally(self, sets: Ints, weights: Ints) -> Ints:
        repeated = np.repeat(weights, self._kept).astype(np.float64)
        return np.bincount(sets.ravel(), repeated, minlength=self._words).astype(np.int64)

    def _overlaps(self, sets: Ints, weights: Ints, candidates: Ints) -> Ints:
        """Weight of ``sets`` that hold each pair of candidates; the diagonal is zero."""
        size = len(candidates)
        place = np.full(self._words, -1, dtype=np.int64)
        place[candidates] = np.arange(size)
        local = place[sets]
        left, right = np.triu_indices(self._kept, 1)
        first, second = local[:, left], local[:, right]
        both = (first >= 0) & (second >= 0)
        spread = np.broadcast_to(weights[:, None], first.shape)[both].astype(np.float64)
        flat = np.bincount(first[both] * size + second[both], spread, minlength=size * size)
        upper = flat.astype(np.int64).reshape(size, size)
        return upper + upper.T

    def _sets_holding(self, position: int) -> npt.NDArray[np.intp]:
        if self._holding is None:
            order = np.argsort(self._sets.ravel(), kind="stable") // self._kept
            counts = np.bincount(self._sets.ravel(), minlength=self._words)
            self._holding = np.split(order, np.cumsum(counts)[:-1])
        return self._holding[position]


def _possible(falling: Ints, free: int, need: int) -> npt.NDArray[np.intp]:
    """Places in ``falling`` bounds that can be part of ``free`` values with sum >= ``need``."""
    if int(falling[:free].sum()) < need:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(falling + int(falling[: free - 1].sum()) >= need)


def _last_two(node: _Node) -> tuple[int, ...] | None:
    """The exact answer when at most two positions are left to choose."""
    if node.free == 1:
        best = int(node.gains.argmax())
        reached = int(node.gains[best]) >= node.need
        return (*node.chosen, int(node.candidates[best])) if reached else None
    joint = node.gains[:, None] + node.gains[None, :] - node.overlaps
    np.fill_diagonal(joint, -1)
    first, second = divmod(int(joint.argmax()), len(node.candidates))
    if int(joint[first, second]) < node.need:
        return None
    return (*node.chosen, int(node.candidates[first]), int(node.candidates[second]))
