"""Readers that are no model of ours, as requests share them: functions and endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from ranmask.certificates.votes import Scores
from ranmask.models.readers import Reader
from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.words import Document


class SharedReader(Reader):
    """A reader as one request sees it.  While it reads, other requests may compute.

    ``turns``: held while it reads, where no two threads may ask it at the same time.
    """

    def __init__(self, inner: Reader, turns: FairSemaphore | None, context: RequestContext) -> None:
        self._inner, self._turns, self._context = inner, turns, context
        self.labels, self.name = inner.labels, inner.name
        self.repeatable, self.tolerance = inner.repeatable, inner.tolerance

    @property
    def without_memory(self) -> Reader:
        """The reader that asks, where the inner one may answer from a cache."""
        return SharedReader(self._inner.without_memory, self._turns, self._context)

    def description(self) -> dict[str, Any]:
        """As the inner one's."""
        return self._inner.description()

    def read(self, texts: Sequence[Document], classes: int) -> Scores:
        """As the reader's own; raises `Problem` where the request is over before its turn."""
        with self._context.resting(), self._turns or nullcontext():
            self._context.check()  # it may have waited long
            return self._inner.read(texts, classes)
