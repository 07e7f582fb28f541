"""How much a model weighs beside its copies: what each weight comes to, and which one is chosen.

A heavier model has its own label more often, and less is proved: `measured` counts both on texts
that nothing was learned from, and `chosen` takes the weight that proves most among those that give
up no more accuracy than they may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.certificates.pyramid import pyramid_radii
from ranmask.certificates.readings import read_scores
from ranmask.certificates.votes import Scores
from ranmask.errors import DataError, OptionError
from ranmask.smoothing.masks import MaskedText
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.voting import ScoredTexts
from ranmask.training.protect_options import MOST_WORDS

_HEAVIEST = 4096.0


@dataclass(frozen=True)
class Weighed:
    """What a weight comes to on some texts: how many are right, and of those how many are proved.

    ``certified[d - 1]``: right, and proved to stay so whichever ``d`` words are changed.
    """

    weight: float
    texts: int
    right: int
    certified: tuple[int, ...]

    @property
    def accuracy(self) -> Fraction:
        """Share of the texts that are right."""
        return Fraction(self.right, self.texts)

    def share(self, words: int) -> Fraction:
        """Share of all texts that are right and proved at so many changed words."""
        found = self.certified[words - 1] if words <= len(self.certified) else 0
        return Fraction(found, self.texts)

    def score(self, words: Sequence[int]) -> Fraction:
        """The mean of these shares: what is maximised."""
        return sum(map(self.share, words), Fraction(0)) / len(words)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "certified": list(self.certified)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Weighed:
        """What `to_dict` gave."""
        try:
            certified = tuple(map(int, values["certified"]))
            weight, texts = float(values["weight"]), int(values["texts"])
            return cls(weight, texts, int(values["right"]), certified)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"no counts of a weight: {values!r}") from error


def sum_of(parts: Sequence[Weighed]) -> Weighed:
    """One weight on several sets of texts, as one."""
    certified = tuple(map(sum, zip(*(one.certified for one in parts), strict=True)))
    texts, right = sum(one.texts for one in parts), sum(one.right for one in parts)
    return Weighed(parts[0].weight, texts, right, certified)


def weights_for(longest: int) -> list[float]:
    """Weights to try: dense where they are small, up to one that no text can overrule."""
    weights = [place / 8 for place in range(1, 33)]
    while weights[-1] <= min(longest, _HEAVIEST):
        weights.append(float(f"{weights[-1] * 1.125:.3g}"))
    return weights


def measured(
    copies: SmoothedClassifier,
    texts: Sequence[str],
    said: Scores,
    labels: npt.NDArray[np.int64],
    weights: Sequence[float],
) -> list[Weighed]:
    """What each weight comes to; the copies are scored once."""
    right: list[int] = [0] * len(weights)
    proved = np.zeros((len(weights), MOST_WORDS), dtype=np.int64)
    first = 0
    for scored in copies.scored(texts):
        rows = slice(first, first + len(scored.texts))
        first = rows.stop
        for place, weight in enumerate(weights):
            own = _radii(scored, said[rows], labels[rows], weight)
            right[place] += len(own)
            proved[place] += (own[:, None] > np.arange(MOST_WORDS)).sum(axis=0)
    counted = zip(weights, right, proved.tolist(), strict=True)
    return [Weighed(weight, len(texts), found, tuple(at)) for weight, found, at in counted]


def _radii(
    scored: ScoredTexts[MaskedText],
    said: Scores,
    labels: npt.NDArray[np.int64],
    weight: float,
) -> npt.NDArray[np.int64]:
    """The radii of the texts whose label is right; 0 where no changed word is proved."""
    votes = scored.votes.beside(read_scores(said[:, None, :], (weight,)))
    radii = pyramid_radii(votes, [text.family for text in scored.texts])
    found = np.array([radius.words or 0 for radius in radii], dtype=np.int64)
    kept: npt.NDArray[np.int64] = found[votes.winners == labels]
    return kept


def chosen(
    curve: Sequence[Weighed], alone: Fraction, words: Sequence[int], give_up: float
) -> tuple[Weighed, bool]:
    """The weight that proves most among those that give up no more; and whether there is one.

    Where none is, the one that gives up least.  ``alone``: the accuracy of the model by itself.
    """
    if not words:
        raise OptionError("words must name a number of changed words, as 1,2,5", "words")
    least = alone - Fraction(str(give_up)) / 100
    allowed = [one for one in curve if one.accuracy >= least]
    best = max(
        allowed or curve,
        key=lambda one: (
            (one.score(words), one.accuracy) if allowed else (one.accuracy, one.score(words))
        ),
    )
    return best, bool(allowed)
