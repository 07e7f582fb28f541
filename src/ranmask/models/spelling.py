"""How a word of a text is looked up in a table of words, and how another one is put in its place.

Punctuation around a word is set aside, and the rest is looked up in lower case; a word that takes
its place gets the case and the punctuation back.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True)
class Spelling:
    """A word as the table's word ``key``, its case, and the punctuation around it."""

    before: str
    key: str
    case: int
    after: str
    also: tuple[int, ...] = ()
    """Other cases that the word is in as well: "A" is Capitalised and UPPER."""

    @classmethod
    def of(cls, word: str) -> Spelling | None:
        """None where no case and punctuation around a lower-case word give this word."""
        start, end = 0, len(word)
        while start < end and _is_punctuation(word[start]):
            start += 1
        while end > start and _is_punctuation(word[end - 1]):
            end -= 1
        core = word[start:end]
        key = core.lower()
        cases = [case for case in range(3) if core == _in_case(key, case)]
        if not cases:
            return None
        return cls(word[:start], key, cases[0], word[end:], tuple(cases[1:]))

    def like(self, key: str) -> str:
        """Another word of the table, spelt as this one is."""
        return self.before + _in_case(key, self.case) + self.after

    def all_like(self, key: str) -> tuple[str, ...]:
        """Another word in every case that this one is in, with its punctuation."""
        cases = (self.case, *self.also)
        return tuple(self.before + _in_case(key, case) + self.after for case in cases)


def _in_case(word: str, case: int) -> str:
    """0 lower, 1 Capitalised, 2 UPPER."""
    if case == 0:
        return word
    return word[:1].upper() + word[1:] if case == 1 else word.upper()


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def found_again(word: str) -> bool:
    """Whether a word of the table is found again under itself, in whatever case it is shown."""
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    for case in range(3):
        shown = _in_case(word, case)
        spelling = Spelling.of(shown)
        if shown.split() != [shown] or spelling is None or spelling.before or spelling.after:
            return False
        if spelling.key != word:
            return False
    return True
