"""What every way of smoothing shares: copies of texts are scored, counted and named.

Whoever smooths decides which copies of a text are asked.  Batches of texts are the only shape.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import islice, repeat
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from ranmask.certificates.assumed import assumptions
from ranmask.certificates.exact import Radius
from ranmask.certificates.votes import Votes, count_votes
from ranmask.errors import ClassifierError, ModelError, OptionError
from ranmask.models import model_config, pretrained
from ranmask.models.base import (
    BaseClassifier,
    DeletedCopies,
    DrawnCopies,
    MaskedCopies,
    Scores,
    check_gives_scores,
    check_renamed,
)
from ranmask.models.function import as_base
from ranmask.models.rechecking import DEFAULT_COPIES, Recheck
from ranmask.models.synonyms import Sample
from ranmask.options import DeletionOptions, SmoothingOptions, SynonymOptions
from ranmask.results import Certificate, Prediction
from ranmask.smoothing.masks import MaskedText
from ranmask.words import Document, Hiding, Text, documents

COPIES_AT_ONCE = 1 << 15
"""Copies of several texts that are scored together."""

_Sized = TypeVar("_Sized", bound=Sized)
_Copies = TypeVar("_Copies", MaskedText, DrawnCopies, DeletedCopies)
_Drawn = TypeVar("_Drawn", DrawnCopies, DeletedCopies)
_Options = TypeVar("_Options", SmoothingOptions, SynonymOptions, DeletionOptions)
_DrawnOptions = TypeVar("_DrawnOptions", SynonymOptions, DeletionOptions)


@dataclass(frozen=True, eq=False)
class ScoredTexts(Generic[_Copies]):
    """A batch of texts, and what their copies said."""

    texts: Sequence[_Copies]
    votes: Votes


class VotingClassifier(ABC, Generic[_Options, _Copies]):
    """A base classifier, and how what it says of copies of a text becomes a label.

    ``recheck`` and ``given_tolerance`` are as they were given; None: the default.
    """

    _covered: Mapping[str, Any] = MappingProxyType({})  # what only this certificate assumes
    _KIND: ClassVar[str] = model_config.ENCODER  # what the record of a saved encoder calls it

    def __init__(
        self,
        options: _Options,
        base: object,
        *,
        labels: Sequence[str] | None,
        tolerance: float | None,
        recheck: int | None,
        hide: Hiding | None = None,
        mask_token: str | None = None,
    ) -> None:
        self.options: _Options = options
        checked = _checked_labels(labels)
        self.base = wrapped = as_base(base, checked, hide=hide, mask_token=mask_token)
        if tolerance is not None and not (
            isinstance(tolerance, int | float) and 0 <= tolerance < float("inf")
        ):
            raise OptionError(f"tolerance must be a number of at least 0, not {tolerance!r}")
        if options.ensemble != "vote":
            check_gives_scores(wrapped, f"ensemble={options.ensemble!r}")
        if wrapped.votes_only and tolerance is not None:
            # What was not computed again is known to be certain within the measured one only.
            raise OptionError(
                f"tolerance={tolerance!r} cannot be given with dtype='screened', which decides by "
                "its own tolerance what to compute again: leave it out, or use dtype='float32'"
            )
        if wrapped.votes_only and recheck:
            raise OptionError(
                f"recheck={recheck!r} compares scores, but with dtype='screened' only votes are "
                "those of single precision: leave it out, or use dtype='float32'"
            )
        self.labels = wrapped.labels if checked is None else checked
        check_renamed(self.labels or (), wrapped.labels or ())
        self.given_tolerance, self.recheck = tolerance, recheck
        default = 0 if wrapped.repeatable else DEFAULT_COPIES
        self._recheck = Recheck(wrapped, default if recheck is None else recheck)
        # Most copies of those scored together that are asked about again; None: no need.
        self._rechecked = self._recheck.copies or (None if wrapped.repeatable else 0)

    @property
    def tolerance(self) -> float:
        """The tolerance in force: what was given, else what the base classifier measured."""
        return self.base.tolerance if self.given_tolerance is None else self.given_tolerance

    def description(self) -> dict[str, Any]:
        """What determines the results of this classifier, as plain JSON values."""
        resolved = self.options.resolved()
        return {
            "base": self.base.description(),
            "labels": None if self.labels is None else list(self.labels),
            "given_tolerance": self.given_tolerance,
            "tolerance": self.tolerance,
            **({} if self._rechecked is None else {"recheck": self._rechecked}),
            "options": resolved if isinstance(resolved, dict) else resolved.to_dict(),
        }

    def options_with(self, **given: Any) -> _Options:
        """The options of this classifier `with_options`, without building it."""
        return type(self.options)(**self._overridden(given))

    def with_options(self, *, base: BaseClassifier | None = None, **given: Any) -> Self:
        """This classifier with other options, or over another base classifier.

        Options are those of the class.  What was chosen for another certificate, sampling or
        number of words is left out, as where a model is loaded with them.
        """
        settings = self._settings()
        settings |= {name: given.pop(name) for name in settings.keys() & given.keys()}
        build: Callable[..., Self] = type(self)
        return build(base or self.base, **settings, **self._overridden(given))

    def save_pretrained(self, folder: str) -> None:
        """Save the model and how it is smoothed; `from_pretrained` loads them again."""
        options = {**self.options.to_dict(), "tolerance": self.given_tolerance}
        pretrained.save(self.base, folder, options=options, labels=self.labels, kind=self._KIND)

    def check_certifiable(self) -> None:
        """Raise `OptionError` where nothing can be certified as things are set."""
        self.options.check_certifiable()

    def predict(self, texts: Sequence[Text | Document]) -> list[Prediction]:
        """The label of each text: a plain vote, without a certificate."""
        return [
            Prediction(**fields)
            for scored in self.scored(texts)
            for fields in self.answers(scored, scored.votes.winners.tolist())
        ]

    @abstractmethod
    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        """The label of each text, and how many of its words can be changed without changing it."""

    @abstractmethod
    def copies(self, documents: Sequence[Document], sample: Sample = "vote") -> Iterable[_Copies]:
        """The copies of each document that decide its label, or those of another sample."""

    @abstractmethod
    def score(self, copies: Sequence[_Copies]) -> list[Scores]:
        """The base classifier's scores of every copy of each text."""

    def score_each(self, batches: Iterable[Sequence[_Copies]]) -> Iterator[list[Scores]]:
        """`score` of one batch after another; some models begin a batch ahead."""
        return map(self.score, batches)

    def count(self, scores: Sequence[Scores], texts: Sequence[Document] = ()) -> Votes:
        """What is said of texts, from a table of the scores of its copies for each.

        The texts themselves are for classifiers that read them, too.
        """
        copies = np.array([len(rows) for rows in scores])
        rows = np.concatenate(scores)
        if self.labels is not None and len(self.labels) != rows.shape[1]:
            raise OptionError(
                f"labels names {len(self.labels)} classes ({', '.join(self.labels)}), but "
                f"the base classifier scores {rows.shape[1]}"
            )
        return count_votes(rows, self.options.ensemble, self.base.outputs, self.tolerance, copies)

    def scored(
        self, texts: Sequence[Text | Document], sample: Sample = "vote"
    ) -> Iterator[ScoredTexts[_Copies]]:
        """What the copies of the texts say, batch by batch, in the order of the texts.

        All texts are checked at once; they are scored as the results are asked for.
        """
        return self._scored(self.copies(documents(texts), sample))

    def answers(
        self, scored: ScoredTexts[_Copies], labels: Sequence[int]
    ) -> Iterator[dict[str, Any]]:
        """The fields that every result of a text has, where these are the labels."""
        votes = scored.votes
        names = self.labels or tuple(map(str, range(votes.classes)))
        means = votes.means()
        scores = repeat(None) if means is None else map(tuple, means.tolist())
        counts, copies = votes.counts.tolist(), votes.copies.tolist()
        rows = zip(scored.texts, labels, counts, scores, copies, strict=False)
        for text, label, count, mean, masks in rows:
            yield {
                "label": names[label],
                "label_id": label,
                "votes": tuple(count),
                "scores": mean,
                "masks": masks,
                "ensemble": self.options.ensemble,
                **text.described,
            }

    # -- for the classes that smooth -----------------------------------------------------------

    @abstractmethod
    def _overridden(self, given: dict[str, Any]) -> dict[str, Any]:
        """Options with some of them given anew."""

    def _settings(self) -> dict[str, Any]:
        """What this classifier was built with besides its options."""
        labels, tolerance = self.labels, self.given_tolerance
        return {"labels": labels, "tolerance": tolerance, "recheck": self.recheck}

    def _scored(self, copies: Iterable[_Copies]) -> Iterator[ScoredTexts[_Copies]]:
        before = 0
        for texts in batched_by_size(copies, COPIES_AT_ONCE):
            try:
                scores = self.score(texts)
            except ClassifierError as error:
                if error.index is None:
                    raise
                raise ClassifierError(error.reason, before + error.index) from error.__cause__
            before += len(texts)
            yield ScoredTexts(texts, self.count(scores, [text.document for text in texts]))

    def _asked_again(
        self,
        copies: Sequence[MaskedCopies] | Sequence[DrawnCopies] | Sequence[DeletedCopies],
        scores: list[Scores],
    ) -> list[Scores]:
        """The same scores, a few of which were computed twice."""
        scores = [np.array(rows) for rows in scores]  # the next call may use the memory again
        self._recheck.check(copies, scores, self.tolerance)
        return scores

    def _estimated(
        self, texts: Sequence[Document]
    ) -> Iterator[tuple[ScoredTexts[_Copies], list[int]]]:
        """The samples that certificates are estimated from, and labels that others selected."""
        selected = self._scored(self.copies(texts, "selection"))
        labels = iter([label for scored in selected for label in scored.votes.winners.tolist()])
        for scored in self._scored(self.copies(texts, "estimation")):
            yield scored, list(islice(labels, len(scored.texts)))

    def _certificates(
        self,
        scored: ScoredTexts[_Copies],
        kind: str,
        labels: Sequence[int],
        radii: Iterable[Radius],
        *,
        threat: str,
        alpha: float | None = None,
        others: Mapping[str, Sequence[int | None]] | None = None,
    ) -> Iterator[Certificate]:
        """``others``: the radii of the texts against further threats, if they were asked for."""
        radii = list(radii)
        beside: list[dict[str, int | None]] = [{} for _ in radii]
        if others is not None:
            every = {threat: [one.words for one in radii], **others}
            rows_of = zip(*every.values(), strict=True)
            beside = [dict(zip(every, row, strict=False)) for row in rows_of]
        uncertain = scored.votes.uncertain_counts.tolist()
        answers = self.answers(scored, labels)
        rows = zip(scored.texts, answers, radii, uncertain, beside, strict=True)
        assumes: dict[bool, tuple[str, ...]] = {}
        for text, fields, radius, near_ties, more in rows:
            pair = text.document.premise is not None
            if pair not in assumes:
                own = assumptions(
                    kind,
                    seed=self.options.seed,
                    tolerance=self.tolerance,
                    rechecked=self._rechecked,
                    pair=pair,
                    **self._covered,
                )
                proves = bool(own) and self.base.proves
                assumes[pair] = own + self.base.assumes if proves else ()
            yield Certificate(
                **fields,
                radius=radius.words,
                threat=threat,
                uncertain=near_ties,
                certificate=kind,
                guarantee=self.base.proves and not kind.startswith("paper"),
                alpha=alpha,
                tight=radius.tight,
                critical_words=radius.worst,
                assumes=assumes[pair],
                radii=more,
            )


