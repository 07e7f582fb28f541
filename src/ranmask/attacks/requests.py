"""What a search asks while it runs, so that the questions of many texts share batches.

A search is a generator.  Where it needs to know something it yields a request and is sent the
answer; it never holds a model.  The engine runs many searches in lock-step and answers all
waiting requests of a kind together.  `Dialogue` is the type of such a generator; one hands over
to another by ``yield from``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy.typing as npt

from ranmask.attacks.tokenization import CutText

T = TypeVar("T")

Dialogue: TypeAlias = Generator["Request", Any, T]
"""Yields requests, is sent their answers, returns a ``T``."""


@dataclass(frozen=True)
class Judgement:
    """What the victim says of a text: its label, ``score`` and ``lead``.

    ``score`` is 1 minus the true label's share, which the field's searches maximise; ``lead`` is
    how far the best other label is ahead of the true one (below 0: behind).  Both are None where
    the search may see labels only.
    """

    text: CutText
    label: int
    flipped: bool
    score: float | None
    lead: float | None


@dataclass(frozen=True)
class Judge:
    """Ask the victim about texts: each counts as a query.  The answer: a list of `Judgement`.

    It is shorter than ``texts`` where the queries ran out; then the search must end.  ``near`` is
    the text that these differ from by a word or so: a smoothed victim scores only the copies that
    show the difference.
    """

    texts: tuple[CutText, ...]
    near: CutText
    labels_only: bool = False


@dataclass(frozen=True)
class Embed:
    """Ask for sentence vectors.  The answer: an array of unit rows."""

    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Guess:
    """Ask a masked language model.  The answer: at each token of ``text``, its likeliest tokens."""

    text: str
    count: int


Request: TypeAlias = Judge | Embed | Guess
Vectors: TypeAlias = npt.NDArray[Any]
