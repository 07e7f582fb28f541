"""Requests run in threads: so many at once, so many waiting, none longer than its deadline."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

from ranmask.serving.problems import busy, gone, late
from ranmask.serving.tickets import Ticket

_Answer = TypeVar("_Answer")
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_RETRY_SECONDS = 1.0


class Workers:
    """Runs the work of requests in ``threads``; at most ``waiting`` further requests queue."""

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self._threads = threads
        self._executor: ThreadPoolExecutor | None = None  # made when it is first needed
        self._most = threads + waiting
        self._seconds = seconds
        self._lock = threading.Lock()
        self._taken = 0

    async def run(self, receive: _Receive, task: Callable[[Ticket], _Answer]) -> _Answer:
        """What ``task`` returns; its ticket is cancelled when it is late or nobody waits for it.

        ``receive`` is that of the request, whose body has been read: what comes next is the news
        that the client went away.
        """
        with self._lock:
            if self._taken >= self._most:
                raise busy(_RETRY_SECONDS)
            self._taken += 1
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._threads, "ranmask-request")
            executor = self._executor
        ticket = Ticket(time.monotonic() + self._seconds)
        future = executor.submit(task, ticket)
        future.add_done_callback(self._done)
        answer: asyncio.Future[Any] = asyncio.wrap_future(future)
        leaving: asyncio.Future[Any] = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait(
                {answer, leaving}, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done():
                return cast("_Answer", answer.result())
            raise gone() if leaving.done() else late()
        finally:
            if not answer.done():
                ticket.cancel()
                answer.cancel()
            leaving.cancel()

    def close(self) -> None:
        """Wait for what runs; what has not begun is dropped."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)

    def _done(self, future: Future[Any]) -> None:
        del future
        with self._lock:
            self._taken -= 1


async def _left(receive: _Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