class DrawnClassifier(VotingClassifier[_DrawnOptions, _Drawn]):
    """Votes over random copies that are texts of their own: what is proved is estimated."""

    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        """The label of each text, and how many changes leave it.

        All texts are checked before the first is classified; one that cannot be used raises
        `TextError` with its index.
        """
        self.check_certifiable()
        options = self.options.resolved()
        kind, how = options["certificate"], {name: options[name] for name in ("threat", "alpha")}
        found: list[Certificate] = []
        for scored, labels in self._estimated(documents(texts)):
            counts = scored.votes.against(labels).tolist()
            radii = map(self._radius, counts, labels, scored.texts)
            found += self._certificates(scored, kind, labels, radii, **how)
        return found

    @abstractmethod
    def _radius(self, counts: Sequence[int], label: int, copies: _Drawn) -> Radius:
        """That of a label, from the votes of each class in the estimation sample."""

    def score(self, copies: Sequence[_Drawn]) -> list[Scores]:
        """The base classifier's scores of every copy; equal copies of a text are scored once."""
        parts = [drawn.distinct for drawn in copies]
        distinct = [some for some, _ in parts]
        scores = self._scores_of(distinct)
        if self._recheck.copies:
            scores = self._asked_again(distinct, scores)
        return [rows[which] for rows, (_, which) in zip(scores, parts, strict=True)]

    @abstractmethod
    def _scores_of(self, copies: Sequence[_Drawn]) -> list[Scores]: ...

    def _overridden(self, given: dict[str, Any]) -> dict[str, Any]:
        return {**self.options.to_dict(), **given}


