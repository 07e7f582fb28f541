"""What `protect` does once a model's answers are known: tables, measurements, the choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.level_weights import ReadTexts
from ranmask.certificates.votes import Scores
from ranmask.data.corpus import permutation
from ranmask.errors import DataError, ModelError
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.choosing import Weighed, alone, chosen, measured, read_texts, weights_for
from ranmask.training.level_search import LATER, LevelSearch
from ranmask.training.protect_options import ProtectOptions
from ranmask.training.protection import Measure, Protection
from ranmask.training.records import Report
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table
from ranmask.words import split

_MOST_HELD_OUT = 4000  # texts to choose by, and as many for the figures
_MOST_SEGMENTED = 2000  # the same, where the model reads segments, too: each is many calls
_LEAST_TO_CHOOSE, _FOLDS = 1000, 4
_TEMPERATURE = 3.0  # in words: a narrower step gives up on texts that are out of reach now
_TRAINED_WEIGHT = 2.0  # of the model while the table learns; measured, as the next line is
_LABELLED, _UNLABELLED = 1.0, 3.0  # what a label at no changed word counts

AskSegments: TypeAlias = Callable[[Sequence[str], int], Scores]
"""What a model says of the segments of texts, for so many levels."""


class Known(NamedTuple):
    """Some of the texts: what the model says of them, and which label is right."""

    texts: list[str]
    said: Scores
    labels: npt.NDArray[np.int64]

    def rows(self, places: Sequence[int]) -> Known:
        """Those at some places."""
        at = np.array(places, dtype=np.int64)
        return Known([self.texts[place] for place in places], self.said[at], self.labels[at])


class Parts(NamedTuple):
    """Places of the texts that are learned from, chosen by, and that the figures are of.

    With several ``folds`` each text to choose by is judged by a table that did not learn from it.
    """

    learning: list[int]
    choosing: list[int]
    figures: list[int]
    folds: int


def parts_of(judged: npt.NDArray[np.bool_], options: ProtectOptions) -> Parts:
    """What is done with each text; only those that are ``judged`` can be chosen by."""
    most = _MOST_HELD_OUT if options.levels == 1 else _MOST_SEGMENTED
    order = permutation(len(judged))
    known = [place for place in order if judged[place]]
    each = min(max(1, round(len(order) * options.held_out / 2)), most, len(known) // 2)
    held = set(known[: 2 * each])
    learned = [place for place in order if place not in held]
    choosing, figures = known[:each], known[each : 2 * each]
    more = known[2 * each :]
    if more and each < _LEAST_TO_CHOOSE:  # too few to choose by
        learned, choosing = [*learned, *choosing], [*more, *choosing]
        return Parts(learned, choosing if options.levels == 1 else choosing[:most], figures, _FOLDS)
    return Parts(learned, choosing, figures, 1)


class ProtectWork:
    """What is done once the answers are known.

    ``true``: which labels are true ones; None where they are all the model's, which then judge.
    ``tolerance``: how far the model's scores may move.
    """

    def __init__(
        self,
        known: Known,
        names: tuple[str, ...],
        options: ProtectOptions,
        true: npt.NDArray[np.bool_] | None,
        *,
        tolerance: float,
        report: Report,
    ) -> None:
        self._names, self._options, self._report = names, options, report
        self._tolerance = tolerance
        self._measure: Measure = "agreement" if true is None else "accuracy"
        self._judged = np.ones(len(known.texts), dtype=bool) if true is None else true
        self._sure = known.said.max(axis=1) >= options.sure
        if true is not None:
            self._sure |= true
        named = np.eye(len(names))[known.said.argmax(axis=1)]  # what votes is the label alone
        self._known = known._replace(said=named)
        self._segments: dict[int, Scores] = {}
        longest = max(len(split(text)) for text in known.texts)
        self._whole: list[tuple[float, ...]] = [(weight,) for weight in weights_for(longest)]
        target = options.target_words or round(sum(options.words) / len(options.words))
        # A table that is surely wrong overrules the model: so the loss at no changed word counts.
        self.plan = WordTableOptions(
            target_words=target,
            temperature=max(_TEMPERATURE, target / 2.5),
            whole_weight=_TRAINED_WEIGHT,
            accuracy_weight=_UNLABELLED if true is None else _LABELLED,
            family="all",
            epochs=options.epochs,
            buckets=options.buckets,
            seed=options.seed,
        )

    def protection(
        self, run: Mapping[str, Any], command: str | None, ask: AskSegments
    ) -> tuple[Protection, SmoothedClassifier]:
        """What was measured and chosen, and the copies that are kept."""
        options = self._options
        parts = parts_of(self._judged, options)
        held_out = len(parts.choosing) + len(parts.figures)
        if options.levels > 1:
            parts = self._segments_read(parts, ask)
        if parts.folds > 1:
            curve = self._curve(self._by_folds(parts))
            copies = self._trained(parts.learning, "table")
        else:
            copies = self._trained(parts.learning, "table")
            curve = self._curve(self._read(copies, parts.choosing))
        model = self._alone(parts.choosing), self._alone(parts.figures)
        best, reached = chosen(curve, model[0], options.words, options.give_up, options.balanced)
        counted = self._measured(copies, parts.figures, [one.weights for one in curve])
        at_best = next(one for one in counted if one.weights == best.weights)
        sizes = {
            "learning": len(parts.learning),
            "choosing": len(parts.choosing),
            "figures": len(parts.figures),
            "without_segments": held_out - len(parts.choosing) - len(parts.figures),
            "folds": parts.folds,
        }
        learning = self._learning(parts, best.weights)
        protection = Protection(
            run={**run, "parts": sizes},
            measure=self._measure,
            balanced=options.balanced,
            alone=model,
            choosing=curve,
            figures=counted,
            learning=[*learning, (len(parts.learning), at_best)],
            words=options.words,
            give_up=options.give_up,
            weights=best.weights,
            reached=reached,
            command=command,
        )
        return protection, copies

    def _segments_read(self, parts: Parts, ask: AskSegments) -> Parts:
        """The parts without texts of which a segment got no answer."""
        places = [*parts.choosing, *parts.figures]
        said = ask([self._known.texts[place] for place in places], self._options.levels)
        answered = np.logical_not(np.isnan(said).any(axis=(1, 2)))
        rows = zip(places, said, answered, strict=True)
        self._segments = {place: row for place, row, known in rows if known}
        choosing, figures = (
            [place for place in some if place in self._segments]
            for some in (parts.choosing, parts.figures)
        )
        if not choosing or not figures:
            raise ModelError(
                f"the model did not answer for all segments of any of {len(places)} texts: run it "
                "again, or without levels"
            )
        return parts._replace(choosing=choosing, figures=figures)

    def _curve(self, texts: Iterable[ReadTexts]) -> list[Weighed]:
        """What can be chosen among: all weights of whole texts, and the best with segments."""
        if self._options.levels == 1:
            return measured(texts, self._whole)
        read = list(texts)
        self._report({"phase": "searching", "levels": self._options.levels})
        search = LevelSearch(
            read,
            max(*self._options.words, *LATER),
            tolerance=self._tolerance,
            balanced=self._options.balanced,
        )
        return [*measured(read, self._whole), *search.frontier(self._options.words)]

    def _alone(self, places: Sequence[int]) -> Weighed:
        """The model by itself."""
        return alone(self._known.said[places], self._known.labels[places])

    def _trained(self, places: Sequence[int], what: str) -> SmoothedClassifier:
        def progress(epoch: int, epochs: int, loss: float) -> None:
            line = {"phase": "training", "what": what, "epoch": epoch, "epochs": epochs}
            self._report({**line, "loss": loss})

        part = self._known.rows([place for place in places if self._sure[place]])
        if len(np.unique(part.labels)) < 2:
            raise DataError(
                f"of {len(places):,} texts to learn from, the model is sure enough of one class "
                f"only: lower sure={self._options.sure:g}, or add texts"
            )
        table = train_word_table(
            part.texts,
            part.labels.tolist(),
            self._names,
            options=self.plan,
            whole=part.said,
            progress=progress,
        )
        return SmoothedClassifier(table, **table_smoothing(self.plan))

    def _by_folds(self, parts: Parts) -> Iterator[ReadTexts]:
        """The texts to choose by, each part of them by a table of the other parts."""
        choosing = set(parts.choosing)
        for fold in range(_FOLDS):
            own = parts.learning[fold::_FOLDS]
            others = [
                place for number, place in enumerate(parts.learning) if number % _FOLDS != fold
            ]
            copies = self._trained(others, f"fold {fold + 1} of {_FOLDS}")
            if judged := [place for place in own if place in choosing]:
                yield from self._read(copies, judged)

    def _read(self, copies: SmoothedClassifier, places: Sequence[int]) -> Iterator[ReadTexts]:
        part = self._known.rows(places)
        nodes = part.said[:, None]
        if self._segments:
            segments = np.array([self._segments[place] for place in places])
            nodes = np.concatenate([nodes, segments], axis=1)
        return read_texts(copies, part.texts, nodes, part.labels)

    def _measured(
        self,
        copies: SmoothedClassifier,
        places: Sequence[int],
        weights: Sequence[tuple[float, ...]],
    ) -> list[Weighed]:
        return measured(self._read(copies, places), weights, self._tolerance)

    def _learning(self, parts: Parts, weights: tuple[float, ...]) -> Iterator[tuple[int, Weighed]]:
        """The same with a quarter and with half of the texts to learn from."""
        for part, name in ((4, "a quarter"), (2, "half")):
            some = parts.learning[: len(parts.learning) // part]
            if len(np.unique(self._known.labels[some])) > 1:
                copies = self._trained(some, f"learning from {name} of the texts")
                yield len(some), self._measured(copies, parts.figures, [weights])[0]
