"""Where replacement words come from.

`Candidates.words` names the words that might stand at a position; the recipe drops those that are
not one word, and its constraints judge the rest.
"""

from __future__ import annotations

import itertools
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ranmask.attacks.attempt import Attempt, Chance
from ranmask.attacks.requests import Dialogue, Guess
from ranmask.attacks.tokenization import CutText, Cutting, count_words

if TYPE_CHECKING:
    from ranmask.attacks.resources.masked_lm import MaskedLM
    from ranmask.attacks.resources.neighbours import Neighbours


_LOOKED_AT = 20_000


class Candidates(ABC):
    """Names replacement words."""

    @abstractmethod
    def words(self, attempt: Attempt, current: CutText, position: int) -> Dialogue[list[str]]:
        """Words that might replace the one at ``position`` of the current text."""

    def description(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"candidates": type(self).__name__}


@dataclass(frozen=True)
class Synonyms(Candidates):
    """The ``count`` nearest neighbours of the word, in the word's own case."""

    neighbours: Neighbours
    count: int = 50

    def words(self, attempt: Attempt, current: CutText, position: int) -> Dialogue[list[str]]:
        """Of the lower-cased word."""
        word = current.words[position]
        nearest = self.neighbours.nearest(word.lower(), self.count)
        return [in_case_of(word, neighbour) for neighbour in nearest]
        yield  # a dialogue that asks nothing

    def description(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"candidates": "Synonyms", "count": self.count}


@dataclass(frozen=True)
class LikelyWords(Candidates):
    """What a masked language model finds likely at the word's tokens, the text not masked.

    A word of one token is replaced by whole-word tokens; a word of several by the first ``count``
    combinations of their ``count`` likeliest tokens that are one word.  (TextAttack means to sort
    them by perplexity first, but drops the sorted list; so do we, to be comparable.)
    """

    model: MaskedLM
    count: int

    def words(self, attempt: Attempt, current: CutText, position: int) -> Dialogue[list[str]]:
        """Asks the language model about the current text."""
        likely = yield Guess(current.whole, self.count)
        place = self.model.mask_place(current.shown_as(position, self.model.mask_token).whole)
        pieces = len(self.model.pieces(current.words[position]))
        if place is None or not pieces:
            return []
        at_word = likely[place : place + pieces]
        if pieces == 1:
            found = [
                token for token in at_word[0] if not self.model.continues(token, position == 0)
            ]
            found = [token for token in found if count_words(token, current.cutting) == 1]
        else:
            whole = one_word_combinations(at_word, current.cutting)
            found = list(itertools.islice(whole, self.count))
        return [self.model.plain(word) for word in found]

    def description(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"candidates": "LikelyWords", "count": self.count}


def one_word_combinations(pieces: Sequence[Sequence[str]], cutting: Cutting) -> Iterator[str]:
    """The combinations of one token for each piece that are one word, in the product's order.

    What is several words already stays several however it goes on, so it is not continued: the
    product of 48 tokens for each of 6 pieces has more members than anyone can look at.  The search
    ends after `_LOOKED_AT` beginnings.
    """
    looked = itertools.count(1)

    def continued(begun: str, place: int) -> Iterator[str]:
        for token in pieces[place]:
            if next(looked) > _LOOKED_AT:
                return
            word = begun + token.replace("##", "")
            words = count_words(word, cutting)
            if words > 1:
                continue
            if place + 1 < len(pieces):
                yield from continued(word, place + 1)
            elif words == 1:
                yield word

    return continued("", 0)


class Typist(Protocol):
    """What makes typing errors: chances that depend on the attempt, the word and the sort."""

    def __call__(self, attempt: Attempt, position: int, word: str, sort: str) -> Chance:
        """Where to draw from."""


def attempt_typist(attempt: Attempt, position: int, word: str, sort: str) -> Chance:
    """Chances of this attempt's own."""
    return attempt.chance("typo", sort, position, word)


@dataclass(frozen=True)
class TypingErrors(Candidates):
    """One each of: two neighbours swapped, a letter replaced, deleted, inserted, at random.

    Words of one character are left alone.
    """

    typist: Typist = field(default=attempt_typist)

    def words(self, attempt: Attempt, current: CutText, position: int) -> Dialogue[list[str]]:
        """Four errors, fewer where two are the same."""
        word = current.words[position]
        if len(word) <= 1:
            return []
        errors = (
            make(word, self.typist(attempt, position, word, sort)) for sort, make in _ERRORS.items()
        )
        return list(dict.fromkeys(error for error in errors if error != word))
        yield  # a dialogue that asks nothing


def _swap(word: str, chance: Chance) -> str:
    at = chance.below(len(word) - 1)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _substitute(word: str, chance: Chance) -> str:
    at = chance.below(len(word))
    return word[:at] + chance.one_of(string.ascii_letters) + word[at + 1 :]


def _delete(word: str, chance: Chance) -> str:
    at = chance.below(len(word))
    return word[:at] + word[at + 1 :]


def _insert(word: str, chance: Chance) -> str:
    at = chance.below(len(word))
    return word[:at] + chance.one_of(string.ascii_letters) + word[at:]


_ERRORS: dict[str, Callable[[str, Chance], str]] = {
    "swap": _swap,
    "substitute": _substitute,
    "delete": _delete,
    "insert": _insert,
}


@dataclass(frozen=True)
class AnyWord(Candidates):
    """``count`` words of a vocabulary, drawn at random once for each attempt."""

    vocabulary: tuple[str, ...]
    count: int = 200

    def words(self, attempt: Attempt, current: CutText, position: int) -> Dialogue[list[str]]:
        """The same words at every position."""
        return list(self._drawn(attempt))
        yield  # a dialogue that asks nothing

    def _drawn(self, attempt: Attempt) -> Iterator[str]:
        chance = attempt.chance("vocabulary")
        places = chance.sample(len(self.vocabulary), min(self.count, len(self.vocabulary)))
        return (self.vocabulary[place] for place in places)

    def description(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"candidates": "AnyWord", "vocabulary": len(self.vocabulary), "count": self.count}


def in_case_of(reference: str, word: str) -> str:
    """``word`` in lower case, UPPER CASE or Capitalised as ``reference`` is; else as it is."""
    if reference.islower():
        return word.lower()
    if reference.isupper() and len(reference) > 1:
        return word.upper()
    if reference[0].isupper() and reference[1:].islower():
        return word.capitalize()
    return word
