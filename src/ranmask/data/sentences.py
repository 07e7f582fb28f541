"""Sentences of a text, by rules alone: for long documents that are to be read piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ranmask.words import join, split

_BREAK = re.compile(r"\n\s*\n|<br\s*/?>|(?<=[\u3002\uff01\uff1f])", re.IGNORECASE)
_CLOSING, _OPENING = "\"'\u201d\u2019\u00bb)]}*", "\"'\u201c\u2018\u00ab([{*"
_ENDS = tuple(".!?…\u3002\uff01\uff1f")
_ABBREVIATIONS = re.compile(
    "mrs?|ms|dr|prof|[sj]r|[sm]t|rev|hon|gen|col|lt|sgt|capt|cmdr|gov|sen|rep|pres|messrs|vs|etc|"
    "eg|ie|cf|al|ca|approx|nos?|vol|pp|fig|eq|sec|ch|eds?|dept|univ|inc|ltd|corp|co|bros|est|"
    "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, none of them empty.

    One ends at a full stop, question or exclamation mark, where the next word does not begin in
    lower case; and at an empty line or ``<br />``.  No word is lost, and none is cut: a stop after
    an initial or a common abbreviation ends nothing.

    >>> sentences('He met Dr. J. Smith at 3.30 p.m. on Monday. "Well?" she said. It ended')
    ['He met Dr. J. Smith at 3.30 p.m. on Monday.', '"Well?" she said.', 'It ended']
    """
    return [join(words) for part in _BREAK.split(text) for words in _of_paragraph(split(part))]


def _of_paragraph(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    start = 0
    for place, (word, following) in enumerate(pairwise(words), 1):
        if _ends(word) and (not _letters(word) or not _begins_low(following)):
            if following in _CLOSING:  # a quotation mark that stands by itself
                continue
            yield words[start:place]
            start = place
    if words[start:]:
        yield words[start:]


def _ends(word: str) -> bool:
    """Whether a sentence may end with this word."""
    bare = word.rstrip(_CLOSING)
    if not bare.endswith(_ENDS):
        return False
    if not bare.endswith(".") or bare.endswith(".."):
        return True
    name = bare.lstrip(_OPENING).rstrip(".")
    dotted = "." in name and all(len(part) == 1 for part in name.split("."))  # as U.S. or e.g.
    initial = len(name) == 1 and name.isupper() and name != "I"
    return not (dotted or initial or _ABBREVIATIONS.fullmatch(name))


def _begins_low(word: str) -> bool:
    return word.lstrip(_OPENING)[:1].islower()


def _letters(word: str) -> bool:
    return any(letter.isalnum() for letter in word)
