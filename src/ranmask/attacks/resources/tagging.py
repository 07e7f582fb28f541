"""The part of speech of each word, in the twelve universal tags (NOUN, VERB, ADJ, ...)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from ranmask.attacks.resources.files import files_digest, read_lines, read_text
from ranmask.attacks.resources.nltk_files import TAGGER, UNIVERSAL_TAGS, nltk_file
from ranmask.errors import DataError, MissingDependencyError

_CACHED_TEXTS = 1 << 16


class Tagger(Protocol):
    """What attacks need of a tagger."""

    def tag(self, words: Sequence[str]) -> tuple[str, ...]:
        """The universal tag of each word, read in the company of the others."""

    def description(self) -> dict[str, object]:
        """What a result records."""


class NltkTagger:
    """Tags as ``nltk.pos_tag(words, tagset="universal")`` does with the same data.

    Args:
        perceptron: NLTK's averaged perceptron, which gives Penn tags.
        universal: The universal tag of each Penn tag; any other tag becomes X.
        source: The folder that the perceptron was read from, for the record.
        sha256: Of the files that both were read from.
    """

    def __init__(
        self,
        perceptron: Any,
        universal: Mapping[str, str],
        *,
        source: str | None = None,
        sha256: str | None = None,
    ) -> None:
        self._perceptron = perceptron
        self._universal = universal
        self._record = {"source": source, "sha256": sha256}
        # Attacks ask for the words around a place again and again, with one of them replaced.
        self._cached = lru_cache(maxsize=_CACHED_TEXTS)(self._tag)

    def tag(self, words: Sequence[str]) -> tuple[str, ...]:
        """The universal tag of each word, read in the company of the others."""
        return self._cached(tuple(words))

    def description(self) -> dict[str, object]:
        """What a result records."""
        return {"kind": "tagger", "name": "nltk-averaged-perceptron", **self._record}

    def _tag(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._universal.get(tag, "X") for _, tag in self._perceptron.tag(list(words)))


def load_tagger(folder: str | Path | None = None) -> NltkTagger:
    """NLTK's English tagger, from data in ``folder`` or wherever `nltk_files` finds it."""
    try:
        from nltk.tag.perceptron import PerceptronTagger
    except ImportError:
        raise MissingDependencyError("nltk", "attacks") from None
    paths = [
        nltk_file(f"{TAGGER}.{part}.json", folder) for part in ("weights", "tagdict", "classes")
    ]
    tag_map = nltk_file(UNIVERSAL_TAGS, folder)
    weights, known, classes = (_read_json(path) for path in paths)
    if not (isinstance(weights, dict) and isinstance(known, dict) and isinstance(classes, list)):
        raise DataError(f"{paths[0].parent} does not hold NLTK's averaged perceptron: get it again")
    perceptron = PerceptronTagger.decode_json_obj((weights, known, classes))
    return NltkTagger(
        perceptron,
        _read_map(tag_map),
        source=str(paths[0].parent),
        sha256=files_digest([*paths, tag_map]),
    )


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path} is not JSON: {error}") from None


def _read_map(path: Path) -> dict[str, str]:
    universal = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        penn, tab, tag = line.strip().partition("\t")
        if not tab or not tag:
            raise DataError(f"{path} must have two tags a line, with a tab between them", number)
        universal[penn] = tag
    return universal
