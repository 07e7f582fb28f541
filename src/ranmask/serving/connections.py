"""Connections of clients that take for ever, that are too many or that speak no HTTP are closed."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ranmask.serving.telemetry import log

HEAD_BYTES = 1 << 16
"""Most bytes of a request that are not its body: its head, and whatever stands between chunks."""

_MOST_PIPELINED = 100  # requests of one connection that wait for each other


def _refusal(status: bytes, code: str, message: str) -> bytes:
    """An answer to what never becomes a request, in the shape of all others."""
    body = json.dumps({"error": {"code": code, "message": message, "request_id": ""}}).encode()
    return (
        b"HTTP/1.1 %s\r\nConnection: close\r\nRetry-After: 5\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (status, len(body), body)
    )


_TOO_MANY = _refusal(
    b"503 Service Unavailable",
    "too_many_connections",
    "too many connections are open: try again later",
)
_NOT_HTTP = _refusal(b"400 Bad Request", "not_http", "this is no HTTP request that can be read")


class _NoRequestError(Exception):
    """A head that is well-formed, but no request."""


class BoundedConnection(HttpToolsProtocol):
    """A connection that is closed where its client keeps it waiting.

    That is where the head of a request does not come, or comes too slowly; where a body goes on
    after its answer; and where answers are not read.  Bodies are timed by `limits`, answers by the
    deadline, and a connection between two requests by the server, which also calls `close_if_late`.
    ``most``: how many may be open.
    """

    def __init__(self, *args: Any, most: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self._most = most
        self._in_head = True
        self._in_body = False
        self._not_body = 0  # bytes of the request that are not its body
        self._head_since: float | None = self.loop.time()
        self._kept_since: float | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._most:
            self._refuse(_TOO_MANY, "too_many_connections")

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._not_body += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # answered as if it had not asked for another protocol
            if self.cycle is not None:
                self.cycle.keep_alive = False
            self._refused = True
        except httptools.HttpParserError:
            self._refuse(_NOT_HTTP, "not_http")
        else:
            if self._not_body > HEAD_BYTES:
                self._refuse(_NOT_HTTP, "head_too_large")
        self._note()

    # -- callbacks of the parser ---------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # not those that follow a body
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        hosts = sum(name == b"host" for name, _ in self.headers)
        if size > HEAD_BYTES or hosts > 1 or (not hosts and self._is_newest_version()):
            raise _NoRequestError
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise _NoRequestError
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._not_body -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._not_body = 0
        super().on_message_complete()

    def _is_newest_version(self) -> bool:
        return bool(self.parser.get_http_version() == "1.1")

    # -- what the client is waited for ---------------------------------------------------------

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def _refuse(self, answer: bytes, code: str) -> None:
        """Answer what is no request, and close; requests before it are answered first."""
        host = self.client[0] if self.client else None
        log("connection refused", logging.WARNING, code=code, client=host)
        self._refused = True
        cycle = self.cycle
        if self._in_body and cycle is not None and cycle.response_started:
            answer = b""  # there is nothing left to say
        elif not self._in_body and cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False  # it follows a request that is being answered
            return
        self.transport.write(answer)
        self.transport.close()

    def _note(self) -> None:
        """Since when the client has to send a head; or to read, or to send what nobody awaits."""
        answered = self.cycle is None or self.cycle.response_complete
        if not (answered and self._in_head):
            self._head_since = None
        elif self._head_since is None:
            self._head_since = self.loop.time()
        if not (answered and self._in_body) and not self.transport.get_write_buffer_size():
            self._kept_since = None
        elif self._kept_since is None:
            self._kept_since = self.loop.time()

    def close_if_late(self, seconds: float) -> None:
        """Close a connection whose client has been waited for so long."""
        self._note()
        oldest = self.loop.time() - seconds
        if self._kept_since is not None and self._kept_since <= oldest:
            self.transport.abort()
        elif self._head_since is not None and self._head_since <= oldest:
            self.transport.close()
