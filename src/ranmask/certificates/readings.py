"""What a model says of whole texts, and of segments of them, as integers.

A *reader* is any model that reads a text as it is.  The class that it names for the whole text is
one more vote, of weight ``B``: whoever changes a word owns that vote, however sure it was, so it is
counted in full.  The reader may also read the text in 2, 4, 8, ... segments, whose scores
are added, each of its own weight.
Segment ``i`` of ``T`` holds the words from ``round(h i / T)`` up to ``round(h (i + 1) / T)`` of
``h``: borders depend on the number of words only, and those of ``T`` are among those of ``2 T``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints

SCALE = 2**20
"""Fixed-point scores are multiples of 1 / SCALE."""


@dataclass(frozen=True, eq=False)
class Readings:
    """What a reader said of several texts: weighted fixed-point scores, (texts, nodes, classes).

    Nodes come level by level: the whole text, both halves, ...  ``levels`` says in how many
    segments a text is read, ``bounds`` is the weight of each node, which no difference exceeds, and
    ``slack`` how far a difference may move when the same words are read again.  A node of which
    nothing was said has zeros.  ``heard``: whether there is an answer to the whole text (True where
    nobody asked); ``sure``: whether the same text would get the same answer again.
    """

    points: Ints
    bounds: Ints
    slack: Ints
    levels: tuple[int, ...]
    heard: npt.NDArray[np.bool_]
    sure: npt.NDArray[np.bool_]

    @property
    def reserve(self) -> int:
        """The weight of the whole text, which every changed word costs; 0 where it is not read."""
        return int(self.bounds[0]) if self.levels[0] == 1 else 0

    @property
    def segments(self) -> Readings | None:
        """The same without the whole text; None where nothing else is read."""
        if self.levels[0] != 1:
            return self
        if len(self.levels) == 1:
            return None
        return replace(
            self,
            points=self.points[:, 1:],
            bounds=self.bounds[1:],
            slack=self.slack[1:],
            levels=self.levels[1:],
        )

    @property
    def without_whole(self) -> Readings:
        """The same, as if nothing had been said of the whole texts."""
        if self.levels[0] != 1:
            return self
        points = self.points.copy()
        points[:, 0] = 0
        return replace(self, points=points)

    def part(self, first: int, last: int) -> Readings:
        """Those of the texts from ``first`` up to ``last``."""
        some = slice(first, last)
        return replace(self, points=self.points[some], heard=self.heard[some], sure=self.sure[some])

    def differences(self, labels: Ints) -> Ints:
        """Label minus rival, shape (rivals, texts, nodes): as low as a second reading makes it."""
        texts, rivals = np.arange(len(labels)), np.arange(self.points.shape[2] - 1)[:, None]
        rivals = rivals + (rivals >= labels)  # all classes but the label, in their order
        lead = self.points[texts, :, labels] - self.slack - self.points[texts, :, rivals]
        lowest: Ints = np.maximum(lead, -self.bounds)
        return lowest


def levels_of(weights: Sequence[float]) -> tuple[int, ...]:
    """In how many segments a text is read, where these are the weights of 1, 2, 4, ..."""
    return tuple(2**place for place, weight in enumerate(weights) if weight)


def segment_borders(words: Ints, pieces: int) -> Ints:
    """Where the segments of texts of so many words begin; the last column is where they end."""
    borders: Ints = (2 * words[:, None] * np.arange(pieces + 1) + pieces) // (2 * pieces)
    return borders


def read_scores(
    scores: npt.NDArray[np.float64],
    weights: Sequence[float],
    *,
    tolerance: float = 0.0,
    repeatable: bool = False,
) -> Readings:
    """Readings from scores in [0, 1], shape (texts, nodes, classes); NaN where nothing was said.

    ``tolerance`` is how far one score may move when the same words are read again.
    """
    levels = levels_of(weights)
    of_nodes = np.repeat([float(weight) for weight in weights if weight], levels)
    answered: npt.NDArray[np.bool_] = np.logical_not(np.isnan(scores).any(axis=2))
    said = np.where(answered[:, :, None], scores, 0.0)
    heard, sure = np.ones((2, len(scores)), dtype=bool)
    if levels[0] == 1:
        whole = said[:, 0]
        heard = answered[:, 0] & (whole.max(axis=1) > 0)  # zeros name no class
        top_two = np.partition(whole, -2, axis=1)[:, -2:]
        # With tolerance 0 the reader is one fixed function: a tie always falls the same way.
        sure = heard & ((top_two[:, 1] - top_two[:, 0] > 2 * tolerance) | (tolerance == 0))
        named = np.eye(scores.shape[2])[whole.argmax(axis=1)]
        said[:, 0] = np.where(heard[:, None], named, 0.0)
    # Weighted and rounded once: the classifier is defined on these integers.
    points = np.rint(said * of_nodes[:, None] * SCALE).astype(np.int64)
    bounds = np.rint(of_nodes * SCALE).astype(np.int64)
    slack = np.zeros_like(bounds)
    if tolerance > 0:
        slack = 2 * (np.floor(np.minimum(tolerance, 1.0) * bounds).astype(np.int64) + 1)
        slack[0] = 0 if levels[0] == 1 else slack[0]  # a vote that is sure does not move
    return Readings(points, bounds, slack, levels, heard, sure & repeatable)
