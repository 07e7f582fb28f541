"""Words that may take a word's place: from a table, from word vectors, or from WordNet.

A neighbour is one word, so that an exchange leaves the number of words as it is.  The
counter-fitted vectors that TextFooler uses are a text file, a word and its numbers a line
(``counter-fitted-vectors.txt``, github.com/nmrksic/counter-fitting).  WordNet is a folder:
``corpora/wordnet`` of NLTK's data, ``dict`` of WordNet's own release, or what Linux distributions
pack as ``wordnet-base``.  The table ``jia2019`` and the words of WordNet come with ranmask.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ranmask.attacks.resources.files import (
    SHIPPED,
    files_digest,
    nltk_file,
    read_json,
    read_lines,
    read_matrix,
    read_vectors,
)
from ranmask.data import data_folder
from ranmask.errors import DataError, OptionError
from ranmask.models.synonyms import FILE_NAME, SynonymSets

KNOWN = {
    "jia2019": "jia2019_counterfitted_neighbors.json.gz",
    "safer2020": "safer2020_counterfitted_neighbors.json.gz",
    "dne": "dne_counterfitted_euc_top8_d0.7.json.gz",
}
"""Tables by name: their files in ``synonyms`` of the data folder, or among what is `SHIPPED`."""
DEFAULT_NEIGHBOURS = "jia2019"
WORDNET = "wordnet"
"""The name of WordNet, from NLTK's data, or as it comes with ranmask."""
WORDNET_FILE = SHIPPED / "wordnet.json.gz"
"""Of each part of speech ``synsets``, lists of words; ``order``, the synsets of each word that is
in several, by their places; and ``irregular`` forms with their base forms.  `tools.wordnet_file`
writes it."""

_KINDS = ("noun", "verb", "adj", "adv")
_ENDINGS = {
    "noun": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}
"""How WordNet makes base forms of inflected ones: endings, and what takes their place."""

_SPECIAL = re.compile(r"@@.+@@")  # AllenNLP's padding and unknown word
_CACHED_WORDS = 100_000


class Neighbours(ABC):
    """What attacks need of neighbours.  Words are looked up as they are spelt, case and all."""

    kind: ClassVar[str]

    def __init__(self, name: str, files: Sequence[Path], **counts: Any) -> None:
        self._record = {
            "kind": self.kind,
            "name": name,
            "source": str(files[0]) if files else None,
            "sha256": files_digest(files) if files else None,
            **counts,
        }

    def nearest(self, word: str, count: int) -> tuple[str, ...]:
        """At most ``count`` neighbours, the nearest first; none for an unknown word."""
        if count < 1:
            raise OptionError(f"count must be at least 1, not {count}")
        return self._nearest(word, count)

    @abstractmethod
    def _nearest(self, word: str, count: int) -> tuple[str, ...]: ...

    def similarity(self, a: str, b: str) -> float | None:
        """The cosine of two words; None where it is not known, as of what has no vectors."""
        return None

    def description(self) -> dict[str, Any]:
        """What a result records."""
        return dict(self._record)


class NeighbourTable(Neighbours):
    """Neighbours from a table, which has no vectors: its own radius decided who is in.

    ``table`` has the neighbours of each word, the nearest first.  Left out and counted: words that
    hold whitespace, special tokens, a word as its own neighbour, and neighbours named twice.

    >>> films = NeighbourTable({"film": ["film", "movie", "motion picture", "cinema"]})
    >>> films.nearest("film", 5), films.nearest("plot", 5)
    (('movie', 'cinema'), ())
    """

    kind = "neighbour-table"

    def __init__(
        self, table: Mapping[str, object], name: str = "table", files: Sequence[Path] = ()
    ) -> None:
        dropped = dict.fromkeys(("whitespace", "special", "itself", "repeated"), 0)

        def usable(word: str) -> bool:
            blank, special = word.split() != [word], bool(_SPECIAL.fullmatch(word))
            dropped["whitespace"] += blank
            dropped["special"] += special and not blank
            return not (blank or special)

        kept = {}
        for word, neighbours in table.items():
            if not isinstance(neighbours, list | tuple) or not all(
                isinstance(neighbour, str) for neighbour in neighbours
            ):
                raise DataError(f"{name}: the neighbours of {word!r} are not a list of strings")
            if usable(word):
                one_word = list(filter(usable, neighbours))
                others = [neighbour for neighbour in one_word if neighbour != word]
                kept[word] = tuple(dict.fromkeys(others))
                dropped["itself"] += len(one_word) - len(others)
                dropped["repeated"] += len(others) - len(kept[word])
        self.table: Mapping[str, tuple[str, ...]] = MappingProxyType(kept)
        known = sum(map(bool, kept.values()))
        super().__init__(name, files, words=len(kept), words_with_neighbours=known, dropped=dropped)

    @classmethod
    def load(cls, path: str | Path, name: str | None = None) -> NeighbourTable:
        """Read a JSON object of word and list, ``.json`` or ``.json.gz``."""
        path = Path(path).expanduser()
        table = read_json(path)
        if not isinstance(table, dict) or not table:
            raise DataError(f"{path} must hold a JSON object of words and lists of neighbours")
        return cls(table, name or path.name, [path])

    def _nearest(self, word: str, count: int) -> tuple[str, ...]:
        return self.table.get(word, ())[:count]


