"""From scores to integers: what each copy of a text says, and by how much that may move.

Three ensembles.  ``vote`` counts each copy's best class; ``score`` adds probabilities; ``logit``
adds L2-normalised logits, as the paper's code does.  Scores are rounded to fixed-point numbers
*before* they are added, and the smoothed classifier is defined on those, so sums and comparisons
are exact.

Raw logits are unbounded: one copy could outweigh all others, so there is no ensemble of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ranmask.certificates import all_vote_differences
from ranmask.certificates.coverage import Ints
from ranmask.errors import OptionError
from ranmask.models.base import Outputs, Scores
from ranmask.models.outputs import as_scores, largest_move
from ranmask.options import ENSEMBLES, Ensemble

SCALE = 2**20
"""Fixed-point scores are multiples of 1 / SCALE."""

_OPPOSITE = 2 * math.isqrt(SCALE * SCALE // 2)  # of unit logits: those of label and rival, -1 to 1
_FARTHEST = 4 * SCALE  # farther than any difference can move: used where a norm is zero


@dataclass(frozen=True, eq=False)
class Ballots:
    """What all copies of one text said.

    ``votes`` is each copy's best class (the lowest id on a tie) and ``uncertain`` marks those
    that rounding in the model might turn.  ``points`` are the fixed-point scores that a score or
    logit ensemble adds up, None for votes; ``slack`` is how far the difference of two points of
    one copy may move.  No difference is larger than ``bound``, and ``attained`` is the largest that
    a copy can reach.
    """

    classes: int
    votes: Ints
    uncertain: npt.NDArray[np.bool_]
    points: Ints | None
    slack: Ints
    bound: int
    attained: int

    @property
    def blurred(self) -> bool:
        """Whether a certificate has to reckon with more than a copy can do, or is seen to do."""
        still = not (self.uncertain.any() or self.slack.any())
        return self.attained < self.bound or not still

    @property
    def as_seen(self) -> Ballots:
        """These ballots if no untouched copy ever moved."""
        return replace(
            self,
            uncertain=np.zeros_like(self.uncertain),
            slack=np.zeros_like(self.slack),
        )

    def part(self, start: int, end: int) -> Ballots:
        """Those of some neighbouring copies."""
        return replace(
            self,
            votes=self.votes[start:end],
            uncertain=self.uncertain[start:end],
            points=None if self.points is None else self.points[start:end],
            slack=self.slack[start:end],
        )

    @cached_property
    def alone(self) -> BallotBox:
        """These ballots as those of one text."""
        return BallotBox(self, np.array([len(self.votes)]))

    @property
    def counts(self) -> tuple[int, ...]:
        """Votes of each class."""
        return tuple(self.alone.counts[0].tolist())

    @property
    def totals(self) -> tuple[int, ...]:
        """What decides: votes, or sums of points."""
        return tuple(self.alone.totals[0].tolist())

    @property
    def winner(self) -> int:
        """The class with the largest total; the lowest id on a tie."""
        return int(self.alone.winners[0])

    def means(self) -> tuple[float, ...] | None:
        """The average score of each class, for reading; None for votes."""
        means = self.alone.means()
        return None if means is None else tuple(means[0].tolist())

    def differences(self, label: int) -> Ints:
        """Label minus each rival, a row a rival, as low as an untouched copy can make it."""
        return self.alone.differences(np.array([label]))


@dataclass(frozen=True, eq=False)
class BallotBox:
    """What all copies of several texts said, and what it amounts to for each of them.

    ``ballots`` are those of all texts, one text after another, ``copies`` of each (at least one).
    Every array has a row for each text, and says of it what `Ballots` say of one text.
    """

    ballots: Ballots
    copies: Ints

    def __len__(self) -> int:
        return len(self.copies)

    @cached_property
    def starts(self) -> Ints:
        """Where the ballots of each text begin."""
        starts: Ints = np.cumsum(self.copies) - self.copies
        return starts

    @cached_property
    def counts(self) -> Ints:
        """Votes of each class, shape (texts, classes)."""
        texts = np.repeat(np.arange(len(self)), self.copies)
        places = texts * self.ballots.classes + self.ballots.votes
        counts = np.bincount(places, minlength=len(self) * self.ballots.classes)
        return counts.reshape(len(self), self.ballots.classes)

    @cached_property
    def totals(self) -> Ints:
        """What decides: votes, or sums of points, shape (texts, classes)."""
        if self.ballots.points is None:
            return self.counts
        totals: Ints = np.add.reduceat(self.ballots.points, self.starts, axis=0)
        return totals

    @cached_property
    def winners(self) -> Ints:
        """The class with the largest total; the lowest id on a tie."""
        winners: Ints = self.totals.argmax(axis=1)
        return winners

    @property
    def uncertain(self) -> Ints:
        """How many votes of each text are uncertain."""
        counts: Ints = np.add.reduceat(self.ballots.uncertain, self.starts, dtype=np.int64)
        return counts

    def means(self) -> Scores | None:
        """The average score of each class, shape (texts, classes); None for votes."""
        if self.ballots.points is None:
            return None
        means: Scores = self.totals / (SCALE * self.copies)[:, None]
        return means

    def differences(self, labels: Ints) -> Ints:
        """Each text's label minus its rivals, shape (rivals, copies of all texts)."""
        ballots = self.ballots
        if ballots.points is None:
            return all_vote_differences(
                ballots.votes, ballots.uncertain, self.copies, labels, ballots.classes
            )
        label = np.repeat(labels, self.copies)
        rivals = np.arange(ballots.classes - 1)[:, None]
        rivals = rivals + (rivals >= label)  # all classes but the label, in their order
        copies = np.arange(len(label))
        highest = ballots.points[copies, label] - ballots.slack
        lowest: Ints = np.maximum(highest - ballots.points[copies, rivals], -ballots.bound)
        return lowest

    def each(self) -> Iterator[Ballots]:
        """The ballots of each text by themselves."""
        for start, size in zip(self.starts.tolist(), self.copies.tolist(), strict=True):
            yield self.ballots.part(start, start + size)

    def parts(self, most: int) -> Iterator[BallotBox]:
        """The same texts in boxes of their own: ``most`` copies each, more by less than a text."""
        cuts = (np.flatnonzero(np.diff(self.starts // most)) + 1).tolist()
        if not cuts:
            yield self
            return
        ends = np.cumsum(self.copies)
        for first, last in pairwise([0, *cuts, len(self)]):
            ballots = self.ballots.part(int(self.starts[first]), int(ends[last - 1]))
            yield BallotBox(ballots, self.copies[first:last])


def count_ballots(
    scores: Scores, ensemble: Ensemble, outputs: Outputs, tolerance: float
) -> Ballots:
    """Read the scores of all copies of one text, or of several texts one after another.

    Args:
        scores: Shape (copies, classes), finite.
        ensemble: How copies are combined.
        outputs: Whether ``scores`` are scores in [0, 1], logits or approvals.
        tolerance: How far the difference of two outputs of a copy may move when the copy is
            computed again in other company, each output by at most half of it.  0 says that
            nothing ever moves.
    """
    best = scores.argmax(axis=1).astype(np.int64)
    uncertain = np.zeros(len(scores), dtype=bool)
    # With tolerance 0 the classifier is one fixed function, and a tie always falls the same way.
    if tolerance > 0:
        top_two = np.partition(scores, -2, axis=1)[:, -2:]
        uncertain = top_two[:, 1] - top_two[:, 0] <= tolerance
    if ensemble == "vote":
        still = np.zeros(len(scores), dtype=np.int64)
        return Ballots(scores.shape[1], best, uncertain, None, still, 1, 1)
    if ensemble == "score":
        points, moves, bound = _probability_points(scores, outputs, tolerance)
    elif ensemble == "logit":
        points, moves, bound = _normalised_points(scores, tolerance)
    else:
        raise OptionError(f"ensemble must be one of {', '.join(ENSEMBLES)}; not {ensemble!r}")
    # A point that moves by m before rounding moves by at most floor(m) + 1 after it.
    slack = np.zeros(len(scores), dtype=np.int64)
    if tolerance > 0:
        slack = 2 * (np.floor(np.minimum(moves, _FARTHEST)).astype(np.int64) + 1)
    attained = bound if ensemble == "score" else _OPPOSITE
    return Ballots(scores.shape[1], best, uncertain, points, slack, bound, attained)


def _probability_points(
    scores: Scores, outputs: Outputs, tolerance: float
) -> tuple[Ints, Scores, int]:
    points = np.rint(as_scores(scores, outputs) * SCALE).astype(np.int64)
    return points, np.full(len(scores), largest_move(tolerance, outputs) * SCALE), SCALE


def _normalised_points(scores: Scores, tolerance: float) -> tuple[Ints, Scores, int]:
    # Scaled by the largest first: squares of tiny or huge numbers would underflow or overflow.
    largest = np.abs(scores).max(axis=1, keepdims=True)
    scaled = scores / np.where(largest > 0, largest, 1.0)
    length = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    points = np.rint(scaled / np.where(length > 0, length, 1.0) * SCALE).astype(np.int64)
    norms = (largest * length)[:, 0]
    # Each logit moves by at most tolerance / 2, so the vector by sqrt(classes) times that;
    # |u/|u| - v/|v|| <= 2 |u - v| / (|u| + |v|) <= 2 |u - v| / |u|.
    # Where the norm is (nearly) zero that is without bound; the caller caps it.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        moved = math.sqrt(scores.shape[1]) * tolerance * SCALE / norms
    moved = np.where(norms > 0, moved, _FARTHEST)
    # Two components of a unit vector differ by at most sqrt(2); one more for the two roundings.
    return points, moved, math.isqrt(2 * SCALE * SCALE) + 2
