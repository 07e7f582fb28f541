"""Which words of a text an attack may replace.

They are not the words of `ranmask.words`, by which changes are counted: the field's tools leave
punctuation alone, so that ``(film,`` is attacked as ``film``.  A replacement is a non-empty string
without whitespace and an attackable word never spans two words, so `AttackedText.replaced` never
changes the number of words of a text; `rewritten` and `deleted` do.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

from ranmask.words import Document, Text, document

Tokenization: TypeAlias = Literal["words", "textattack-2021", "textattack-0.3.11"]
Span: TypeAlias = tuple[int, int, int]
"""Part of the text, first character, and the one after the last."""

_WORD = re.compile(r"\S+")
# Letters, digits and the few signs that TextAttack counts as parts of a word.
_TEXTATTACK = re.compile("[\\w'\\-*@`\u00d7\u02d7]+")
_TRIMMED = "'-_*@"


@dataclass(frozen=True)
class AttackedText:
    """A text under attack: its parts (premise and hypothesis, or one), tokenized.

    ``modified`` are the positions that were changed so far.  ``origin`` is the text before the last
    change, and ``new_words`` what was put in.  ``moved``: the first and the last word that were
    rewritten, and how many words there are more since; None: words are where they were.
    ``similarity`` is how much alike a constraint found the two, where one measured it.
    """

    parts: tuple[str, ...]
    tokenization: Tokenization
    modified: frozenset[int] = field(default=frozenset(), compare=False)
    origin: AttackedText | None = field(default=None, compare=False, repr=False)
    new_words: Mapping[int, str] = field(default_factory=dict, compare=False)
    similarity: float | None = field(default=None, compare=False)
    moved: tuple[int, int, int] | None = field(default=None, compare=False)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Where the attackable words are."""
        if self.origin is None or not self._words_stay:
            return tuple(
                (part, start, stop)
                for part, string in enumerate(self.parts)
                for start, stop in _spans(string, self.tokenization)
            )
        moved: list[Span] = []
        last = shift = 0
        for position, (part, start, stop) in enumerate(self.origin.spans):
            shift = shift if part == last else 0
            length = len(self.new_words.get(position, "")) or stop - start
            moved.append((part, start + shift, start + shift + length))
            last, shift = part, shift + length - (stop - start)
        return tuple(moved)

    @property
    def _words_stay(self) -> bool:
        """Whether all other words surely are what and where they were in the text before."""
        return not self.moved and self._surely_keeps_positions

    @property
    def _surely_keeps_positions(self) -> bool:
        """Words are cut by blanks, or letters and digits only were put in."""
        return self.tokenization == "words" or all(map(str.isalnum, self.new_words.values()))

    @property
    def keeps_positions(self) -> bool:
        """Whether all other words are where they were, or have moved, since the last change."""
        if self.origin is None:
            return True
        old = self.origin.words
        if self.moved:
            first, last, _ = self.moved
            return self.words == (*old[:first], *self.new_words.values(), *old[last + 1 :])
        if self._surely_keeps_positions:
            return True
        return len(self.words) == len(old) and all(
            self.words[place] == word
            for place, word in enumerate(old)
            if place not in self.new_words
        )

    @cached_property
    def places(self) -> tuple[int | None, ...]:
        """Where each word of the original text stands now; None where it is gone."""
        if self.origin is None:
            return tuple(range(len(self.words)))
        if self.moved is None:
            return self.origin.places
        first, last, gain = self.moved
        # What was put in front of a word pushes it back; what was put behind it does not.
        stays = self.new_words.get(first) == self.origin.words[first]
        here = None if not self.new_words else first if stays else max(self.new_words)

        def now(place: int | None) -> int | None:
            if place is None or place < first:
                return place
            return place + gain if place > last else here if place == first else None

        return tuple(map(now, self.origin.places))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The attackable words."""
        if self.origin is not None and self._words_stay:
            words = list(self.origin.words)
            for position, word in self.new_words.items():
                words[position] = word
            return tuple(words)
        return tuple(self.parts[part][start:stop] for part, start, stop in self.spans)

    def words_changed(self, original: AttackedText) -> int:
        """How many words are not those that stand in the same places of another text."""
        before, new = self.origin, self.new_words
        if before is None or len(new) != 1 or not self._words_stay:
            return sum(map(str.__ne__, original.words, self.words))
        [(position, word)] = new.items()
        known = before._known_changes.get((position, original))
        if known is None:
            pairs = enumerate(zip(original.words, before.words, strict=False))
            known = sum(old != other for place, (old, other) in pairs if place != position)
            before._known_changes[position, original] = known
        return known + (word != original.words[position] if position < len(original.words) else 0)

    @cached_property
    def _known_changes(self) -> dict[tuple[int, AttackedText], int]:
        return {}

    @property
    def text(self) -> Text:
        """The text as a classifier takes it."""
        return self.parts[0] if len(self.parts) == 1 else (self.parts[0], self.parts[1])

    @cached_property
    def document(self) -> Document:
        """The text as a classifier reads it, made of the words that were read before."""
        before, last = self.origin, len(self.parts) - 1
        if (
            before is None
            or self.moved
            or any(before.spans[position][0] < last for position in self.new_words)
        ):
            return document(self.text)
        read = before.document
        for position in sorted(self.new_words, reverse=True):
            _, start, stop = before.spans[position]
            place = bisect_right(before._starts, start) - 1
            begin, word = before._starts[place], read.words[place]
            word = word[: start - begin] + self.new_words[position] + word[stop - begin :]
            read = read.with_word(place, word)
        return read

    @cached_property
    def _starts(self) -> list[int]:
        """Where the words of `document` begin, in the last part."""
        return [found.start() for found in _WORD.finditer(self.parts[-1])]

    @property
    def joined(self) -> str:
        """All parts as one string, for language models, and for the order of candidates."""
        return "\n".join(self.parts)

    def replaced(self, words: Mapping[int, str]) -> AttackedText:
        """This text with other words at some positions."""
        parts = list(self.parts)
        for position in sorted(words, reverse=True):  # so that no place moves before its turn
            part, start, stop = self.spans[position]
            word = words[position]
            if word.split() != [word]:
                raise ValueError(f"{word!r} is not one word: it would change the number of words")
            parts[part] = parts[part][:start] + word + parts[part][stop:]
        modified = self.modified | words.keys()
        return AttackedText(tuple(parts), self.tokenization, modified, self, words)

    def with_each(self, position: int, words: Iterable[str]) -> list[AttackedText]:
        """This text with each of some words in the place of one; each must be one word."""
        part, start, stop = self.spans[position]
        before, after = self.parts[part][:start], self.parts[part][stop:]
        first, last = self.parts[:part], self.parts[part + 1 :]
        modified = self.modified | {position}
        return [
            AttackedText(
                *((*first, before + word + after, *last), self.tokenization, modified),
                *(self, {position: word}),
            )
            for word in words
        ]

    def rewritten(self, position: int, string: str, through: int | None = None) -> AttackedText:
        """This text with any string in place of a word, or of all from it ``through`` another.

        Later words move; all words of the string count as changed.
        """
        last = position if through is None else through
        part, start, stop = self.spans[position][0], self.spans[position][1], self.spans[last][2]
        parts = list(self.parts)
        parts[part] = parts[part][:start] + string + parts[part][stop:]
        return self._moved(tuple(parts), position, last, string)

    def deleted(self, position: int) -> AttackedText:
        """This text without the word at a position; later words move."""
        return self._moved(self.without(position).parts, position, position, "")

    def _moved(self, parts: tuple[str, ...], first: int, last: int, string: str) -> AttackedText:
        spans = enumerate(_spans(string, self.tokenization), first)
        new = {place: string[start:stop] for place, (start, stop) in spans}
        gain = len(new) - (last - first + 1)
        kept = (place for place in self.modified if not first <= place <= last)
        modified = frozenset(place if place < first else place + gain for place in kept)
        return AttackedText(
            *(parts, self.tokenization, modified | new.keys(), self, new), moved=(first, last, gain)
        )

    def shown_as(self, position: int, string: str) -> AttackedText:
        """This text with another string in a word's place, to ask about; no change to keep."""
        return replace(self.replaced({position: string}), modified=self.modified)

    def with_similarity(self, similarity: float) -> AttackedText:
        """This text, which a constraint found so much alike."""
        found = object.__new__(AttackedText)
        vars(found).update(vars(self), similarity=similarity)  # with what is known of its words
        return found

    def without(self, position: int) -> AttackedText:
        """This text without the word at a position, and without the blank that it leaves."""
        part, start, stop = self.spans[position]
        before, after = self.parts[part][:start], self.parts[part][stop:]
        if position == 0:
            after = after.removeprefix(" ")
        elif after or part + 1 < len(self.parts):
            before = before.removesuffix(" ")
        parts = list(self.parts)
        parts[part] = before + after
        return AttackedText(tuple(parts), self.tokenization, self.modified)

    def window(self, position: int, size: int | None) -> str:
        """The text of ``size`` words around a position, or of all words, from first to last."""
        start, stop = self._window(position, size)
        return self.joined[start:stop]

    def _window(self, position: int, size: int | None) -> tuple[int, int]:
        """Where a window begins and ends in the joined string."""
        last = len(self.words) - 1
        first = 0
        if size is not None and size <= last:
            first = min(max(0, position - math.ceil((size - 1) / 2)), last + 1 - size)
            last = first + size - 1
        (part, start, _), (last_part, _, stop) = self._span(first), self._span(last)
        offsets = [0, len(self.parts[0]) + 1]  # of the parts in the joined string
        return offsets[part] + start, offsets[last_part] + stop

    def _span(self, position: int) -> Span:
        """One of `spans`; the others need not be found for it."""
        if self.origin is None or "spans" in vars(self) or not self._words_stay:
            return self.spans[position]
        before = self.origin.spans
        part, start, stop = before[position]
        for place, word in self.new_words.items():
            if place <= position and before[place][0] == part:
                gain = len(word) - (before[place][2] - before[place][1])
                start, stop = start + (gain if place < position else 0), stop + gain
        return part, start, stop


def tokenize(text: Text, tokenization: Tokenization, read: Document | None = None) -> AttackedText:
    """A text, or a pair, with its attackable words; ``read`` is its document, where it is known."""
    made = AttackedText((text,) if isinstance(text, str) else tuple(text), tokenization)
    if read is not None:
        vars(made)["document"] = read  # a cached property
    return made


@lru_cache(maxsize=1 << 16)
def count_words(string: str, tokenization: Tokenization) -> int:
    """How many attackable words a string has."""
    return len(_spans(string, tokenization))


def _spans(string: str, tokenization: Tokenization) -> list[tuple[int, int]]:
    if tokenization == "words":
        return [found.span() for found in _WORD.finditer(string)]
    # In 2021 TextAttack trimmed signs at the start of a run only.
    trim = str.strip if tokenization == "textattack-0.3.11" else str.lstrip
    spans = []
    for found in _TEXTATTACK.finditer(string):
        if word := trim(run := found.group(), _TRIMMED):
            start = found.start() + len(run) - len(run.lstrip(_TRIMMED))
            spans.append((start, start + len(word)))
    return spans
