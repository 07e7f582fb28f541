"""Lists of words: those that attacks leave alone, and those that they may put anywhere."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask.attacks.resources.files import SHIPPED, STOP_WORDS, nltk_file, read_lines, read_text
from ranmask.errors import DataError
from ranmask.words import Text, split

NAMES = ("textfooler", "nltk", "none")
"""TextFooler's own list; NLTK's English list; and no words."""
DEFAULT_WORDS = 5000


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class StopWords:
    """Words in lower case, the name of the list, and the file that it was read from.

    >>> StopWords("articles", frozenset({"a", "the"})).description()["words"]
    2
    """

    name: str
    words: frozenset[str]
    source: str | None = None

    def description(self) -> dict[str, Any]:
        """What a result records; the digest is of the words in order of the alphabet."""
        return {
            "kind": "stop-words",
            "name": self.name,
            "source": self.source,
            "words": len(self.words),
            "sha256": _digest(sorted(self.words)),
        }


@dataclass(frozen=True)
class Vocabulary:
    """Words that an attacker may put anywhere, and where they come from."""

    source: str
    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.words:
            raise DataError(f"the vocabulary of {self.source} has no words")

    def description(self) -> dict[str, Any]:
        """What a result records."""
        return {"source": self.source, "words": len(self.words), "sha256": _digest(self.words)}


def load_stop_words(source: str | Path, folder: str | Path | None = None) -> StopWords:
    """A list by its name, or from a text file with a word a line; lines with ``#`` are notes.

    The names in `NAMES` win over files of that name: write ``./nltk`` for the file.  ``folder``
    is where NLTK's data is, see `nltk_file`.

    >>> load_stop_words("textfooler").words >= {"the", "wasn't"}
    True
    """
    if source == "none":
        return StopWords("none", frozenset())
    if source == "textfooler":
        path = SHIPPED / "textfooler.txt"
    elif source == "nltk":
        path = nltk_file(STOP_WORDS, folder)
    else:
        path = Path(source).expanduser()
        if not path.is_file():
            raise DataError(
                f"there is no list of stop words {str(source)!r}: name a text file with a word "
                f"a line, or one of {', '.join(NAMES)}"
            )
    words = set()
    for number, line in read_lines(path):
        if line.startswith("#") or not line.strip():
            continue
        if len(line.split()) > 1:
            raise DataError(f"{path} must have a word a line, not {line!r}", number)
        words.add(line.strip().lower())
    if not words:
        raise DataError(f"{path} has no words: write 'none' for no stop words")
    return StopWords(str(source) if source in NAMES else path.name, frozenset(words), str(path))


def vocabulary_of(
    texts: Iterable[Text], source: str = "texts", most: int = DEFAULT_WORDS
) -> Vocabulary:
    """The ``most`` frequent words of texts; of equally frequent ones the first in the alphabet."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split(text if isinstance(text, str) else text[1]))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary(source, tuple(ranked[:most]))


def read_vocabulary(path: Path) -> Vocabulary:
    """The words of a text file, whatever blanks are between them, each once."""
    return Vocabulary(str(path), tuple(dict.fromkeys(split(read_text(path)))))
