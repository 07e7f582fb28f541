"""Any model as a detector: it is asked about every window of a text, of a few fixed sizes."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np

from ranmask.certificates.detectors import (
    DetectorRadii,
    Window,
    disjoint_windows,
    window_radii,
)
from ranmask.certificates.votes import SCALE, Scores
from ranmask.errors import ClassifierError, OptionError, ReaderWarning, check_cancelled
from ranmask.models.readers import Reader, as_reader, in_order, problems_heard
from ranmask.results import Detection
from ranmask.smoothing import reader_store
from ranmask.smoothing.detectors import SET_OFF, Detector, single_texts
from ranmask.words import Document, Text, join

SIZES = (4, 8, 16, 32)
"""Words of a window, unless other sizes are given."""

_WINDOWS_AT_ONCE = 1 << 13
_MOST_ANSWERS_KEPT = 1 << 17
_UNKNOWN_TOLERANCE = 1e-4  # of functions and pipelines: far above rounding, far below a threshold
_SAME = "the model always says the same of the same window"
_MOVES = "asked again, the model moves the score of a window by at most {:.3g}"


class WindowDetector(Detector):
    """Flags a text where a model scores a window of it, for ``positive``, up to the threshold.

    ``model`` is anything that gives texts scores from 0 to 1: a Hugging Face model or pipeline, a
    scikit-learn pipeline, a function of a list of texts (docs/models.md).  It is shown each
    window by itself.  A text shorter than every size is read whole, and nothing is proved of it:
    with a word more it has a window, and is another text.  A window that the model gives no answer
    for is not flagged; a text without any answer is an error.

    ``tolerance``: how far a score may move when the same window is asked about again; a window
    counts as proof only where it stays flagged then.  By default what is known of the model, and
    0.0001 of a function or pipeline, of which ``recheck`` windows a batch are asked about twice.
    """

    kind = "windows"
    unit = SCALE

    def __init__(
        self,
        model: object,
        *,
        sizes: Sequence[int] = SIZES,
        threshold: float = 0.5,
        positive: str | None = None,
        labels: Sequence[str] | None = None,
        tolerance: float | None = None,
        recheck: int = 4,
    ) -> None:
        self.reader = as_reader(model, labels)
        in_order(self.reader, labels)  # raises where they are not the same classes
        known = self.reader.labels or labels
        if known is None:
            raise OptionError(
                "the model does not say its classes: name them with labels, as ham and spam",
                "labels",
            )
        super().__init__(known, positive, threshold)
        self._place = self.labels.index(self.positive)
        self.sizes = _sizes(sizes)
        if tolerance is None:
            tolerance = self.reader.tolerance if self.reader.repeatable else _UNKNOWN_TOLERANCE
        if not 0 <= tolerance < 1 or recheck < 0:
            raise OptionError(
                f"tolerance={tolerance!r} must lie from 0 to 1, and recheck={recheck!r} must be at "
                "least 0"
            )
        # What was measured here counts, whatever was saved elsewhere.
        self.tolerance = tolerance = max(tolerance, self.reader.tolerance)
        self.recheck = 0 if self.reader.repeatable else recheck
        # Rounded to a point, a score may move by one more.
        self._slack = math.ceil(Fraction(tolerance) * SCALE) + 1 if tolerance else 0

    @property
    def promise(self) -> str:
        """What is proved of most texts that it flags; each result says whether of this one."""
        surely = " by a score that cannot fall below the threshold" if self._slack else ""
        return (
            f"with at least {self.sizes[0]} words, and flagged{surely}, stays flagged whatever is "
            "added before or after"
        )

    def calls(self, texts: Sequence[Text | Document]) -> int:
        """The windows of all sizes; those that are equal are asked about once."""
        return sum(window_count(self.sizes, len(text.words)) for text in single_texts(texts))

    def description(self) -> dict[str, Any]:
        """The model, the sizes and the threshold."""
        return self._described(
            sizes=list(self.sizes), tolerance=self.tolerance, model=self.reader.description()
        )

    def detect(self, texts: Sequence[Text | Document]) -> list[Detection]:
        """Whether each text is flagged, by which windows, and what is proved."""
        read = single_texts(texts)
        points = self._scored(read)
        found = []
        failed = 0
        for place, text in enumerate(read):
            windows = list(self._windows(len(text.words)))
            scored = list(zip(windows, itertools.islice(points, len(windows)), strict=True))
            answered = [(window, score) for window, score in scored if score >= 0]
            if not answered:
                why = self._why(text.words[slice(*windows[0])])
                told = f"the model gave no answer for any window: {why}"
                raise ClassifierError(told, place) from ReaderWarning(why, why)  # its own words
            failed += len(scored) - len(answered)
            found.append(self._detected(text, answered, len(scored) - len(answered)))
        if failed:
            warnings.warn(
                f"the model gave no answer for {failed} windows, which count as not flagged",
                ReaderWarning,
                stacklevel=2,
            )
        return found

    def _detected(
        self, text: Document, scored: Sequence[tuple[Window, int]], failed: int
    ) -> Detection:
        flagged = [window for window, score in scored if score >= self.points]
        sure = [window for window, score in scored if score - self._slack >= self.points]
        radii = window_radii(sure) if len(text.words) >= self.sizes[0] else DetectorRadii()
        spans = disjoint_windows(sure or flagged)
        score = max(score for _, score in scored)
        return self._detection(score, text, radii, spans, self._assumes, failed)

    @property
    def _assumes(self) -> tuple[str, ...]:
        same = _MOVES.format(self.tolerance) if self.tolerance else _SAME
        checked = f" (checked on {self.recheck} windows a batch)" if self.recheck else ""
        return SET_OFF, same + checked

    def _windows(self, words: int) -> Iterator[Window]:
        if words < self.sizes[0]:
            yield 0, words
        for size in self.sizes:
            for start in range(words - size + 1):
                yield start, start + size

    def _scored(self, texts: Sequence[Document]) -> Iterator[int]:
        """The points of every window of every text, in their order; -1 where there is no answer."""
        answers: dict[tuple[str, ...], int] = {}
        windows = (
            text.words[start:stop]
            for text in texts
            for start, stop in self._windows(len(text.words))
        )
        while block := list(itertools.islice(windows, _WINDOWS_AT_ONCE)):
            check_cancelled()
            if len(answers) > _MOST_ANSWERS_KEPT:
                answers.clear()
            fresh = [window for window in dict.fromkeys(block) if window not in answers]
            if fresh:
                answers.update(zip(fresh, self._asked(fresh), strict=True))
            yield from map(answers.__getitem__, block)

    def _asked(self, windows: Sequence[tuple[str, ...]]) -> list[int]:
        shown = [Document(words) for words in windows]
        said = self._read(shown)
        again = np.flatnonzero(~np.isnan(said))
        if self.recheck and len(again):
            spread = np.linspace(len(again) - 1, 0, min(self.recheck, len(again))).round()
            chosen = again[spread.astype(np.intp)].tolist()
            # In another company: where these are all, one of them twice.
            self._check(shown, said, chosen + chosen[:1] if len(chosen) == len(shown) else chosen)
        points = np.where(np.isnan(said), -1, np.rint(np.nan_to_num(said) * SCALE))
        found: list[int] = points.astype(np.int64).tolist()
        return found

    def _check(self, shown: Sequence[Document], said: Scores, chosen: Sequence[int]) -> None:
        now = self._read([shown[place] for place in chosen], self.reader.without_memory)
        for place, score in zip(chosen, now.tolist(), strict=True):
            if not abs(score - said[place]) <= self.tolerance:  # NaN: no answer any more
                raise ClassifierError(
                    f"the model scored the window {join(shown[place].words)!r:.80} {said[place]}, "
                    f"and {score} when it was asked again: it must be deterministic and judge each "
                    "window by itself. If that is rounding, give a larger tolerance"
                )

    def _read(self, shown: Sequence[Document], reader: Reader | None = None) -> Scores:
        """Scores for ``positive``; NaN where there is no answer."""
        classes, asked = len(self.labels), reader or self.reader
        with problems_heard():  # not warned of: the warning speaks of copies
            try:
                rows = asked.read(shown, classes)
            except ClassifierError:
                if len(shown) == 1:
                    return np.full(1, np.nan)
                half = len(shown) // 2  # one that fails is found in few calls
                halves = (shown[:half], shown[half:])
                return np.concatenate([self._read(part, asked) for part in halves])
        said: Scores = rows[:, self._place]
        return said

    def _why(self, words: tuple[str, ...]) -> str:
        """Why there is no answer for a window: the model is asked once more."""
        with problems_heard() as heard:
            try:
                self.reader.read([Document(words)], len(self.labels))
            except ClassifierError as error:
                return error.reason
        return heard[0] if heard else "asked again, it has one"

    def with_reader(self, reader: Reader) -> Self:
        """This detector, whose model is asked through another reader."""
        return type(self)(
            reader,
            sizes=self.sizes,
            threshold=self.threshold,
            positive=self.positive,
            labels=self.labels,
            tolerance=self.tolerance,
            recheck=self.recheck,
        )

    def _saved(self) -> dict[str, Any]:
        return {"sizes": list(self.sizes), "tolerance": self.tolerance}

    def _save_model(self, folder: Path) -> None:
        reader_store.save(self.reader, folder, self.labels)


def window_count(sizes: Sequence[int], words: int) -> int:
    """How many windows of these sizes a text of so many words has; a shorter one is read whole."""
    return max(1, sum(max(words - size + 1, 0) for size in sizes))


def _sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    whole = all(isinstance(size, int) and not isinstance(size, bool) for size in sizes)
    if not sizes or not whole or min(sizes) < 1:
        raise OptionError(f"sizes must be whole numbers of at least 1, not {list(sizes)!r}")
    return tuple(sorted(set(sizes)))
