"""Detectors: a text is flagged or not, and what is flagged stays flagged.

Here those that look words up in a table: `WordDetector` and `SegmentDetector`.  `window_detector`
asks any model about every window of a few sizes.  Scores are rounded to integers before they are
compared with the threshold, and what is proved (`certificates.detectors`) follows from those.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.detectors import (
    DetectorRadii,
    Window,
    disjoint_segments,
    segment_radii,
    word_radius,
)
from ranmask.errors import DataError, OptionError, TextError
from ranmask.models import model_config
from ranmask.models.base import MaskedCopies
from ranmask.models.word_table import ONE, WordTable
from ranmask.options.fields import REQUIRED, Checked, option
from ranmask.results import Detection, ShownDetection
from ranmask.words import Document, Text, documents

Kind: TypeAlias = Literal["words", "segments", "windows"]
"""What a detector adds up or looks at."""

MODEL = "model"
"""The folder of the model, inside that of a detector."""

SET_OFF = "words are what blanks separate, and added text is set off by a blank"
"""What every detector assumes."""


@dataclass(frozen=True, kw_only=True)
class DetectorOptions(Checked, kind="detector", group="Detector"):
    """What ``ranmask.json`` says of a detector; ``points`` is its threshold, an integer."""

    detector: Kind = option("What is read.", REQUIRED)
    positive: str = option("The class that is flagged.", REQUIRED)
    labels: tuple[str, ...] = option("All classes.", REQUIRED)
    points: int = option("The threshold.", REQUIRED, least=1)
    sizes: tuple[int, ...] = option("Words of a window.", (), least=1)
    tolerance: float | None = option("How far a score may move.", least=0, below=1)


class Detector(ABC):
    """Flags texts of the class ``positive``; ``labels`` are all classes of its data or model."""

    kind: ClassVar[Kind]
    unit: ClassVar[int]
    """A score of 1, in points."""

    def __init__(self, labels: Sequence[str], positive: str | None, threshold: float) -> None:
        self.labels = tuple(labels)
        if len(set(self.labels)) < len(self.labels):
            raise OptionError(f"classes must have different names, not {', '.join(self.labels)}")
        self.positive = positive_of(self.labels, positive)
        self.points = points_of(threshold, self.unit)

    @property
    def threshold(self) -> float:
        """Scores from here on are flagged."""
        return self.points / self.unit

    def with_threshold(self, threshold: float) -> Self:
        """This detector with another threshold."""
        other = copy.copy(self)
        other.points = points_of(threshold, self.unit)
        return other

    @abstractmethod
    def detect(self, texts: Sequence[Text | Document]) -> list[Detection]:
        """Whether each text is flagged, by what, and what is proved."""

    def explain(self, texts: Sequence[Text | Document]) -> list[ShownDetection]:
        """As `detect`, with what each word adds to the score."""
        read = single_texts(texts)
        pairs = zip(self.detect(read), self._word_values(read), strict=True)
        return [ShownDetection.of(found, values) for found, values in pairs]

    def _word_values(self, texts: Sequence[Document]) -> Sequence[tuple[float, ...] | None]:
        return [None] * len(texts)

    @property
    @abstractmethod
    def promise(self) -> str:
        """What is proved of the texts that it flags, in words."""

    @abstractmethod
    def calls(self, texts: Sequence[Text | Document]) -> int:
        """How many questions a model is asked about these texts, at most."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What determines the results, as plain JSON values."""

    @abstractmethod
    def _save_model(self, folder: Path) -> None: ...

    def _saved(self) -> dict[str, Any]:
        """What the record of this kind says besides."""
        return {}

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model, the threshold and the sizes into ``folder``."""
        path = Path(folder)
        self._save_model(path / MODEL)
        model_config.write(path, model_config.DETECTOR, {**self._record(), **self._saved()})

    def _described(self, **model: Any) -> dict[str, Any]:
        return {"kind": "detector", **self._record(), **model}

    def _record(self) -> dict[str, Any]:
        labels = list(self.labels)
        named = {"detector": self.kind, "positive": self.positive, "labels": labels}
        return {**named, "points": self.points}

    def _detection(
        self,
        score: int,
        text: Document,
        radii: DetectorRadii,
        spans: Sequence[Window],
        assumes: tuple[str, ...],
        failed: int = 0,
    ) -> Detection:
        return Detection(
            flagged=score >= self.points,
            score=score / self.unit,
            words=len(text.words),
            radius=radii.changed,
            insertions=radii.insertions,
            characters=radii.characters,
            additions=radii.additions,
            spans=tuple(spans),
            failed=failed,
            positive=self.positive,
            detector=self.kind,
            threshold=self.threshold,
            assumes=assumes,
        )


class TableDetector(Detector):
    """A detector that looks every word up in a `WordTable`, and asks no model."""

    unit = ONE

    def __init__(
        self,
        table: WordTable,
        *,
        threshold: float,
        positive: str | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(table, WordTable):
            raise OptionError(
                f"a {type(self).__name__} needs a WordTable, not a {type(table).__name__}"
            )
        self.table = table
        self._place = table.labels.index(positive_of(table.labels, positive))
        super().__init__(labels or table.labels, table.labels[self._place], threshold)

    def calls(self, texts: Sequence[Text | Document]) -> int:
        """None: a table is looked up."""
        return 0

    def description(self) -> dict[str, Any]:
        """The table's digest, and the threshold."""
        return self._described(model=self.table.description())

    def detect(self, texts: Sequence[Text | Document]) -> list[Detection]:
        """Whether each text is flagged, by which words, and what is proved."""
        read = single_texts(texts)
        return self._detected(read, *self._looked_up(read)) if read else []

    def _word_values(self, texts: Sequence[Document]) -> Sequence[tuple[float, ...] | None]:
        if not texts:
            return []
        places, values = self._looked_up(texts)
        return [tuple((values[words] / ONE).tolist()) for words in places]

    def _looked_up(self, texts: Sequence[Document]) -> tuple[list[Ints], Ints]:
        """Of each text, which words stand where; and the value of each word."""
        numbers: dict[str, int] = {}
        for text in texts:
            for word in text.words:
                numbers.setdefault(word, len(numbers))
        alone = np.arange(len(numbers), dtype=np.int32)[:, None]
        words = Document(tuple(numbers))
        [rows] = self.table.score([MaskedCopies(words, len(numbers), alone)])
        places = [
            np.fromiter(map(numbers.__getitem__, text.words), np.int64, len(text.words))
            for text in texts
        ]
        return places, self._values(np.rint(rows * ONE).astype(np.int64))

    @abstractmethod
    def _values(self, rows: Ints) -> Ints:
        """The value of each word, from its points for each class."""

    @abstractmethod
    def _detected(
        self, texts: Sequence[Document], words: Sequence[Ints], values: Ints
    ) -> list[Detection]:
        """``words``: of each text, which of the words that have ``values`` stand where."""

    def _save_model(self, folder: Path) -> None:
        self.table.save(folder)


