"""What is attacked: a classifier that answers for many texts at once, always the same.

Scores are shares of the classes, rounded to a grid before anything is compared: the same copy
computed in another batch moves by a rounding error, and must not change the course of an attack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.families import round_half_up, sampled_sets
from ranmask.errors import OptionError
from ranmask.models.base import BaseClassifier, MaskedCopies, Scores, check_gives_scores
from ranmask.models.full_text import score_full_texts
from ranmask.models.outputs import as_scores
from ranmask.options import Ensemble
from ranmask.results import Certificate
from ranmask.smoothing.scoring import together
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.votes import BallotBox, Ballots
from ranmask.words import Document, Text, document, documents

GRID = 2.0**-16
"""Shares are rounded to multiples of this."""

_COPIES_AT_ONCE = 1 << 15
_CHARACTERS_AT_ONCE = 1 << 21
_TEXTS_AT_ONCE = 256  # whose masks are drawn at once


@dataclass(frozen=True)
class Question:
    """One text to score for one attempt, and the text that it is a variation of."""

    attempt: int
    text: Text
    near: Text


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

    copies_scored: int = 0
    """How many masked copies were computed so far."""

    @abstractmethod
    def answer(self, questions: Sequence[Question]) -> Answers:
        """The label and the class shares of each question's text."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, where they are known."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What determines the answers, as plain JSON values."""

    def forget(self, attempt: int) -> None:  # noqa: B027  most victims remember nothing
        """The attempt is over."""

    def certify(self, texts: Sequence[Text]) -> list[Certificate]:
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
        self._labels = base.labels if labels is None else labels

    @property
    def labels(self) -> tuple[str, ...] | None:
        return self._labels

    def description(self) -> dict[str, Any]:
        return {"kind": "plain", "base": self.base.description()}

    def answer(self, questions: Sequence[Question]) -> Answers:
        self.copies_scored += len(questions)
        rows = score_full_texts(self.base, documents([question.text for question in questions]))
        shares = _shares(as_scores(rows, self.base.outputs))
        return Answers(rows.argmax(axis=1), _rounded(shares))

    def under_masks(self, text: Text, share: Fraction, draws: int, seed: int) -> Ints | None:
        """Labels of copies with a random ``share`` of the words hidden, but at least one.

        None for a text of one word.
        """
        one = document(text)
        words = self.base.words_read(one)
        hidden = max(1, round_half_up(share * words))
        if hidden >= words:
            return None
        self.copies_scored += draws
        kept = sampled_sets(words, words - hidden, draws, seed)
        [rows] = self.base.score([MaskedCopies(one, words, kept)])
        labels: Ints = rows.argmax(axis=1)
        return labels


