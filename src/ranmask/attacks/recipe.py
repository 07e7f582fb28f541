"""A recipe: which words, in which order, replaced by what, within which limits, by which search.

A recipe declares; the searches in `search` act.  `recipes` has them by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ranmask.attacks.replacements import Candidates, Constraint
from ranmask.attacks.steps import Attempt, Component, QueryResult, Steps
from ranmask.attacks.tokenization import AttackedText, Tokenization, count_words
from ranmask.words import split

if TYPE_CHECKING:
    from ranmask.attacks.resources.masked_lm import MaskedLM
    from ranmask.attacks.resources.sentence_encoders import SentenceEncoder

Budget: TypeAlias = int | Literal["radius", "radius+1"] | None
"""Most words that may change: a number, the text's certified radius, one more, or any."""


class Ranking(ABC):
    """In which order words are attacked."""

    needs_certificate: bool = False

    @abstractmethod
    def order(self, attempt: Attempt, positions: Sequence[int]) -> Steps[list[int]]:
        """The positions of the original text, the most important one first."""


class Search(Component, ABC):
    """How a recipe looks for a text that the victim gets wrong."""

    kind = "search"

    @abstractmethod
    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        """The text that was found, or the best one where none was; ``clean`` is the original."""


@dataclass(frozen=True)
class AttackRecipe:
    """A declared attack.

    ``budget`` is its own limit of changed words, where none is given.  ``stop_words`` are never
    replaced, as they are written (``The`` is not ``the``, as in TextAttack), nor is a word twice.
    ``frozen_premise`` leaves the premise of a pair alone.  ``sentence_encoder`` and ``masked_lm``
    answer what its constraints and candidates ask; ``resources`` describe what it was made with.
    """

    name: str
    tokenization: Tokenization
    ranking: Ranking
    candidates: Candidates
    search: Search
    constraints: tuple[Constraint, ...] = ()
    stop_words: frozenset[str] = frozenset()
    frozen_premise: bool = True
    preset: str | None = None
    budget: Budget = None
    sentence_encoder: SentenceEncoder | None = None
    masked_lm: MaskedLM | None = None
    resources: dict[str, Any] = field(default_factory=dict)

    def description(self) -> dict[str, Any]:
        """What determines the course of an attack, as plain JSON values."""
        return {
            "name": self.name,
            "preset": self.preset,
            "cutting": self.tokenization,
            "ranking": type(self.ranking).__name__,
            **self.candidates.description(),
            "constraints": [constraint.description() for constraint in self.constraints],
            "stop_words": len(self.stop_words),
            "frozen_premise": self.frozen_premise,
            **self.search.description(),
            "resources": self.resources,
        }

    def positions(self, current: AttackedText) -> list[int]:
        """Words that may be replaced now."""
        frozen = self.frozen_premise and len(current.parts) > 1
        return [
            position
            for position, word in enumerate(current.words)
            if position not in current.modified
            and word not in self.stop_words
            and not (frozen and current.spans[position][0] == 0)
        ]

    def candidate_texts(
        self, attempt: Attempt, current: AttackedText, position: int
    ) -> Steps[list[AttackedText]]:
        """Texts with another word at ``position``, all that the constraints allow."""
        if position not in self.positions(current):
            return []
        words = yield from self.candidates.words(attempt, current, position)
        return (yield from self.allowed(attempt, self.replacements(current, position, words)))

    def replacements(
        self, current: AttackedText, position: int, words: Iterable[str]
    ) -> list[AttackedText]:
        """Texts with each of these words at ``position`` that is one word, and another one."""
        usable_words = usable(words, current.words[position], self.tokenization)
        return [current.replaced({position: word}) for word in usable_words]

    def allowed(self, attempt: Attempt, texts: Iterable[AttackedText]) -> Steps[list[AttackedText]]:
        """The texts that may be tried, in alphabetical order, so that ties break so."""
        left = [
            text
            for text in texts
            if text.origin is not None
            and text.parts != text.origin.parts
            and within_budget(text, attempt)
            and text.keeps_positions
        ]
        for constraint in self.constraints:
            if left:
                left = yield from constraint.allowed(left, attempt.original)
        return sorted(left, key=lambda text: text.joined)


def usable(words: Iterable[str], old: str, tokenization: Tokenization) -> list[str]:
    """The candidates that are one word, by `ranmask.words` and for the attack, and not the old."""
    return [
        word
        for word in words
        if word != old and word.split() == [word] and count_words(word, tokenization) == 1
    ]


def within_budget(text: AttackedText, attempt: Attempt) -> bool:
    """Whether a text differs from the original in no more words than the attempt may change."""
    return attempt.budget is None or words_changed(text, attempt.original) <= attempt.budget


def words_changed(text: AttackedText, original: AttackedText) -> int:
    """In how many words, by `ranmask.words`, a text differs from the original."""
    premises = zip(text.parts[:-1], original.parts[:-1], strict=True)
    pairs = [(split(part), split(before)) for part, before in premises]
    pairs.append((text.document.words, original.document.words))
    if any(len(words) != len(before) for words, before in pairs):
        raise AssertionError("an attack changed the number of words")
    return sum(word != old for pair in pairs for word, old in zip(*pair, strict=True))