class WordDetector(TableDetector):
    """Flags a text where the weights of its distinct words reach the threshold.

    The weight of a word is its score for the class ``positive``; no score is below 0, so no word
    that is added anywhere ever unflags.  Any table will do; `train_detector` trains one for this.
    """

    kind = "words"
    promise = "stays flagged whatever is added anywhere"

    def _values(self, rows: Ints) -> Ints:
        return rows[:, self._place]

    def _detected(
        self, texts: Sequence[Document], words: Sequence[Ints], values: Ints
    ) -> list[Detection]:
        pairs = zip(texts, words, strict=True)
        return [self._one(text, places, values) for text, places in pairs]

    def _one(self, text: Document, words: Ints, values: Ints) -> Detection:
        distinct, first, counts = np.unique(words, return_index=True, return_counts=True)
        own = values[distinct]
        radii = word_radius(own, counts, self.points)
        spans: list[Window] = []
        if radii.changed is not None:
            heaviest = np.lexsort((first, -own))
            needed = int(np.searchsorted(np.cumsum(own[heaviest]), self.points)) + 1
            spans = [(place, place + 1) for place in first[heaviest[:needed]].tolist()]
        return self._detection(int(own.sum()), text, radii, spans, (SET_OFF,))


class SegmentDetector(TableDetector):
    """Flags a text where neighbouring words, as many as you like, reach the threshold.

    The value of a word is its score for ``positive`` less the largest of its other scores: words
    may also speak against a flag, but only for the segments that they stand in.  So text before or
    after never unflags.  Any table will do; `train_detector` trains one for this.
    """

    kind = "segments"
    promise = "stays flagged whatever is added before or after"

    def _values(self, rows: Ints) -> Ints:
        others = np.delete(rows, self._place, axis=1)
        differences: Ints = rows[:, self._place] - others.max(axis=1)
        return differences

    def _detected(
        self, texts: Sequence[Document], words: Sequence[Ints], values: Ints
    ) -> list[Detection]:
        own: list[list[int]] = [values[places].tolist() for places in words]
        radii = segment_radii(own, self.points, ONE)
        found = []
        for text, in_order, proved in zip(texts, own, radii, strict=True):
            sums = np.cumsum([0, *in_order])
            score = int((sums - np.minimum.accumulate(sums)).max())
            spans = disjoint_segments(in_order, self.points)
            found.append(self._detection(score, text, proved, spans, (SET_OFF,)))
        return found


