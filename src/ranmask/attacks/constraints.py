"""What a text with new words must satisfy: compared with the original, or the text before."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

import numpy as np

from ranmask.attacks.resources.neighbours import Neighbours
from ranmask.attacks.resources.tagging import Tagger
from ranmask.attacks.steps import Component, EncodeSentences, Steps, Texts
from ranmask.attacks.tokenization import AttackedText
from ranmask.errors import MissingDependencyError

_BEFORE, _AFTER = 4, 3  # words around a word that the tagger reads
_MOST_KNOWN = 1 << 12  # tags


class Constraint(Component):
    """Decides which texts with new words may be tried."""

    kind = "constraint"

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        """Whether a text may be tried, judged by itself."""
        raise NotImplementedError

    def allowed(self, texts: Sequence[AttackedText], original: AttackedText) -> Texts:
        """The texts that may be tried, in their order."""
        return [text for text in texts if self.permits(text, original)]
        yield  # a generator that asks nothing


@dataclass(frozen=True)
class SimilarWord(Constraint):
    """Cosine of the word vectors at least ``least``; words without a vector pass."""

    neighbours: Neighbours
    least: float = 0.5

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        for position in text.new_words:
            before, after = original.words[position].lower(), text.words[position].lower()
            similarity = self.neighbours.similarity(before, after)
            if similarity is not None and similarity < self.least:
                return False
        return True


@dataclass(frozen=True)
class SamePartOfSpeech(Constraint):
    """The universal tag stays, read in the original's context.

    ``verbs_for_nouns``: nouns may become verbs, and back.
    """

    tagger: Tagger
    verbs_for_nouns: bool = True

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        for position in text.new_words:
            before = original.words[max(position - _BEFORE, 0) : position]
            after = original.words[position + 1 : position + 1 + _AFTER]
            old, new = original.words[position], text.words[position]
            tags = {
                self._known_tag((*before, old, *after), old),
                _tag(self.tagger, (*before, new, *after), new),
            }
            if len(tags) > 1 and not (self.verbs_for_nouns and tags <= {"NOUN", "VERB"}):
                return False
        return True

    @cached_property
    def _known_tag(self) -> Callable[[tuple[str, ...], str], str]:
        """`_tag`, which remembers: of words that have many candidates it is asked again."""
        return lru_cache(_MOST_KNOWN)(partial(_tag, self.tagger))


def _tag(tagger: Tagger, context: tuple[str, ...], word: str) -> str:
    """TextFooler reads the tag of the word's first occurrence in the window."""
    return tagger.tag(context, context.index(word) + 1)[-1]


@dataclass(frozen=True)
class SimilarSentence(Constraint):
    """Sentence vectors at least ``least`` alike, around the (first) new word.

    Args:
        least: The least similarity.
        metric: ``cosine``, or ``angular``: 1 - angle / pi.
        against: Compare with the original text, or with the one before the replacement.
        window: Words that are compared; None: all.
        skip_short: Texts of fewer words than the window always pass, with similarity 1.
    """

    least: float
    metric: Literal["cosine", "angular"] = "cosine"
    against: Literal["original", "current"] = "original"
    window: int | None = None
    skip_short: bool = False

    def allowed(self, texts: Sequence[AttackedText], original: AttackedText) -> Texts:
        if not texts:
            return []
        short = self.window if self.skip_short and self.window is not None else 0
        read = [not short or len(text.words) >= short for text in texts]
        old, new = [], []
        windows: dict[tuple[int, int], str] = {}
        for text in itertools.compress(texts, read):
            reference = original if self.against == "original" else text.origin or original
            place = next(iter(text.new_words))
            if (id(reference), place) not in windows:
                windows[id(reference), place] = reference.window(place, self.window)
            old.append(windows[id(reference), place])
            new.append(text.window(place, self.window))
        found = iter((yield from self._alike(old, new)) if new else ())
        alike = [next(found) if one else 1.0 for one in read]
        return [
            text.with_similarity(similarity)
            for text, similarity in zip(texts, alike, strict=True)
            if similarity >= self.least
        ]

    def _alike(self, old: Sequence[str], new: Sequence[str]) -> Steps[list[float]]:
        """Asks for all vectors at once."""
        vectors = yield EncodeSentences((*old, *new))
        products = vectors[: len(old)] * vectors[len(old) :]
        alike = np.clip(products.sum(axis=1, dtype=np.float64), -1, 1)
        if self.metric == "angular":
            alike = 1 - np.arccos(alike) / math.pi
        found: list[float] = alike.tolist()
        return found


@dataclass(frozen=True)
class MostWords(Constraint):
    """At most a ``share`` of the attackable words is replaced, rounded up, or ``least`` words."""

    share: float
    least: int = 0

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        most = max(math.ceil(len(original.words) * self.share), self.least)
        return text.words_changed(original) <= most


@dataclass(frozen=True)
class EditDistance(Constraint):
    """At most ``most`` characters inserted, deleted or replaced, counted over the whole text."""

    most: int

    def __post_init__(self) -> None:
        levenshtein()  # told before the first text

    def permits(self, text: AttackedText, original: AttackedText) -> bool:
        texts = (original.joined, text.joined)
        return bool(levenshtein().distance(*texts, score_cutoff=self.most) <= self.most)


def levenshtein() -> Any:
    """What counts insertions, deletions and substitutions, of characters or of words."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise MissingDependencyError("rapidfuzz", "attacks") from error
    return Levenshtein
