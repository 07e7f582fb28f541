"""Connections of clients that take for ever, or that are too many, are closed."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_UNANSWERED = (h11.IDLE, h11.SEND_RESPONSE)


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


class BoundedConnection(H11Protocol):
    """A connection that is closed where its client keeps it waiting for ``seconds``.

    That is where the head of a request does not come, or comes too slowly; where a body goes on
    after its answer; and where answers are not read.  Bodies are timed by `limits`, answers by the
    deadline, and a connection between two requests by the server.  Use `bounded`.
    """

    seconds: ClassVar[float]
    most: ClassVar[int]

    _head_timer: asyncio.TimerHandle | None = None
    _rest_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse one too many; else wait for the head of a request."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(_TOO_MANY)
            transport.close()
        else:
            self._time_head()

    def data_received(self, data: bytes) -> None:
        """Go on waiting, or stop, as far as the head has come."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._time_head()
        self._time_rest()

    def on_response_complete(self) -> None:
        """An answer is on its way: is it read, and does the request end?"""
        super().on_response_complete()
        self._time_rest()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._time_rest()

    def resume_writing(self) -> None:
        """It does."""
        super().resume_writing()
        self._time_rest()

    def timeout_keep_alive_handler(self) -> None:
        """Close, and see to it that this ends."""
        super().timeout_keep_alive_handler()
        self._time_rest()

    def shutdown(self) -> None:
        """Likewise."""
        super().shutdown()
        self._time_rest()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; where an answer was begun, there is nothing left to say."""
        del msg
        if self.conn.our_state in _UNANSWERED:
            self.transport.write(_NOT_HTTP)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._stop_head()
        self._stop_rest()

    def _time_head(self) -> None:
        """Whatever arrived: is it still the beginning of a head that is waited for?"""
        if self.conn.their_state is not h11.IDLE:
            self._stop_head()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.seconds, self._no_head)

    def _no_head(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()
            self._time_rest()

    def _time_rest(self) -> None:
        """Whatever happened: does the client still have to read, or to send what nobody awaits?"""
        if not self._kept_waiting():
            self._stop_rest()
        elif self._rest_timer is None:
            self._rest_timer = self.loop.call_later(self.seconds, self._no_rest)

    def _no_rest(self) -> None:
        self._rest_timer = None
        if self._kept_waiting():
            self.transport.abort()

    def _stop_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_rest(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def _kept_waiting(self) -> bool:
        answered = self.cycle is not None and self.cycle.response_complete
        unsent = self.transport.get_write_buffer_size() > 0
        return unsent or (answered and self.conn.their_state is h11.SEND_BODY)


def bounded(seconds: float, most: int) -> type[BoundedConnection]:
    """The protocol of a server with at most ``most`` open connections."""
    return type("LimitedConnection", (BoundedConnection,), {"seconds": seconds, "most": most})
