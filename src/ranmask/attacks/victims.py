"""What is attacked: a classifier that answers for many texts at once, always the same.

Scores are shares of the classes, rounded to a grid before anything is compared: the same copy
computed in another batch moves by a rounding error, and must not change the course of an attack.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.families import sampled_sets
from ranmask.certificates.kept import round_half_up
from ranmask.certificates.threats import Threat
from ranmask.certificates.votes import as_scores
from ranmask.errors import OptionError
from ranmask.models.base import (
    BaseClassifier,
    DeletedCopies,
    DrawnCopies,
    MaskedCopies,
    Scores,
    check_gives_scores,
    score_full_texts,
)
from ranmask.results import Certificate
from ranmask.smoothing.cascade import Cascade
from ranmask.smoothing.deletion import DeletionSmoothedClassifier
from ranmask.smoothing.partitioned import PartitionedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.voting import COPIES_AT_ONCE, VotingClassifier, batched_by_size
from ranmask.words import Document, Text

GRID = 2.0**-16
"""Shares are rounded to multiples of this."""

_CHARACTERS_AT_ONCE = 1 << 21
_Asked: TypeAlias = MaskedCopies | DrawnCopies | DeletedCopies


class Question(NamedTuple):
    """One text to score for one attempt, and the text that it is a variation of."""

    attempt: int
    text: Document
    near: Document


class Answers(NamedTuple):
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

    def certify(
        self, texts: Sequence[Text | Document], threat: Threat = "substitutions"
    ) -> list[Certificate]:
        """Certificates of texts for a threat; refused where the victim has none."""
        raise OptionError(
            "this victim proves nothing, so it has no radius: give the budget as a number, or "
            "attack a smoothed classifier with certificate='exact' and fixed masks"
        )

    @property
    def certifies(self) -> bool:
        """Whether it proves a number of replaced words, at about the cost of an answer."""
        return False

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
        """Labels of copies with a random ``share`` of the words hidden; None for a single word."""
        words = self.base.words_read(text)
        hidden = max(1, round_half_up(share * words))
        if hidden >= words:
            return None
        self.copies_scored += draws
        kept = sampled_sets(words, words - hidden, draws, seed)
        [rows] = self.base.score([MaskedCopies(text, words, kept)])
        labels: Ints = rows.argmax(axis=1)
        return labels


@dataclass(eq=False)
class _Copies:
    """A text's copies; ``near`` and ``seen``: from whose scores they follow but for those seen."""

    copies: MaskedCopies
    asked: MaskedCopies
    near: _Copies | None = None
    seen: Any = None
    scores: Scores = field(init=False)

    def score(self, scored: Iterator[Scores]) -> Scores:
        """Take the scores of what was asked, and fill in the others."""
        if self.near is None:
            self.scores = next(scored)
        elif not len(self.seen):
            self.scores = self.near.scores
        else:
            self.scores = self.near.scores.copy()
            self.scores[self.seen] = next(scored)
        self.near = None  # not a chain of all texts before
        return self.scores


class SmoothedVictim(Victim):
    """A smoothed classifier: the share of a class is its share of votes, or its mean score.

    With a fixed family a copy that shows none of the words in which a text differs from its
    neighbour is not computed again: what is said of a copy depends on its visible words alone.
    Otherwise the copies are those that ``predict`` draws for the text.  A radius that is certified
    for a table of synonyms covers its words only: an attack with other words may succeed within it.
    """

    def __init__(self, smoothed: VotingClassifier[Any, Any]) -> None:
        self.smoothed = smoothed
        self.labels = smoothed.labels
        masks = isinstance(smoothed, SmoothedClassifier)
        deleted = isinstance(smoothed, DeletionSmoothedClassifier)
        self._kind = "smoothed" if masks else f"{'deletion' if deleted else 'synonym'}-smoothed"
        self._fixed = masks and smoothed.options.sampling == "fixed"
        self._known: dict[int, _Copies] = {}

    def description(self) -> dict[str, Any]:
        return {"kind": self._kind, **self.smoothed.description()}

    def certify(
        self, texts: Sequence[Text | Document], threat: Threat = "substitutions"
    ) -> list[Certificate]:
        return counting(self.smoothed, threat).certify(texts)

    @property
    def certifies(self) -> bool:
        return self._fixed and self.smoothed.options.certificate == "exact"

    def again(self) -> Victim | None:
        """None where the kept sets are all there are, or fixed for every text of a length."""
        if self._fixed:
            return None
        return SmoothedVictim(self.smoothed.with_options(seed=self.smoothed.options.seed + 1))

    def forget(self, attempt: int) -> None:
        self._known.pop(attempt, None)

    def answer(self, questions: Sequence[Question]) -> Answers:
        # A round of long texts would fill the memory.
        parts = batched_by_size(questions, _CHARACTERS_AT_ONCE, size=_characters)
        return _joined([self._answer(part) for part in parts])

    def _answer(self, questions: Sequence[Question]) -> Answers:
        texts = [asked.text for asked in questions]
        if self._fixed and self.smoothed.options.family != "distinct":
            tables = self._from_near(questions)
        else:  # copies follow the words
            tables = self._scored(self.smoothed.copies(texts))
        return _counted(self.smoothed, texts, tables)

    def _from_near(self, questions: Sequence[Question]) -> Iterator[Scores]:
        """The scores of all copies of each text, from a text that is near.

        That is what the attempt's texts are variations of; or, where it has another number of
        words, the text before: texts that lack a word each differ by a word from one to the next.
        """
        plans: deque[tuple[_Copies, bool]] = deque()
        learned: dict[int, _Copies] = {}
        before: dict[int, _Copies] = {}
        for attempt, text, near in questions:
            known = learned.get(attempt) or self._known.get(attempt)
            if known is None or known.copies.document != near:
                known = learned[attempt] = self._plan(near, known)
                plans.append((known, False))
            if _same_places(known, text):
                new = self._plan(text, known)
            else:
                new = before[attempt] = self._plan(text, before.get(attempt))
            plans.append((new, True))
        scored = self._scored([plan.asked for plan, _ in plans if len(plan.asked)])
        while plans:  # each let go when it is told
            plan, told = plans.popleft()
            scores = plan.score(scored)
            if told:
                yield scores
        self._known |= learned

    def _plan(self, text: Document, near: _Copies | None) -> _Copies:
        """Which copies of a text to score: those that see where it differs from a near one."""
        if near is None or not _same_places(near, text):
            [copies] = self.smoothed.copies([text])
            return _Copies(copies, copies)
        words, kept = near.copies.words_read, near.copies.kept
        pairs = map(operator.ne, near.copies.document.words, text.words)
        seen = np.flatnonzero(np.fromiter(pairs, dtype=bool)[kept].any(axis=1))
        asked = MaskedCopies(text, words, kept[seen])
        return _Copies(MaskedCopies(text, words, kept), asked, near, seen)

    def _scored(self, texts: Iterable[_Asked]) -> Iterator[Scores]:
        """Scores of each text's copies, many texts in one call."""
        batches = batched_by_size(self._noted(texts), COPIES_AT_ONCE)
        return chain.from_iterable(self.smoothed.score_each(batches))

    def _noted(self, texts: Iterable[_Asked]) -> Iterator[Any]:
        for copies in texts:  # equal random copies are scored once
            self.copies_scored += len(
                copies if isinstance(copies, MaskedCopies) else copies.distinct[0]
            )
            yield copies


