"""Models that read texts as they are: what stands beside the copies in a vote.

A `Reader` may be anything: for one changed word or more, nothing is assumed of what it says of
whole texts (`certificates.pyramid`).  So it may also fail: a text that it does not answer for is
decided by the copies alone.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ranmask.certificates.votes import Scores, as_scores, largest_move
from ranmask.errors import ClassifierError, ModelError, OptionError, ReaderWarning
from ranmask.models.base import BaseClassifier, check_gives_scores, score_full_texts
from ranmask.words import Document, join

_PROBES = ("a", "It was good", "It was not good at all", "Call now and win 100 dollars", "x y z")


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
    """Any function from a list of texts to a table of scores from 0 to 1, one row a text.

    It may be slow, random or remote.  Where it raises, or returns what is no such table, texts are
    asked about one by one, and those that fail again have no answer.  Pairs reach it as tuples
    ``(premise, hypothesis)``.
    """

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        *,
        labels: Sequence[str] | None = None,
        repeatable: bool = False,
        batch_size: int = 1024,
    ) -> None:
        if not callable(function):
            raise OptionError(f"a reader must be callable, not {function!r}")
        if batch_size < 1:
            raise OptionError(f"batch_size must be at least 1, not {batch_size!r}")
        self.function = function
        self.labels = None if labels is None else tuple(labels)
        self.repeatable = repeatable
        self._batch_size = batch_size

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
        try:
            raw = self.function(texts)
        except (Exception, SystemExit) as error:
            raise ClassifierError(f"it raised {_told(error)}") from error
        return checked_answers(raw, size, classes)

    def description(self) -> dict[str, Any]:
        named = self.function
        name = getattr(named, "__qualname__", type(named).__qualname__)
        module = getattr(named, "__module__", None) or type(named).__module__
        about = {"labels": self.labels and list(self.labels), "repeatable": self.repeatable}
        said = self._said_of_probes if self.repeatable and self.labels else None
        return {
            "kind": "function",
            "function": self.name or f"{module}:{name}",
            **about,
            "tolerance": self.tolerance,
            "answers": said,
        }

    @cached_property
    def _said_of_probes(self) -> str | None:
        """What tells two pipelines of one name apart: their answers to a few fixed texts."""
        try:
            rows = self._asked([str(probe) for probe in _PROBES], len(self.labels or ()))
        except ClassifierError:
            return None
        return hashlib.sha256(np.rint(rows * 1e6).astype(np.int64).tobytes()).hexdigest()[:16]

    def saved(self) -> dict[str, Any]:
        if self.name is not None:
            return super().saved()
        name = str(self.description()["function"])
        module, _, attribute = name.partition(":")
        found = getattr(sys.modules.get(module), attribute, None)
        if found is not self.function or module == "__main__":
            return {"kind": "given", "was": name}
        return {"kind": "function", "function": name, "repeatable": self.repeatable}


def as_reader(model: object, labels: Sequence[str] | None = None) -> Reader:
    """A reader from what users have: a model of ranmask's, a pipeline, or a function.

    ``labels`` are the classes of the vote, in their order.  A scikit-learn pipeline is known by its
    ``predict_proba`` and ``classes_``, a Hugging Face pipeline by its ``task``.
    """
    if isinstance(model, Reader):
        return model
    if isinstance(model, BaseClassifier):
        return ModelReader(model)
    if hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        return _sklearn_reader(model, labels)
    if callable(model) and getattr(model, "task", None) is not None:
        return _pipeline_reader(model, labels)
    if callable(model):
        return FunctionReader(model)
    raise OptionError(
        f"a reader must be a model, a pipeline with predict_proba, or a function of a list of "
        f"texts, not {type(model).__name__}"
    )


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


def checked_answers(raw: object, rows: int, classes: int) -> Scores:
    """``raw`` as a table of scores from 0 to 1, or `ClassifierError`."""
    try:
        if np.asarray(raw).dtype.kind not in "fiu":
            raise TypeError
        scores = np.asarray(raw, dtype=np.float64).copy(order="C")
    except Exception as error:  # whatever an object of somebody else's does
        raise ClassifierError(f"it returned {type(raw).__name__}, no table of numbers") from error
    if scores.shape != (rows, classes):
        raise ClassifierError(
            f"it returned shape {scores.shape} for {rows} texts and {classes} classes"
        )
    if not ((scores >= 0) & (scores <= 1)).all():  # NaN is neither
        raise ClassifierError("it returned scores that do not lie between 0 and 1")
    return scores


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # one that cannot say what it is
        return type(error).__name__


def as_given(text: Document) -> str | tuple[str, str]:
    """What a reader sees: words with single blanks between them, whatever stood there."""
    shown = join(text.words)
    return shown if text.premise is None else (text.premise, shown)


def warn_of(problems: Sequence[str], texts: int) -> None:
    """Say once for how many texts there is no answer, and why the first has none."""
    if problems:
        said = f"the reader did not answer for {len(problems)} of {texts} texts, which their copies"
        told = ReaderWarning(f"{said} decide alone: {problems[0]}", problems[0])
        warnings.warn(told, stacklevel=3)


def _sklearn_reader(model: Any, labels: Sequence[str] | None) -> Reader:
    names = [str(name) for name in model.classes_]
    if labels is not None and sorted(labels) != sorted(names):
        # Classes that are numbers stand for the labels of the vote in their order.
        if names != [str(number) for number in range(len(labels))]:
            raise ModelError(
                f"the pipeline's classes are {', '.join(names)}, and those of the copies "
                f"{', '.join(labels)}: they must be the same"
            )
        names = list(labels)
    reader = FunctionReader(model.predict_proba, labels=names, repeatable=True)
    reader.tolerance = 1e-9  # sums of floating point take another order in another batch
    return reader


def _pipeline_reader(model: Any, labels: Sequence[str] | None) -> Reader:
    names = None if labels is None else list(labels)
    config = getattr(getattr(model, "model", None), "config", None)
    if config is not None:
        known = [config.id2label[place] for place in range(len(config.id2label))]
        if names is not None and sorted(names) != sorted(known):
            raise ModelError(
                f"the pipeline's classes are {', '.join(known)}, and those of the copies "
                f"{', '.join(names)}: they must be the same"
            )
        names = known
    if names is None:
        raise OptionError("the pipeline does not say its classes: name them with labels", "labels")

    def read(texts: list[Any]) -> list[list[float]]:
        shown = [
            text if isinstance(text, str) else {"text": text[0], "text_pair": text[1]}
            for text in texts
        ]
        answers: list[list[Mapping[str, Any]]] = model(shown, top_k=None, truncation=True)
        found = [{row["label"]: float(row["score"]) for row in answer} for answer in answers]
        return [[answer[name] for name in names] for answer in found]

    return FunctionReader(read, labels=names)
