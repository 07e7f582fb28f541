"""A classifier that is smoothed by synonyms, under attack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ranmask.attacks.victims import Answers, Question, Victim, counted_answers
from ranmask.models.base import Scores
from ranmask.results import Certificate
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
from ranmask.smoothing.voting import COPIES_AT_ONCE, batched_by_size
from ranmask.words import Document, Text


class SynonymVictim(Victim):
    """The share of a class is its share of the votes of random copies, or its mean score.

    The copies are those that `SynonymSmoothedClassifier.predict` draws for the text.  A radius
    that it certifies covers words of its table only: an attack that uses other words may succeed
    within it.
    """

    def __init__(self, smoothed: SynonymSmoothedClassifier) -> None:
        self.smoothed = smoothed

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, where they are known."""
        return self.smoothed.labels

    def description(self) -> dict[str, Any]:
        """What determines the answers, as plain JSON values."""
        return {"kind": "synonym-smoothed", **self.smoothed.description()}

    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        """Certificates of texts, for replacements from the table."""
        return self.smoothed.certify(texts)

    def again(self) -> Victim:
        """The same classifier with other random copies."""
        return SynonymVictim(self.smoothed.with_options(seed=self.smoothed.options.seed + 1))

    def answer(self, questions: Sequence[Question]) -> Answers:
        """The label and the class shares of each question's text, many texts in one call."""
        texts = [question.text for question in questions]
        return counted_answers(self.smoothed, self._scores(texts))

    def _scores(self, texts: Sequence[Document]) -> Iterator[Scores]:
        for batch in batched_by_size(self.smoothed.copies(texts), COPIES_AT_ONCE):
            yield from self.smoothed.score(batch)
            self.copies_scored += sum(len(copies.distinct[0]) for copies in batch)
