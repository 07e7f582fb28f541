"""Requests run in threads: so many at once, so many waiting, none longer than its deadline.

Long ones go alone (`Workers`).  Short ones that ask the same of the same model are answered by one
call (`RequestBatcher`), for to draw the copies of one short text, hand them to the model and read
its votes costs more than the model's share in a large batch.  Whoever comes while others are being
answered waits, and all who waited go together: nobody waits for company that is not there.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.problems import Busy, Cancelled, Closing, DeadlinePassed, Problem
from ranmask.serving.sizing import ReadText

SHORT_COPIES = 512
"""Most copies of a request that is answered together with others."""

_TOGETHER_COPIES = 4096
_GROUPS_AT_ONCE = 2  # of one question: while one is computed, the next is prepared
_RETRY_SECONDS = 1.0
_QUIET_SECONDS = 0.05  # a client that asks again at once does so sooner
_UNWATCHED_SECONDS = 0.02  # most answers take less, and watching each client takes longer than they

_Answer = TypeVar("_Answer")
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Answer: TypeAlias = list[dict[str, Any]]
AnswerAll: TypeAlias = Callable[[Sequence[ReadText], RequestContext], Answer]
"""A result for each text; ``answer_all(a + b)`` is ``answer_all(a) + answer_all(b)``."""


def turns_of_requests() -> FairSemaphore:
    """How many requests of one kind compute at once: about as many as there are cores."""
    return FairSemaphore(max(2, os.cpu_count() or 1))


async def waited(answer: asyncio.Future[_Answer], receive: Receive, seconds: float) -> _Answer:
    """The answer, or a `Problem` where it is late or nobody waits for it any more.

    ``receive`` is that of the request, whose body has been read: what comes next is the news
    that the client went away.  Nobody listens for it before an answer takes `_UNWATCHED_SECONDS`.
    """
    unwatched = min(_UNWATCHED_SECONDS, seconds)
    await asyncio.wait([answer], timeout=unwatched)
    if not answer.done():
        gone = asyncio.create_task(_disconnected(receive))
        try:
            first: list[asyncio.Future[Any]] = [answer, gone]
            left = seconds - unwatched
            await asyncio.wait(first, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if not answer.done():
            raise Cancelled if gone.done() else DeadlinePassed
    return answer.result()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Workers:
    """Runs the work of requests in ``threads``; at most ``waiting`` further requests queue."""

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self.seconds = seconds
        self._executor = ThreadPoolExecutor(threads, "ranmask-request")
        self._turns = turns_of_requests()
        self._most = threads + waiting
        self._lock = threading.Lock()
        self._taken = 0
        self._last_left = -math.inf

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

    @property
    def taken(self) -> int:
        """How many requests are worked on, here or elsewhere, or wait for it."""
        return self._taken

    @property
    def busy(self) -> bool:
        """Whether requests are worked on, or were a moment ago, so that the next may follow."""
        return self._taken > 0 or time.monotonic() - self._last_left < _QUIET_SECONDS

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

    def _leave(self, _: Future[Any] | None = None) -> None:
        with self._lock:
            self._taken -= 1
            self._last_left = time.monotonic()


class _Member:
    """One request that waits; nobody does once ``answer`` is done, and it has no texts then."""

    def __init__(self, texts: Sequence[ReadText], copies: int, deadline: float) -> None:
        self.texts, self.copies, self.deadline = texts, copies, deadline
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.group: _Group | None = None

    def tell(self, answer: Answer | Exception) -> None:
        if self.answer.done():
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class _Group:
    """Requests that are being answered together, until the last of them is late or has left."""

    def __init__(self, members: list[_Member]) -> None:
        self.members = members
        self.context = RequestContext(max(member.deadline for member in members))
        for member in members:
            member.group = self


class _Question:
    """Who waits for the answer to one question, oldest first, and how many groups are at work."""

    def __init__(self, answer_all: AnswerAll) -> None:
        self.answer_all = answer_all
        self.waiting: list[_Member] = []
        self.at_work = 0

    def next_group(self) -> _Group:
        number = copies = 0
        for member in self.waiting:
            copies += member.copies
            if number and copies > _TOGETHER_COPIES:
                break
            number += 1
        group = _Group(self.waiting[:number])
        del self.waiting[:number]
        return group


class RequestBatcher:
    """Answers short requests in groups, in ``threads`` of its own.

    Each request has the answer, and the failures, that it would have alone.  Its state belongs to
    the event loop.
    """

    def __init__(self, workers: Workers, threads: int) -> None:
        self._workers = workers
        self._executor = ThreadPoolExecutor(threads, "ranmask-short")
        self._turns = turns_of_requests()
        self._questions: dict[Hashable, _Question] = {}

    async def run(
        self,
        receive: Receive,
        question: Hashable,
        answer_all: AnswerAll,
        texts: Sequence[ReadText],
        copies: int,
    ) -> Answer:
        """The results of ``texts``; requests of an equal ``question`` may be answered with it."""
        seconds = self._workers.seconds
        with self._workers.admitted():
            member = _Member(texts, copies, time.monotonic() + seconds)
            asked = self._questions.setdefault(question, _Question(answer_all))
            asked.waiting.append(member)
            self._begin(question)
            try:
                return await waited(member.answer, receive, seconds)
            finally:
                member.answer.cancel()  # nothing where it is done
                member.texts = ()
                if member.group is None:
                    asked.waiting.remove(member)
                elif all(other.answer.done() for other in member.group.members):
                    member.group.context.cancel()

    def close(self) -> None:
        """Wait for what runs; what has not begun is dropped."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _begin(self, question: Hashable) -> None:
        asked = self._questions[question]
        while asked.waiting and asked.at_work < _GROUPS_AT_ONCE:
            group = asked.next_group()
            asked.at_work += 1
            asyncio.get_running_loop().run_in_executor(
                self._executor, _work, asked.answer_all, group, self._turns
            ).add_done_callback(partial(self._end, question, group))

    def _end(
        self, question: Hashable, group: _Group, done: asyncio.Future[list[Answer | Exception]]
    ) -> None:
        asked = self._questions[question]
        asked.at_work -= 1
        if done.cancelled():  # by `close`
            for member in (*group.members, *asked.waiting):
                member.tell(Closing())
            return
        for member, answer in zip(group.members, done.result(), strict=True):
            member.tell(answer)
        self._begin(question)
        if not asked.at_work:
            del self._questions[question]


def _work(answer_all: AnswerAll, group: _Group, turns: FairSemaphore) -> list[Answer | Exception]:
    try:
        with group.context.at_work(turns):
            texts = [member.texts for member in group.members]  # of those who are still there
            return _answers(answer_all, texts, group.context)
    except Problem as problem:
        return [problem for _ in group.members]


def _answers(
    answer_all: AnswerAll, asked: Sequence[Sequence[ReadText]], context: RequestContext
) -> list[Answer | Exception]:
    """What each request is told: by one call for all, or by one for each where that fails."""
    try:
        results = iter(answer_all([text for texts in asked for text in texts], context))
        return [[next(results) for _ in texts] for texts in asked]
    except Problem as problem:  # the same for all of them
        return [problem for _ in asked]
    except Exception as error:
        if len(asked) == 1:
            return [error]
    return [answer for texts in asked for answer in _answers(answer_all, [texts], context)]
