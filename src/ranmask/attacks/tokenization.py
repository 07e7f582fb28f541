"""How a text is cut into the words that an attack may replace.

Attackable words are not the words of `ranmask.words`: the field's tools leave punctuation alone,
so that ``(film,`` is attacked as ``film``.  The preset of a recipe says which cut it uses.  How
many words an attack *changed* is always counted by `ranmask.words`.

A replacement is a non-empty string without whitespace and an attackable word never spans two
words, so no attack built on this module changes the number of words of a text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from ranmask.words import Document, Text, document

Cutting: TypeAlias = Literal["words", "textattack-2021", "textattack-0.3.11"]
Span: TypeAlias = tuple[int, int, int]
"""Part of the text, first character, and the one after the last."""

_SOME = re.compile(r"\S+")
# Letters, digits and the few signs that TextAttack counts as parts of a word.
_TEXTATTACK = re.compile("[\\w'\\-*@`\u00d7\u02d7]+")
_TRIMMED = "'-_*@"


@dataclass(frozen=True)
class CutText:
    """A text under attack: its parts (premise and hypothesis, or one), cut into words.

    ``modified`` are the positions that were replaced so far; positions do not move.
    """

    parts: tuple[str, ...]
    cutting: Cutting
    modified: frozenset[int] = field(default=frozenset(), compare=False)
    origin: tuple[CutText, Span, str] | None = field(default=None, compare=False, repr=False)
    """The text before the last replacement, what was replaced, and by what."""

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Where the attackable words are."""
        if self.origin is not None and self.keeps_cuts:
            before, span, string = self.origin
            return _moved(before.spans, span, string)
        find = _CUTTERS[self.cutting]
        return tuple(
            (part, start, stop)
            for part, string in enumerate(self.parts)
            for start, stop in find(string)
        )

    @property
    def keeps_cuts(self) -> bool:
        """Whether it is plain, without looking, that the last replacement left all cuts in place.

        It does where words are cut by blanks, and where it put in letters and digits only.
        """
        return self.origin is not None and (self.cutting == "words" or self.origin[2].isalnum())

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The attackable words."""
        return tuple(self.parts[part][start:stop] for part, start, stop in self.spans)

    @property
    def text(self) -> Text:
        """The text as a classifier takes it."""
        return self.parts[0] if len(self.parts) == 1 else (self.parts[0], self.parts[1])

    @cached_property
    def document(self) -> Document:
        """The text as a classifier reads it; of what was read before a word was replaced."""
        if self.origin is None or self.origin[1][0] < len(self.parts) - 1:
            return document(self.text)
        before, (_, start, stop), string = self.origin
        place = bisect_right(before._starts, start) - 1
        begin, word = before._starts[place], before.document.words[place]
        changed = word[: start - begin] + string + word[stop - begin :]
        return before.document.with_word(place, changed)

    @cached_property
    def _starts(self) -> list[int]:
        """Where the words of `document` begin, in the last part."""
        return [found.start() for found in _SOME.finditer(self.parts[-1])]

    @property
    def whole(self) -> str:
        """All parts as one string, for language models, and for the order of candidates."""
        return "\n".join(self.parts)

    def replaced(self, position: int, word: str) -> CutText:
        """This text with another word at a position."""
        return self.replaced_all({position: word})

    def replaced_all(self, words: Mapping[int, str]) -> CutText:
        """This text with other words at several positions."""
        text = self
        for position in sorted(words, reverse=True):  # so that no place moves before its turn
            text = text._with_span(self.spans[position], words[position])
        origin = text.origin if len(words) == 1 else None  # of many, look again
        return replace(text, modified=self.modified | words.keys(), origin=origin)

    def shown_as(self, position: int, string: str) -> CutText:
        """This text with another string in a word's place, to ask about; no change to keep."""
        return self._with_span(self.spans[position], string)

    def _with_span(self, span: Span, string: str) -> CutText:
        if not string or any(character.isspace() for character in string):
            raise ValueError(f"{string!r} is not one word: it would change the number of words")
        part, start, stop = span
        old = self.parts[part]
        parts = list(self.parts)
        parts[part] = old[:start] + string + old[stop:]
        return CutText(tuple(parts), self.cutting, self.modified, (self, span, string))

    def without(self, position: int) -> CutText:
        """This text without the word at a position, and without the blank that it leaves."""
        part, start, stop = self.spans[position]
        before, after = self.parts[part][:start], self.parts[part][stop:]
        more = bool(after) or part + 1 < len(self.parts)
        if position == 0:
            after = after.removeprefix(" ")
        elif more and before.endswith(" "):
            before = before[:-1]
        parts = list(self.parts)
        parts[part] = before + after
        return CutText(tuple(parts), self.cutting, self.modified)

    def window(self, position: int, size: int | None) -> str:
        """The text of ``size`` words around a position, or of all words.

        It runs from the start of the first word to the end of the last: punctuation outside is
        left out.
        """
        count = len(self.words)
        half = math.inf if size is None else (size - 1) / 2
        if size is None or position < half:
            first, last = 0, count - 1 if size is None else min(size, count) - 1
        elif position + half >= count:
            first, last = max(0, count - size), count - 1
        else:
            first, last = position - math.ceil(half), position + math.floor(half)
        return self.whole[self._offset(first)[0] : self._offset(last)[1]]

    def _offset(self, position: int) -> tuple[int, int]:
        part, start, stop = self.spans[position]
        before = sum(len(string) + 1 for string in self.parts[:part])
        return before + start, before + stop


def _moved(spans: Iterable[Span], span: Span, string: str) -> tuple[Span, ...]:
    """The spans after a replacement by letters and digits, which leaves all cuts in place."""
    part, start, stop = span
    by = len(string) - (stop - start)
    return tuple(
        (part, start, stop + by)
        if one == span
        else (part, one[1] + by, one[2] + by)
        if one[0] == part and one[1] > start
        else one
        for one in spans
    )


def cut(text: Text, cutting: Cutting, read: Document | None = None) -> CutText:
    """A text, or a pair, cut into attackable words; ``read`` is its document, where it is known."""
    found = CutText((text,) if isinstance(text, str) else tuple(text), cutting)
    if read is not None:
        vars(found)["document"] = read  # a cached property
    return found


def count_words(string: str, cutting: Cutting) -> int:
    """How many attackable words a string has."""
    return len(_CUTTERS[cutting](string))


def _whitespace(string: str) -> list[tuple[int, int]]:
    return [found.span() for found in _SOME.finditer(string)]


def _textattack(string: str) -> list[tuple[int, int]]:
    """Runs of word characters, without the signs at their ends."""
    return [(start, stop) for start, stop in _runs(string, str.strip) if start < stop]


def _textattack_2021(string: str) -> list[tuple[int, int]]:
    """As the library did in 2021: signs were trimmed at the start of a run only."""
    return [(start, stop) for start, stop in _runs(string, str.lstrip) if start < stop]


def _runs(string: str, trim: Callable[[str, str], str]) -> Iterator[tuple[int, int]]:
    for found in _TEXTATTACK.finditer(string):
        run = found.group()
        start = found.start() + len(run) - len(run.lstrip(_TRIMMED))
        yield start, start + len(trim(run, _TRIMMED))


_CUTTERS: dict[Cutting, Callable[[str], list[tuple[int, int]]]] = {
    "words": _whitespace,
    "textattack-2021": _textattack_2021,
    "textattack-0.3.11": _textattack,
}
