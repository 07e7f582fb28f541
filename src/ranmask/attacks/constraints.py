"""What a replacement must satisfy.

A constraint compares a proposal with the original text, or with the text before it.  Those that
need a model of sentences ask for vectors, so that many texts share a batch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ranmask.attacks.requests import Dialogue, Embed, Vectors
from ranmask.attacks.tokenization import CutText
from ranmask.errors import MissingDependencyError

if TYPE_CHECKING:
    from ranmask.attacks.resources.neighbours import Neighbours
    from ranmask.attacks.resources.tagging import Tagger

Against: TypeAlias = Literal["original", "current"]

_BEFORE, _AFTER = 4, 3  # words around a word that the tagger reads


@dataclass(frozen=True)
class Proposal:
    """A text that might be tried: ``positions`` are the words that were replaced in it.

    ``similarity`` is what a sentence constraint measured, where there is one.
    """

    text: CutText
    positions: tuple[int, ...]
    similarity: float | None = None


class Constraint(ABC):
    """Decides which proposals may be tried."""

    @abstractmethod
    def allowed(
        self, proposals: Sequence[Proposal], current: CutText, original: CutText
    ) -> Dialogue[list[Proposal]]:
        """The proposals that may be tried, in their order."""

    def description(self) -> dict[str, Any]:
        """Plain JSON values; resources describe themselves elsewhere."""
        plain = (int, float, str, bool, type(None))
        settings = {
            field.name: getattr(self, field.name)
            for field in fields(self)  # type: ignore[arg-type]
            if isinstance(getattr(self, field.name), plain)
        }
        return {"constraint": type(self).__name__, **settings}


class LocalConstraint(Constraint):
    """A constraint that can judge each proposal by itself."""

    @abstractmethod
    def permits(self, proposal: Proposal, original: CutText) -> bool:
        """Whether it may be tried."""

    def allowed(
        self, proposals: Sequence[Proposal], current: CutText, original: CutText
    ) -> Dialogue[list[Proposal]]:
        """The proposals that are permitted one by one."""
        return [proposal for proposal in proposals if self.permits(proposal, original)]
        yield  # a dialogue that asks nothing


@dataclass(frozen=True)
class SimilarWord(LocalConstraint):
    """Cosine of the word vectors at least ``least``; words without a vector pass."""

    neighbours: Neighbours
    least: float = 0.5

    def permits(self, proposal: Proposal, original: CutText) -> bool:
        """Compares the new words with those of the original text."""
        for position in proposal.positions:
            before = original.words[position].lower()
            after = proposal.text.words[position].lower()
            similarity = self.neighbours.similarity(before, after)
            if similarity is not None and similarity < self.least:
                return False
        return True


@dataclass(frozen=True)
class SamePartOfSpeech(LocalConstraint):
    """The universal tag stays, read in the original's context; nouns may become verbs and back."""

    tagger: Tagger

    def permits(self, proposal: Proposal, original: CutText) -> bool:
        """Compares the tags of the old and the new word between the same neighbours."""
        for position in proposal.positions:
            before = original.words[max(position - _BEFORE, 0) : position]
            after = original.words[position + 1 : position + 1 + _AFTER]
            old, new = original.words[position], proposal.text.words[position]
            tags = {self._tag((*before, word, *after), word) for word in (old, new)}
            if len(tags) > 1 and not tags <= {"NOUN", "VERB"}:
                return False
        return True

    def _tag(self, context: tuple[str, ...], word: str) -> str:
        # TextFooler reads the tag of the word's first occurrence in the window.
        return self.tagger.tag(context)[context.index(word)]


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
    against: Against = "original"
    window: int | None = None
    skip_short: bool = False

    def allowed(
        self, proposals: Sequence[Proposal], current: CutText, original: CutText
    ) -> Dialogue[list[Proposal]]:
        """Asks for the vectors of all windows at once."""
        if not proposals:
            return []
        reference = original if self.against == "original" else current
        places = [proposal.positions[0] for proposal in proposals]
        old = [reference.window(place, self.window) for place in places]
        new = [
            proposal.text.window(place, self.window)
            for proposal, place in zip(proposals, places, strict=True)
        ]
        short = self.skip_short and self.window is not None and len(current.words) < self.window
        if short:
            alike = np.ones(len(proposals))
        else:
            vectors = yield Embed((*old, *new))
            alike = self._similarity(vectors[: len(old)], vectors[len(old) :])
        return [
            replace(proposal, similarity=float(similarity))
            for proposal, similarity in zip(proposals, alike, strict=True)
            if similarity >= self.least
        ]

    def _similarity(self, old: Vectors, new: Vectors) -> Vectors:
        cosine: Vectors = np.clip((old * new).sum(axis=1, dtype=np.float64), -1, 1)
        return cosine if self.metric == "cosine" else 1 - np.arccos(cosine) / math.pi


@dataclass(frozen=True)
class MostWords(LocalConstraint):
    """At most a ``share`` of the attackable words is replaced, rounded up."""

    share: float

    def permits(self, proposal: Proposal, original: CutText) -> bool:
        """Counts the attackable words that differ from the original's."""
        pairs = zip(original.words, proposal.text.words, strict=False)
        return sum(a != b for a, b in pairs) <= math.ceil(len(original.words) * self.share)


@dataclass(frozen=True)
class EditDistance(LocalConstraint):
    """At most ``most`` characters inserted, deleted or replaced, counted over the whole text."""

    most: int

    def __post_init__(self) -> None:
        _levenshtein()  # told before the first text

    def permits(self, proposal: Proposal, original: CutText) -> bool:
        """Counts against the original text."""
        distance = _levenshtein().distance(
            original.whole, proposal.text.whole, score_cutoff=self.most
        )
        return bool(distance <= self.most)


def _levenshtein() -> Any:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise MissingDependencyError("rapidfuzz", "attacks") from error
    return Levenshtein
