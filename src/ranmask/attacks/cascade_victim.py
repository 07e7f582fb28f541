"""A cascade under attack, as a whole: the detector, and the classifier that it chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranmask.attacks.victims import Answers, PlainVictim, Question, Victim
from ranmask.errors import OptionError
from ranmask.results import Certificate
from ranmask.smoothing.cascade import Cascade
from ranmask.words import Document, Text


class CascadeVictim(Victim):
    """A cascade: label and shares of a text are those of the path that it takes.

    Every answer is adaptive: a change that lowers the suspicion sends the text to the plain
    classifier, and the search sees what that one says.  ``smoothed`` is the victim that the
    smoothed part would be by itself.
    """

    def __init__(self, cascade: Cascade, smoothed: Victim) -> None:
        self.cascade = cascade
        self._plain = PlainVictim(cascade.plain)
        self._smoothed = smoothed
        self._read = 0  # texts that the detector has read

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, where they are known."""
        return self.cascade.labels

    def description(self) -> dict[str, Any]:
        """What determines the answers, as plain JSON values."""
        return self.cascade.description()

    def certify(self, texts: Sequence[Text | Document]) -> list[Certificate]:
        """Refused: the cascade as a whole proves nothing."""
        raise OptionError(
            "the cascade as a whole carries no certificate, so it has no radius: give the budget "
            "as a number, or attack its smoothed part, which has a folder of its own"
        )

    def again(self) -> Victim | None:
        """None where the smoothed part draws no masks of its own."""
        again = self._smoothed.again()
        return None if again is None else CascadeVictim(self.cascade, again)

    def forget(self, attempt: int) -> None:
        """The attempt is over."""
        self._smoothed.forget(attempt)

    def answer(self, questions: Sequence[Question]) -> Answers:
        """The label and the class shares of each question's text, each path asked once."""
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
        order = np.argsort(places)
        return Answers(
            np.concatenate([one.labels for one in answers])[order],
            np.concatenate([one.shares for one in answers])[order],
        )
