"""Word vectors: the nearest words by cosine, and the cosine of two words.

The counter-fitted vectors that TextFooler uses are a text file, a word and its numbers a line
(``counter-fitted-vectors.txt``, github.com/nmrksic/counter-fitting).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ranmask.attacks.resources.files import files_digest, read_lines
from ranmask.errors import DataError, OptionError

_CACHED_WORDS = 100_000


class WordVectors:
    """Neighbours by cosine; equal cosines in the order of the file.

    Words that hold whitespace, words that were there before, and words whose vector is zero are
    left out and counted.

    Args:
        words: The words.
        matrix: Their vectors, a row each, of any length.
        name: What a result calls them.
        source: The file that they were read from, for the record.
        sha256: Of that file.
    """

    def __init__(
        self,
        words: Sequence[str],
        matrix: npt.NDArray[np.floating],
        *,
        name: str = "vectors",
        source: str | None = None,
        sha256: str | None = None,
    ) -> None:
        if matrix.ndim != 2 or len(matrix) != len(words):
            raise DataError(
                f"{name}: {len(words)} words need a matrix of {len(words)} rows, not one of shape "
                f"{matrix.shape}"
            )
        if not np.isfinite(matrix).all():
            row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
            raise DataError(f"{name}: the vector of {words[row]!r} is not of finite numbers")
        lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
        self._dropped = {"whitespace": 0, "repeated": 0, "zero": 0}
        rows: dict[str, int] = {}
        for row, word in enumerate(words):
            if word.split() != [word]:
                self._dropped["whitespace"] += 1
            elif word in rows:
                self._dropped["repeated"] += 1
            elif lengths[row] == 0:
                self._dropped["zero"] += 1
            else:
                rows[word] = row
        if not rows:
            raise DataError(f"{name} has no words")
        kept = np.fromiter(rows.values(), dtype=np.intp)
        self._unit = (matrix[kept] / lengths[kept, None]).astype(np.float32)
        self._words = tuple(rows)
        self._row = {word: row for row, word in enumerate(self._words)}
        self._record = {"name": name, "source": source, "sha256": sha256}
        self._cached = lru_cache(maxsize=_CACHED_WORDS)(self._nearest)

    @classmethod
    def load(cls, path: str | Path) -> WordVectors:
        """Read ``X.txt`` (or ``X.txt.gz``), or ``X.npy`` with the words in ``X.words.txt``."""
        path = Path(path).expanduser()
        if path.suffix == ".npy":
            listed = path.with_suffix(".words.txt")
            files = [path, listed]
            matrix = _read_matrix(path)
            words = [line for _, line in read_lines(listed)]
        else:
            files = [path]
            words, matrix = _read_vectors(path)
        return cls(words, matrix, name=path.name, source=str(path), sha256=files_digest(files))

    def nearest(self, word: str, count: int) -> tuple[str, ...]:
        """The ``count`` words most alike, the most alike first; none for an unknown word."""
        if count < 1:
            raise OptionError(f"count must be at least 1, not {count}")
        return self._cached(word, count) if word in self._row else ()

    def similarity(self, a: str, b: str) -> float | None:
        """The cosine of two words; None where one of them is unknown."""
        if a not in self._row or b not in self._row:
            return None
        return float(self._unit[self._row[a]] @ self._unit[self._row[b]])

    def description(self) -> dict[str, object]:
        """What a result records."""
        return {
            "kind": "word-vectors",
            **self._record,
            "words": len(self._words),
            "dimensions": self._unit.shape[1],
            "dropped": dict(self._dropped),
        }

    def _nearest(self, word: str, count: int) -> tuple[str, ...]:
        row = self._row[word]
        cosines = self._unit @ self._unit[row]
        cosines[row] = -np.inf
        count = min(count, len(cosines) - 1)
        if not count:
            return ()
        # All that are as near as the last one that is wanted, so that ties do not depend on how
        # the partition went.
        least = -np.partition(-cosines, count - 1)[count - 1]
        found = np.flatnonzero(cosines >= least)
        best = found[np.argsort(-cosines[found], kind="stable")[:count]]
        return tuple(self._words[place] for place in best)


def _read_vectors(path: Path) -> tuple[list[str], npt.NDArray[np.float32]]:
    words: list[str] = []
    rows: list[npt.NDArray[np.float32]] = []
    for number, line in read_lines(path):
        word, *numbers = line.rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and word.isdigit() and numbers[0].isdigit():
            continue  # word2vec's first line: how many words, and how many numbers each
        try:
            row = np.fromiter(map(float, numbers), dtype=np.float32, count=len(numbers))
        except ValueError as error:
            raise DataError(f"{path}: {word!r} and numbers expected: {error}", number) from None
        if not numbers or (rows and len(row) != len(rows[0])):
            wanted = f"{len(rows[0])} numbers" if rows else "numbers"
            raise DataError(f"{path}: {word!r} has {len(numbers)} numbers, not {wanted}", number)
        words.append(word)
        rows.append(row)
    if not rows:
        raise DataError(f"{path} is empty: expected a word and its numbers a line")
    return words, np.stack(rows)


def _read_matrix(path: Path) -> npt.NDArray[np.floating]:
    try:
        matrix = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not isinstance(matrix, np.ndarray) or not np.issubdtype(matrix.dtype, np.floating):
        raise DataError(f"{path} is not a matrix of floating-point numbers")
    return matrix
