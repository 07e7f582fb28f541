"""Which words may replace a word: where they come from, and what they must satisfy.

`Candidates.words` names the words that might stand at a position; the recipe drops those that are
not one word, and each `Constraint` compares the texts that they make with the original, or with the
text before the replacement.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ranmask.attacks.steps import (
    Attempt,
    Component,
    EncodeSentences,
    FillMask,
    SeededRandom,
    Steps,
)
from ranmask.attacks.tokenization import AttackedText, Tokenization, count_words
from ranmask.errors import MissingDependencyError

if TYPE_CHECKING:
    from ranmask.attacks.resources.masked_lm import MaskedLM
    from ranmask.attacks.resources.neighbours import Neighbours
    from ranmask.attacks.resources.tagging import Tagger

_BEFORE, _AFTER = 4, 3  # words around a word that the tagger reads
_MOST_PREFIXES = 20_000


class Candidates(Component):
    """Names replacement words."""

    kind = "candidates"

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        """Words for a position of the current text, found without asking a model."""
        raise NotImplementedError

    def words(self, attempt: Attempt, current: AttackedText, position: int) -> Steps[list[str]]:
        """Words that might replace the one at ``position`` of the current text."""
        return self.named(attempt, current, position)
        yield  # a generator that asks nothing


@dataclass(frozen=True)
class Synonyms(Candidates):
    """The ``count`` nearest neighbours of the word, in the word's own case."""

    neighbours: Neighbours
    count: int = 50

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        """Of the lower-cased word."""
        word = current.words[position]
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
        """Asks the language model about the current text."""
        likely = yield FillMask(current.joined, self.count)
        place = self.model.mask_place(current.shown_as(position, self.model.mask_token).joined)
        pieces = len(self.model.pieces(current.words[position]))
        if place is None or not pieces:
            return []
        at_word = likely[place : place + pieces]
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
            _mistyped(word, sort, self.typist(attempt, position, word, sort))
            for sort in ("swap", "substitute", "delete", "insert")
        ]
        return list(dict.fromkeys(error for error in errors if error != word))


def _mistyped(word: str, sort: str, random: SeededRandom) -> str:
    at = random.below(len(word) - (sort == "swap"))
    before, after = word[:at], word[at:]
    if sort == "swap":
        return before + after[1] + after[0] + after[2:]
    letter = "" if sort == "delete" else random.choice(string.ascii_letters)
    return before + letter + (after if sort == "insert" else after[1:])


@dataclass(frozen=True)
class AnyWord(Candidates):
    """``count`` words of a vocabulary, drawn at random once for each attempt."""

    vocabulary: tuple[str, ...]
    count: int = 200

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        """The same words at every position."""
        known = len(self.vocabulary)
        places = attempt.random("vocabulary").sample(known, min(self.count, known))
        return [self.vocabulary[place] for place in places]


def in_case_of(reference: str, word: str) -> str:
    """``word`` in lower case, UPPER CASE or Capitalised as ``reference`` is; else as it is."""
    if reference.islower():
        return word.lower()
    if reference.isupper() and len(reference) > 1:
        return word.upper()
    if reference[0].isupper() and reference[1:].islower():
        return word.capitalize()
    return word


class Constraint(Component):
    """Decides which texts with new words may be tried."""

    kind = "constraint"

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        """Whether a text may be tried, judged by itself."""
        raise NotImplementedError

    def allowed(
        self, texts: Sequence[AttackedText], original: AttackedText
    ) -> Steps[list[AttackedText]]:
        """The texts that may be tried, in their order."""
        return [text for text in texts if self.permits(text, original)]
        yield  # a generator that asks nothing


@dataclass(frozen=True)
class SimilarWord(Constraint):
    """Cosine of the word vectors at least ``least``; words without a vector pass."""

    neighbours: Neighbours
    least: float = 0.5

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        """Compares the new words with those of the original text."""
        for position in text.new_words:
            before, after = original.words[position].lower(), text.words[position].lower()
            similarity = self.neighbours.similarity(before, after)
            if similarity is not None and similarity < self.least:
                return False
        return True


@dataclass(frozen=True)
class SamePartOfSpeech(Constraint):
    """The universal tag stays, read in the original's context; nouns may become verbs and back."""

    tagger: Tagger

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        """Compares the tags of the old and the new word between the same neighbours."""
        for position in text.new_words:
            before = original.words[max(position - _BEFORE, 0) : position]
            after = original.words[position + 1 : position + 1 + _AFTER]
            tags = set()
            for word in (original.words[position], text.words[position]):
                context = (*before, word, *after)
                # TextFooler reads the tag of the word's first occurrence in the window.
                tags.add(self.tagger.tag(context)[context.index(word)])
            if len(tags) > 1 and not tags <= {"NOUN", "VERB"}:
                return False
        return True


@dataclass(frozen=True)
class SimilarSentence(Constraint):
    """Sentence vectors at least ``least`` alike, around the (first) new word.

    Args:
        least: The least similarity.
        metric: ``cosine``, or ``angular``: 1 - angle / pi.
        against: Compare with the original text, or with the one before the replacement.
        window: Words that are compared; None: all.
        skip_short: Texts of fewer words than the window always pass, with similarity 1.
    """

    least: float
    metric: Literal["cosine", "angular"] = "cosine"
    against: Literal["original", "current"] = "original"
    window: int | None = None
    skip_short: bool = False

    def allowed(
        self, texts: Sequence[AttackedText], original: AttackedText
    ) -> Steps[list[AttackedText]]:
        """Asks for the vectors of all windows at once."""
        if not texts:
            return []
        if self.skip_short and self.window is not None and len(original.words) < self.window:
            return [replace(text, similarity=1.0) for text in texts]
        old, new = [], []
        for text in texts:
            reference = original if self.against == "original" else text.origin or original
            place = next(iter(text.new_words))
            old.append(reference.window(place, self.window))
            new.append(text.window(place, self.window))
        vectors = yield EncodeSentences((*old, *new))
        products = vectors[: len(old)] * vectors[len(old) :]
        alike = np.clip(products.sum(axis=1, dtype=np.float64), -1, 1)
        if self.metric == "angular":
            alike = 1 - np.arccos(alike) / math.pi
        return [
            replace(text, similarity=float(similarity))
            for text, similarity in zip(texts, alike, strict=True)
            if similarity >= self.least
        ]


@dataclass(frozen=True)
class MostWords(Constraint):
    """At most a ``share`` of the attackable words is replaced, rounded up."""

    share: float

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        """Counts the attackable words that differ from the original's."""
        pairs = zip(original.words, text.words, strict=False)
        return sum(a != b for a, b in pairs) <= math.ceil(len(original.words) * self.share)


@dataclass(frozen=True)
class EditDistance(Constraint):
    """At most ``most`` characters inserted, deleted or replaced, counted over the whole text."""

    most: int

    def __post_init__(self) -> None:
        _levenshtein()  # told before the first text

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        """Counts against the original text."""
        texts = (original.joined, text.joined)
        return bool(_levenshtein().distance(*texts, score_cutoff=self.most) <= self.most)


def _levenshtein() -> Any:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise MissingDependencyError("rapidfuzz", "attacks") from error
    return Levenshtein
