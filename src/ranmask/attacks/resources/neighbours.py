"""Words that may take a word's place: from a table, or from word vectors (`word_vectors`).

A neighbour is one word, so that an exchange leaves the number of words as it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from ranmask.attacks.resources.files import files_digest, read_text
from ranmask.attacks.resources.word_vectors import WordVectors
from ranmask.data import data_folder
from ranmask.errors import DataError, OptionError

KNOWN = {
    "jia2019": "jia2019_counterfitted_neighbors.json.gz",
    "safer2020": "safer2020_counterfitted_neighbors.json.gz",
    "dne": "dne_counterfitted_euc_top8_d0.7.json.gz",
}
"""Tables by name: their files in ``synonyms`` of the data folder."""
DEFAULT_NEIGHBOURS = "jia2019"

_SPECIAL = re.compile(r"@@.+@@")  # AllenNLP's padding and unknown word


class Neighbours(Protocol):
    """What attacks need of neighbours.  Words are looked up as they are spelt, case and all."""

    def nearest(self, word: str, count: int) -> tuple[str, ...]:
        """At most ``count`` neighbours, the nearest first; none for an unknown word."""

    def similarity(self, a: str, b: str) -> float | None:
        """The cosine of two words; None where it is not known."""

    def description(self) -> dict[str, object]:
        """What a result records."""


class NeighbourTable:
    """Neighbours from a table, which has no vectors: its own radius decided who is in.

    Left out and counted: words that hold whitespace, special tokens, a word as its own neighbour,
    and neighbours named twice.

    Args:
        table: The neighbours of each word, the nearest first.
        name: What a result calls it.
        source: The file that it was read from, for the record.
        sha256: Of that file.

    >>> films = NeighbourTable({"film": ["film", "movie", "motion picture", "cinema"]})
    >>> films.nearest("film", 5), films.nearest("plot", 5)
    (('movie', 'cinema'), ())
    """

    def __init__(
        self,
        table: Mapping[str, object],
        *,
        name: str = "table",
        source: str | None = None,
        sha256: str | None = None,
    ) -> None:
        self._dropped = {"whitespace": 0, "special": 0, "itself": 0, "repeated": 0}
        kept = {}
        for word, neighbours in table.items():
            if not isinstance(neighbours, list | tuple) or not all(
                isinstance(one, str) for one in neighbours
            ):
                raise DataError(f"{name}: the neighbours of {word!r} are not a list of strings")
            if self._usable(word):
                kept[word] = self._usable_neighbours(word, neighbours)
        self.table: Mapping[str, tuple[str, ...]] = MappingProxyType(kept)
        self._record = {"name": name, "source": source, "sha256": sha256}

    @classmethod
    def load(cls, path: str | Path, name: str | None = None) -> NeighbourTable:
        """Read a JSON object of word and list, ``.json`` or ``.json.gz``."""
        path = Path(path).expanduser()
        try:
            table = json.loads(read_text(path))
        except json.JSONDecodeError as error:
            raise DataError(f"{path} is not JSON: {error}") from None
        if not isinstance(table, dict) or not table:
            raise DataError(f"{path} must hold a JSON object of words and lists of neighbours")
        return cls(table, name=name or path.name, source=str(path), sha256=files_digest([path]))

    def nearest(self, word: str, count: int) -> tuple[str, ...]:
        """At most ``count`` neighbours, the nearest first; none for an unknown word."""
        if count < 1:
            raise OptionError(f"count must be at least 1, not {count}")
        return self.table.get(word, ())[:count]

    def similarity(self, a: str, b: str) -> None:
        """None: a table has no vectors."""

    def description(self) -> dict[str, object]:
        """What a result records."""
        return {
            "kind": "neighbour-table",
            **self._record,
            "words": len(self.table),
            "words_with_neighbours": sum(1 for neighbours in self.table.values() if neighbours),
            "dropped": dict(self._dropped),
        }

    def _usable(self, word: str) -> bool:
        if word.split() != [word]:
            self._dropped["whitespace"] += 1
            return False
        if _SPECIAL.fullmatch(word):
            self._dropped["special"] += 1
            return False
        return True

    def _usable_neighbours(
        self, word: str, neighbours: list[str] | tuple[str, ...]
    ) -> tuple[str, ...]:
        usable = [one for one in neighbours if self._usable(one)]
        others = [one for one in usable if one != word]
        different = tuple(dict.fromkeys(others))
        self._dropped["itself"] += len(usable) - len(others)
        self._dropped["repeated"] += len(others) - len(different)
        return different


def load_neighbours(source: str | Path) -> NeighbourTable | WordVectors:
    """Neighbours by a name in `KNOWN`, or from a file.

    ``.json`` and ``.json.gz`` are tables; ``.txt``, ``.txt.gz`` and ``.npy`` are vectors.  The
    names win over files of that name: write ``./dne`` for the file.
    """
    if source in KNOWN:
        return NeighbourTable.load(_known_file(str(source)), name=str(source))
    path = Path(source).expanduser()
    if not path.is_file():
        raise DataError(
            f"there are no neighbours {str(source)!r}: name a file (a table .json, or vectors .txt "
            f"or .npy), or one of {', '.join(KNOWN)}"
        )
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if kind == ".json":
        return NeighbourTable.load(path)
    if kind == ".txt" or path.suffix == ".npy":
        return WordVectors.load(path)
    raise DataError(
        f"cannot tell what {path} is by its name: a table ends in .json or .json.gz, vectors end "
        "in .txt, .txt.gz or .npy"
    )


def _known_file(name: str) -> Path:
    file = Path("synonyms") / KNOWN[name]
    folder = data_folder()
    if folder is not None and (folder / file).is_file():
        return folder / file
    given = os.environ.get("RANMASK_DATA")
    place = folder or (given and f"RANMASK_DATA={given}")
    raise DataError(
        f"cannot find the neighbours {name!r}: "
        f"{f'they are not in {place}' if place else 'there is no data folder'}. Set RANMASK_DATA "
        f"to a folder that holds {file.as_posix()}, or name a file of your own"
    )
