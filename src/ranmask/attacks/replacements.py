"""Which words may replace a word: where they come from.

`Candidates.words` names the words that might stand at a position; the recipe drops those that are
not one word, and what its `constraints` do not allow.  `edits` has changes of other kinds.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.attacks.resources.neighbours import Neighbours
from ranmask.attacks.steps import (
    Attempt,
    Component,
    FillMask,
    ScoreWords,
    SeededRandom,
    Steps,
    Texts,
)
from ranmask.attacks.tokenization import AttackedText, Tokenization, count_words

_MOST_PREFIXES = 20_000


class Candidates(Component):
    """Names replacement words, and other changes (`edits` has those that move words)."""

    kind = "candidates"

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        """Words for a position of the current text, found without asking a model."""
        return []

    def words(self, attempt: Attempt, current: AttackedText, position: int) -> Steps[list[str]]:
        """Words that might replace the one at ``position`` of the current text."""
        return self.named(attempt, current, position)
        yield  # a generator that asks nothing

    def edits(self, attempt: Attempt, current: AttackedText, position: int) -> Texts:
        """Texts that differ around ``position`` of the current text by more than one word."""
        return []
        yield  # a generator that asks nothing

    def anywhere(self, attempt: Attempt, current: AttackedText, positions: Sequence[int]) -> Texts:
        """Texts that differ where the candidates themselves choose; ``positions`` may change."""
        return []
        yield  # a generator that asks nothing


@dataclass(frozen=True)
class AnyOf(Candidates):
    """What any of several candidates name."""

    several: tuple[Candidates, ...]

    def words(self, attempt: Attempt, current: AttackedText, position: int) -> Steps[list[str]]:
        found = []
        for one in self.several:
            found += yield from one.words(attempt, current, position)
        return list(dict.fromkeys(found))

    def edits(self, attempt: Attempt, current: AttackedText, position: int) -> Texts:
        found = []
        for one in self.several:
            found += yield from one.edits(attempt, current, position)
        return list(dict.fromkeys(found))

    def anywhere(self, attempt: Attempt, current: AttackedText, positions: Sequence[int]) -> Texts:
        found = []
        for one in self.several:
            found += yield from one.anywhere(attempt, current, positions)
        return found

    def description(self) -> dict[str, Any]:
        return {self.kind: [one.description() for one in self.several]}


@dataclass(frozen=True)
class Synonyms(Candidates):
    """The ``count`` nearest neighbours of the word, in lower case and then back in its own.

    ``in_case=False``: the word is looked up, and its neighbours are taken, as they are spelt.
    """

    neighbours: Neighbours
    count: int = 50
    in_case: bool = True

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        word = current.words[position]
        if not self.in_case:
            return list(self.neighbours.nearest(word, self.count))
        nearest = self.neighbours.nearest(word.lower(), self.count)
        return [in_case_of(word, neighbour) for neighbour in nearest]


@dataclass(frozen=True)
class LikelyWords(Candidates):
    """What a masked language model finds likely at the word's tokens, the text not masked.

    A word of one token is replaced by whole-word tokens; a word of several by the first ``count``
    combinations of their ``count`` likeliest tokens that are one word.  (TextAttack means to sort
    them by perplexity first, but drops the sorted list; so do we, to be comparable.)
    """

    model: MaskedLM
    count: int

    def words(self, attempt: Attempt, current: AttackedText, position: int) -> Steps[list[str]]:
        place = self.model.mask_place(current.shown_as(position, self.model.mask_token).joined)
        pieces = len(self.model.pieces(current.words[position]))
        if place is None or not pieces:
            return []
        at_word = yield FillMask(current.joined, self.count, range(place, place + pieces))
        if pieces == 1:
            found = [
                token
                for token in at_word[0]
                if not self.model.continues(token, position == 0)
                and count_words(token, current.tokenization) == 1
            ]
        else:
            combinations = one_word_combinations(at_word, current.tokenization)
            found = list(itertools.islice(combinations, self.count))
        return [self.model.plain(word) for word in found]


def one_word_combinations(
    pieces: Sequence[Sequence[str]], tokenization: Tokenization
) -> Iterator[str]:
    """The combinations of one token for each piece that are one word, in the product's order.

    A beginning of several words is not continued: it can only become more of them, and the whole
    product is too large to look at.  The search ends after `_MOST_PREFIXES` beginnings.
    """
    tried = itertools.count(1)

    def continued(prefix: str, place: int) -> Iterator[str]:
        for token in pieces[place]:
            if next(tried) > _MOST_PREFIXES:
                return
            word = prefix + token.replace("##", "")
            words = count_words(word, tokenization)
            if words <= 1 and place + 1 < len(pieces):
                yield from continued(word, place + 1)
            elif words == 1:
                yield word

    return continued("", 0)


Typist: TypeAlias = Callable[[Attempt, int, str, str], SeededRandom]
"""Random numbers for an attempt, a position, the word there and the sort of error."""


def attempt_typist(attempt: Attempt, position: int, word: str, sort: str) -> SeededRandom:
    """Random numbers of this attempt alone."""
    return attempt.random("typo", sort, position, word)


@dataclass(frozen=True)
class TypingErrors(Candidates):
    """One each of: two neighbours swapped, a letter replaced, deleted, inserted, at random.

    Words of one character are left alone.
    """

    typist: Typist = attempt_typist

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        """Four errors, fewer where two are the same."""
        word = current.words[position]
        if len(word) <= 1:
            return []
        errors = [
            mistyped(word, sort, self.typist(attempt, position, word, sort))
            for sort in ("swap", "substitute", "delete", "insert")
        ]
        return list(dict.fromkeys(error for error in errors if error != word))


def mistyped(
    word: str,
    sort: str,
    random: SeededRandom,
    letters: str = string.ascii_letters,
    inside: bool = False,
) -> str:
    """A word with one error at random; ``inside``: its first and last character stay."""
    at = inside + random.below(len(word) - 2 * inside - (sort == "swap"))
    before, after = word[:at], word[at:]
    if sort == "swap":
        return before + after[1] + after[0] + after[2:]
    letter = "" if sort == "delete" else random.choice(letters)
    return before + letter + (after if sort == "insert" else after[1:])


@dataclass(frozen=True)
class AnyWord(Candidates):
    """``count`` words of a vocabulary, drawn at random once for each attempt."""

    vocabulary: tuple[str, ...]
    count: int = 200

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        known = len(self.vocabulary)
        places = attempt.random("vocabulary").sample(known, min(self.count, known))
        return [self.vocabulary[place] for place in places]


@dataclass(frozen=True)
class OpposingWords(Candidates):
    """Of a vocabulary, for each class but the label, the ``each`` words that speak most for it.

    By what the victim says of every word by itself; the same words at every position.  Two of them
    written as one may say it louder, so those are looked at too.  Of up to ``few`` words, all.
    """

    vocabulary: tuple[str, ...]
    each: int = 4
    few: int = 32

    def words(self, attempt: Attempt, current: AttackedText, position: int) -> Steps[list[str]]:
        if len(self.vocabulary) <= self.few:
            return list(self.vocabulary)
        best = yield from self._best(attempt, self.vocabulary)
        joined = (one + other for some in best for one in some for other in some)
        known = itertools.chain(*best, joined)
        best = yield from self._best(attempt, tuple(dict.fromkeys(known)))
        return list(dict.fromkeys(itertools.chain(*best)))

    def _best(self, attempt: Attempt, words: tuple[str, ...]) -> Steps[list[list[str]]]:
        """For each rival, of some words."""
        rows = yield ScoreWords(words, attempt.original.document.premise)
        leads = np.delete(rows - rows[:, [attempt.label]], attempt.label, axis=1)
        best = np.argsort(-leads, axis=0, kind="stable")[: self.each]
        return [[words[place] for place in column] for column in best.T.tolist()]


def in_case_of(reference: str, word: str) -> str:
    """``word`` in lower case, UPPER CASE or Capitalised as ``reference`` is; else as it is."""
    if reference.islower():
        return word.lower()
    if reference.isupper() and len(reference) > 1:
        return word.upper()
    if reference[0].isupper() and reference[1:].islower():
        return word.capitalize()
    return word
