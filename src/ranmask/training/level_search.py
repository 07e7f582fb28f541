"""Weights of a model's levels: whole text, halves, quarters, ..., searched on held-out texts.

For given weights of the segments, what those of the whole text come to is a curve that is known at
once (`certificates.level_weights`), so all weights on a ladder are tried.  The best of so many look
better than they are: measured on halves of validation texts, what is proved hardly does, but
accuracy does, by about one standard error of its difference from the model's.  So much is taken off
the accuracy of weights that read segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from ranmask.certificates.level_weights import LevelWeights, ReadTexts, in_points
from ranmask.training.choosing import WORTH, Weighed, calls_of, measured, rising, weights_for

_LADDER = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # weights of a segment
_MOST_AT_ONCE = 3  # levels of segments that weigh something
_GIVEN_UP = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)  # points, for choices that are made later
LATER = (1, 2, 5, 10)
"""Changed words that choices may be made for later."""

_Floats = npt.NDArray[np.float64]


class LevelSearch:
    """All weights that are tried on some texts, and what they come to.

    ``parts``: the texts, in batches.  ``most``: changed words that may be asked for.
    ``tolerance``: the reader's.  ``balanced``: every class counts the same.  `best` may be asked
    again and again.
    """

    def __init__(
        self,
        parts: Sequence[ReadTexts],
        most: int,
        *,
        tolerance: float = 0.0,
        balanced: bool = False,
    ) -> None:
        tried = LevelWeights(parts, most, tolerance)
        self._parts, self._tolerance = parts, tolerance
        longest = max(family.words for part in parts for family in part.families)
        self._whole = [0.0, *weights_for(longest)]
        self._segments = list(_segments(tried.levels - 1))
        of_class = tried.texts.sum(axis=0)
        each = 1 / np.maximum(of_class, 1) / np.count_nonzero(of_class)
        self._each = each if balanced else np.full(tried.classes, 1 / of_class.sum())
        self.model = float(tried.texts[1] @ self._each)
        points = in_points(self._whole)
        found = [self._figures(tried, segments, points) for segments in self._segments]
        self._expected, self._shares = (np.array(figures) for figures in zip(*found, strict=True))
        self._calls = np.array(
            [[calls_of((whole, *one)) for whole in self._whole] for one in self._segments]
        )

    def best(self, words: Sequence[int], least: float) -> list[tuple[float, ...]]:
        """The weights that prove most at these numbers of changed words; last those to take.

        Of those that are expected to have at least the accuracy ``least``.  To take are the fewest
        calls that prove nearly as much (`WORTH`), which may be the same.  Empty where nothing is
        so accurate.
        """
        score = self._shares[:, :, np.array(words) - 1].mean(axis=2)
        score = np.where((self._expected >= least - 1e-9) & (self._calls > 0), score, -1.0)
        if score.max() < 0:
            return []
        near = score >= score.max() - float(WORTH)
        fewest = np.where(near & (self._calls == self._calls[near].min()), score, -1.0)
        return list(dict.fromkeys(self._weights(found) for found in (score, fewest)))

    def weighed(self, weights: Sequence[tuple[float, ...]]) -> list[Weighed]:
        """What some of these weights come to, and the accuracy that is expected of them."""
        counts = measured(self._parts, weights, self._tolerance)
        return [replace(one, expected=self._expected_of(one.weights)) for one in counts]

    def frontier(self, words: Sequence[int]) -> list[Weighed]:
        """All with segments that are best for some accuracy: at these changed words, and others."""
        found: dict[tuple[float, ...], None] = {}
        for wanted in (tuple(words), *((one,) for one in LATER)):
            for points in _GIVEN_UP:
                found |= dict.fromkeys(self.best(wanted, self.model - points / 100))
        return self.weighed(sorted(weights for weights in found if len(weights) > 1))

    def _expected_of(self, weights: tuple[float, ...]) -> float | None:
        whole, *segments = weights
        if not segments:
            return None
        padded = (*segments, *[0.0] * (len(self._segments[0]) - len(segments)))
        at = self._segments.index(padded), self._whole.index(whole)
        return round(float(self._expected[at]), 6)

    def _weights(self, score: _Floats) -> tuple[float, ...]:
        one, whole = np.unravel_index(score.argmax(), score.shape)
        weights = [self._whole[whole], *self._segments[one]]
        while not weights[-1]:
            weights.pop()
        return tuple(weights)

    def _figures(
        self, tried: LevelWeights, segments: tuple[float, ...], points: npt.NDArray[np.int64]
    ) -> tuple[_Floats, _Floats]:
        """Accuracies to expect, and shares proved, for each weight of the whole text."""
        right, proved = tried.counts(segments, points)
        accuracy = np.array(rising((right.sum(axis=1) @ self._each).tolist()))
        if any(segments):
            lost_and_won = tried.texts[1] - right[:, 1] + right[:, 0]
            accuracy -= np.sqrt(lost_and_won @ self._each**2)
        return accuracy, np.einsum("bmcd,c->bd", proved, self._each)


def _segments(levels: int) -> Iterator[tuple[float, ...]]:
    for weights in product(_LADDER, repeat=levels):
        if np.count_nonzero(weights) <= _MOST_AT_ONCE:
            yield weights
