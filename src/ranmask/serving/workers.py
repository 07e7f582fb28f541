"""Requests run in threads: so many at once, so many waiting, none longer than its deadline."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.problems import Busy, Cancelled, DeadlinePassed

_Answer = TypeVar("_Answer")
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

_RETRY_SECONDS = 1.0


def turns_of_requests() -> FairSemaphore:
    """How many requests of one kind compute at once: about as many as there are cores."""
    return FairSemaphore(max(2, os.cpu_count() or 1))


async def waited(answer: asyncio.Future[_Answer], receive: Receive, seconds: float) -> _Answer:
    """The answer, or a `Problem` where it is late or nobody waits for it any more.

    ``receive`` is that of the request, whose body has been read: what comes next is the news
    that the client went away.
    """
    leaving: asyncio.Future[Any] = asyncio.ensure_future(_left(receive))
    either: set[asyncio.Future[Any]] = {answer, leaving}
    try:
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise Cancelled if leaving.done() else DeadlinePassed
    finally:
        leaving.cancel()


class Workers:
    """Runs the work of requests in ``threads``; at most ``waiting`` further requests queue."""

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self.seconds = seconds
        self._executor = ThreadPoolExecutor(threads, "ranmask-request")
        self._turns = turns_of_requests()
        self._most = threads + waiting
        self._lock = threading.Lock()
        self._taken = 0

    async def run(self, receive: Receive, task: Callable[[RequestContext], _Answer]) -> _Answer:
        """What ``task`` returns; cancelled when it is late or nobody waits for it."""
        self._admit()
        context = RequestContext(time.monotonic() + self.seconds)
        queued = [task]
        future = self._executor.submit(self._work, queued, context)
        # Until its thread is free again, even if nobody waits for it.
        future.add_done_callback(self._leave)
        answer = asyncio.wrap_future(future)
        try:
            return await waited(answer, receive, self.seconds)
        finally:
            if not answer.done():
                context.cancel()
                answer.cancel()
                queued.clear()  # the executor drops it when a thread is free: its texts, now

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Count a request that is worked on elsewhere among those that are here."""
        self._admit()
        try:
            yield
        finally:
            self._leave()

    def close(self) -> None:
        """Wait for what runs; what has not begun is dropped."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _work(
        self, queued: list[Callable[[RequestContext], _Answer]], context: RequestContext
    ) -> _Answer:
        for task in queued[:]:
            with context.at_work(self._turns):
                return task(context)
        raise Cancelled

    def _admit(self) -> None:
        with self._lock:
            if self._taken >= self._most:
                raise Busy(_RETRY_SECONDS)
            self._taken += 1

    def _leave(self, future: Future[Any] | None = None) -> None:
        del future
        with self._lock:
            self._taken -= 1


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