class WordVectors(Neighbours):
    """Neighbours by cosine; equal cosines in the order of the file.

    ``matrix`` has the vector of each word, of any length, in a row.  Left out and counted: words
    that hold whitespace, words that were there before, and words whose vector is zero.
    """

    kind = "word-vectors"

    def __init__(
        self,
        words: Sequence[str],
        matrix: npt.NDArray[np.floating],
        name: str = "vectors",
        files: Sequence[Path] = (),
    ) -> None:
        if matrix.ndim != 2 or len(matrix) != len(words):
            raise DataError(
                f"{name}: {len(words)} words need a matrix of {len(words)} rows, not one of shape "
                f"{matrix.shape}"
            )
        finite = np.isfinite(matrix).all(axis=1)
        if not finite.all():
            word = words[int(np.argmin(finite))]
            raise DataError(f"{name}: the vector of {word!r} is not of finite numbers")
        lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
        dropped = dict.fromkeys(("whitespace", "repeated", "zero"), 0)
        rows: dict[str, int] = {}
        for row, word in enumerate(words):
            if word.split() != [word]:
                dropped["whitespace"] += 1
            elif word in rows:
                dropped["repeated"] += 1
            elif lengths[row] == 0:
                dropped["zero"] += 1
            else:
                rows[word] = row
        if not rows:
            raise DataError(f"{name} has no words")
        kept = np.fromiter(rows.values(), dtype=np.intp)
        self._unit = (matrix[kept] / lengths[kept, None]).astype(np.float32)
        self._words = tuple(rows)
        self._row = {word: row for row, word in enumerate(self._words)}
        self._cached = lru_cache(maxsize=_CACHED_WORDS)(self._by_cosine)
        dimensions = self._unit.shape[1]
        super().__init__(name, files, words=len(rows), dimensions=dimensions, dropped=dropped)

    @classmethod
    def load(cls, path: str | Path) -> WordVectors:
        """Read ``X.txt`` (or ``X.txt.gz``), or ``X.npy`` with the words in ``X.words.txt``."""
        path = Path(path).expanduser()
        files = [path]
        if path.suffix == ".npy":
            files.append(path.with_suffix(".words.txt"))
            matrix = read_matrix(path)
            words = [line for _, line in read_lines(files[1])]
        else:
            words, matrix = read_vectors(path)
        return cls(words, matrix, path.name, files)

    def similarity(self, a: str, b: str) -> float | None:
        """The cosine of two words; None where one of them is unknown."""
        if a not in self._row or b not in self._row:
            return None
        return float(self._unit[self._row[a]] @ self._unit[self._row[b]])

    def _nearest(self, word: str, count: int) -> tuple[str, ...]:
        return self._cached(word, count) if word in self._row else ()

    def _by_cosine(self, word: str, count: int) -> tuple[str, ...]:
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


@dataclass(frozen=True)
class Meanings:
    """What WordNet says of the words of one part of speech; of several words in one nothing.

    ``senses``: of each word, in lower case, the keys of its ``synsets``, the frequent ones first.
    ``irregular``: the base forms of inflected ones.
    """

    synsets: Mapping[int, Sequence[str]]
    senses: Mapping[str, Sequence[int]]
    irregular: Mapping[str, Sequence[str]]


class WordNet(Neighbours):
    """The words that share a meaning with a word or its base forms; of several words none.

    Their order is that of the database: nouns, verbs, adjectives, adverbs, frequent senses first.
    """

    kind = "wordnet"

    def __init__(self, meanings: Mapping[str, Meanings], files: Sequence[Path] = ()) -> None:
        self.meanings = meanings
        words = set[str]().union(*(meanings[kind].senses for kind in _KINDS))
        super().__init__("wordnet", files, words=len(words))

    @classmethod
    def from_folder(cls, folder: Path) -> WordNet:
        """Read the database's own files: ``index.noun``, ``data.noun``, ``noun.exc``, ..."""
        files = [folder / f"{sort}.{kind}" for kind in _KINDS for sort in ("index", "data")]
        files += [folder / f"{kind}.exc" for kind in _KINDS]
        for file in files:
            if not file.is_file():
                raise DataError(f"{folder} is not WordNet's database: it has no {file.name}")
        found = {}
        for kind in _KINDS:
            senses = dict(_senses(folder / f"index.{kind}"))
            data = (folder / f"data.{kind}").read_bytes()
            offsets = sorted({offset for places in senses.values() for offset in places})
            synsets = {offset: list(_lemmas(data, offset)) for offset in offsets}
            lines = (line.split() for _, line in read_lines(folder / f"{kind}.exc"))
            irregular = {words[0]: words[1:] for words in lines if words}
            found[kind] = Meanings(synsets, senses, irregular)
        return cls(found, files)

    @classmethod
    def shipped(cls) -> WordNet:
        """WordNet 3.0 as it comes with ranmask."""
        found = {}
        for kind, values in read_json(WORDNET_FILE).items():
            senses: dict[str, list[int]] = dict(values["order"])
            for number, words in enumerate(values["synsets"]):
                for word in words:
                    senses.setdefault(word.lower(), [number])
            found[kind] = Meanings(dict(enumerate(values["synsets"])), senses, values["irregular"])
        return cls(found, [WORDNET_FILE])

    def _nearest(self, word: str, count: int) -> tuple[str, ...]:
        found = (
            lemma
            for kind in _KINDS
            for form in self._base_forms(word.lower(), kind)
            for key in self.meanings[kind].senses[form]
            for lemma in self.meanings[kind].synsets[key]
        )
        return tuple(dict.fromkeys(lemma for lemma in found if lemma != word))[:count]

    def _base_forms(self, word: str, kind: str) -> list[str]:
        """The word itself and its base forms, those that WordNet knows."""
        meanings = self.meanings[kind]
        forms = meanings.irregular.get(word)
        if forms is None:
            pairs = (pair.partition(":") for pair in _ENDINGS[kind].split())
            forms = [word[: -len(old)] + new for old, _, new in pairs if word.endswith(old)]
        return [form for form in dict.fromkeys([word, *forms]) if form in meanings.senses]


