"""A classifier that is smoothed by synonyms, under attack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ranmask.attacks.victims import Answers, Question, Victim, counted_answers
from ranmask.models.base import Scores
from ranmask.results import Certificate
from ranmask.smoothing.scoring import together
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
from ranmask.words import Document, Text, document

_COPIES_AT_ONCE = 1 << 15


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

    def certify(self, texts: Sequence[Text]) -> list[Certificate]:
        """Certificates of texts, for replacements from the table."""
        return self.smoothed.certify(texts)

    def again(self) -> Victim:
        """The same classifier with other random copies."""
        return SynonymVictim(self.smoothed.reseeded(self.smoothed.options.seed + 1))

    def answer(self, questions: Sequence[Question]) -> Answers:
        """The label and the class shares of each question's text, many texts in one call."""
        read = [document(question.text) for question in questions]
        return counted_answers(
            self.smoothed.count, self._scores(read), self.smoothed.options.ensemble
        )

    def _scores(self, texts: Sequence[Document]) -> Iterator[Scores]:
        for group in together(self.smoothed.voters(texts), len, _COPIES_AT_ONCE):
            yield from self.smoothed.score(group)
            self.copies_scored += sum(len(one.distinct[0]) for one in group)
