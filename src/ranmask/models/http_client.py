"""Requests to one HTTP address: paced, tried again, and sent from several threads."""

from __future__ import annotations

import json
import queue
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import OpenerDirector, Request

from ranmask.errors import ModelError, check_cancelled

_Job = TypeVar("_Job")
_Done = TypeVar("_Done")

_MOST_BYTES = 16 << 20
_MOST_SAID = 200
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 120.0


class NoAnswerError(Exception):
    """A request got no answer that can be used.

    ``again``: the same request may get one later, after ``wait`` seconds where the server says so.
    ``fewer``: a request with fewer of its texts may.
    """

    def __init__(
        self, reason: str, *, again: bool = False, fewer: bool = False, wait: float = 0.0
    ) -> None:
        super().__init__(reason)
        self.again, self.fewer, self.wait = again, fewer, wait


class Clock:
    """Seconds that pass."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float, stop: threading.Event) -> None:
        """Wait, unless ``stop`` is set before."""
        stop.wait(max(0.0, seconds))


class Pace:
    """Spaces the requests of all threads, and holds them back where the server asks for it."""

    def __init__(self, per_minute: float | None, clock: Clock) -> None:
        self.clock = clock
        self._gap = 0.0 if per_minute is None else 60 / per_minute
        self._next = clock.now()
        self._mutex = threading.Lock()

    def wait(self, stop: threading.Event) -> None:
        """Wait for the next turn."""
        with self._mutex:
            now = self.clock.now()
            turn = max(self._next, now)
            self._next = turn + self._gap
        self.clock.sleep(turn - now, stop)

    def hold(self, seconds: float) -> None:
        """No further turn for so long."""
        with self._mutex:
            self._next = max(self._next, self.clock.now() + seconds)


@dataclass(eq=False, repr=False)
class Client:
    """Posts JSON to one address.  The key is shown to nobody else, and in no message.

    After ``patience`` requests in a row without an answer it asks no more: each later request is
    `NoAnswerError` at once.
    """

    url: str
    key: str | None
    pace: Pace
    opener: OpenerDirector
    _: KW_ONLY
    timeout: float
    retries: int
    patience: int

    def __post_init__(self) -> None:
        self._shown = self.url.partition("?")[0]
        self._headers = {"Content-Type": "application/json", "User-Agent": "ranmask"}
        if self.key is not None:
            self._headers["Authorization"] = f"Bearer {self.key}"
        self._in_vain, self._answered = 0, False
        self._mutex = threading.Lock()

    def post(self, content: Mapping[str, Any], stop: threading.Event) -> Any:
        """The JSON of an answer; `NoAnswerError`, or `ModelError` where there will never be one."""
        data = json.dumps(content).encode()
        attempt = 0
        while True:
            if self._in_vain >= self.patience:
                raise NoAnswerError(f"not asked, after {self._in_vain} requests without an answer")
            self.pace.wait(stop)
            if stop.is_set():
                raise NoAnswerError("the run was stopped")
            try:
                found = self._once(data)
            except NoAnswerError as problem:
                if not problem.again or problem.wait > _LONGEST_WAIT or attempt >= self.retries:
                    self._count(answered=False, fault=problem.again)
                    raise
                self.pace.hold(problem.wait)
                backoff = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT)
                self.pace.clock.sleep(backoff * random.uniform(0.5, 1), stop)  # noqa: S311
                attempt += 1
            else:
                self._count(answered=True)
                return found

    def _count(self, *, answered: bool, fault: bool = True) -> None:
        """A refused text is a fault of the server's only where none was ever answered."""
        with self._mutex:
            self._answered |= answered
            self._in_vain = 0 if answered else self._in_vain + (fault or not self._answered)

    def _once(self, data: bytes) -> Any:
        request = Request(self.url, data, self._headers)  # noqa: S310 (http or https: checked)
        try:
            with self.opener.open(request, timeout=self.timeout) as response:
                body = self._body(response)
        except HTTPError as error:
            with error:
                raise self._refused(error) from None
        except (OSError, HTTPException, UnicodeError) as error:  # the last of a name
            reason = getattr(error, "reason", error)
            told = self._told(f"{type(reason).__name__}: {reason}")
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise ModelError(f"{self._shown} cannot be trusted: {told}") from None
            raise NoAnswerError(f"the request failed: {told}", again=True) from None
        try:
            said = json.loads(body)
            if self.key is not None:  # however it was written there
                plain = json.dumps(said, ensure_ascii=False)
                said = json.loads(plain.replace(json.dumps(self.key)[1:-1], "[the key]"))
            return said
        except (ValueError, RecursionError) as error:
            raise NoAnswerError(f"it answered with no JSON: {error}", fewer=True) from None

    def _body(self, response: Any) -> bytes:
        wanted, body = response.length, bytearray()
        while wanted is None or len(body) < wanted:
            part = response.read1(1 << 16)
            body += part
            if len(body) > _MOST_BYTES:
                raise NoAnswerError(
                    f"it answered with more than {_MOST_BYTES >> 20} MiB", fewer=True
                )
            if not part and wanted is not None:
                raise ConnectionResetError("the connection was closed in the middle of an answer")
            if not part:
                break
        return bytes(body)

    def _refused(self, error: HTTPError) -> Exception:
        try:
            said = self._body(error.fp).decode("utf-8", "replace")
        except (OSError, HTTPException, NoAnswerError):
            said = ""
        told = f"HTTP {error.code}: {self._told(said)}" if said else f"HTTP {error.code}"
        if error.code in (401, 403):
            return ModelError(
                f"{self._shown} refused the key ({told}): check the environment variable that "
                "key_variable names, and what the key may do"
            )
        if error.code in (404, 405):
            return ModelError(
                f"nothing answers at {self._shown} ({told}): check url, protocol and model_name"
            )
        if 300 <= error.code < 400:
            where = self._told(error.headers.get("Location", "").partition("?")[0])
            return ModelError(
                f"{self._shown} sends on to {where or 'nowhere'} (HTTP {error.code}), where texts "
                "and keys are not sent: give the address that is meant as url"
            )
        busy = error.code in (408, 429)
        return NoAnswerError(
            told,
            again=busy or error.code >= 500,
            fewer=not busy,
            wait=retry_after(error.headers.get("Retry-After", "")),
        )

    def _told(self, said: str) -> str:
        """What a server says, cut short and without the key."""
        said = said if self.key is None else said.replace(self.key, "[the key]")
        return " ".join(said.split())[:_MOST_SAID]


def in_threads(
    work: Callable[[_Job, threading.Event], _Done], jobs: Sequence[_Job], threads: int
) -> Iterator[_Done]:
    """What ``work`` makes of each job, as it comes.  Its second argument is set when all stops.

    An exception, Ctrl-C or a cancelled caller stops it without waiting for what is under way.
    """
    todo: queue.SimpleQueue[_Job] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[_Done] | BaseException] = queue.SimpleQueue()
    stop = threading.Event()
    for job in jobs:
        todo.put(job)

    def run() -> None:
        while not stop.is_set():
            try:
                job = todo.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((work(job, stop),))
            except BaseException as error:
                stop.set()
                done.put(error)

    for _ in range(min(threads, len(jobs))):
        threading.Thread(target=run, daemon=True).start()
    try:
        for _ in jobs:
            outcome = None
            while outcome is None:
                check_cancelled()
                try:
                    outcome = done.get(timeout=0.05)
                except queue.Empty:
                    continue
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome[0]
    finally:
        stop.set()


def retry_after(value: str) -> float:
    """Seconds from a header that holds seconds or a date; 0 where it holds neither."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0
