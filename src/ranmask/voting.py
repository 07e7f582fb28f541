"""From scores to integers: what each copy of a text says, and by how much that may move.

Three ensembles.  ``vote`` counts each copy's best class; ``score`` adds probabilities; ``logit``
adds L2-normalised logits, as the paper's code does.  Scores are rounded to fixed-point numbers
*before* they are added, and the smoothed classifier is defined on those, so sums and comparisons
are exact.

Raw logits are unbounded: one copy could outweigh all others, so there is no ensemble of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ranmask.certificates import vote_differences
from ranmask.certificates.coverage import Ints
from ranmask.classifiers.base import Outputs, Scores
from ranmask.classifiers.outputs import as_scores, largest_move
from ranmask.errors import OptionError

Ensemble: TypeAlias = Literal["vote", "score", "logit"]
ENSEMBLES: tuple[str, ...] = get_args(Ensemble)

SCALE = 2**20
"""Fixed-point scores are multiples of 1 / SCALE."""

_FARTHEST = 4 * SCALE  # farther than any difference can move: used where a norm is zero


@dataclass(frozen=True, eq=False)
class Ballots:
    """What all copies of one text said.

    ``votes`` is each copy's best class (the lowest id on a tie) and ``uncertain`` marks those
    that rounding in the model might turn.  ``points`` are the fixed-point scores that a score or
    logit ensemble adds up, None for votes; ``slack`` is how far the difference of two points of
    one copy may move, and ``bound`` the largest difference there is.
    """

    classes: int
    votes: Ints
    uncertain: npt.NDArray[np.bool_]
    points: Ints | None
    slack: Ints
    bound: int

    def of_texts(self, sizes: Sequence[int]) -> Iterator[Ballots]:
        """The ballots of several texts that were counted together, ``sizes`` copies each."""
        start = 0
        for size in sizes:
            part = slice(start, start + size)
            start += size
            yield replace(
                self,
                votes=self.votes[part],
                uncertain=self.uncertain[part],
                points=None if self.points is None else self.points[part],
                slack=self.slack[part],
            )

    @property
    def counts(self) -> tuple[int, ...]:
        """Votes of each class."""
        return tuple(np.bincount(self.votes, minlength=self.classes).tolist())

    @property
    def totals(self) -> tuple[int, ...]:
        """What decides: votes, or sums of points."""
        if self.points is None:
            return self.counts
        return tuple(self.points.sum(axis=0).tolist())

    @property
    def winner(self) -> int:
        """The class with the largest total; the lowest id on a tie."""
        return int(np.argmax(self.totals))

    def means(self) -> tuple[float, ...] | None:
        """The average score of each class, for reading; None for votes."""
        if self.points is None:
            return None
        return tuple((self.points.sum(axis=0) / (SCALE * len(self.votes))).tolist())

    def differences(self, label: int) -> Ints:
        """Label minus each rival, a row a rival, as low as an untouched copy can make it."""
        if self.points is None:
            return vote_differences(self.votes, self.uncertain, label, self.classes)
        rivals = [rival for rival in range(self.classes) if rival != label]
        apart = self.points[:, [label]] - self.points[:, rivals] - self.slack[:, None]
        lowest: Ints = np.maximum(apart, -self.bound).T
        return lowest


def count_ballots(
    scores: Scores, ensemble: Ensemble, outputs: Outputs, tolerance: float
) -> Ballots:
    """Read the scores of all copies of one text.

    Args:
        scores: Shape (copies, classes), finite.
        ensemble: How copies are combined.
        outputs: Whether ``scores`` are scores in [0, 1], logits or approvals.
        tolerance: How far the difference of two outputs of a copy may move when the copy is
            computed again in other company, each output by at most half of it.  0 says that
            nothing ever moves.
    """
    best = scores.argmax(axis=1).astype(np.int64)
    top_two = np.partition(scores, -2, axis=1)[:, -2:]
    # With tolerance 0 the classifier is one fixed function, and a tie always falls the same way.
    uncertain = (top_two[:, 1] - top_two[:, 0] <= tolerance) & (tolerance > 0)
    if ensemble == "vote":
        still = np.zeros(len(scores), dtype=np.int64)
        return Ballots(scores.shape[1], best, uncertain, None, still, 1)
    if ensemble == "score":
        points, moves, bound = _probability_points(scores, outputs, tolerance)
    elif ensemble == "logit":
        points, moves, bound = _normalised_points(scores, tolerance)
    else:
        raise OptionError(f"ensemble must be one of {', '.join(ENSEMBLES)}; not {ensemble!r}")
    # A point that moves by m before rounding moves by at most floor(m) + 1 after it.
    slack = 2 * (np.floor(np.minimum(moves, _FARTHEST)).astype(np.int64) + 1)
    slack = slack if tolerance > 0 else np.zeros_like(slack)
    return Ballots(scores.shape[1], best, uncertain, points, slack, bound)


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
