"""How much a model weighs beside its copies: what each weight comes to, and which one is chosen.

A heavier model has its own label more often, and less is proved: `measured` counts both on texts
that nothing was learned from, and `chosen` takes what proves most among all that give up no more
accuracy than they may.  Weights are those of the whole text, of each half, of each quarter, ...:
one of them is that of the whole text alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ranmask.certificates.level_weights import LevelWeights, ReadTexts, in_points
from ranmask.certificates.readings import levels_of
from ranmask.certificates.votes import Scores
from ranmask.errors import DataError, OptionError
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.protect_options import MOST_WORDS

WORTH = Fraction(1, 100)
"""Share of the texts that more calls of the model must prove in addition, to be worth it."""
_HEAVIEST = 4096.0

Number = TypeVar("Number", Fraction, float)


@dataclass(frozen=True)
class Weighed:
    """What a weight comes to on some texts, class by class: how many there are, are right, proved.

    ``certified[c][d - 1]``: texts of class ``c`` that are right, and proved to stay so whichever
    ``d`` words are changed; 0 beyond the end.  ``balanced`` figures are means over the classes that
    occur, others over the texts.  ``expected``: the accuracy to count with, where these weights
    were picked among many on the same texts.
    """

    weights: tuple[float, ...]
    texts: tuple[int, ...]
    right: tuple[int, ...]
    certified: tuple[tuple[int, ...], ...]
    expected: float | None = None

    @property
    def calls(self) -> int:
        """How many texts and segments the model is asked about, for each text."""
        return calls_of(self.weights)

    @property
    def name(self) -> str:
        """The weights as the option reader_weights takes them."""
        return ",".join(f"{weight:g}" for weight in self.weights)

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
            weights, expected = tuple(map(float, values["weights"])), values["expected"]
            found = cls(weights, texts, right, certified, expected and float(expected))
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
        parts[0].weights,
        added(one.texts for one in parts),
        added(one.right for one in parts),
        tuple(map(added, by_class)),
    )


def alone(said: Scores, labels: npt.NDArray[np.int64]) -> Weighed:
    """What the model by itself comes to: nothing is proved."""
    classes = said.shape[1]
    right = np.bincount(labels[said.argmax(axis=1) == labels], minlength=classes)
    texts = np.bincount(labels, minlength=classes)
    return Weighed((), tuple(texts.tolist()), tuple(right.tolist()), ((),) * classes)


def weights_for(longest: int) -> list[float]:
    """Weights to try: dense where they are small, up to one that no text can overrule."""
    weights = [place / 8 for place in range(1, 33)]
    while weights[-1] <= min(longest, _HEAVIEST):
        weights.append(float(f"{weights[-1] * 1.125:.3g}"))
    return weights


def calls_of(weights: Sequence[float]) -> int:
    """How many texts and segments a model is asked about, for each text.

    >>> calls_of((2,)), calls_of((0, 8, 0, 1)), calls_of((0,))
    (1, 10, 0)
    """
    return sum(levels_of(weights))


def read_texts(
    copies: SmoothedClassifier,
    texts: Sequence[str],
    nodes: Scores,
    labels: npt.NDArray[np.int64],
) -> Iterator[ReadTexts]:
    """Texts whose copies are scored here, beside what a model says of them; batch by batch.

    ``nodes``: shape (texts, nodes, classes), as `ReadTexts` has them.
    """
    first = 0
    for scored in copies.scored(texts):
        rows = slice(first, first + len(scored.texts))
        first = rows.stop
        families = [text.family for text in scored.texts]
        yield ReadTexts(scored.votes, families, nodes[rows], labels[rows])


def measured(
    parts: Iterable[ReadTexts], weights: Sequence[Sequence[float]], tolerance: float = 0.0
) -> list[Weighed]:
    """What each of these weights comes to; ``tolerance`` is the model's."""
    found = [_measured(LevelWeights([part], MOST_WORDS, tolerance), weights) for part in parts]
    return [sum_of(same) for same in zip(*found, strict=True)]


def _measured(tried: LevelWeights, weights: Sequence[Sequence[float]]) -> list[Weighed]:
    whole: dict[tuple[float, ...], set[float]] = {}  # by the weights of segments
    for first, *segments in weights:
        whole.setdefault(tuple(segments), set()).add(first)
    texts = tuple(tried.texts.sum(axis=0).tolist())
    found = {}
    for others, unsorted in whole.items():
        rising_weights = sorted(unsorted)
        right, proved = (
            counts.sum(axis=1) for counts in tried.counts(others, in_points(rising_weights))
        )
        for place, first in enumerate(rising_weights):
            certified = tuple(tuple(np.trim_zeros(row, "b").tolist()) for row in proved[place])
            own = (first, *others)
            found[own] = Weighed(own, texts, tuple(right[place].tolist()), certified)
    return [found[tuple(one)] for one in weights]


def chosen(
    curve: Sequence[Weighed],
    model: Weighed,
    words: Sequence[int],
    give_up: float,
    balanced: bool = False,
) -> tuple[Weighed, bool]:
    """What proves most among all that give up no more; and whether something does.

    A heavier model has its own label more often: on few texts a light weight may be lucky, so what
    counts is the accuracy as `rising` has it, or as it is ``expected``.  Where nothing gives up so
    little, the nearest is taken.  Of all that prove nearly as much (`WORTH`), those are preferred
    that ask the model least often.  ``model``: what it comes to by itself.
    """
    if not words:
        raise OptionError("words must name a number of changed words, as 1,2,5", "words")
    least = model.accuracy(balanced) - Fraction(str(give_up)) / 100
    whole = sorted((one for one in curve if one.expected is None), key=lambda one: one.weights)
    fitted = rising([one.accuracy(balanced) for one in whole])
    counted = [*zip(whole, fitted, strict=True)]
    counted += [(one, Fraction(str(one.expected))) for one in curve if one.expected is not None]
    highest = max(found for _, found in counted)
    limit = min(least, highest)
    scores = {one: one.score(words, balanced) for one, found in counted if found >= limit}
    near = [one for one, score in scores.items() if score >= max(scores.values()) - WORTH]
    fewest = min(one.calls for one in near)
    best = max(
        (one for one in near if one.calls == fewest),
        key=lambda one: (scores[one], one.accuracy(balanced)),
    )
    return best, highest >= least


def rising(values: Sequence[Number]) -> list[Number]:
    """The values as they would be if none were above a later one: runs that fall are averaged.

    >>> [float(one) for one in rising([Fraction(1), Fraction(4), Fraction(2), Fraction(5)])]
    [1.0, 3.0, 3.0, 5.0]
    """
    runs: list[tuple[Number, int]] = []  # sum and length of each
    for value in values:
        total, length = value, 1
        while runs and runs[-1][0] * length > total * runs[-1][1]:
            before, count = runs.pop()
            total, length = total + before, length + count
        runs.append((total, length))
    return [total / length for total, length in runs for _ in range(length)]
