"""Changes that move words: inserted, deleted, split and joined; and characters that nobody sees.

`WordEdits` and `CharacterEdits` are what a certificate's threats allow, and `AnyEdits` searches
among them.  `LookAlikes`, `Invisible` and `Bugs` are tricks of spelling; `MaskedWords`,
`InsertedWords` and `MergedWords` ask a masked language model (BAE, CLARE).
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from ranmask.attacks.recipe import AttackRecipe, Search
from ranmask.attacks.replacements import (
    Candidates,
    Typist,
    attempt_typist,
    mistyped,
)
from ranmask.attacks.resources.masked_lm import Gap, MaskedLM
from ranmask.attacks.resources.tagging import Tagger
from ranmask.attacks.search import ask, harm
from ranmask.attacks.steps import Attempt, FillGaps, QueryResult, Steps, Texts
from ranmask.attacks.tokenization import AttackedText, count_words

INVISIBLE = ("\u200b", "\u200c", "\u200d")
"""Zero-width blank, non-joiner and joiner: no whitespace, so that a word stays one."""

_LOOK_ALIKE = str.maketrans(
    "-9876543210'abcdefghijklmnopqrstuvwxyz",
    "\u02d7\u09ed\u0222\U0001d7d5\u0431\u01bc\u13ce\u01b7\u14bflO`\u0251\u042c\u03f2\u0501\u0435"
    "\U0001d68f\u0261\u0570\u0456\u03f3\U0001d48c\u217c\uff4d\u0578\u043e\u0440\u051b\u2c85\u0455"
    "\U0001d69d\u057d\u0475\u051d\u00d7\u0443\u1d22",
)
"""Homoglyphs: a character that looks like each of these, as TextAttack has them."""

_MERGED: dict[str, str] = {
    "NOUN": "NOUN",
    "ADJ": "NOUN NUM ADJ ADV",
    "ADV": "ADJ VERB",
    "VERB": "ADV VERB NOUN ADJ",
    "DET": "NOUN ADJ",
    "PRON": "NOUN ADJ",
    "NUM": "NUM NOUN",
}
"""Which words CLARE merges with the next, by the tags of both."""

Sort: TypeAlias = Literal["replace", "insert", "delete", "before", "after"]


@dataclass(frozen=True)
class WordEdits(Candidates):
    """The worst words of a vocabulary put anywhere, and words deleted.

    ``sorts``: ``replace`` a word, ``insert`` one in front of it, ``delete`` it; or put words
    ``before`` the first or ``after`` the last one only.
    """

    worst: Candidates
    sorts: tuple[Sort, ...] = ("replace", "insert", "delete")

    def words(self, attempt: Attempt, current: AttackedText, position: int) -> Steps[list[str]]:
        return (yield from self._worst(attempt, current, "replace"))

    def edits(self, attempt: Attempt, current: AttackedText, position: int) -> Texts:
        old = current.words[position]
        words = yield from self._worst(attempt, current, "insert")
        made = [current.rewritten(position, f"{word} {old}") for word in words]
        return [*made, current.deleted(position)] if "delete" in self.sorts else made

    def anywhere(self, attempt: Attempt, current: AttackedText, positions: Sequence[int]) -> Texts:
        """Around the text; of a pair, around its hypothesis."""
        last = len(current.words) - 1
        first = [part for part, _, _ in current.spans].index(current.spans[last][0])
        before = yield from self._worst(attempt, current, "before")
        after = yield from self._worst(attempt, current, "after")
        return [
            *(current.rewritten(first, f"{word} {current.words[first]}") for word in before),
            *(current.rewritten(last, f"{current.words[last]} {word}") for word in after),
        ]

    def _worst(self, attempt: Attempt, current: AttackedText, sort: Sort) -> Steps[list[str]]:
        """The words to put there, if that may be done at all."""
        if sort not in self.sorts:
            return []
        return (yield from self.worst.words(attempt, current, 0))


@dataclass(frozen=True)
class CharacterEdits(Candidates):
    """One character inserted, deleted or replaced, blanks included: words are split and joined.

    In each place of a word: it is deleted, becomes a blank or what looks like it, or a blank or a
    character that nobody sees is put in front of it.  The blank before the next word is deleted.
    """

    def edits(self, attempt: Attempt, current: AttackedText, position: int) -> Texts:
        word = current.words[position]
        made = []
        for at, letter in enumerate(word):
            before, after = word[:at], word[at + 1 :]
            made += [before + after, f"{before} {after}"]
            alike = letter.translate(_LOOK_ALIKE)
            made += [before + alike + after] if alike != letter else []
            made += [f"{before}{new}{letter}{after}" for new in (" ", INVISIBLE[0]) if before]
        texts = [current.rewritten(position, one) for one in dict.fromkeys(made)]
        if position + 1 < len(current.words):
            (part, _, stop), (next_part, start, _) = current.spans[position : position + 2]
            if part == next_part and start - stop == 1:
                joined = word + current.words[position + 1]
                texts.append(current.rewritten(position, joined, through=position + 1))
        return texts
        yield  # a generator that asks nothing


@dataclass(frozen=True)
class LookAlikes(Candidates):
    """The word with one of its characters replaced by one that looks the same."""

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        word = current.words[position]
        return [
            word[:at] + alike + word[at + 1 :]
            for at, alike in enumerate(word.translate(_LOOK_ALIKE))
            if alike != word[at]
        ]


@dataclass(frozen=True)
class Invisible(Candidates):
    """The word with a character inside that nobody sees."""

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        word = current.words[position]
        places = range(1, len(word))
        return [word[:at] + unseen + word[at:] for at in places for unseen in INVISIBLE]


@dataclass(frozen=True)
class Bugs(Candidates):
    """TextBugger's errors inside a word: a blank inserted, a letter deleted, two swapped.

    One of each, at random; the first and the last letter stay.
    """

    typist: Typist = attempt_typist

    def named(self, attempt: Attempt, current: AttackedText, position: int) -> list[str]:
        word = current.words[position]
        return [
            mistyped(word, sort, self.typist(attempt, position, word, sort), inside=True)
            for sort, least in (("delete", 3), ("swap", 4))
            if len(word) >= least
        ]

    def edits(self, attempt: Attempt, current: AttackedText, position: int) -> Texts:
        """The blank, which makes two of one."""
        word = current.words[position]
        if len(word) < 3:
            return []
        random = self.typist(attempt, position, word, "insert")
        split = mistyped(word, "insert", random, letters=" ", inside=True)
        return [current.rewritten(position, split)]
        yield  # a generator that asks nothing


@lru_cache(maxsize=1 << 18)
def _counts(token: str) -> bool:
    """Whether a token is one word and not only punctuation, as TextAttack looks at it."""
    word = token.replace("##", "")
    only_signs = all(character in string.punctuation for character in word)
    return not only_signs and count_words(word, "textattack-0.3.11") == 1


@dataclass(frozen=True)
class _Filled(Candidates):
    """The ``count`` words that a masked language model finds likeliest at a mask.

    ``least``: the least probability.  Pieces of words are taken as words, as TextAttack does.
    """

    model: MaskedLM
    count: int = 50
    least: float = 0.0

    def _at_mask(self, texts: Sequence[str]) -> Steps[list[list[str]]]:
        """The words for each text; those without a letter of the alphabet are dropped."""
        if not texts:
            return []
        gaps = (Gap(text, self.count, self.least, _counts) for text in texts)
        filled = yield FillGaps(tuple(gaps))
        letters = frozenset(string.ascii_letters)
        return [
            [word for word in map(self.model.plain, tokens) if letters.intersection(word)]
            for tokens in filled
        ]


@dataclass(frozen=True)
class MaskedWords(_Filled):
    """The likeliest words in place of the word."""

    def words(self, attempt: Attempt, current: AttackedText, position: int) -> Steps[list[str]]:
        masked = current.shown_as(position, self.model.mask_token).joined
        found = yield from self._at_mask([masked])
        return [word for word in found[0] if count_words(word, current.tokenization) == 1]


@dataclass(frozen=True)
class InsertedWords(_Filled):
    """The likeliest words in front of each word that was not changed, stop words too (CLARE)."""

    def anywhere(self, attempt: Attempt, current: AttackedText, positions: Sequence[int]) -> Texts:
        words = enumerate(current.words)
        places = [(place, old) for place, old in words if place not in current.modified]
        masked = [
            current.rewritten(place, f"{self.model.mask_token} {old}").window(place, None)
            for place, old in places
        ]
        found = yield from self._at_mask(masked)
        return [
            current.rewritten(place, f"{word} {old}")
            for (place, old), words in zip(places, found, strict=True)
            for word in words
            if word != old
        ]


@dataclass(frozen=True)
class MergedWords(_Filled):
    """The likeliest words in place of two neighbours whose tags go together (CLARE).

    As in TextAttack, of all words of the text, also those that were changed, or are stop words.
    """

    tagger: Tagger | None = None

    def anywhere(self, attempt: Attempt, current: AttackedText, positions: Sequence[int]) -> Texts:
        if self.tagger is None:
            return []
        tags = self.tagger.tag(current.words)
        places = [
            place
            for place, tag in enumerate(tags[:-1])
            if tags[place + 1] in _MERGED.get(tag, "").split()
            and current.spans[place][0] == current.spans[place + 1][0]
        ]
        masked = [
            current.shown_as(place, self.model.mask_token).without(place + 1).window(place, None)
            for place in places
        ]
        found = yield from self._at_mask(masked)
        return [
            current.deleted(place + 1).replaced({place: word})
            for place, words in zip(places, found, strict=True)
            for word in words
            if word != current.words[place] and count_words(word, current.tokenization) == 1
        ]


@dataclass(frozen=True)
class AnyEdits(Search):
    """Any edits up to the budget: exactly what a certificate says is harmless.

    Step by step, whatever does most harm among the first ``places`` of the ranking, better or not,
    until the budget is spent.
    """

    places: int = 12

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        found = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        for _ in range(attempt.budget or 0):
            free = frozenset(recipe.positions(found.text))
            places = [position for position in order if position in free][: self.places]
            texts = []
            for position in places:
                texts += yield from recipe.candidate_texts(attempt, found.text, position)
            around = yield from recipe.candidates.anywhere(attempt, found.text, places)
            texts += yield from recipe.allowed(attempt, around)
            results = yield from ask(list(dict.fromkeys(texts)), found.text)
            if not results:
                break
            found = max(results, key=harm)
            if found.flipped or attempt.exhausted:
                break
        return found
