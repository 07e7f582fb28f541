"""A recipe: which words, in which order, changed to what, within which limits, by which search.

A recipe declares; the searches in `search` act.  `recipes` has them by name.  Changes are counted
in the unit of a threat (`ranmask.certificates.threats`), so that a budget can be its radius.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ranmask.attacks.constraints import Constraint, levenshtein
from ranmask.attacks.replacements import Candidates
from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.attacks.resources.sentence_encoders import SentenceEncoder
from ranmask.attacks.steps import Attempt, Component, QueryResult, Steps, Texts
from ranmask.attacks.tokenization import AttackedText, Tokenization, count_words
from ranmask.certificates.threats import Threat
from ranmask.words import split

Budget: TypeAlias = int | Literal["radius", "radius+1"] | None
"""Most changes, in the recipe's unit: a number, the text's certified radius, one more, or any."""


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

    ``unit``: the threat in whose steps its changes are counted; ``budget`` is its own limit of
    them, where none is given.  ``stop_words`` are never changed, as they are written (``The`` is
    not ``the``, as in TextAttack), nor is a word twice, unless ``again``.
    ``white_box``: the victim's gradient is asked for.
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
    again: bool = False
    white_box: bool = False
    unit: Threat = "substitutions"
    preset: str | None = None
    budget: Budget = None
    sentence_encoder: SentenceEncoder | None = None
    masked_lm: MaskedLM | None = None
    resources: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.unit != "substitutions":
            levenshtein()  # told before the first text

    def description(self) -> dict[str, Any]:
        """What determines the course of an attack, as plain JSON values."""
        return {
            "name": self.name,
            "preset": self.preset,
            "unit": self.unit,
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
        """Words of the original text that may be changed now, by their positions there."""
        return [
            position
            for position, place in enumerate(current.places)
            if place is not None and self._free(current, place)
        ]

    def _free(self, current: AttackedText, place: int) -> bool:
        frozen = self.frozen_premise and len(current.parts) > 1 and current.spans[place][0] == 0
        changed = place in current.modified and not self.again
        return not frozen and not changed and current.words[place] not in self.stop_words

    def candidate_texts(self, attempt: Attempt, current: AttackedText, position: int) -> Texts:
        """Texts that differ at a word of the original text, all that the constraints allow."""
        made = yield from self._changed(attempt, current, position)
        return (yield from self.allowed(attempt, made))

    def all_texts(self, attempt: Attempt, current: AttackedText) -> Texts:
        """Texts that are one change away, anywhere, all that the constraints allow."""
        made = []
        for position in self.positions(current):
            made += yield from self._changed(attempt, current, position)
        made += yield from self.candidates.anywhere(attempt, current, self.positions(current))
        return (yield from self.allowed(attempt, dict.fromkeys(made)))

    def _changed(self, attempt: Attempt, current: AttackedText, position: int) -> Texts:
        place = current.places[position]
        if place is None or not self._free(current, place):
            return []
        words = yield from self.candidates.words(attempt, current, place)
        edits = yield from self.candidates.edits(attempt, current, place)
        return [*self.replacements(current, place, words), *edits]

    def replacements(
        self, current: AttackedText, position: int, words: Iterable[str]
    ) -> list[AttackedText]:
        """Texts with each of these words at ``position`` that is one word, and another one."""
        usable_words = usable(words, current.words[position], self.tokenization)
        return current.with_each(position, usable_words)

    def allowed(self, attempt: Attempt, texts: Iterable[AttackedText]) -> Texts:
        """The texts that may be tried, in alphabetical order, so that ties break so."""
        left = [
            text
            for text in texts
            if text.origin is not None
            and text.parts != text.origin.parts
            and text.parts[-1].strip()
            and not (self.frozen_premise and text.parts[:-1] != attempt.original.parts[:-1])
            and within_budget(text, attempt, self.unit)
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


def within_budget(text: AttackedText, attempt: Attempt, unit: Threat = "substitutions") -> bool:
    """Whether a text is no further from the original than the attempt may go."""
    return attempt.budget is None or distance(text, attempt.original, unit) <= attempt.budget


def distance(text: AttackedText, original: AttackedText, unit: Threat = "substitutions") -> int:
    """How many steps of a threat lead from the original to a text; words are `ranmask.words`.

    (Reordering words is no step of ``edits``; here it counts as deleting and inserting.)
    """
    if unit == "characters":
        parts = zip(text.parts, original.parts, strict=True)
        return sum(levenshtein().distance(before, after) for after, before in parts)
    premises = zip(text.parts[:-1], original.parts[:-1], strict=True)
    pairs = [(split(part), split(before)) for part, before in premises]
    pairs.append((text.document.words, original.document.words))
    if unit == "edits":
        return sum(levenshtein().distance(before, words) for words, before in pairs)
    if unit == "substitutions" and any(len(words) != len(before) for words, before in pairs):
        raise AssertionError("an attack changed the number of words")
    if unit == "substitutions":
        return sum(sum(map(operator.ne, *pair)) for pair in pairs)
    for words, before in pairs:
        fewer, more = (words, before) if unit == "deletions" else (before, words)
        left = iter(more)
        if not all(word in left for word in fewer):
            raise AssertionError(f"an attack did more than {unit}")
    return sum(abs(len(words) - len(before)) for words, before in pairs)
