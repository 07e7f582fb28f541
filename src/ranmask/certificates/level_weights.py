"""What many weights of a reader come to on the same texts, quickly.

`pyramid.pyramid_radii` certifies under one set of weights.  Choosing some means to try hundreds,
and most of the work is the same each time.  Here the dearest words of every segment are sorted
once; and weights of the whole text are tried all at once, for each text is right, and proved at
``1, 2, ...`` changed words, between two of them.

The numbers are those of the certificate, text by text: only right labels are asked for, so each
text has its own label to defend, whatever the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import dearest_first
from ranmask.certificates.families import Family
from ranmask.certificates.pyramid import costs_and_margins
from ranmask.certificates.readings import SCALE, Readings, read_scores, segment_borders
from ranmask.certificates.votes import Scores, Votes

_NOT_RIGHT = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class ReadTexts:
    """Texts whose copies were scored, and what a reader says of all their segments.

    ``nodes``: scores from 0 to 1, shape (texts, nodes, classes), where nodes are the whole text,
    its halves, its quarters, ..., all of each level; zeros of an empty segment, and where there is
    no answer to a whole text.  Copies show one word each.  ``labels``: the right ones.
    """

    votes: Votes
    families: Sequence[Family]
    nodes: Scores
    labels: Ints

    @property
    def levels(self) -> int:
        """How many levels there are, that of the whole text among them."""
        return int(self.nodes.shape[1]).bit_length()


class LevelWeights:
    """Counts of texts that are right and proved, for weights of a reader's levels.

    ``most``: changed words that are counted for at most; ``tolerance``: how far a score of the
    reader's may move when the same segment is read again.
    """

    def __init__(self, parts: Sequence[ReadTexts], most: int, tolerance: float = 0.0) -> None:
        self._most, self._tolerance, self.levels = most, tolerance, parts[0].levels
        self.classes = parts[0].votes.classes
        self._labels = np.concatenate([part.labels for part in parts])
        self._nodes = np.concatenate([part.nodes for part in parts])
        rivals = np.arange(self.classes - 1)
        self._rivals = rivals + (rivals >= self._labels[:, None])
        self._words = np.array([family.words for part in parts for family in part.families])
        prepared = [self._prepared(part) for part in parts]
        self._totals = np.concatenate([totals for totals, _, _ in prepared])
        self._margins = np.concatenate([margins for _, margins, _ in prepared], axis=1)
        self._dearest = [np.concatenate([finest for _, _, finest in prepared], axis=1)]
        while self._dearest[0].shape[2] > 1:
            self._dearest.insert(0, self._merged(self._dearest[0]))
        whole = self._nodes[:, 0]
        self._named = np.where(whole.max(axis=1) > 0, whole.argmax(axis=1), -1)
        self._group = self._labels + self.classes * (self._named == self._labels)
        self._of_level = lru_cache(maxsize=256)(self._weighted)

    @cached_property
    def texts(self) -> Ints:
        """How many there are, by class: those that the model gets wrong, and right."""
        return np.bincount(self._group, minlength=2 * self.classes).reshape(2, self.classes)

    def counts(self, segments: Sequence[float], whole: Ints) -> tuple[Ints, Ints]:
        """How many texts are right, and are proved at 1, 2, ... changed words, as `texts` has them.

        ``segments``: the weights of halves, quarters, ...; ``whole``: rising weights of the whole
        text, in points.  Shapes (whole, 2, classes) and (whole, 2, classes, most).
        """
        totals, left = self._without_whole(tuple(segments))
        least, beyond = self._right_between(totals)
        groups, size = 2 * self.classes, len(whole) + 1

        def from_there_on(weights: Ints) -> Ints:
            places = whole.searchsorted(weights) * groups + self._group
            found = np.bincount(places, minlength=size * groups).reshape(size, 2, self.classes)
            return found[:-1].cumsum(axis=0)

        right = from_there_on(least) - from_there_on(beyond)
        proved = [self.texts - from_there_on(row) for row in left.T]
        return right, np.stack(proved, axis=3)

    def _without_whole(self, segments: tuple[float, ...]) -> tuple[Ints, Ints]:
        """Sums of the classes, and what each text has left after 1, 2, ... changed words."""
        totals, margins = self._totals, self._margins
        depth = max((place for place, one in enumerate(segments, 1) if one), default=0)
        dearest = self._dearest[depth]
        for level in range(depth, 0, -1):
            if segments[level - 1]:
                points, lead, fall = self._of_level(level, segments[level - 1])
                totals, margins = totals + points, margins + lead
                dearest = dearest.copy()
                dearest[..., 0] += fall
            dearest = self._merged(dearest)
        left: Ints = (margins[:, :, None] - dearest[:, :, 0].cumsum(axis=2)).min(axis=0)
        return totals, left

    def _right_between(self, totals: Ints) -> tuple[Ints, Ints]:
        """The least weight of the whole text at which each is right, and the least beyond."""
        texts, labels, named = np.arange(len(totals)), self._labels, self._named
        # On a tie the lowest class wins.
        leads = totals[texts, labels][:, None] - totals[texts[:, None], self._rivals]
        leads += labels[:, None] < self._rivals
        for_it, against = named == labels, self._rivals == named[:, None]
        least = np.where(for_it, np.maximum(1 - leads.min(axis=1), 0), 0)
        others = np.where(against, _NOT_RIGHT, leads).min(axis=1)
        beyond = np.where(against.any(axis=1), (leads * against).sum(axis=1), _NOT_RIGHT)
        never = (others < 1) & ~for_it
        return np.where(never, beyond, least), beyond

    def _weighted(self, level: int, weight: float) -> tuple[Ints, Ints, Ints]:
        """What a level adds: to the sums, to the margins, and to the cost of each segment."""
        pieces = 2**level
        said = self._nodes[:, pieces - 1 : 2 * pieces - 1]
        weights = (*[0.0] * level, weight)
        readings = read_scores(said, weights, tolerance=self._tolerance)
        leads = readings.differences(self._labels)
        borders = segment_borders(self._words, pieces)
        filled = borders[:, 1:] > borders[:, :-1]
        return readings.points.sum(axis=1), leads.sum(axis=2), (leads + readings.bounds) * filled

    def _prepared(self, part: ReadTexts) -> tuple[Ints, Ints, Ints]:
        """Sums and margins of the copies alone, and the dearest words of the finest segments.

        These by falling cost, 0 beyond the words that there are: (rivals, texts, segments, most).
        """
        rows = len(part.labels)
        nobody = Readings(
            np.zeros((rows, 1, self.classes), dtype=np.int64),
            bounds=np.zeros(1, dtype=np.int64),
            slack=np.zeros(1, dtype=np.int64),
            levels=(1,),
            heard=np.zeros(rows, dtype=bool),
            sure=np.zeros(rows, dtype=bool),
        )
        votes = part.votes.beside(nobody)
        costs, margins = costs_and_margins(votes, part.families, part.labels)
        words = np.array([family.words for family in part.families])
        pieces = 2 ** (self.levels - 1)
        sizes = np.diff(segment_borders(words, pieces), axis=1).ravel()
        starts = np.cumsum(sizes) - sizes
        order = dearest_first(costs, sizes, starts)
        rank = np.arange(costs.shape[1]) - np.repeat(starts, sizes)
        shown = np.flatnonzero(rank < self._most)
        at = np.repeat(np.arange(len(sizes)), sizes)[shown] * self._most + rank[shown]
        finest = np.zeros((len(costs), len(sizes) * self._most), dtype=np.int64)
        finest[:, at] = np.take_along_axis(costs, order[:, shown], axis=1)
        return votes.totals, margins, finest.reshape(len(costs), rows, pieces, self._most)

    def _merged(self, dearest: Ints) -> Ints:
        """The dearest words of each two segments that belong together."""
        rivals, texts, pieces, most = dearest.shape
        both = np.sort(dearest.reshape(rivals, texts, pieces // 2, 2 * most), axis=3)
        falling: Ints = both[..., : -most - 1 : -1]
        return falling


def in_points(weights: Sequence[float]) -> Ints:
    """Weights of the whole text as `LevelWeights.counts` takes them."""
    points: Ints = np.rint(np.array(weights) * SCALE).astype(np.int64)
    return points
