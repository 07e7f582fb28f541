"""What is attacked: a classifier that answers for many texts at once, always the same.

Scores are shares of the classes, rounded to a grid before anything is compared: the same copy
computed in another batch moves by a rounding error, and must not change the course of an attack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.families import sampled_sets
from ranmask.certificates.kept import round_half_up
from ranmask.certificates.votes import as_scores
from ranmask.errors import OptionError
from ranmask.models.base import (
    BaseClassifier,
    MaskedCopies,
    Scores,
    check_gives_scores,
    score_full_texts,
)
from ranmask.results import Certificate
from ranmask.smoothing.cascade import Cascade
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
from ranmask.smoothing.voting import COPIES_AT_ONCE, batched_by_size
from ranmask.words import Document, Text

GRID = 2.0**-16
"""Shares are rounded to multiples of this."""

_CHARACTERS_AT_ONCE = 1 << 21
_TEXTS_AT_ONCE = 256  # whose masks are drawn at once


@dataclass(frozen=True)
class Question:
    """One text to score for one attempt, and the text that it is a variation of."""

    attempt: int
    text: Document
    near: Document


@dataclass(frozen=True, eq=False)
class Answers:
    """What the victim says of texts: their labels, and a row of class shares each.

    The label is the classifier's own; shares are rounded, so two may tie where it sees a winner.
    """

    labels: Ints
    shares: Scores


class Victim(ABC):
    """What the engine needs of a classifier under attack.

    **The same text always gets the same answer**, in whatever company it is asked.
    """

    labels: tuple[str, ...] | None
    """Names of the classes, where they are known."""

    copies_scored: int = 0
    """How many masked copies were computed so far."""

    @abstractmethod
    def answer(self, questions: Sequence[Question]) -> Answers:
        """The label and the class shares of each question's text."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What determines the answers, as plain JSON values."""

    def forget(self, attempt: int) -> None:  # noqa: B027  most victims remember nothing
        """The attempt is over."""

    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        """Certificates of texts; refused where the victim has none."""
        raise OptionError(
            "this victim proves nothing, so it has no radius: give the budget as a number, or "
            "attack a smoothed classifier with certificate='exact' and fixed masks"
        )

    def again(self) -> Victim | None:
        """The same classifier with other random masks; None where nothing is random."""
        return None


class PlainVictim(Victim):
    """A base classifier that reads the whole text."""

    def __init__(self, base: BaseClassifier, labels: tuple[str, ...] | None = None) -> None:
        check_gives_scores(base, "an attack on a classifier that is not smoothed")
        self.base = base
        self.labels = base.labels if labels is None else labels

    def description(self) -> dict[str, Any]:
        return {"kind": "plain", "base": self.base.description()}

    def answer(self, questions: Sequence[Question]) -> Answers:
        self.copies_scored += len(questions)
        rows = score_full_texts(self.base, [question.text for question in questions])
        shares = _shares(as_scores(rows, self.base.outputs))
        return Answers(rows.argmax(axis=1), _rounded(shares))

    def under_masks(self, text: Document, share: Fraction, draws: int, seed: int) -> Ints | None:
        """Labels of copies with a random ``share`` of the words hidden, but at least one.

        None for a text of one word.
        """
        words = self.base.words_read(text)
        hidden = max(1, round_half_up(share * words))
        if hidden >= words:
            return None
        self.copies_scored += draws
        kept = sampled_sets(words, words - hidden, draws, seed)
        [rows] = self.base.score([MaskedCopies(text, words, kept)])
        labels: Ints = rows.argmax(axis=1)
        return labels


