"""The part of speech of each word, in the twelve universal tags (NOUN, VERB, ADJ, ...)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from ranmask.attacks.resources.files import (
    TAGGER,
    UNIVERSAL_TAGS,
    files_digest,
    nltk_file,
    read_json,
    read_lines,
)
from ranmask.errors import DataError, MissingDependencyError

_CACHED_TEXTS = 1 << 16


class Tagger(Protocol):
    """What attacks need of a tagger."""

    def tag(self, words: Sequence[str]) -> tuple[str, ...]:
        """The universal tag of each word, read in the company of the others."""

    def description(self) -> dict[str, Any]:
        """What a result records."""


class NltkTagger:
    """Tags as ``nltk.pos_tag(words, tagset="universal")`` does with the same data.

    Args:
        perceptron: NLTK's averaged perceptron, which gives Penn tags.
        universal: The universal tag of each Penn tag; any other tag becomes X.
        files: What both were read from, for the record.
    """

    def __init__(
        self, perceptron: Any, universal: Mapping[str, str], files: Sequence[Path] = ()
    ) -> None:
        self._record = {
            "kind": "tagger",
            "name": "nltk-averaged-perceptron",
            "source": str(files[0].parent) if files else None,
            "sha256": files_digest(files) if files else None,
        }

        # Attacks ask for the words around a place again and again, with one of them replaced.
        @lru_cache(maxsize=_CACHED_TEXTS)
        def tagged(words: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(universal.get(tag, "X") for _, tag in perceptron.tag(list(words)))

        self._tagged = tagged

    def tag(self, words: Sequence[str]) -> tuple[str, ...]:
        """The universal tag of each word, read in the company of the others."""
        return self._tagged(tuple(words))

    def description(self) -> dict[str, Any]:
        """What a result records."""
        return dict(self._record)


def load_tagger(folder: str | Path | None = None) -> NltkTagger:
    """NLTK's English tagger, from data in ``folder`` or wherever `nltk_file` finds it."""
    try:
        from nltk.tag.perceptron import PerceptronTagger
    except ImportError:
        raise MissingDependencyError("nltk", "attacks") from None
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
    perceptron = PerceptronTagger.decode_json_obj((weights, known, classes))
    return NltkTagger(perceptron, universal, [*paths, tag_map])
