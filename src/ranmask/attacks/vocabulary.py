"""Words that an attacker may put anywhere."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask.errors import DataError
from ranmask.words import Text, split

DEFAULT_WORDS = 5000


@dataclass(frozen=True)
class Vocabulary:
    """A list of words, and where they come from."""

    source: str
    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.words:
            raise DataError(f"the vocabulary of {self.source} has no words")

    def description(self) -> dict[str, Any]:
        """Plain JSON values."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        return {"source": self.source, "words": len(self.words), "sha256": digest.hexdigest()}


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
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the vocabulary {path}: {error}") from error
    return Vocabulary(str(path), tuple(dict.fromkeys(split(text))))