def counting(
    smoothed: VotingClassifier[Any, Any], threat: Threat = "substitutions"
) -> VotingClassifier[Any, Any]:
    """The same classifier, whose radius counts steps of a threat: those that an attack makes.

    (One that is smoothed by synonyms counts those that its table lists, one by deletion all edits
    that keep the order, and neither has another radius.)
    """
    if not isinstance(smoothed, SmoothedClassifier):
        if threat != "substitutions":
            raise OptionError(f"a model that is not smoothed by masks has no radius of {threat}")
        return smoothed
    known = smoothed.options.threats is None and smoothed.options.threat
    if known == threat or (known == "edits" and threat == "substitutions"):
        return smoothed
    return smoothed.with_options(threat=threat, threats=None)


class PartitionedVictim(Victim):
    """Tables that vote: the share of a class is its share of the tables."""

    certifies = True

    def __init__(self, tables: PartitionedClassifier) -> None:
        self.tables, self.labels = tables, tables.labels

    def description(self) -> dict[str, Any]:
        return self.tables.description()

    def certify(
        self, texts: Sequence[Text | Document], threat: Threat = "substitutions"
    ) -> list[Certificate]:
        if threat not in ("substitutions", known := self.tables.threat):
            raise OptionError(f"these tables have no radius of {threat}, but of {known}")
        return list(self.tables.certify(texts))

    def answer(self, questions: Sequence[Question]) -> Answers:
        said = self.tables.predict([question.text for question in questions])
        self.copies_scored += len(questions) * len(self.tables.tables)
        shares = np.array([one.votes for one in said]) / len(self.tables.tables)
        return Answers(np.array([one.label_id for one in said]), _rounded(shares))


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

    def certify(
        self, texts: Sequence[Text | Document], threat: Threat = "substitutions"
    ) -> list[Certificate]:
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
    smoothed: VotingClassifier[Any, Any], texts: Sequence[Document], tables: Iterable[Scores]
) -> Answers:
    """Answers for texts whose copies were scored: a table of scores each."""
    labels: list[Ints] = []
    shares: list[Scores] = []
    asked = iter(texts)
    for scores in batched_by_size(tables, COPIES_AT_ONCE):
        votes = smoothed.count(scores, list(islice(asked, len(scores))))
        labels.append(votes.winners)
        means = votes.means()
        if means is None:
            shares.append(votes.counts / votes.copies[:, None])
        elif smoothed.options.ensemble == "logit":
            shares.append(_shares(as_scores(means, "logits")))  # a softmax, as TextAttack takes it
        else:
            shares.append(_shares(means))
    return Answers(np.concatenate(labels), _rounded(np.concatenate(shares)))


def _characters(question: Question) -> int:
    return len(question.text.premise or "") + sum(map(len, question.text.words))


def _joined(parts: Sequence[Answers]) -> Answers:
    return Answers(*map(np.concatenate, zip(*parts, strict=True)))


def _same_places(near: _Copies, text: Document) -> bool:
    """Whether the copies of a text show the same positions, after the same premise."""
    known = near.copies.document
    return len(text.words) == len(known.words) and text.premise == known.premise


def _shares(scores: Scores) -> Scores:
    """Scores in [0, 1] as shares that sum to 1."""
    sums = scores.sum(axis=1, keepdims=True)
    return np.where(sums > 0, scores / np.where(sums > 0, sums, 1), 1 / scores.shape[1])


def _rounded(rows: Scores) -> Scores:
    return np.asarray(np.rint(rows / GRID) * GRID)
