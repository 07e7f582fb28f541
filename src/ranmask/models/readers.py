"""Models that read texts as they are: what stands beside the copies in a vote.

A `Reader` may be anything: for one changed word or more, nothing is assumed of what it says of
whole texts (`certificates.pyramid`).  So it may also fail: a text that it does not answer for is
decided by the copies alone.
"""

from __future__ import annotations

import copy
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np

from ranmask.certificates.votes import Scores, as_scores, largest_move
from ranmask.errors import ClassifierError, ModelError, OptionError, ReaderWarning
from ranmask.models.adapters import as_text_function
from ranmask.models.base import BaseClassifier, check_gives_scores, score_full_texts
from ranmask.models.cached import CachedModel
from ranmask.words import Document, join


class Reader(ABC):
    """A model that reads texts, or segments of them, as they are."""

    labels: tuple[str, ...] | None = None
    """Names of the classes, where the model knows them."""

    name: str | None = None
    """``module:attribute``, where that is how it was found."""

    repeatable: bool = False
    """Whether the same text gets the same answer again, up to `tolerance`.  Certificates of one
    word or more need it for segments only; that of an unchanged text needs it for whole texts."""

    tolerance: float = 0.0
    """How far a score may move when the same text is read again."""

    threads: bool = False
    """Whether several threads may ask it at the same time."""

    @abstractmethod
    def read(self, texts: Sequence[Document], classes: int) -> Scores:
        """Scores from 0 to 1, shape (texts, classes); a row of NaN where there is no answer.

        Raises `ModelError` only where no text will ever be answered.
        """

    @property
    def without_memory(self) -> Reader:
        """The reader that asks, where this one may answer from a cache."""
        return self

    def calls(self, texts: int) -> int:
        """How many times a model is asked about so many texts."""
        return texts

    def description(self) -> dict[str, Any]:
        """What identifies this reader in a run's record: plain JSON values."""
        return {"kind": type(self).__name__}

    def saved(self) -> dict[str, Any]:
        """What ``reader.json`` says of it; ``given``: that it must be given again."""
        if self.name is None:
            return {"kind": "given", "was": f"a {type(self).__name__}"}
        record = {"kind": "function", "function": self.name, "repeatable": self.repeatable}
        return record if self.labels is None else {**record, "labels": list(self.labels)}


class ModelReader(Reader):
    """A base classifier, such as a Hugging Face model, that is shown every word."""

    def __init__(self, base: BaseClassifier) -> None:
        check_gives_scores(base, "a reader")
        if not base.proves:
            raise OptionError(
                "how far rounding moves this model was left unmeasured, so nothing that it reads "
                "can be proved: give the model itself, not unmeasured()"
            )
        self.base = base
        self.labels, self.repeatable = base.labels, base.repeatable

    @property
    def tolerance(self) -> float:  # type: ignore[override]
        """As measured of the model."""
        return largest_move(self.base.tolerance, self.base.outputs)

    def read(self, texts: Sequence[Document], classes: int) -> Scores:
        rows = as_scores(score_full_texts(self.base, texts), self.base.outputs)
        if rows.shape[1] != classes:
            raise ModelError(f"the reader has {rows.shape[1]} classes, and the copies {classes}")
        return rows

    def description(self) -> dict[str, Any]:
        return {"kind": "model", "base": self.base.description()}


