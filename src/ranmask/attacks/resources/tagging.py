"""The part of speech of each word, in the twelve universal tags (NOUN, VERB, ADJ, ...)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ranmask.attacks.resources.files import (
    TAGGER,
    UNIVERSAL_TAGS,
    files_digest,
    nltk_file,
    read_json,
    read_lines,
)
from ranmask.errors import DataError

_CACHED_WORDS = 1 << 18
_BEFORE, _AFTER = ("-START-", "-START2-"), ("-END-", "-END2-")


class Tagger(Protocol):
    """What attacks need of a tagger."""

    def tag(self, words: Sequence[str], first: int | None = None) -> tuple[str, ...]:
        """The universal tag of each word, or of the ``first`` so many, in their company."""

    def description(self) -> dict[str, Any]:
        """What a result records."""


class NltkTagger:
    """Tags as ``nltk.pos_tag(words, tagset="universal")`` does with the same data.

    An averaged perceptron over the words around a word and the two tags before it.  NLTK's own
    took two thirds of the time of a TextFooler run; this one adds the same numbers in the same
    order, as rows of an array.

    Args:
        weights: Of each feature, the weight of each Penn tag that it speaks for or against.
        known: The Penn tags of words that need no other feature.
        classes: All Penn tags.
        universal: The universal tag of each Penn tag; any other tag becomes X.
        files: What these were read from, for the record.
    """

    def __init__(
        self,
        weights: Mapping[str, Mapping[str, float]],
        known: Mapping[str, str],
        classes: Sequence[str],
        universal: Mapping[str, str],
        files: Sequence[Path] = (),
    ) -> None:
        self._record = {
            "kind": "tagger",
            "name": "nltk-averaged-perceptron",
            "source": str(files[0].parent) if files else None,
            "sha256": files_digest(files) if files else None,
        }
        self._universal = universal
        self._known = known
        self._classes = sorted(set(classes), reverse=True)  # of a tie NLTK takes the last name

        def row(feature: str) -> npt.NDArray[np.float64] | None:
            """The weights of a feature for all classes, made when it is first asked for."""
            known = weights.get(feature)
            return None if known is None else np.array([known.get(t, 0.0) for t in self._classes])

        self._row = cache(row)
        # Attacks ask for the words around a place again and again, with one of them replaced.
        self._likeliest = lru_cache(maxsize=_CACHED_WORDS)(self._perceptron)

    def tag(self, words: Sequence[str], first: int | None = None) -> tuple[str, ...]:
        """The universal tag of each word, or of the ``first`` so many, in their company."""
        around = (*_BEFORE, *map(_normalised, words), *_AFTER)
        last, before = _BEFORE[0], _BEFORE[1]  # the tags of the two words before
        found = []
        for place, word in enumerate(words[:first]):
            tag = self._known.get(word)
            if not tag:
                tag = self._likeliest(word, last, before, around[place : place + 5])
            found.append(self._universal.get(tag, "X"))
            last, before = tag, last
        return tuple(found)

    def description(self) -> dict[str, Any]:
        """What a result records."""
        return dict(self._record)

    def _perceptron(self, word: str, last: str, before: str, around: tuple[str, ...]) -> str:
        """The Penn tag; ``around``: the word between its four neighbours, normalised."""
        second_left, left, middle, right, second_right = around
        features = (
            "bias",
            f"i suffix {word[-3:]}",
            f"i pref1 {word[:1]}",
            f"i-1 tag {last}",
            f"i-2 tag {before}",
            f"i tag+i-2 tag {last} {before}",
            f"i word {middle}",
            f"i-1 tag+i word {last} {middle}",
            f"i-1 word {left}",
            f"i-1 suffix {left[-3:]}",
            f"i-2 word {second_left}",
            f"i+1 word {right}",
            f"i+1 suffix {right[-3:]}",
            f"i+2 word {second_right}",
        )
        total = np.zeros(len(self._classes))
        for row in map(self._row, features):  # in turn: sums round as NLTK's do
            if row is not None:
                total += row
        return self._classes[int(total.argmax())]


def _normalised(word: str) -> str:
    if "-" in word and word[0] != "-":
        return "!HYPHEN"
    if word.isdigit() and len(word) == 4:
        return "!YEAR"
    if word[:1].isdigit():
        return "!DIGITS"
    return word.lower()


def load_tagger(folder: str | Path | None = None) -> NltkTagger:
    """NLTK's English tagger, from data in ``folder`` or wherever `nltk_file` finds it."""
    parts = ("weights", "tagdict", "classes")
    paths = [nltk_file(f"{TAGGER}.{part}.json", folder) for part in parts]
    tag_map = nltk_file(UNIVERSAL_TAGS, folder)
    weights, known, classes = map(read_json, paths)
    if not (isinstance(weights, dict) and isinstance(known, dict) and isinstance(classes, list)):
        raise DataError(f"{paths[0].parent} does not hold NLTK's averaged perceptron: get it again")
    universal = {}
    for number, line in read_lines(tag_map):
        if not line.strip():
            continue
        penn, tab, tag = line.strip().partition("\t")
        if not (tab and tag):
            raise DataError(f"{tag_map} must have two tags a line, with a tab between them", number)
        universal[penn] = tag
    return NltkTagger(weights, known, classes, universal, [*paths, tag_map])
