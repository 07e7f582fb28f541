"""The steps of a search, so that the queries of many texts share batches.

A search is a generator.  Where it needs a model it yields a step and is sent the answer; it never
holds a model itself.  `loop` runs many searches and answers all waiting steps of a kind together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from ranmask.attacks.resources.masked_lm import Gap
from ranmask.attacks.tokenization import AttackedText
from ranmask.results import Certificate

T = TypeVar("T")

Steps: TypeAlias = Generator["Step", Any, T]
"""Yields steps, is sent their answers, returns a ``T``; hands over by ``yield from``."""

Texts: TypeAlias = Steps[list[AttackedText]]
"""Steps to texts that may be tried."""


@dataclass(frozen=True)
class QueryResult:
    """What the victim says of a text: its label, ``score`` and ``lead``.

    ``score`` is 1 minus the true label's share, which the field's searches maximise; ``lead`` is
    how far the best other label is ahead of the true one (below 0: behind).  Both are None, and
    ``shares`` of all classes are not told, where the search may see labels only.
    """

    text: AttackedText
    label: int
    flipped: bool
    score: float | None
    lead: float | None
    shares: tuple[float, ...] = ()

    @property
    def share(self) -> float | None:
        """The true label's."""
        return None if self.score is None else 1 - self.score


@dataclass(frozen=True)
class QueryModel:
    """Ask the victim about texts, a query each.  The answer: a list of `QueryResult`.

    It is shorter than ``texts`` where the queries ran out; then the search must end.  ``near`` is
    the text that these differ from by a word or so: a smoothed victim scores only the copies that
    show the difference.
    """

    texts: tuple[AttackedText, ...]
    near: AttackedText
    labels_only: bool = False


class QuerySurrogate(QueryModel):
    """The same question to another model, which the attacker owns: no query of the victim."""


@dataclass(frozen=True)
class ScoreWords:
    """Ask what the victim says of words, each by itself.  The answer: a row for each, a class each.

    Done once for all texts, so no query of any.  ``premise``: of a pair.
    """

    words: tuple[str, ...]
    premise: str | None = None


@dataclass(frozen=True)
class FirstOrder:
    """Ask how the smoothed shares of ``text`` move, to first order, when it becomes another text.

    The answer: for each of ``others``, as many words each, how much every class's share rises.
    """

    text: AttackedText
    others: tuple[AttackedText, ...]


@dataclass(frozen=True)
class EncodeSentences:
    """Ask for sentence vectors.  The answer: an array of unit rows."""

    sentences: tuple[str, ...]


@dataclass(frozen=True)
class FillMask:
    """Ask a masked language model.  The answer: the likeliest tokens in ``places`` of ``text``."""

    text: str
    count: int
    places: range


@dataclass(frozen=True)
class FillGaps:
    """Ask a masked language model what may stand at mask tokens.  The answer: `MaskedLM.fill`'s."""

    gaps: tuple[Gap, ...]


Step: TypeAlias = QueryModel | ScoreWords | FirstOrder | EncodeSentences | FillMask | FillGaps


class SeededRandom:
    """Random numbers that follow from a seed and the names of what they are for."""

    def __init__(self, *names: object) -> None:
        digest = hashlib.sha256(repr(names).encode("utf-8", "backslashreplace")).digest()
        self._bits = np.random.PCG64(int.from_bytes(digest[:16], "big"))

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""
        # The bias is below count / 2**64.
        return int(self._bits.random_raw()) % count

    def choice(self, letters: str) -> str:
        """One character of ``letters``."""
        return letters[self.below(len(letters))]

    def sample(self, count: int, size: int) -> list[int]:
        """``size`` different numbers below ``count``, in random order."""
        keys = self._bits.random_raw(count)
        order: list[int] = np.argsort(keys, kind="stable")[:size].tolist()
        return order


@dataclass
class Attempt:
    """One text under attack, how many queries it took so far, and the step that it waits for.

    ``budget``: how far the text may go from the original, in the recipe's unit; None: any.
    ``certificate``: of the original text, where the recipe asks for it.
    ``most_queries``: after which the search must end; None: any number.
    """

    number: int
    original: AttackedText
    label: int
    seed: int
    budget: int | None = None
    certificate: Certificate | None = None
    most_queries: int | None = None
    queries: int = 0
    steps: Steps[Any] = field(init=False, repr=False)
    waiting: Any = field(default=None, init=False, repr=False)

    @property
    def queries_left(self) -> int | None:
        """How many more texts the victim may be asked about; None: any number."""
        return None if self.most_queries is None else self.most_queries - self.queries

    @property
    def exhausted(self) -> bool:
        """Whether no query is left, so that the search must end."""
        return self.queries_left == 0

    def random(self, *names: object) -> SeededRandom:
        """Random numbers of this attempt alone, whatever else is attacked with it."""
        return SeededRandom(self.seed, self.number, *names)


class Component:
    """A part of a recipe: a result records its name and its settings."""

    kind: ClassVar[str]

    def description(self) -> dict[str, Any]:
        """Plain JSON values; of a tuple its length; resources describe themselves elsewhere."""
        settings = {
            name: len(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if isinstance(value, int | float | str | tuple | None)
        }
        return {self.kind: type(self).__name__, **settings}
