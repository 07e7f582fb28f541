"""What a replacement must satisfy.

A constraint compares a proposal with the original text, or with the text before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ranmask.attacks.steps import Component, EncodeSentences, SearchSteps
from ranmask.attacks.tokenization import AttackedText
from ranmask.errors import MissingDependencyError

if TYPE_CHECKING:
    from ranmask.attacks.resources.neighbours import Neighbours
    from ranmask.attacks.resources.tagging import Tagger

_BEFORE, _AFTER = 4, 3  # words around a word that the tagger reads


@dataclass(frozen=True)
class Proposal:
    """A text that might be tried: ``positions`` are the words that were replaced in it.

    ``similarity`` is what a sentence constraint measured, where there is one.
    """

    text: AttackedText
    positions: tuple[int, ...]
    similarity: float | None = None


class Constraint(Component):
    """Decides which proposals may be tried."""

    kind = "constraint"

    def permits(self, proposal: Proposal, original: AttackedText) -> bool:
        """Whether a proposal may be tried, judged by itself."""
        raise NotImplementedError

    def allowed(
        self, proposals: Sequence[Proposal], current: AttackedText, original: AttackedText
    ) -> SearchSteps[list[Proposal]]:
        """The proposals that may be tried, in their order."""
        return [proposal for proposal in proposals if self.permits(proposal, original)]
        yield  # a generator that asks nothing


@dataclass(frozen=True)
class SimilarWord(Constraint):
    """Cosine of the word vectors at least ``least``; words without a vector pass."""

    neighbours: Neighbours
    least: float = 0.5

    def permits(self, proposal: Proposal, original: AttackedText) -> bool:
        """Compares the new words with those of the original text."""
        for position in proposal.positions:
            before = original.words[position].lower()
            after = proposal.text.words[position].lower()
            similarity = self.neighbours.similarity(before, after)
            if similarity is not None and similarity < self.least:
                return False
        return True


@dataclass(frozen=True)
class SamePartOfSpeech(Constraint):
    """The universal tag stays, read in the original's context; nouns may become verbs and back."""

    tagger: Tagger

    def permits(self, proposal: Proposal, original: AttackedText) -> bool:
        """Compares the tags of the old and the new word between the same neighbours."""
        for position in proposal.positions:
            before = original.words[max(position - _BEFORE, 0) : position]
            after = original.words[position + 1 : position + 1 + _AFTER]
            tags = set()
            for word in (original.words[position], proposal.text.words[position]):
                context = (*before, word, *after)
                # TextFooler reads the tag of the word's first occurrence in the window.
                tags.add(self.tagger.tag(context)[context.index(word)])
            if len(tags) > 1 and not tags <= {"NOUN", "VERB"}:
                return False
        return True


@dataclass(frozen=True)
class SimilarSentence(Constraint):
    """Sentence vectors at least ``least`` alike, around the (first) replaced word.

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

    def allowed(
        self, proposals: Sequence[Proposal], current: AttackedText, original: AttackedText
    ) -> SearchSteps[list[Proposal]]:
        """Asks for the vectors of all windows at once."""
        if not proposals:
            return []
        reference = original if self.against == "original" else current
        if self.skip_short and self.window is not None and len(current.words) < self.window:
            alike: npt.NDArray[Any] = np.ones(len(proposals))
        else:
            places = [(proposal.text, proposal.positions[0]) for proposal in proposals]
            old = [reference.window(place, self.window) for _, place in places]
            new = [text.window(place, self.window) for text, place in places]
            vectors = yield EncodeSentences((*old, *new))
            products = vectors[: len(old)] * vectors[len(old) :]
            alike = np.clip(products.sum(axis=1, dtype=np.float64), -1, 1)
            if self.metric == "angular":
                alike = 1 - np.arccos(alike) / math.pi
        return [
            replace(proposal, similarity=float(similarity))
            for proposal, similarity in zip(proposals, alike, strict=True)
            if similarity >= self.least
        ]


@dataclass(frozen=True)
class MostWords(Constraint):
    """At most a ``share`` of the attackable words is replaced, rounded up."""

    share: float

    def permits(self, proposal: Proposal, original: AttackedText) -> bool:
        """Counts the attackable words that differ from the original's."""
        pairs = zip(original.words, proposal.text.words, strict=False)
        return sum(a != b for a, b in pairs) <= math.ceil(len(original.words) * self.share)


@dataclass(frozen=True)
class EditDistance(Constraint):
    """At most ``most`` characters inserted, deleted or replaced, counted over the whole text."""

    most: int

    def __post_init__(self) -> None:
        _levenshtein()  # told before the first text

    def permits(self, proposal: Proposal, original: AttackedText) -> bool:
        """Counts against the original text."""
        texts = (original.joined, proposal.text.joined)
        return bool(_levenshtein().distance(*texts, score_cutoff=self.most) <= self.most)


def _levenshtein() -> Any:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise MissingDependencyError("rapidfuzz", "attacks") from error
    return Levenshtein