def load_base(folder: str, options: dict[str, Any], **computed: str | None) -> BaseClassifier:
    """A saved model; how it hides words is taken out of its ``options``."""
    hide, mask_token = options.pop("hide", None), options.pop("mask_token", None)
    return pretrained.load(folder, hide=hide, mask_token=mask_token, **computed)


def check_masked(kind: str | None, folder: str) -> None:
    """Refuse a folder of a classifier that is not smoothed by masks alone."""
    others = {
        model_config.SYNONYMS: ("is smoothed by synonyms, not by masks", "SynonymSmoothed"),
        model_config.DELETION: ("is smoothed by deleted words, not by masks", "DeletionSmoothed"),
        model_config.PROTECTED: ("has a reader beside its copies", "Protected"),
        model_config.PARTITIONS: ("is a vote of tables that were trained apart", "Partitioned"),
    }
    if kind in others:
        how, name = others[kind]
        raise ModelError(
            f"{folder!r} holds a classifier that {how}: load its folder with "
            f"{name}Classifier.from_pretrained, or with ranmask.smoothing.store.load_classifier"
        )


def batched_by_size(
    items: Iterable[_Sized], most: int, size: Callable[[_Sized], int] = len
) -> Iterator[list[_Sized]]:
    """Items in their order, in batches whose sizes add up to ``most`` or just above."""
    batch: list[_Sized] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size(item)
        if total >= most:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _checked_labels(labels: Sequence[str] | None) -> tuple[str, ...] | None:
    if labels is None:
        return None
    listed = isinstance(labels, Sequence) and not isinstance(labels, str)
    if not listed or not all(isinstance(label, str) for label in labels):
        raise OptionError(f"labels must be a list of names, not {labels!r}")
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise OptionError(f"labels must be at least two different names, not {list(labels)!r}")
    return tuple(labels)
