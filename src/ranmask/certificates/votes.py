"""What the copies of texts say, as integers: floating point ends here.

``vote`` counts each copy's best class; ``score`` adds probabilities; ``logit`` adds L2-normalised
logits (of raw ones, one copy could outweigh all others).  Scores are rounded to fixed-point numbers
*before* they are added, and the smoothed classifier is defined on those, so sums are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints
from ranmask.certificates.readings import SCALE as SCALE
from ranmask.certificates.readings import Readings
from ranmask.errors import ClassifierError, OptionError

Scores: TypeAlias = npt.NDArray[np.float64]
Outputs: TypeAlias = Literal["scores", "logits", "approvals"]
"""Scores in [0, 1]; logits of one choice (softmax); or logits that judge each class by itself."""

_OPPOSITE = 2 * math.isqrt(SCALE * SCALE // 2)  # of unit logits: those of label and rival, -1 to 1
_FARTHEST = 4 * SCALE  # farther than any difference can move: used where a norm is zero
_DIFFERENCES_AT_ONCE = 1 << 19  # bounds memory where there are many classes


@dataclass(frozen=True, eq=False)
class Votes:
    """What all copies of several texts said, one text after another, ``copies`` of each.

    ``best`` is each copy's best class (the lowest id on a tie) and ``uncertain`` marks those
    that rounding in the model might turn.  ``points`` are the fixed-point scores that a score or
    logit ensemble adds up, None for votes; ``slack`` is how far the difference of two points of
    one copy may move.  No difference is larger than ``bound``, and ``attained`` is the largest that
    a copy can reach.  ``readings``, of a model that reads the texts as they are, are added to the
    sums; a vote is then worth ``bound`` points.

    Its sums have a row for each text.
    """

    classes: int
    copies: Ints
    best: Ints
    uncertain: npt.NDArray[np.bool_]
    points: Ints | None
    slack: Ints
    bound: int
    attained: int
    readings: Readings | None = None

    @cached_property
    def starts(self) -> Ints:
        """Where the copies of each text begin."""
        return np.cumsum(self.copies) - self.copies

    @cached_property
    def counts(self) -> Ints:
        """Votes of each class, shape (texts, classes).

        Where points are added, a copy that gives each class as many votes for none.
        """
        texts = np.repeat(np.arange(len(self.copies)), self.copies)
        places = texts * self.classes + self.best
        if self.points is not None:
            places = places[(self.points != self.points[:, :1]).any(axis=1)]
        counts = np.bincount(places, minlength=len(self.copies) * self.classes)
        return counts.reshape(-1, self.classes)

    def named(self, first: int) -> list[int | None]:
        """The class that each of the ``first`` copies votes for; None: none, as `counts` says."""
        alone = replace(self, copies=np.ones(len(self.best), dtype=np.int64))
        return [int(votes.argmax()) if votes.any() else None for votes in alone.counts[:first]]

    @cached_property
    def totals(self) -> Ints:
        """What decides: votes, or sums of points, shape (texts, classes)."""
        if self.readings is not None:
            alone = replace(self, readings=None).totals
            votes = self.bound if self.points is None else 1
            sums: Ints = alone * votes + self.readings.points.sum(axis=1)
            return sums
        if self.points is None:
            return self.counts
        return np.add.reduceat(self.points, self.starts, axis=0)

    @cached_property
    def winners(self) -> Ints:
        """The class with the largest total; the lowest id on a tie."""
        winners: Ints = self.totals.argmax(axis=1)
        return winners

    @property
    def uncertain_counts(self) -> Ints:
        """How many votes of each text are uncertain."""
        return np.add.reduceat(self.uncertain, self.starts, dtype=np.int64)

    @property
    def blurred(self) -> npt.NDArray[np.bool_]:
        """Which texts' certificates reckon with more than a copy can do, or is seen to do."""
        moving = np.logical_or.reduceat(self.uncertain | (self.slack > 0), self.starts)
        return moving | (self.attained < self.bound)

    @property
    def as_seen(self) -> Votes:
        """These votes if no untouched copy ever moved."""
        uncertain, slack = np.zeros_like(self.uncertain), np.zeros_like(self.slack)
        return replace(self, uncertain=uncertain, slack=slack)

    def means(self) -> Scores | None:
        """The average score of each class, shape (texts, classes); None for votes alone."""
        if self.readings is not None:
            unheard = np.where(self.readings.heard, 0, self.readings.reserve)
            weights = SCALE * self.copies + int(self.readings.bounds.sum()) - unheard
        elif self.points is None:
            return None
        else:
            weights = SCALE * self.copies
        means: Scores = self.totals / weights[:, None]
        return means

    def against(self, labels: Sequence[int]) -> Ints:
        """Votes of each class; uncertain ones are taken from the label, and given to every rival.

        For certificates that sample.
        """
        certain = (self.best[:, None] == np.arange(self.classes)) & ~self.uncertain[:, None]
        counts: Ints = np.add.reduceat(certain, self.starts, axis=0, dtype=np.int64)
        for_label = counts[np.arange(len(labels)), labels]
        counts += self.uncertain_counts[:, None]
        counts[np.arange(len(labels)), labels] = for_label
        return counts

    def differences(self, labels: Ints, *, every: bool = False) -> Ints:
        """Each text's label minus its rivals, shape (rivals, copies of all texts).

        As low as an untouched copy can make it.  ``every`` rival has a row of its own, also those
        without a vote, which otherwise may share one.
        """
        if self.points is None and self.readings is None and not every:
            return vote_differences(self.best, self.uncertain, labels, self.classes, self.copies)
        label = np.repeat(labels, self.copies)
        rivals = np.arange(self.classes - 1)[:, None]
        rivals = rivals + (rivals >= label)  # all classes but the label, in their order
        if self.points is None:
            for_label = (self.best == label) & ~self.uncertain
            against = (self.best == rivals) | self.uncertain
            votes: Ints = self.bound * (for_label.astype(np.int64) - against)
            return votes
        copies = np.arange(len(label))
        highest = self.points[copies, label] - self.slack
        lowest: Ints = np.maximum(highest - self.points[copies, rivals], -self.bound)
        return lowest

    def part(self, first: int, last: int) -> Votes:
        """Those of the texts from ``first`` up to ``last``."""
        start, end = int(self.starts[first]), int(self.starts[last - 1] + self.copies[last - 1])
        return replace(
            self,
            copies=self.copies[first:last],
            best=self.best[start:end],
            uncertain=self.uncertain[start:end],
            points=None if self.points is None else self.points[start:end],
            slack=self.slack[start:end],
            readings=self.readings and self.readings.part(first, last),
        )

    def beside(self, readings: Readings) -> Votes:
        """These votes, and what a reader said of the same texts."""
        if self.points is None:
            return replace(self, readings=readings, bound=SCALE, attained=SCALE)
        return replace(self, readings=readings)

    def parts(self) -> Iterator[Votes]:
        """The same texts, so many at once that their differences fit the memory."""
        most = max(1, _DIFFERENCES_AT_ONCE // self.classes)
        cuts = (np.flatnonzero(np.diff(self.starts // most)) + 1).tolist()
        for first, last in pairwise([0, *cuts, len(self.copies)]):
            yield self.part(first, last) if cuts else self


def count_votes(
    scores: Scores, ensemble: str, outputs: Outputs, tolerance: float, copies: Ints | None = None
) -> Votes:
    """Read the scores of all copies of several texts, one text after another.

    ``tolerance`` is how far the difference of two outputs of a copy may move when the copy is
    computed again in other company, each output by at most half of it; 0 says that nothing ever
    moves.  ``copies``: how many each text has, at least one; None: all are of one text.
    """
    copies = np.array([len(scores)]) if copies is None else copies
    best = scores.argmax(axis=1).astype(np.int64)
    uncertain = np.zeros(len(scores), dtype=bool)
    slack = np.zeros(len(scores), dtype=np.int64)
    # With tolerance 0 the classifier is one fixed function, and a tie always falls the same way.
    if tolerance > 0:
        top_two = np.partition(scores, -2, axis=1)[:, -2:]
        uncertain = top_two[:, 1] - top_two[:, 0] <= tolerance
    points, bound, attained = None, 1, 1
    if ensemble == "score":
        points = np.rint(as_scores(scores, outputs) * SCALE).astype(np.int64)
        bound = attained = SCALE
        if tolerance > 0:
            moves = np.full(len(scores), largest_move(tolerance, outputs) * SCALE)
    elif ensemble == "logit":
        points, moves = _normalised_points(scores, tolerance)
        # Two components of a unit vector differ by at most sqrt(2); one more for each rounding.
        bound, attained = math.isqrt(2 * SCALE * SCALE) + 2, _OPPOSITE
    elif ensemble != "vote":
        raise OptionError(f"ensemble must be one of vote, score, logit; not {ensemble!r}")
    if points is not None and tolerance > 0:
        # A point that moves by m before rounding moves by at most floor(m) + 1 after it.
        slack = 2 * (np.floor(np.minimum(moves, _FARTHEST)).astype(np.int64) + 1)
    return Votes(scores.shape[1], copies, best, uncertain, points, slack, bound, attained)


def vote_differences(
    best: npt.NDArray[np.integer],
    uncertain: npt.NDArray[np.bool_],
    labels: npt.ArrayLike,
    classes: int,
    copies: Ints | None = None,
) -> Ints:
    """Each copy's vote as label minus rival, one row for each rival: 1, 0 or -1.

    An uncertain vote is counted as a vote for the rival, *against every rival separately*.
    Counting it once, for the strongest rival only, is unsound with three classes.  Rivals that
    received no vote at all look alike and share one row.  Several texts stand side by side,
    ``copies`` of each (None: one text), each with its own label and rivals; all have as many rows
    as the one that needs most, and further rows of a text repeat its last.
    """
    copies = np.array([len(best)]) if copies is None else copies
    labels = np.atleast_1d(labels)
    texts = np.repeat(np.arange(len(copies)), copies)
    counts = np.bincount(texts * classes + best, minlength=len(copies) * classes)
    absent = (counts.reshape(-1, classes) == 0).astype(np.int8)
    absent[np.arange(len(copies)), labels] = 2  # behind the rivals without a vote: never a rival
    rows = min(int((absent == 0).sum(axis=1).max()) + 1, classes - 1)
    rivals = np.argsort(absent, axis=1, kind="stable")[:, :rows]
    for_label = (best == labels[texts]) & ~uncertain
    against = (best == rivals[texts].T) | uncertain
    differences: Ints = for_label.astype(np.int64) - against
    return differences


def as_scores(rows: Scores, outputs: Outputs) -> Scores:
    """Each class's score in [0, 1]: a softmax of logits, a sigmoid of approvals."""
    if outputs == "logits":
        powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        shares: Scores = powers / powers.sum(axis=1, keepdims=True)
        return shares
    if outputs == "approvals":
        small = np.exp(-np.abs(rows))  # never overflows
        approvals: Scores = np.where(rows >= 0, 1, small) / (1 + small)
        return approvals
    if float(rows.min()) < 0 or float(rows.max()) > 1:
        raise ClassifierError(
            f"scores lie between 0 and 1, but the base classifier returned "
            f"{float(rows.min()):g} to {float(rows.max()):g}. Return probabilities, or wrap it "
            "in FunctionClassifier(..., outputs='logits'), or use ensemble='vote'"
        )
    return rows


def largest_move(tolerance: float, outputs: Outputs) -> float:
    """How far one score may move where the difference of two outputs moves by ``tolerance``."""
    if outputs == "logits":
        # Log-odds against all rivals move by at most the tolerance; a sigmoid's slope is 1/4.
        return tolerance / 4
    if outputs == "approvals":
        return tolerance / 8  # each logit stands alone and moves by half the tolerance
    return tolerance / 2


def _normalised_points(scores: Scores, tolerance: float) -> tuple[Ints, Scores]:
    """L2-normalised logits in fixed point, and how far each of a copy's may move before that."""
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
    return points, np.where(norms > 0, moved, _FARTHEST)