class FunctionReader(Reader):
    """Any function from a list of texts to scores from 0 to 1, or what can be read as one.

    As `FunctionClassifier`, it takes async functions, estimators and pipelines (`adapters`), and
    all that they may return (`answers`).  It may be slow, random or remote.  Where it raises, or
    returns anything else, texts are asked about one by one, and those that fail again have no
    answer.  Pairs reach it as tuples ``(premise, hypothesis)``.  ``repeatable``: by default what is
    known of the model, which is nothing of a function.
    """

    def __init__(
        self,
        function: Any,
        *,
        labels: Sequence[str] | None = None,
        repeatable: bool | None = None,
        batch_size: int = 1024,
    ) -> None:
        if batch_size < 1:
            raise OptionError(f"batch_size must be at least 1, not {batch_size!r}")
        self.function = function.model if isinstance(function, CachedModel) else function
        self._function = as_text_function(function, labels)
        self.labels, self.tolerance = self._function.labels, self._function.tolerance
        self.repeatable = self._function.repeatable if repeatable is None else repeatable
        self._batch_size = batch_size

    def named(self, labels: Sequence[str]) -> FunctionReader:
        """The same, whose classes have these names."""
        other = copy.copy(self)
        other.labels = tuple(labels)
        other._function = replace(self._function, labels=other.labels)
        return other

    @property
    def without_memory(self) -> FunctionReader:
        if self._function.memory is None:
            return self
        other = copy.copy(self)
        other._function = replace(self._function, memory=None)
        return other

    def read(self, texts: Sequence[Document], classes: int) -> Scores:
        rows = np.full((len(texts), classes), np.nan)
        problems: list[str] = []
        for start in range(0, len(texts), self._batch_size):
            stop = min(start + self._batch_size, len(texts))
            shown = [as_given(text) for text in texts[start:stop]]
            try:
                rows[start:stop] = self._asked(shown, classes)
            except ClassifierError:
                for place, text in enumerate(shown, start):
                    try:
                        rows[place] = self._asked([text], classes)[0]
                    except ClassifierError as error:
                        problems.append(error.reason)
        warn_of(problems, len(texts))
        return rows

    def _asked(self, texts: list[Any], classes: int) -> Scores:
        size = len(texts)  # the function may change the list
        rows = self._function.scores(texts, "it", classes)
        if self._function.outputs != "scores" and np.isfinite(rows).all():
            rows = as_scores(rows, self._function.outputs)
        return checked_answers(rows, size, classes)

    def description(self) -> dict[str, Any]:
        return {
            "kind": "function",
            "function": self.name or self._function.name,
            "labels": self.labels and list(self.labels),
            "repeatable": self.repeatable,
            "tolerance": self.tolerance,
            "answers": self._function.digest if self.repeatable else None,
        }

    def saved(self) -> dict[str, Any]:
        if self.name is not None:
            return super().saved()
        name = self._function.name
        module, _, attribute = name.partition(":")
        found = getattr(sys.modules.get(module), attribute, None)
        if found is not self.function or module == "__main__":
            return {"kind": "given", "was": name}
        return {"kind": "function", "function": name, "repeatable": self.repeatable}


def as_reader(model: object, labels: Sequence[str] | None = None) -> Reader:
    """A reader from what users have: a model of ranmask's, or what `FunctionReader` takes.

    ``labels`` are the classes of the vote, in their order.
    """
    if isinstance(model, FunctionReader) and model.labels is None and labels is not None:
        return model.named(labels)
    if isinstance(model, Reader):
        return model
    if isinstance(model, BaseClassifier):
        return ModelReader(model)
    return FunctionReader(model, labels=labels)


def in_order(reader: Reader, labels: Sequence[str] | None) -> list[int] | None:
    """Which of the reader's columns is each of ``labels``; None where they are in order."""
    if labels is None or reader.labels is None or tuple(labels) == reader.labels:
        return None
    if sorted(labels) != sorted(reader.labels):
        raise ModelError(
            f"the reader's classes are {', '.join(reader.labels)}, and not {', '.join(labels)}: "
            "they must be the same"
        )
    return [reader.labels.index(label) for label in labels]


def checked_answers(scores: Scores, rows: int, classes: int) -> Scores:
    """Scores that are from 0 to 1 and fit the texts and classes, or `ClassifierError`."""
    if scores.shape != (rows, classes):
        raise ClassifierError(
            f"it returned shape {scores.shape} for {rows} texts and {classes} classes"
        )
    if not ((scores >= 0) & (scores <= 1)).all():  # NaN is neither
        raise ClassifierError("it returned scores that do not lie between 0 and 1")
    return scores


def as_given(text: Document) -> str | tuple[str, str]:
    """What a reader sees: words with single blanks between them, whatever stood there."""
    shown = join(text.words)
    return shown if text.premise is None else (text.premise, shown)


_HEARD: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@contextmanager
def problems_heard() -> Iterator[list[str]]:
    """Why readers that this thread asks have no answers, in a list; nothing is warned of."""
    heard: list[str] = []
    before = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(before)


def warn_of(problems: Sequence[str], texts: int) -> None:
    """Say once for how many texts there is no answer, and why the first has none."""
    if (heard := _HEARD.get()) is not None:
        heard += problems
    elif problems:
        said = f"the reader did not answer for {len(problems)} of {texts} texts, which their copies"
        told = ReaderWarning(f"{said} decide alone: {problems[0]}", problems[0])
        warnings.warn(told, stacklevel=3)
