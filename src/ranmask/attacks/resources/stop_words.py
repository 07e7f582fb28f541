"""Words that attacks leave alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ranmask.attacks.resources.files import read_lines
from ranmask.attacks.resources.nltk_files import STOP_WORDS, nltk_file
from ranmask.errors import DataError

NAMES = ("textfooler", "nltk", "none")
"""TextFooler's own list, which comes with ranmask; NLTK's English list; and no words."""


@dataclass(frozen=True)
class StopWords:
    """A list of words, in lower case, its name, and the file that it was read from.

    >>> StopWords("articles", frozenset({"a", "the"})).description()["words"]
    2
    """

    name: str
    words: frozenset[str]
    source: str | None = None

    def description(self) -> dict[str, object]:
        """What a result records; the digest is of the words in order of the alphabet."""
        spelt = "\n".join(sorted(self.words)).encode()
        return {
            "kind": "stop-words",
            "name": self.name,
            "source": self.source,
            "words": len(self.words),
            "sha256": hashlib.sha256(spelt).hexdigest(),
        }


def load_stop_words(source: str | Path, folder: str | Path | None = None) -> StopWords:
    """A list by its name, or from a text file with a word a line; lines with ``#`` are notes.

    The names in `NAMES` win over files of that name: write ``./nltk`` for the file.  ``folder``
    is where NLTK's data is, see `nltk_files`.

    >>> load_stop_words("textfooler").words >= {"the", "wasn't"}
    True
    """
    if source == "none":
        return StopWords("none", frozenset())
    if source == "textfooler":
        path = Path(__file__).with_name("textfooler.txt")
    elif source == "nltk":
        path = nltk_file(STOP_WORDS, folder)
    else:
        path = Path(source).expanduser()
        if not path.is_file():
            raise DataError(
                f"there is no list of stop words {str(source)!r}: name a text file with a word "
                f"a line, or one of {', '.join(NAMES)}"
            )
    name = str(source) if source in NAMES else path.name
    return StopWords(name, _read(path), str(path))


def _read(path: Path) -> frozenset[str]:
    words = set()
    for number, line in read_lines(path):
        if line.startswith("#") or not line.strip():
            continue
        if len(line.split()) > 1:
            raise DataError(f"{path} must have a word a line, not {line!r}", number)
        words.add(line.strip().lower())
    if not words:
        raise DataError(f"{path} has no words: write 'none' for no stop words")
    return frozenset(words)
