"""Connections of clients that take for ever, or that are too many, are closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, ClassVar

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


class _BoundedConnection(H11Protocol):
    """A connection that is closed where its client keeps it waiting for ``seconds``.

    That is where the head of a request does not come, or comes too slowly; where a body goes on
    after its answer; and where answers are not read.  Bodies are timed by `limits`, answers by the
    deadline, and a connection between two requests by the server.
    """

    seconds: ClassVar[float]
    most: ClassVar[int]

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(_TOO_MANY)
            transport.close()
        else:
            self._time_head()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._time_head()
        self._time_rest()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._time_rest()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._time_rest()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._time_rest()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._time_rest()

    def shutdown(self) -> None:
        super().shutdown()
        self._time_rest()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; where an answer was begun, there is nothing left to say."""
        del msg
        if self.conn.our_state in _UNANSWERED:
            self.transport.write(_NOT_HTTP)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        while self._timers:
            self._timers.popitem()[1].cancel()

    def _time(self, wanted: bool, over: Callable[[], None]) -> None:
        """Call ``over`` in a while, if that is ``wanted`` all the time until then."""
        if not wanted and over in self._timers:
            self._timers.pop(over).cancel()
        elif wanted and over not in self._timers:
            self._timers[over] = self.loop.call_later(self.seconds, over)

    def _time_head(self) -> None:
        """Whatever arrived: is it still the beginning of a head that is waited for?"""
        self._time(self.conn.their_state is h11.IDLE, self._no_head)

    def _no_head(self) -> None:
        del self._timers[self._no_head]
        self.transport.close()
        self._time_rest()

    def _time_rest(self) -> None:
        """Whatever happened: does the client still have to read, or to send what nobody awaits?"""
        self._time(self._kept_waiting(), self._no_rest)

    def _no_rest(self) -> None:
        del self._timers[self._no_rest]
        if self._kept_waiting():
            self.transport.abort()

    def _kept_waiting(self) -> bool:
        answered = self.cycle is not None and self.cycle.response_complete
        unsent = self.transport.get_write_buffer_size() > 0
        return unsent or (answered and self.conn.their_state is h11.SEND_BODY)


def bounded(seconds: float, most: int) -> type[H11Protocol]:
    """The protocol of a server with at most ``most`` open connections."""
    return type("LimitedConnection", (_BoundedConnection,), {"seconds": seconds, "most": most})