def _lemmas(data: bytes, offset: int) -> Iterator[str]:
    """The single words of the synset at a place of the data."""
    fields = data[offset : data.index(b"\n", offset)].decode("utf-8").split()
    for lemma in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
        if "_" not in lemma:
            yield re.sub(r"\([^()]*\)$", "", lemma)  # where an adjective may stand


def _senses(path: Path) -> Iterator[tuple[str, list[int]]]:
    """Each single word of an index with the places of its meanings in the data."""
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(" "):  # the licence
            continue
        fields = line.split()
        try:
            word, offsets = fields[0], [int(offset) for offset in fields[-int(fields[2]) :]]
        except (IndexError, ValueError):
            raise DataError(f"{path} is not an index of WordNet: {line[:60]!r}", number) from None
        if "_" not in word:
            yield word, offsets


def load_neighbours(source: str | Path) -> Neighbours:
    """Neighbours by a name in `KNOWN`, from ``wordnet``, or from a file or a WordNet folder.

    ``.json`` and ``.json.gz`` are tables; ``.txt``, ``.txt.gz`` and ``.npy`` are vectors.  The
    names win over files of that name: write ``./dne`` for the file.
    """
    if source in KNOWN:
        return NeighbourTable.load(known_file(str(source)), name=str(source))
    path = Path(source).expanduser()
    if source == WORDNET:
        try:
            index = nltk_file("corpora/wordnet/index.noun")
        except DataError:
            return WordNet.shipped()
        return WordNet.from_folder(index.parent)
    if (path / "index.noun").is_file():
        return WordNet.from_folder(path)
    if not path.is_file():
        raise DataError(
            f"there are no neighbours {str(source)!r}: name a file (a table .json, or vectors .txt "
            f"or .npy), a folder of WordNet, or one of {', '.join((*KNOWN, WORDNET))}"
        )
    name = path.name.removesuffix(".gz")
    if name.endswith(".json"):
        return NeighbourTable.load(path)
    if name.endswith(".txt") or path.suffix == ".npy":
        return WordVectors.load(path)
    raise DataError(
        f"cannot tell what {path} is by its name: a table ends in .json or .json.gz, vectors end "
        "in .txt, .txt.gz or .npy"
    )


def known_file(name: str) -> Path:
    """The file of a table that is `KNOWN`; raises where it is not here."""
    file = Path("synonyms") / KNOWN[name]
    folder = data_folder()
    if folder is not None and (folder / file).is_file():
        return folder / file
    if (SHIPPED / file.name).is_file():
        return SHIPPED / file.name
    given = os.environ.get("RANMASK_DATA")
    place = folder or (given and f"RANMASK_DATA={given}")
    raise DataError(
        f"cannot find the neighbours {name!r}: "
        f"{f'they are not in {place}' if place else 'there is no data folder'}. Set RANMASK_DATA "
        f"to a folder that holds {file.as_posix()}, or name a file of your own"
    )


def load_synonyms(source: str) -> SynonymSets:
    """Synonyms by the name or the file of a table, or as the folder of a model has them.

    All that a file lists counts, also what attacks leave out of a `NeighbourTable`.
    """
    path = known_file(source) if source in KNOWN else Path(source).expanduser()
    if (path / FILE_NAME).is_file():
        return SynonymSets.load(path)
    if not path.is_file() or not path.name.removesuffix(".gz").endswith(".json"):
        raise OptionError(
            f"synonyms={source!r} is no table: name a JSON file of words and lists of words (.json "
            f"or .json.gz), the folder of a model with one, or one of {', '.join(KNOWN)}",
            "synonyms",
        )
    table = read_json(path)
    if not isinstance(table, dict) or not table:
        raise DataError(f"{path} must hold a JSON object of words and lists of words")
    return SynonymSets(table, name=source if source in KNOWN else path.name)
