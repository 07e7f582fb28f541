"""Requests of a client to a service: connections that are kept, waiting where it is busy, errors.

With the standard library alone.  The key is sent to the service's address and nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from ranmask.errors import (
    DataError,
    ModelError,
    OptionError,
    RanmaskError,
    ServiceError,
    TextError,
    check_cancelled,
)
from ranmask.models.http_client import retry_after

_BUSY = (429, 503)
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_IDLE_SECONDS = 10.0  # the service closes a connection after a while
_MOST_SAID = 200
_KINDS: dict[str, type[RanmaskError]] = {
    "unusable_text": TextError,
    "wrong_option": OptionError,
    "invalid_request": OptionError,
    "too_many_texts": OptionError,
    "too_many_words": OptionError,
    "too_many_rows": OptionError,
    "body_too_large": OptionError,
    "unknown_format": OptionError,
    "unknown_model": ModelError,
    "unusable_model": ModelError,
    "wrong_kind": ModelError,
    "unusable_file": DataError,
}
"""The errors of the library, by the codes of the service's; all others are `ServiceError`."""


class _Request(NamedTuple):
    method: str
    path: str
    body: bytes | IO[bytes] | None
    headers: Mapping[str, str]


class Calls:
    """Asks one service.  Threads may share it."""

    def __init__(self, url: str, key: str | None, timeout: float, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise OptionError(f"url must be an address as http://127.0.0.1:8000, not {url!r}")
        if parts.username is not None:
            raise OptionError("url holds a user name: give the key of the service as key")
        if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
            raise OptionError("key must be printable ASCII characters without blanks")
        if not timeout > 0 or retries < 0:
            raise OptionError(
                f"timeout must be above 0 and retries at least 0, not {timeout!r} and {retries!r}"
            )
        try:
            self._port = parts.port
        except ValueError:
            raise OptionError(f"url has no port that can be: {url!r}") from None
        self._secure, self._host = parts.scheme == "https", parts.hostname
        self._prefix = parts.path.rstrip("/")
        self.shown = f"{parts.scheme}://{parts.netloc}{self._prefix}"
        self._timeout, self._retries = timeout, retries
        self._headers = {"User-Agent": "ranmask"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle: list[tuple[float, HTTPConnection]] = []
        self._mutex = threading.Lock()
        self._reached = False

    def close(self) -> None:
        """Close the connections that are open."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def json(
        self, method: str, path: str, needed: str, content: Mapping[str, Any] | None = None
    ) -> Any:
        """The JSON of an answer, which has a field ``needed``; raises what went wrong."""
        data = None if content is None else json.dumps(content).encode()
        kind = {} if content is None else {"Content-Type": "application/json"}
        with self.answer(method, path, data, kind) as response:
            return self.parsed(response.read(), needed)

    def parsed(self, body: bytes, needed: str) -> Any:
        """The JSON object in an answer."""
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise ServiceError(f"{self.shown} answered with no JSON: {body[:40]!r}") from None
        if not isinstance(found, dict) or needed not in found:
            raise ServiceError(f"{self.shown} is no service of ranmask: it answered {body[:40]!r}")
        return found

    @contextlib.contextmanager
    def answer(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        once: bool = False,
    ) -> Iterator[HTTPResponse]:
        """An answer that is no error, to be read in the block.

        Where the service is busy, it is asked again when it says; ``once``: not where the
        connection broke, for the request may have been heard.
        """
        request = _Request(method, path, body, headers or {})
        attempt = 0
        problem: RanmaskError
        while True:
            check_cancelled()
            try:
                connection, response = self._ask(request, once)
            except (OSError, HTTPException) as error:
                problem = self._unreachable(error)
                again = self._reached and not once and not isinstance(error, ssl.SSLError)
                wait = 0.0
            else:
                if response.status < 300:
                    break
                problem, wait = self._refusal(connection, response)
                again = response.status in _BUSY and wait <= self._timeout
            if not again or attempt >= self._retries:
                raise problem from None
            time.sleep(wait or min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT))
            attempt += 1
        try:
            yield response
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from None
        except BaseException:
            connection.close()
            raise
        self._put_back(connection, response)

    def _ask(self, request: _Request, once: bool) -> tuple[HTTPConnection, HTTPResponse]:
        kept = None if once else self._take()
        if kept is not None:
            try:
                return kept, self._exchange(kept, request)
            except (ConnectionError, HTTPException):
                kept.close()  # it was closed meanwhile, as connections are
        make = HTTPSConnection if self._secure else HTTPConnection
        connection = make(self._host, self._port, timeout=self._timeout)
        try:
            return connection, self._exchange(connection, request)
        except BaseException:
            connection.close()
            raise

    def _exchange(self, connection: HTTPConnection, request: _Request) -> HTTPResponse:
        method, path, body, headers = request
        if body is not None and not isinstance(body, bytes):
            body.seek(0)
        try:
            connection.request(method, self._prefix + path, body, {**self._headers, **headers})
        except (BrokenPipeError, ConnectionResetError):
            if connection.sock is None or isinstance(body, bytes) or body is None:
                raise
            # A file that is refused is not read to its end: the answer is there.
        response = connection.getresponse()
        self._reached = True
        return response

    def _take(self) -> HTTPConnection | None:
        with self._mutex:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < _IDLE_SECONDS:
                    return connection
                connection.close()
        return None

    def _put_back(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        if response.will_close or not response.isclosed():
            connection.close()
            return
        with self._mutex:
            self._idle.append((time.monotonic(), connection))

    def _refusal(
        self, connection: HTTPConnection, response: HTTPResponse
    ) -> tuple[RanmaskError, float]:
        """What the service says is wrong, and how long to wait before asking again."""
        try:
            said = response.read()
        except (OSError, HTTPException):
            said = b""
        self._put_back(connection, response)
        wait = retry_after(response.headers.get("Retry-After", ""))
        try:
            error = json.loads(said)["error"]
            code, message = str(error["code"]), str(error["message"])
            request_id = str(error["request_id"])
        except (ValueError, KeyError, TypeError, RecursionError):
            told = " ".join(said.decode("utf-8", "replace").split())[:_MOST_SAID]
            if 300 <= response.status < 400:
                told = "it sends on to elsewhere, where nothing is sent: give the address meant"
            message = f"{self.shown} answered with HTTP {response.status}: {told or 'nothing'}"
            return ServiceError(message, status=response.status), wait
        kind = _KINDS.get(code)
        if kind is not None:
            return kind(message), wait
        return ServiceError(message, response.status, code, request_id), wait

    def _unreachable(self, error: Exception) -> ServiceError:
        if isinstance(error, TimeoutError):
            why = f"no answer within {self._timeout:g} s: ask for less, or with a longer timeout"
        else:
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            why = f"{said}: is the service running there?"
        return ServiceError(f"cannot ask {self.shown}: {why}")
