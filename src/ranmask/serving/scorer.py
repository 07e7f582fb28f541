"""Copies of all waiting requests, scored together by one thread a model.

A request smooths a `BatchedClassifier`, whose `score` hands copies to the pool and waits.
The pool's thread fills batches with copies of all who wait (`fair_shares`), calls the model
once a batch, and deals the rows out.  What a copy is given does not depend on its company, so that
answers are those of a classifier that is alone, up to the `tolerance` that certificates allow for.

This module knows no texts, votes, certificates or HTTP.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranmask.errors import ClassifierError, ModelError, OptionError
from ranmask.models.base import BaseClassifier, MaskedCopies, Scores, WrappedClassifier
from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.problems import Busy, Closing
from ranmask.serving.scoring_requests import Portion, ScoringRequest, fair_shares
from ranmask.words import Document, Hiding

_LEAST_COPIES = 32  # smaller batches waste more than they shorten anybody's wait
_FIRST_COPIES = 256  # before the model's pace is known
_BACKGROUND_SECONDS = 1.0  # then copies in the background wait like all others
_MEMORY = 0.5  # how much of the known pace a batch leaves in place


class BatchedClassifier(WrappedClassifier):
    """The model as one request sees it: ``score`` may be computed in the company of others."""

    def __init__(self, pool: BatchScorer, context: RequestContext) -> None:
        super().__init__(pool.base)
        self._pool, self._context = pool, context

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """As the model's own; waits for its turn, and raises `Problem` where it has none."""
        return self._pool.score(copies, self._context)

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> BaseClassifier:
        """Refused: all requests share one way of hiding words."""
        raise OptionError(
            f"hide={hide!r} and mask_token={mask_token!r} are fixed when the service starts: leave "
            "them out"
        )

    def words_read(self, document: Document) -> int:
        """As the model's own."""
        if document.premise is not None and self._pool.pair_refusal is not None:
            raise ModelError(self._pool.pair_refusal)
        return self.inner.words_read(document)

    @property
    def tolerance(self) -> float:
        """As it was measured before the first request."""
        return self._pool.tolerance


@dataclass
class PoolFigures:
    """What a pool has done since it began, and what waits; for metrics."""

    asks: int = 0
    batches: int = 0
    copies: int = 0
    busy_seconds: float = 0.0
    failed_asks: int = 0
    refused_asks: int = 0
    dropped_copies: int = 0
    waiting_asks: int = 0
    waiting_copies: int = 0


