"""How much a model weighs beside its copies: what each weight comes to, and which one is chosen.

A heavier model has its own label more often, and less is proved: `measured` counts both on texts
that nothing was learned from, and `chosen` takes the weight that proves most among those that give
up no more accuracy than they may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import zip_longest
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
    """What a weight comes to on some texts, class by class: how many there are, are right, proved.

    ``certified[c][d - 1]``: texts of class ``c`` that are right, and proved to stay so whichever
    ``d`` words are changed; 0 beyond the end.  ``balanced`` figures are means over the classes that
    occur, others over the texts.
    """

    weight: float
    texts: tuple[int, ...]
    right: tuple[int, ...]
    certified: tuple[tuple[int, ...], ...]

    def accuracy(self, balanced: bool = False) -> Fraction:
        """Share of the texts that are right."""
        return self._share(self.right, balanced)

    def share(self, words: int, balanced: bool = False) -> Fraction:
        """Share of all texts that are right and proved at so many changed words."""
        found = [counts[words - 1] if words <= len(counts) else 0 for counts in self.certified]
        return self._share(found, balanced)

    def score(self, words: Sequence[int], balanced: bool = False) -> Fraction:
        """The mean of these shares: what is maximised."""
        return sum((self.share(one, balanced) for one in words), Fraction(0)) / len(words)

    def classes(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The classes that occur, as `metrics.class_table` shows them."""
        found = []
        for name, texts, right, counts in zip(
            names, self.texts, self.right, self.certified, strict=True
        ):
            if texts:
                shares = [float(Fraction(one, texts)) for one in (right, *counts[:10])]
                padded = shares + [0.0] * (6 - len(shares))
                recall = {"recall": shares[0], "certified_recall": padded}
                found.append({"name": name, "texts": texts, **recall})
        return found

    def _share(self, counts: Sequence[int], balanced: bool) -> Fraction:
        if not balanced:
            return Fraction(sum(counts), sum(self.texts))
        shares = [Fraction(one, of) for one, of in zip(counts, self.texts, strict=True) if of]
        return sum(shares, Fraction(0)) / len(shares)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Weighed:
        """What `to_dict` gave."""
        try:
            texts, right = (tuple(map(int, values[name])) for name in ("texts", "right"))
            certified = tuple(tuple(map(int, counts)) for counts in values["certified"])
            found = cls(float(values["weight"]), texts, right, certified)
            if not len(texts) == len(right) == len(certified) or not sum(texts):
                raise ValueError("classes differ")
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"no counts of a weight: {values!r}") from error
        return found


def sum_of(parts: Sequence[Weighed]) -> Weighed:
    """One weight on several sets of texts, as one."""

    def added(counts: Iterable[Sequence[int]]) -> tuple[int, ...]:
        return tuple(map(sum, zip_longest(*counts, fillvalue=0)))

    by_class = zip(*(one.certified for one in parts), strict=True)
    return Weighed(
        parts[0].weight,
        added(one.texts for one in parts),
        added(one.right for one in parts),
        tuple(map(added, by_class)),
    )


def alone(said: Scores, labels: npt.NDArray[np.int64]) -> Weighed:
    """What the model by itself comes to: nothing is proved."""
    classes = said.shape[1]
    right = np.bincount(labels[said.argmax(axis=1) == labels], minlength=classes)
    texts = np.bincount(labels, minlength=classes)
    return Weighed(0.0, tuple(texts.tolist()), tuple(right.tolist()), ((),) * classes)


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
    classes = said.shape[1]
    # Numbers of right texts by class and radius, for each weight.
    radii = np.zeros((len(weights), classes, MOST_WORDS + 1), dtype=np.int64)
    first = 0
    for scored in copies.scored(texts):
        rows = slice(first, first + len(scored.texts))
        first = rows.stop
        for place, weight in enumerate(weights):
            right, own = _right_radii(scored, said[rows], labels[rows], weight)
            np.add.at(radii[place], (right, np.minimum(own, MOST_WORDS)), 1)
    proved = radii[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]  # those of a radius or more
    of_class = tuple(np.bincount(labels, minlength=classes).tolist())
    return [
        Weighed(
            weight,
            of_class,
            tuple(counts[:, 0].tolist()),
            tuple(tuple(np.trim_zeros(one[1:], "b").tolist()) for one in counts),
        )
        for weight, counts in zip(weights, proved, strict=True)
    ]


def _right_radii(
    scored: ScoredTexts[MaskedText],
    said: Scores,
    labels: npt.NDArray[np.int64],
    weight: float,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Labels and radii of the texts that are right; 0 where no changed word is proved."""
    votes = scored.votes.beside(read_scores(said[:, None, :], (weight,)))
    radii = pyramid_radii(votes, [text.family for text in scored.texts])
    found = np.array([radius.words or 0 for radius in radii], dtype=np.int64)
    right = votes.winners == labels
    return labels[right], found[right]


def chosen(
    curve: Sequence[Weighed],
    model: Weighed,
    words: Sequence[int],
    give_up: float,
    balanced: bool = False,
) -> tuple[Weighed, bool]:
    """The weight that proves most among those that give up no more; and whether there is one.

    A heavier model has its own label more often: on few texts a light weight may be lucky, so what
    counts is the accuracy as `rising` has it.  Where no weight gives up so little, the nearest is
    taken.  ``model``: what it comes to by itself.
    """
    if not words:
        raise OptionError("words must name a number of changed words, as 1,2,5", "words")
    least = model.accuracy(balanced) - Fraction(str(give_up)) / 100
    ordered = sorted(curve, key=lambda one: one.weight)
    fitted = rising([one.accuracy(balanced) for one in ordered])
    reached = fitted[-1] >= least
    limit = least if reached else fitted[-1]
    allowed = [one for one, found in zip(ordered, fitted, strict=True) if found >= limit]
    best = max(allowed, key=lambda one: (one.score(words, balanced), one.accuracy(balanced)))
    return best, reached


def rising(values: Sequence[Fraction]) -> list[Fraction]:
    """The values as they would be if none were above a later one: runs that fall are averaged.

    >>> [float(one) for one in rising([Fraction(1), Fraction(4), Fraction(2), Fraction(5)])]
    [1.0, 3.0, 3.0, 5.0]
    """
    runs: list[tuple[Fraction, int]] = []  # sum and length of each
    for value in values:
        total, length = value, 1
        while runs and runs[-1][0] * length > total * runs[-1][1]:
            before, count = runs.pop()
            total, length = total + before, length + count
        runs.append((total, length))
    return [total / length for total, length in runs for _ in range(length)]
