"""What a word is.  Every count, kept set, distance and radius in ranmask means these words.

A word is one item of ``str.split()``.  A substitution puts any non-empty string without
whitespace in a word's place; a text that is no valid Unicode then is refused, not classified.  A
text that classifies a pair (premise and hypothesis) has the
words of its hypothesis; the premise is context that is never hidden.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Any, Literal, TypeAlias, cast

from ranmask.errors import TextError, shortened

Text: TypeAlias = str | tuple[str, str]
"""One text, or a pair of premise and hypothesis."""

Hiding: TypeAlias = Literal["mask", "drop"]
"""How a hidden word is shown: as a mask token, or not at all."""


def split(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


def join(words: Iterable[str]) -> str:
    """A text with these words."""
    return " ".join(words)


def distance(first: str, second: str) -> int | None:
    """In how many words two texts differ; None where their numbers of words differ."""
    one, other = split(first), split(second)
    if len(one) != len(other):
        return None
    return sum(a != b for a, b in zip(one, other, strict=True))


@dataclass(frozen=True)
class Document:
    """A text as ranmask sees it: its words, and the premise of a pair."""

    words: tuple[str, ...]
    premise: str | None = None

    def with_word(self, position: int, word: str) -> Document:
        """This text with another word at a position."""
        _check_unicode(word, "word", None)
        if split(word) != (word,):
            raise TextError(
                f"expected one word without blanks around it, not {shortened(repr(word))}"
            )
        words = (*self.words[:position], word, *self.words[position + 1 :])
        return Document(words, self.premise)


def text_seed(seed: int, premise: str | None, words: Sequence[str]) -> int:
    """A seed of 256 bits that follows from a text and another seed.

    A SHA-256 digest, so that the draws of different texts, or from different seeds, have
    nothing to do with each other.  Pinned by a test.
    """
    # Words hold no blanks and JSON marks where a string ends: no two texts look the same.
    before = "null" if premise is None else encode_basestring_ascii(premise)
    spelled = f"[{int(seed)}, {before}, {encode_basestring_ascii(join(words))}]"
    return int.from_bytes(hashlib.sha256(spelled.encode("ascii")).digest(), "big")


def document(text: object, index: int | None = None) -> Document:
    """Read one text or pair; ``index`` is named in the error if it cannot be used.

    What was read before is left as it is.
    """
    if isinstance(text, Document):
        return text
    parts: tuple[object, ...] = (text,)
    if isinstance(text, tuple | list) and len(text) == 2:
        parts = tuple(text)
    names = ("text",) if len(parts) == 1 else ("premise", "hypothesis")
    for part, name in zip(parts, names, strict=True):
        if not isinstance(part, str):
            raise TextError(
                "expected a string, or a pair of strings (premise, hypothesis), not "
                f"{shortened(repr(text))}",
                index,
            )
        _check_unicode(part, name, index)
    *premise, read = cast("tuple[str, ...]", parts)
    words = split(read)
    if not words:
        raise TextError(f"the {names[-1]} has no words: {shortened(repr(read))}", index)
    return Document(words, *premise)


def usable(text: object) -> bool:
    """Whether a text can be classified at all."""
    try:
        document(text)
    except TextError:
        return False
    return True


def documents(texts: Iterable[Text | Document]) -> list[Document]:
    """Read texts; nothing is classified before all of them are known to be usable."""
    if isinstance(texts, str) or hasattr(texts, "columns"):
        texts = listed(texts)
    return [document(text, index) for index, text in enumerate(texts)]


def listed(texts: Iterable[Any]) -> list[Any]:
    """Texts in a list: any iterable, or a DataFrame whose only column, or ``text``, holds them."""
    if isinstance(texts, str):
        raise TextError(
            f"expected a list of texts, not one string; write [{shortened(repr(texts))}]"
        )
    table: Any = texts
    if not hasattr(table, "columns"):
        return list(texts)
    names = list(table.columns)
    name = names[0] if len(names) == 1 else "text"
    if name not in names:
        raise TextError(
            f"expected texts, not a table of the columns {', '.join(map(str, names))}: pass one "
            "of them, as table['text']; pairs as list(zip(premises, hypotheses))"
        )
    return list(table[name])


def _check_unicode(text: str, name: str, index: int | None) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TextError(
            f"the {name} holds half a surrogate pair at character {error.start}, which is not "
            "valid Unicode: decode it again with the right encoding",
            index,
        ) from None