class SmoothedVictim(Victim):
    """A smoothed classifier: the share of a class is its share of votes, or its mean score.

    With a fixed family a copy that shows none of the words in which a text differs from its
    neighbour is not computed again: what is said of a copy depends on its visible words alone.
    """

    def __init__(self, smoothed: SmoothedClassifier) -> None:
        self.smoothed = smoothed
        self._known: dict[int, _Known] = {}

    @property
    def labels(self) -> tuple[str, ...] | None:
        return self.smoothed.labels

    def description(self) -> dict[str, Any]:
        return {"kind": "smoothed", **self.smoothed.description()}

    def certify(self, texts: Sequence[Text]) -> list[Certificate]:
        return self.smoothed.certify(texts)

    def again(self) -> Victim | None:
        """None where the kept sets are all there are, or fixed for every text of a length."""
        if self.smoothed.options.sampling == "fixed":
            return None
        return SmoothedVictim(self.smoothed.reseeded(self.smoothed.options.seed + 1))

    def forget(self, attempt: int) -> None:
        self._known.pop(attempt, None)

    def answer(self, questions: Sequence[Question]) -> Answers:
        return _joined([self._answer(part) for part in _slices(questions)])

    def _answer(self, questions: Sequence[Question]) -> Answers:
        options = self.smoothed.options
        if options.sampling != "fixed" or options.family == "distinct":  # copies follow the words
            return self._answered(self._whole([document(one.text) for one in questions]))
        self._learn(questions)
        jobs = [_Job(one.attempt, document(one.text)) for one in questions]
        return self._answered(self._from_near(jobs))

    def _learn(self, questions: Sequence[Question]) -> None:
        """Score every copy of the texts that others are variations of."""
        new: dict[int, Document] = {}
        for question in questions:
            near = document(question.near)
            known = self._known.get(question.attempt)
            if known is None or known.copies.document != near:
                new[question.attempt] = near
        # From what is known of the text before: the new one usually differs by a word.
        jobs = [_Job(attempt, near) for attempt, near in new.items()]
        for job, known in zip(jobs, list(self._from_near(jobs)), strict=True):
            self._known[job.attempt] = known

    def _whole(self, texts: Sequence[Document]) -> Iterator[_Known]:
        """Texts with the scores of all their copies."""
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            voters = self.smoothed.voters(texts[start : start + _TEXTS_AT_ONCE])
            for copies, scores in zip(voters, self._scored(voters), strict=True):
                yield _Known(copies, scores)

    def _from_near(self, jobs: Sequence[_Job]) -> Iterator[_Known]:
        """Texts with the scores of all their copies, from texts that are near them.

        That is the attempt's known text; or, where it has another number of words, the text
        before in these jobs: texts that lack a word each differ by a word from one to the next.
        """
        plans: list[_Plan] = []
        before: dict[int, MaskedCopies] = {}
        for job in jobs:
            known, last = self._known.get(job.attempt), before.get(job.attempt)
            if known is not None and _same_places(known.copies, job.text):
                plans.append(_Plan(job, known.copies, known.scores))
                continue
            if last is not None and _same_places(last, job.text):
                plans.append(_Plan(job, last, None))
            else:
                [copies] = self.smoothed.voters([job.text])
                plans.append(_Plan(job, copies, None, whole=True))
            before[job.attempt] = plans[-1].copies
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

    def _scored(self, all_copies: Sequence[MaskedCopies]) -> Iterator[Scores]:
        """Scores of each text's copies, many texts in one call."""
        for group in together(all_copies, len, _COPIES_AT_ONCE):
            self.copies_scored += sum(map(len, group))
            yield from self.smoothed.score(group)

    def _answered(self, texts: Iterator[_Known]) -> Answers:
        scores = (known.scores for known in texts)
        return counted_answers(self.smoothed.count, scores, self.smoothed.options.ensemble)


@dataclass(frozen=True)
class _Job:
    """A text to score for an attempt."""

    attempt: int
    text: Document


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
        self, job: _Job, near: MaskedCopies, near_scores: Scores | None, whole: bool = False
    ) -> None:
        self.attempt = job.attempt
        self.whole = whole
        self.near_scores = near_scores
        self.copies = MaskedCopies(job.text, near.words_read, near.kept)
        if whole:
            self.seen = np.arange(len(near))
            self.different = self.copies
            return
        pairs = zip(near.document.words, job.text.words, strict=True)
        differs = np.fromiter((a != b for a, b in pairs), dtype=bool)
        self.seen = np.flatnonzero(differs[near.kept].any(axis=1))
        self.different = MaskedCopies(job.text, near.words_read, near.kept[self.seen])


def counted_answers(
    count: Callable[[Scores], Ballots], tables: Iterable[Scores], ensemble: Ensemble
) -> Answers:
    """Answers for texts whose copies were scored: a table of scores each."""
    labels: list[Ints] = []
    shares: list[Scores] = []
    for scores in together(tables, len, _COPIES_AT_ONCE):
        box = BallotBox(count(np.concatenate(scores)), np.array([len(one) for one in scores]))
        labels.append(box.winners)
        shares.append(_ballot_shares(box, ensemble))
    return Answers(np.concatenate(labels), _rounded(np.concatenate(shares)))


def _ballot_shares(box: BallotBox, ensemble: Ensemble) -> Scores:
    means = box.means()
    if means is None:
        return box.counts / box.copies[:, None]
    if ensemble == "logit":
        means = as_scores(means, "logits")  # a softmax, as TextAttack takes it
    return _shares(means)


def _slices(questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
    """Questions a few at a time, by their length: a round of long texts would fill the memory."""
    start = size = 0
    for place, question in enumerate(questions):
        text = question.text
        size += len(text) if isinstance(text, str) else len(text[0]) + len(text[1])
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
