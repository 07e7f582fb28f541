"""A recipe: which words, in which order, replaced by what, within which limits, by which search.

A recipe declares; the searches in `search` act.  To add one, write a file in `recipes` with a
function that returns a `Recipe`, and name it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ranmask.attacks.attempt import Attempt
from ranmask.attacks.candidates import Candidates
from ranmask.attacks.constraints import Constraint, Proposal
from ranmask.attacks.requests import Dialogue, Judgement
from ranmask.attacks.tokenization import CutText, Cutting, count_words
from ranmask.words import split

if TYPE_CHECKING:
    from ranmask.attacks.resources.masked_lm import MaskedLM
    from ranmask.attacks.resources.sentence_encoder import SentenceEncoder

Budget: TypeAlias = int | Literal["radius", "radius+1"] | None
"""Most words that may change: a number, the text's certified radius, one more, or any."""


class Ranking(ABC):
    """In which order words are attacked."""

    needs_certificate: bool = False

    @abstractmethod
    def order(self, attempt: Attempt, positions: Sequence[int]) -> Dialogue[list[int]]:
        """The positions of the original text, the most important one first."""


class Search(ABC):
    """How a recipe looks for a text that the victim gets wrong."""

    @abstractmethod
    def run(self, attempt: Attempt, recipe: Recipe, clean: Judgement) -> Dialogue[Judgement]:
        """The text that was found, or the best one where none was; ``clean`` is the original."""

    def description(self) -> dict[str, Any]:
        """Plain JSON values."""
        settings = {
            name: value for name, value in vars(self).items() if isinstance(value, int | float)
        }
        return {"search": type(self).__name__, **settings}


@dataclass(frozen=True)
class Recipe:
    """A declared attack.

    ``budget`` is its own limit of changed words, where none is given.
    ``stop_words`` are never replaced, nor is a word twice; ``frozen_premise`` leaves the premise
    of a pair alone.  Stop words are compared as they are written: ``The`` is not ``the``, as in
    TextAttack.  ``sentence_encoder`` and ``masked_lm`` answer what its constraints and candidates
    ask; ``resources`` describe what it was made with.
    """

    name: str
    cutting: Cutting
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

    @property
    def needs_certificate(self) -> bool:
        """Whether it starts from the certificate of a text."""
        return self.ranking.needs_certificate

    def description(self) -> dict[str, Any]:
        """What determines the course of an attack, as plain JSON values."""
        return {
            "name": self.name,
            "preset": self.preset,
            "cutting": self.cutting,
            "ranking": type(self.ranking).__name__,
            **self.candidates.description(),
            "constraints": [constraint.description() for constraint in self.constraints],
            "stop_words": len(self.stop_words),
            "frozen_premise": self.frozen_premise,
            **self.search.description(),
            "resources": self.resources,
        }

    def positions(self, current: CutText) -> list[int]:
        """Words that may be replaced now."""
        return [place for place in range(len(current.words)) if self._attackable(current, place)]

    def _attackable(self, current: CutText, position: int) -> bool:
        frozen = self.frozen_premise and len(current.parts) > 1
        return (
            position not in current.modified
            and current.words[position] not in self.stop_words
            and not (frozen and current.spans[position][0] == 0)
        )

    def proposals(
        self, attempt: Attempt, current: CutText, position: int
    ) -> Dialogue[list[Proposal]]:
        """Texts with another word at ``position``, all that the constraints allow."""
        if not self._attackable(current, position):
            return []
        words = yield from self.candidates.words(attempt, current, position)
        made = [
            Proposal(current.replaced(position, word), (position,))
            for word in usable(words, current.words[position], self.cutting)
        ]
        return (yield from self.filtered(attempt, current, made))

    def filtered(
        self, attempt: Attempt, current: CutText, made: Iterable[Proposal]
    ) -> Dialogue[list[Proposal]]:
        """The proposals that may be tried, ordered by text, so that ties break alphabetically."""
        left = [
            proposal
            for proposal in made
            if proposal.text.parts != current.parts
            and within_budget(proposal.text, attempt)
            and _keeps_positions(proposal, current)
        ]
        for constraint in self.constraints:
            if left:
                left = yield from constraint.allowed(left, current, attempt.original)
        return sorted(left, key=lambda proposal: proposal.text.whole)


def usable(words: Iterable[str], old: str, cutting: Cutting) -> list[str]:
    """The candidates that are one word, by `ranmask.words` and by the cut, and another one."""
    return [
        word
        for word in words
        if word
        and word != old
        and not any(character.isspace() for character in word)
        and count_words(word, cutting) == 1
    ]


def words_changed(text: CutText, original: CutText) -> int:
    """In how many words, by `ranmask.words`, a text differs from the original."""
    premises = zip(text.parts[:-1], original.parts[:-1], strict=True)
    pairs = [(split(part), split(before)) for part, before in premises]
    pairs.append((text.document.words, original.document.words))
    if any(len(words) != len(before) for words, before in pairs):
        raise AssertionError("an attack changed the number of words")
    return sum(word != old for pair in pairs for word, old in zip(*pair, strict=True))


def within_budget(text: CutText, attempt: Attempt) -> bool:
    """Whether a text differs from the original in no more words than the attempt may change."""
    return attempt.budget is None or words_changed(text, attempt.original) <= attempt.budget


def _keeps_positions(proposal: Proposal, current: CutText) -> bool:
    """Whether every other word is where it was, beside the new ones."""
    if proposal.text.keeps_cuts:
        return True
    new, old = proposal.text.words, current.words
    return len(new) == len(old) and all(
        new[place] == word for place, word in enumerate(old) if place not in proposal.positions
    )
