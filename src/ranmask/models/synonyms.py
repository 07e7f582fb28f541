"""Words that may take a word's place, by a table, and random copies of a text made of them.

Two sets belong to every word ``x``, and ``x`` is in both:

``S_x``  its replacements: all words that the table lists for it.  A certificate covers these.
``P_x``  its perturbations: what a random copy of a text may show in its place.  All words that
         the table connects with ``x``, over any number of steps in either direction; of more
         than ``size`` words, the ``size`` first that a breadth-first search from ``x`` comes to.

**Both are functions of the word as it is spelt, and nothing else**, and an overlap is computed
from those very sets.  So a certificate (`ranmask.certificates.safer`) is sound whatever the rules
of spelling are; they only decide how useful the sets are.  The rules: a word is looked up without
the punctuation around it and in lower case, and what takes its place gets both back, so that
"Film," may become "Movie,".  A word in any other case than lower, Capitalised or UPPER has no
synonyms.

This module knows no classifier.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from ranmask.certificates.safer import overlap
from ranmask.errors import DataError, ModelError, OptionError
from ranmask.models import SYNONYM_SET_SIZE
from ranmask.models.base import DrawnCopies
from ranmask.results.files import read_json, write_file
from ranmask.words import Document, text_seed

FILE_NAME = "synonyms.json"
_FORMAT = "ranmask-synonyms"
FILE_VERSION = 1

Sample: TypeAlias = Literal["vote", "selection", "estimation"]
"""What copies are for: a label, the label of a certificate that estimates, or its estimate."""
_STREAMS: dict[Sample, int] = {"vote": 0, "selection": 1, "estimation": 2}

_CACHED_WORDS = 20_000


@dataclass(frozen=True)
class Spelling:
    """A word as the table's word ``key``, and the punctuation around it.

    ``cases`` are those that it is in: "A" is Capitalised and UPPER.
    """

    before: str
    key: str
    cases: tuple[int, ...]
    after: str

    @classmethod
    def of(cls, word: str) -> Spelling | None:
        """None where no case and punctuation around a lower-case word give this word."""
        start, end = 0, len(word)
        while start < end and unicodedata.category(word[start])[0] in "PS":
            start += 1
        while end > start and unicodedata.category(word[end - 1])[0] in "PS":
            end -= 1
        core = word[start:end]
        key = core.lower()
        cases = tuple(case for case in range(3) if core == _in_case(key, case))
        return cls(word[:start], key, cases, word[end:]) if cases else None

    def like(self, key: str) -> tuple[str, ...]:
        """Another word of the table in every case that this one is in, with its punctuation."""
        return tuple(self.before + _in_case(key, case) + self.after for case in self.cases)


def _in_case(word: str, case: int) -> str:
    """0 lower, 1 Capitalised, 2 UPPER."""
    if case == 0:
        return word
    return word[:1].upper() + word[1:] if case == 1 else word.upper()


def _found_again(word: str) -> bool:
    """Whether a word of the table is found again under itself, in whatever case it is shown."""
    if word.isascii() and word.isalpha() and word.islower():
        return True  # nearly all are: no need to look closer
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    for case in range(3):
        shown = _in_case(word, case)
        spelling = Spelling.of(shown)
        if shown.split() != [shown] or spelling is None:
            return False
        if (spelling.before, spelling.key, spelling.after) != ("", word, ""):
            return False
    return True


class SynonymSets:
    """The sets ``S_x`` and ``P_x`` of every word, from a table.

    The table is keyed by lower-case words without punctuation around them.  Copies show no others
    (they are counted), nor words that another case would turn into another word ("straße" is
    "STRASSE"): looked up again, they would not be found.  As replacements all that is listed
    counts, however it is spelt.

    Args:
        table: The words that may take a word's place, one word each, the nearest first.
        size: Most words of a perturbation set.
        name: What a result calls the table.

    >>> films = SynonymSets({"film": ["movie", "picture"], "movie": ["film"]})
    >>> films.replacements("Film,"), films.perturbations("Movie")
    (('Film,', 'Movie,', 'Picture,'), ('Film', 'Movie', 'Picture'))
    """

    def __init__(
        self,
        table: Mapping[str, Sequence[str]],
        *,
        size: int = SYNONYM_SET_SIZE,
        name: str = "table",
    ) -> None:
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise OptionError(f"size must be a whole number of at least 1, not {size!r}")
        self.name = name
        self.size = size
        self._dropped = 0
        self._table = self._usable(table)
        self._listed = {word: tuple(dict.fromkeys(others)) for word, others in table.items()}
        if self._dropped and not self._table:
            raise DataError(
                f"{name}: none of the {len(self._listed):,} words of the table can be used: they "
                "must be in lower case, without punctuation around them, and have synonyms that are"
            )
        # Both ends of every entry: the words that a word lists, then those that list it.
        listing: dict[str, list[str]] = {}
        for word in sorted(self._table):
            for other in self._table[word]:
                listing.setdefault(other, []).append(word)
        self._graph = {
            word: tuple(dict.fromkeys([*self._table.get(word, ()), *listing.get(word, ())]))
            for word in dict.fromkeys([*self._table, *listing])
        }
        self._sha256: str | None = None
        self._near: dict[str, tuple[str, ...]] = {}
        self._perturbations: dict[str, tuple[str, ...]] = {}
        self._overlaps: dict[str, Fraction] = {}

    def __repr__(self) -> str:
        return f"SynonymSets({self.name!r})"

    # -- the sets of a word --------------------------------------------------------------------

    def replacements(self, word: str) -> tuple[str, ...]:
        """``S_x``: the word itself, and what the table lists for it."""
        found = [*self._listed.get(word, ())]
        spelling = Spelling.of(word)
        if spelling is not None:
            for other in self._listed.get(spelling.key, ()):
                found += spelling.like(other)
        # Two words cannot take the place of one.
        return (word, *dict.fromkeys(one for one in found if one.split() == [one] != [word]))

    def perturbations(self, word: str) -> tuple[str, ...]:
        """``P_x``: what a copy may show in the word's place, in alphabetical order."""
        known = self._perturbations.get(word)
        if known is None:
            spelling = Spelling.of(word)
            if spelling is None or spelling.key not in self._graph:
                known = (word,)
            else:
                known = tuple(spelling.like(near)[0] for near in self._nearest(spelling.key))
            _keep(self._perturbations, word, known)
        return known

    def overlap(self, word: str) -> Fraction:
        """``q_x``: the least overlap of the word's perturbations with those of a replacement."""
        known = self._overlaps.get(word)
        if known is None:
            own = set(self.perturbations(word))
            others = map(self.perturbations, self.replacements(word))
            known = min(overlap(own, other) for other in others)
            _keep(self._overlaps, word, known)
        return known

    # -- random copies -------------------------------------------------------------------------

    def draw(
        self, document: Document, copies: int, seed: int, stream: Sample = "vote"
    ) -> DrawnCopies:
        """Independent random copies, which follow from the text and the seed.

        Every word is drawn uniformly and by itself (up to ``size / 2**64``).  Only numpy's raw
        bit stream is used, whose values numpy promises to keep; pinned by a test.  The first
        copies of a longer sample are those of a shorter one.
        """
        own = text_seed(seed, document.premise, document.words)
        return self.drawn(document, copies, [own, _STREAMS[stream]])

    def drawn(self, document: Document, copies: int, keys: Sequence[int]) -> DrawnCopies:
        """Random copies that follow from ``keys``, whatever the text: for training."""
        if copies < 1:
            raise OptionError(f"copies must be at least 1, not {copies}")
        sets = tuple(map(self.perturbations, document.words))
        bits = np.random.PCG64(np.random.SeedSequence(list(keys)))
        raw = bits.random_raw(copies * len(sets)).reshape(copies, len(sets))
        sizes = np.array([len(words) for words in sets], dtype=np.uint64)
        return DrawnCopies(document, sets, (raw % sizes).astype(np.intp))

    def one_copy(self, document: Document, keys: Sequence[int]) -> Document:
        """One random copy, as in training: ``keys`` are its seed, epoch and row, say."""
        [copy] = self.drawn(document, 1, keys).documents
        return copy

    # -- as a file -----------------------------------------------------------------------------

    @property
    def words(self) -> int:
        """How many words have synonyms."""
        return len(self._graph)

    def description(self) -> dict[str, Any]:
        """What identifies these sets in a run's record: plain JSON values."""
        if self._sha256 is None:
            spelt = json.dumps(self._listed, sort_keys=True)
            self._sha256 = hashlib.sha256(spelt.encode("ascii")).hexdigest()
        counts = {"size": self.size, "words": self.words, "dropped": self._dropped}
        return {"name": self.name, "sha256": self._sha256, **counts}

    def save(self, folder: Path) -> None:
        """Write ``synonyms.json`` into a folder."""
        head = {"format": _FORMAT, "version": FILE_VERSION, "name": self.name, "size": self.size}
        write_file(folder / FILE_NAME, json.dumps({**head, "table": self._listed}) + "\n")

    @classmethod
    def load(cls, folder: Path) -> SynonymSets:
        """Read the ``synonyms.json`` of a folder."""
        path = folder / FILE_NAME
        data = read_json(path, format=_FORMAT, version=FILE_VERSION, error=ModelError)
        if not isinstance(data.get("table"), dict) or not isinstance(data.get("name"), str):
            raise ModelError(f"cannot read {path}: synonyms without a table or a name")
        try:
            return cls(data["table"], size=data.get("size", 0), name=data["name"])
        except (TypeError, DataError, OptionError) as error:
            raise ModelError(f"cannot read {path}: {error}") from error

    # -- the table -----------------------------------------------------------------------------

    def _usable(self, table: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        usable: dict[str, tuple[str, ...]] = {}
        verdicts: dict[str, bool] = {}

        def survives(word: object) -> bool:
            if not isinstance(word, str):
                raise DataError(f"{self.name}: {word!r} is not a word")
            if word not in verdicts:
                verdicts[word] = _found_again(word)
            return verdicts[word]

        for word, others in table.items():
            if isinstance(others, str) or not isinstance(others, Sequence):
                raise DataError(f"{self.name}: the synonyms of {word!r} are not a list of words")
            kept = [other for other in dict.fromkeys(others) if survives(other) and other != word]
            if survives(word) and kept:
                usable[word] = tuple(kept)
        self._dropped = sum(not verdict for verdict in verdicts.values())
        return usable

    def _nearest(self, key: str) -> tuple[str, ...]:
        """``P_x`` in lower case.  A component that fits is one set, shared by all its words."""
        known = self._near.get(key)
        if known is not None:
            return known
        found = {key: None}  # in the order of discovery
        waiting = deque(found)
        while waiting and len(found) <= self.size:
            fresh = [word for word in self._graph[waiting.popleft()] if word not in found]
            found.update(dict.fromkeys(fresh))
            waiting.extend(fresh)
        whole = len(found) <= self.size
        first = tuple(sorted(list(found)[: self.size]))
        self._near.update(dict.fromkeys(found if whole else [key], first))
        return first


def _keep(cache: dict[str, Any], word: str, value: object) -> None:
    """Remember, within limits: words are without number."""
    if len(cache) >= _CACHED_WORDS:
        cache.clear()
    cache[word] = value
