"""Requests that ask the same of the same model, answered by one call.

To draw the copies of one short text, hand them to the model and read its votes costs more than the
model's share in a large batch.  So whoever comes while others are being answered waits, and all
who waited go together: nobody waits for company that is not there.  Long requests go alone
(`Workers.run`), so that a short one never waits for the texts of a long one.

This module knows no models; its state belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.problems import Closing, Problem
from ranmask.serving.sizing import ReadText
from ranmask.serving.workers import Receive, Workers, turns_of_requests, waited

Answer: TypeAlias = list[dict[str, Any]]
AnswerAll: TypeAlias = Callable[[Sequence[ReadText], RequestContext], Answer]
"""A result for each text; ``answer_all(a + b)`` is ``answer_all(a) + answer_all(b)``."""

SHORT_COPIES = 512
"""Most copies of a request that is gathered with others."""

_TOGETHER_COPIES = 4096
_GROUPS_AT_ONCE = 2  # of one question: while one is computed, the next is prepared


class _Member:
    """One request that waits; nobody does once ``answer`` is done, and it has no texts then."""

    def __init__(self, texts: Sequence[ReadText], copies: int, deadline: float) -> None:
        self.texts = texts
        self.copies = copies
        self.deadline = deadline
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.group: _Group | None = None


class _Group:
    """Requests that are being answered together, until the last of them is late or has left."""

    def __init__(self, members: list[_Member]) -> None:
        self.members = members
        self.context = RequestContext(max(member.deadline for member in members))

    def left(self) -> None:
        if all(member.answer.done() for member in self.members):
            self.context.cancel()


class _Question:
    """Who waits for the answer to one question, oldest first, and how many groups are at work."""

    def __init__(self, answer_all: AnswerAll) -> None:
        self.answer_all = answer_all
        self.waiting: list[_Member] = []
        self.at_work = 0

    def next_group(self) -> _Group:
        taken: list[_Member] = []
        copies = 0
        for member in self.waiting:
            if taken and copies + member.copies > _TOGETHER_COPIES:
                break
            taken.append(member)
            copies += member.copies
        del self.waiting[: len(taken)]
        group = _Group(taken)
        for member in taken:
            member.group = group
        return group


class RequestBatcher:
    """Answers short requests in groups, in ``threads`` of its own.

    Each request has the answer, and the failures, that it would have alone.
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
                if member.group is not None:
                    member.group.left()
                else:
                    asked.waiting.remove(member)

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
                _tell(member, Closing())
            return
        for member, answer in zip(group.members, done.result(), strict=True):
            _tell(member, answer)
        self._begin(question)
        if not asked.at_work:
            del self._questions[question]


def _tell(member: _Member, answer: Answer | Exception) -> None:
    if member.answer.done():
        return
    if isinstance(answer, Exception):
        member.answer.set_exception(answer)
    else:
        member.answer.set_result(answer)


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