class BatchScorer:
    """Scores the copies of many threads in shared batches, each batch by one call of the model.

    A batch is as large as the model computes in about ``batch_seconds``, so that nobody waits long
    for a batch in flight; never above ``batch_copies``.  Use `classifier` for each request, and
    `close` in the end.  What takes the model or its tokenizer is asked before the first request,
    for they belong to the pool's thread from then on: its ``tolerance``, and in ``pair_refusal``
    why it takes no pairs; None if it does, and it remembers how.

    Args:
        base: The model.  Nothing else may call its `score` meanwhile.
        batch_copies: Most copies in one batch.
        waiting_copies: Where more would wait, a new request is refused with `Busy`; one is always
            taken where nothing waits, however long it is.  Those of at most ``batch_copies`` are
            counted by themselves: long ones do not keep short ones out.  Copies of a context in
            the ``background`` are never refused, and computed where no others wait, or when
            they have waited for a second.
        batch_seconds: How long a batch is meant to take.
        turns: Shared by pools that must not compute at the same time.
    """

    def __init__(
        self,
        base: BaseClassifier,
        *,
        batch_copies: int = 8192,
        waiting_copies: int = 200_000,
        batch_seconds: float = 0.1,
        turns: FairSemaphore | None = None,
    ) -> None:
        self.base = base
        self.tolerance = base.tolerance
        self.pair_refusal: str | None = None
        try:
            base.words_read(Document(("a",), "a"))
        except ModelError as error:
            self.pair_refusal = str(error)
        self._batch_copies = batch_copies
        self._waiting_copies = waiting_copies
        self._batch_seconds = batch_seconds
        self._turns = turns or FairSemaphore()
        self._changed = threading.Condition()  # its lock guards all that follows
        self._waiting: dict[ScoringRequest, None] = {}  # oldest first
        self._in_flight: list[Portion] = []
        self._admitted: weakref.WeakSet[RequestContext] = weakref.WeakSet()
        self._closed = False
        self._pace: float | None = None  # copies a second
        self._figures = PoolFigures()
        self._thread = threading.Thread(target=self._work, name="ranmask-copies", daemon=True)
        self._thread.start()

    def __enter__(self) -> BatchScorer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def classifier(self, context: RequestContext) -> BatchedClassifier:
        """The model as one request sees it."""
        return BatchedClassifier(self, context)

    def figures(self) -> PoolFigures:
        """What was done, and what waits at this moment."""
        with self._changed:
            left = sum(request.left for request in self._waiting)
            return replace(self._figures, waiting_asks=len(self._waiting), waiting_copies=left)

    def score(self, copies: Sequence[MaskedCopies], context: RequestContext) -> list[Scores]:
        """As the model's `score`; waits until other threads' copies and these are computed.

        Raises what the model raises for these copies, and a `Problem` where it is not asked.
        A request that was let in once is refused no more until `close`.  One in the background
        is computed a batch at a time, and gives way in between.
        """
        whole = ScoringRequest(copies, background=context.background)
        if not whole.total:
            raise ClassifierError("no copies to score")
        if not whole.background:
            return self._waited_for(whole, context)
        while whole.left:
            portion = whole.take(self._room())
            batch = ScoringRequest(portion.copies, background=True)
            whole.deal(portion.start, np.concatenate(self._waited_for(batch, context)))
        scores = whole.scores()
        assert scores is not None
        return scores

    def _waited_for(self, request: ScoringRequest, context: RequestContext) -> list[Scores]:
        context.check()
        with self._changed:
            self._admit(request, context)
            self._waiting[request] = None
            self._changed.notify_all()
        try:
            context.wait(request.finished)
        finally:
            with self._changed:
                request.given_up = True
                if request in self._waiting:
                    del self._waiting[request]
                    self._figures.dropped_copies += request.left
        scores = request.scores()
        if scores is None:
            context.check()
            raise AssertionError("a request ended without scores, an error or an end")
        return scores

    def close(self, timeout: float | None = None) -> None:
        """Take nothing more, compute what waits, and end the thread.

        After ``timeout`` seconds, what is not computed yet fails with `Closing`.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout)
        with self._changed:
            for request in [*self._waiting, *(portion.request for portion in self._in_flight)]:
                self._waiting.pop(request, None)
                request.fail(Closing())

    # -- under the lock ------------------------------------------------------------------------

    def _admit(self, request: ScoringRequest, context: RequestContext) -> None:
        if self._closed:
            raise Closing
        if context not in self._admitted and not context.background:
            short = request.total <= self._batch_copies
            ahead = [
                other.left
                for other in self._waiting
                if not other.background and (not short or other.total <= self._batch_copies)
            ]
            beyond = sum(ahead) + request.total - self._waiting_copies
            if ahead and beyond > 0:
                self._figures.refused_asks += 1
                raise Busy(min(beyond, sum(ahead)) / self._pace if self._pace else 1.0)
            self._admitted.add(context)
        self._figures.asks += 1

    def _room(self) -> int:
        """How many copies a batch has."""
        aimed = _FIRST_COPIES if self._pace is None else self._pace * self._batch_seconds
        return int(min(max(aimed, _LEAST_COPIES), self._batch_copies))

    def _next_batch(self) -> list[Portion]:
        long_ago = time.monotonic() - _BACKGROUND_SECONDS
        first = [
            request
            for request in self._waiting
            if not request.background or request.since < long_ago
        ]
        left = {request: request.left for request in first or self._waiting}
        shares = fair_shares(left, self._room())
        batch = [request.take(share) for request, share in shares.items()]
        for request in shares:
            if not request.left:
                del self._waiting[request]
        return batch

    # -- the pool's thread ---------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
            with self._turns:
                with self._changed:
                    batch = self._in_flight = self._next_batch()
                if batch:  # else all who waited went away meanwhile
                    self._compute(batch)
                with self._changed:
                    self._in_flight = []

    def _compute(self, batch: list[Portion]) -> None:
        """Score a batch and deal it out; where that fails, each request by itself."""
        start = time.perf_counter()
        try:
            tables = self._scored(batch)
        except BaseException as error:
            if len(batch) > 1:
                for portion in batch:
                    if not portion.request.given_up:
                        self._compute([portion])
            else:
                self._fail(batch[0].request, error)
            return
        seconds = time.perf_counter() - start
        copies = sum(map(len, tables))
        with self._changed:
            self._figures.batches += 1
            self._figures.copies += copies
            self._figures.busy_seconds += seconds
            pace = copies / max(seconds, 1e-9)
            known = pace if self._pace is None else self._pace
            self._pace = _MEMORY * known + (1 - _MEMORY) * pace
        for portion, rows in zip(batch, tables, strict=True):
            try:
                with self._changed:
                    portion.request.deal(portion.start, rows)
            except Exception as error:
                self._fail(portion.request, error)

    def _scored(self, batch: list[Portion]) -> list[Scores]:
        """The model's rows for each portion, in one call."""
        copies = [text for portion in batch for text in portion.copies]
        scored = self.base.score(copies)
        for text, rows in itertools.zip_longest(copies, scored):
            if text is None or rows is None or rows.ndim != 2 or len(rows) != len(text):
                raise ClassifierError(
                    f"the base classifier returned {len(scored)} tables for {len(copies)} texts, "
                    f"one of shape {None if rows is None else rows.shape}"
                )
        left = iter(scored)
        return [np.concatenate([next(left) for _ in portion.copies]) for portion in batch]

    def _fail(self, request: ScoringRequest, error: BaseException) -> None:
        if not isinstance(error, Exception):  # sys.exit in a model must not end the service
            said = f"the base classifier raised {type(error).__name__}: {error}"
            error = _because(ClassifierError(said), error)
        elif isinstance(error, ClassifierError) and error.index is not None:
            # It counts texts of this portion, not of the request.
            error = _because(ClassifierError(error.reason), error.__cause__)
        with self._changed:
            self._waiting.pop(request, None)
            self._figures.failed_asks += 1
            request.fail(error)


def _because(error: ClassifierError, cause: BaseException | None) -> ClassifierError:
    error.__cause__ = cause
    return error
