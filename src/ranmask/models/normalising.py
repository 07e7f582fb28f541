"""Spellings that a word table reads as one: `Normaliser`, a function of one word.

A text is split into words before, so that what is proved counts the words that a user sees; no
normal form holds a blank, however many words NFKC makes of a character, and none is empty (but of
``letters``).

``case``
    Punctuation around a word and its case do not count.
``lookalikes``
    Nor do compatibility forms (NFKC: full width, ligatures, bold letters of mathematics),
    characters that are not seen (zero-width ones), marks on Latin letters, and punctuation between
    three or more single letters (``f.r.e.e``, ``f_r_e_e``).  A character that looks like ASCII, as
    many Cyrillic ones do, is read as that.
``letters``
    Only letters and digits count, in lower case and without marks: `letters`, of tables with a
    vocabulary.

Which characters look alike is Unicode's list (UTS 39), from the package ``confusable_homoglyphs``.
It is needed to train, not to load: **a table keeps the list it was trained with**, so that no other
version of it changes what the table says.

Assumption.  NFKC and categories are those of Python's Unicode, whose later versions add characters
but change none.
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from ranmask.errors import MissingDependencyError, ModelError

Normalisation: TypeAlias = Literal["none", "case", "lookalikes"]
LETTERS: Literal["letters"] = "letters"

PUNCTUATION = string.punctuation + "“”‘’…–—"  # noqa: RUF001

_UNSEEN = {"Cf", "Cc", "Zs", "Zl", "Zp"}  # categories that leave no trace in a normal form
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_APART = re.compile(r"\w(?:[\W_]\w){2,}")  # three single letters or more, set apart
_BETWEEN = re.compile(r"[\W_]")


@dataclass(frozen=True)
class Normaliser:
    """The normal form of a word: ``normaliser(word)``.

    ``lookalikes``: what a character is read as, by character; of ``lookalikes`` only.

    >>> Normaliser("case")("“Film,")
    'film'
    >>> Normaliser("lookalikes", {"а": "a", "о": "o"})("Sраm".replace("р", "p") + "\u200b!")
    'spam'
    """

    name: Normalisation | Literal["letters"] = "none"
    lookalikes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in (known := (*get_args(Normalisation), LETTERS)):
            names = ", ".join(known)
            raise ModelError(f"words are normalised by one of {names}, not {self.name!r}")
        if self.name != "lookalikes" and self.lookalikes:
            raise ModelError(f"normalisation {self.name!r} has no list of lookalikes")
        for one, other in self.lookalikes.items():
            if len(one) != 1 or one.isascii() or not other.isascii() or other.split() != [other]:
                raise ModelError(f"a list of lookalikes cannot read {one!r} as {other!r}")

    def __call__(self, word: str) -> str:
        """The normal form."""
        if self.name == "none":
            return word
        if self.name == LETTERS:
            return letters(word)
        plain = word if self.name == "case" or word.isascii() else self._seen(word)
        lower = (plain.strip(PUNCTUATION) or plain).lower()
        if self.name == "lookalikes" and _APART.fullmatch(lower):
            return _BETWEEN.sub("", lower)
        return lower

    def _seen(self, word: str) -> str:
        """What is seen of a word, in ASCII where it looks like that; the word, of nothing."""
        shown: list[str] = []
        for one in unicodedata.normalize("NFKD", word):
            read = self.lookalikes.get(one, one)
            kind = unicodedata.category(read[0])
            on_latin = kind in ("Mn", "Me") and bool(shown) and shown[-1].isascii()
            if kind not in _UNSEEN and not on_latin and not _IGNORED.match(read):
                shown.append(read)
        return unicodedata.normalize("NFC", "".join(shown)) or word


def letters(word: str) -> str:
    """The letters and digits of a word, in lower case and without marks; none of some words.

    **Every character is read by itself, as one character or as none**, so that an edited one
    changes at most one of what is read: certificates of changed characters rest on it.

    >>> letters("Vi.á-gra™!")
    'viagra'
    """
    return "".join(map(_letter, word))


@functools.lru_cache(1 << 16)
def _letter(one: str) -> str:
    found = [read for read in unicodedata.normalize("NFKD", one).lower() if read.isalnum()]
    return found[0] if len(found) == 1 else one if one.isalnum() else ""


def installed(name: Normalisation) -> Normaliser:
    """The normaliser of that name, with the list of lookalikes that is installed."""
    return Normaliser(name, _lookalikes() if name == "lookalikes" else {})


def _lookalikes() -> dict[str, str]:
    """Characters that look like ASCII, and the ASCII that they look like."""
    try:
        from confusable_homoglyphs import confusables
    except ImportError as error:
        raise MissingDependencyError("confusable_homoglyphs", "lookalikes") from error
    found: dict[str, str] = {}
    for one, others in confusables.confusables_data.items():
        alike = [read for other in others if (read := _ascii(other["c"]))]
        if len(one) == 1 and not one.isascii() and alike:
            # Unicode names one shape for "l", "I", "1" and "|"; what is read is in the same case.
            alike += ["I"] if "l" in alike else []
            found[one] = min(alike, key=partial(_unlike, one))
    for capital, read in list(found.items()):  # a small letter may be drawn as a small capital
        small = capital.lower()
        if len(small) == 1 and not small.isascii():
            found.setdefault(small, read.lower())
    return dict(sorted(found.items()))


def _unlike(one: str, read: str) -> tuple[Any, ...]:
    return not read.isalpha(), read.isupper() != one.isupper(), len(read), read


def _ascii(shape: str) -> str:
    """A shape in ASCII, of letters and digits alone where it has any; or nothing."""
    if not shape.isascii() or not shape.isprintable() or shape.split() != [shape]:
        return ""
    return "".join(filter(str.isalnum, shape)) or shape