class SmoothedVictim(Victim):
    """A smoothed classifier: the share of a class is its share of votes, or its mean score.

    With a fixed family a copy that shows none of the words in which a text differs from its
    neighbour is not computed again: what is said of a copy depends on its visible words alone.
    """

    def __init__(self, smoothed: SmoothedClassifier) -> None:
        self.smoothed = smoothed
        self.labels = smoothed.labels
        self._known: dict[int, _Known] = {}

    def description(self) -> dict[str, Any]:
        return {"kind": "smoothed", **self.smoothed.description()}

    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        return self.smoothed.certify(texts)

    def again(self) -> Victim | None:
        """None where the kept sets are all there are, or fixed for every text of a length."""
        options = self.smoothed.options
        if options.sampling == "fixed":
            return None
        return SmoothedVictim(self.smoothed.with_options(seed=options.seed + 1))

    def forget(self, attempt: int) -> None:
        self._known.pop(attempt, None)

    def answer(self, questions: Sequence[Question]) -> Answers:
        return _joined([self._answer(part) for part in _slices(questions)])

    def _answer(self, questions: Sequence[Question]) -> Answers:
        options = self.smoothed.options
        if options.sampling != "fixed" or options.family == "distinct":  # copies follow the words
            texts = self._whole([question.text for question in questions])
        else:
            self._learn(questions)
            texts = self._from_near([(question.attempt, question.text) for question in questions])
        return _counted(self.smoothed, (known.scores for known in texts))

    def _learn(self, questions: Sequence[Question]) -> None:
        """Score every copy of the texts that others are variations of."""
        new: dict[int, Document] = {}
        for question in questions:
            known = self._known.get(question.attempt)
            if known is None or known.copies.document != question.near:
                new[question.attempt] = question.near
        # From what is known of the text before: the new one usually differs by a word.
        for attempt, known in zip(new, list(self._from_near([*new.items()])), strict=True):
            self._known[attempt] = known

    def _whole(self, texts: Sequence[Document]) -> Iterator[_Known]:
        """Texts with the scores of all their copies."""
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            some = list(self.smoothed.copies(texts[start : start + _TEXTS_AT_ONCE]))
            for copies, scores in zip(some, self._scored(some), strict=True):
                yield _Known(copies, scores)

    def _from_near(self, texts: Sequence[tuple[int, Document]]) -> Iterator[_Known]:
        """Texts of attempts with the scores of all their copies, from texts that are near them.

        That is the attempt's known text; or, where it has another number of words, the text
        before: texts that lack a word each differ by a word from one to the next.
        """
        plans: list[_Plan] = []
        before: dict[int, MaskedCopies] = {}
        for attempt, text in texts:
            known, last = self._known.get(attempt), before.get(attempt)
            if known is not None and _same_places(known.copies, text):
                plans.append(_Plan(attempt, text, known.copies, known.scores))
                continue
            if last is not None and _same_places(last, text):
                plans.append(_Plan(attempt, text, last, None))
            else:
                [copies] = self.smoothed.copies([text])
                plans.append(_Plan(attempt, text, copies, None, whole=True))
            before[attempt] = plans[-1].copies
        scored = self._scored([plan.different for plan in plans if len(plan.different)])
        latest: dict[int, Scores] = {}  # of each attempt, the scores of the text before
        for plan in plans:
            scores = plan.near_scores
            if plan.whole:
                scores = next(scored)
            elif scores is None:
                scores = latest[plan.attempt]
            if not plan.whole and len(plan.seen):
                scores = scores.copy()
                scores[plan.seen] = next(scored)
            if plan.near_scores is None:
                latest[plan.attempt] = scores
            yield _Known(plan.copies, scores)

    def _scored(self, texts: Sequence[MaskedCopies]) -> Iterator[Scores]:
        """Scores of each text's copies, many texts in one call."""
        for batch in batched_by_size(texts, COPIES_AT_ONCE):
            self.copies_scored += sum(map(len, batch))
            yield from self.smoothed.score(batch)


@dataclass(frozen=True, eq=False)
class _Known:
    """A text's copies with the scores of all of them."""

    copies: MaskedCopies
    scores: Scores


class _Plan:
    """How to score a text: all its copies, or those that see where it differs from a near one.

    ``near_scores`` are those of the near text, where they are known already.
    """

    def __init__(
        self,
        attempt: int,
        text: Document,
        near: MaskedCopies,
        near_scores: Scores | None,
        whole: bool = False,
    ) -> None:
        self.attempt, self.whole, self.near_scores = attempt, whole, near_scores
        self.copies = self.different = MaskedCopies(text, near.words_read, near.kept)
        self.seen = np.arange(len(near))
        if not whole:
            pairs = zip(near.document.words, text.words, strict=True)
            differs = np.fromiter((a != b for a, b in pairs), dtype=bool)
            self.seen = np.flatnonzero(differs[near.kept].any(axis=1))
            self.different = MaskedCopies(text, near.words_read, near.kept[self.seen])