def calibrated(
    detector: Detector, texts: Sequence[Text], expected: Sequence[bool], rate: Fraction
) -> Detector:
    """The detector with the smallest threshold that flags a share of at most ``rate``.

    That is of the texts that are not ``expected`` to be flagged; nothing is asked of the others.
    """
    harmless = [text for text, flag in zip(texts, expected, strict=True) if not flag]
    if not harmless:
        raise DataError(
            f"there is no text of a class other than {detector.positive!r} to set the threshold by"
        )
    # Nothing reaches such a threshold, so nothing is proved in vain.
    unreached = detector.with_threshold(float(1 << 40))
    scores = (found.score for found in unreached.detect(harmless))
    points = sorted((round(Fraction(score) * detector.unit) for score in scores), reverse=True)
    allowed = int(rate * len(points))
    least = points[allowed] + 1 if allowed < len(points) else 1
    return detector.with_threshold(max(least, 1) / detector.unit)


def too_few(harmless: int, rate: Fraction) -> str | None:
    """What so few texts cannot show of a rate of false alarms; None where they are enough."""
    if not rate or harmless * rate >= 1:
        return None
    return (
        f"too few texts of other classes ({harmless}) to show a rate of {float(rate):.3g}: none of "
        f"them is flagged; use at least {math.ceil(1 / rate)}"
    )


def single_texts(texts: Sequence[Text | Document]) -> list[Document]:
    """Read texts; pairs are refused."""
    read = documents(texts)
    for place, text in enumerate(read):
        if text.premise is not None:
            raise TextError("a detector reads single texts, not pairs", place)
    return read


def positive_of(labels: Sequence[str], positive: str | None) -> str:
    """The class to flag: the second of two, where none is named."""
    if positive is None and len(labels) == 2:
        return labels[1]
    if positive is None or positive not in labels:
        raise OptionError(f"positive must be one of {', '.join(labels)}; not {positive!r}")
    return positive


def points_of(threshold: float, unit: int) -> int:
    """A threshold as an integer, no less than it is."""
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not (number and 0 < threshold < math.inf):
        raise OptionError(f"threshold must be a number above 0, not {threshold!r}")
    return math.ceil(Fraction(threshold) * unit)