class SynonymVictim(Victim):
    """The share of a class is its share of the votes of random copies, or its mean score.

    The copies are those that `SynonymSmoothedClassifier.predict` draws for the text.  A radius
    that it certifies covers words of its table only: an attack that uses other words may succeed
    within it.
    """

    def __init__(self, smoothed: SynonymSmoothedClassifier) -> None:
        self.smoothed = smoothed
        self.labels = smoothed.labels

    def description(self) -> dict[str, Any]:
        return {"kind": "synonym-smoothed", **self.smoothed.description()}

    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        return self.smoothed.certify(texts)

    def again(self) -> Victim:
        return SynonymVictim(self.smoothed.with_options(seed=self.smoothed.options.seed + 1))

    def answer(self, questions: Sequence[Question]) -> Answers:
        return _counted(self.smoothed, self._scores([question.text for question in questions]))

    def _scores(self, texts: Sequence[Document]) -> Iterator[Scores]:
        for batch in batched_by_size(self.smoothed.copies(texts), COPIES_AT_ONCE):
            yield from self.smoothed.score(batch)
            self.copies_scored += sum(len(copies.distinct[0]) for copies in batch)


class CascadeVictim(Victim):
    """A cascade: label and shares of a text are those of the path that it takes.

    Every answer is adaptive: a change that lowers the suspicion sends the text to the plain
    classifier, and the search sees what that one says.  ``smoothed`` is the victim that the
    smoothed part would be by itself.
    """

    def __init__(self, cascade: Cascade, smoothed: Victim) -> None:
        self.cascade = cascade
        self.labels = cascade.labels
        self._plain = PlainVictim(cascade.plain)
        self._smoothed = smoothed
        self._read = 0  # texts that the detector has read

    def description(self) -> dict[str, Any]:
        return self.cascade.description()

    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        raise OptionError(
            "the cascade as a whole carries no certificate, so it has no radius: give the budget "
            "as a number, or attack its smoothed part, which has a folder of its own"
        )

    def again(self) -> Victim | None:
        again = self._smoothed.again()
        return None if again is None else CascadeVictim(self.cascade, again)

    def forget(self, attempt: int) -> None:
        self._smoothed.forget(attempt)

    def answer(self, questions: Sequence[Question]) -> Answers:
        suspicions = self.cascade.suspicions([question.text for question in questions])
        suspected = self.cascade.suspected(suspicions)
        places: list[int] = []
        answers: list[Answers] = []
        for victim, taken in ((self._plain, ~suspected), (self._smoothed, suspected)):
            chosen = np.flatnonzero(taken).tolist()
            if chosen:
                places += chosen
                answers.append(victim.answer([questions[place] for place in chosen]))
        self._read += len(questions)
        scored = self._plain.copies_scored + self._smoothed.copies_scored
        self.copies_scored = self._read + scored
        order, joined = np.argsort(places), _joined(answers)
        return Answers(joined.labels[order], joined.shares[order])


def _counted(
    smoothed: SmoothedClassifier | SynonymSmoothedClassifier, tables: Iterable[Scores]
) -> Answers:
    """Answers for texts whose copies were scored: a table of scores each."""
    labels: list[Ints] = []
    shares: list[Scores] = []
    for scores in batched_by_size(tables, COPIES_AT_ONCE):
        votes = smoothed.count(scores)
        labels.append(votes.winners)
        means = votes.means()
        if means is None:
            shares.append(votes.counts / votes.copies[:, None])
        elif smoothed.options.ensemble == "logit":
            shares.append(_shares(as_scores(means, "logits")))  # a softmax, as TextAttack takes it
        else:
            shares.append(_shares(means))
    return Answers(np.concatenate(labels), _rounded(np.concatenate(shares)))


def _slices(questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
    """Questions a few at a time, by their length: a round of long texts would fill the memory."""
    start = size = 0
    for place, question in enumerate(questions):
        size += len(question.text.premise or "") + sum(map(len, question.text.words))
        if size >= _CHARACTERS_AT_ONCE:
            yield questions[start : place + 1]
            start, size = place + 1, 0
    if start < len(questions):
        yield questions[start:]


def _joined(parts: Sequence[Answers]) -> Answers:
    if len(parts) == 1:
        return parts[0]
    return Answers(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.shares for part in parts]),
    )


def _same_places(copies: MaskedCopies, text: Document) -> bool:
    """Whether the copies of a text show the same positions, after the same premise."""
    known = copies.document
    return len(text.words) == len(known.words) and text.premise == known.premise


def _shares(scores: Scores) -> Scores:
    """Scores in [0, 1] as shares that sum to 1."""
    sums = scores.sum(axis=1, keepdims=True)
    shares: Scores = np.where(sums > 0, scores / np.where(sums > 0, sums, 1), 1 / scores.shape[1])
    return shares


def _rounded(rows: Scores) -> Scores:
    rounded: Scores = np.rint(rows / GRID) * GRID
    return rounded
