"""Connections of clients that take for ever, or that are too many, are closed."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_BODY = json.dumps(
    {
        "error": {
            "code": "too_many_connections",
            "message": "too many connections are open: try again later",
            "request_id": "",
        }
    }
).encode()
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


class BoundedConnection(H11Protocol):
    """A connection that is closed where the head of a request does not come, or comes too slowly.

    Bodies are timed by `limits.BodyLimits`, answers by the deadline, and a connection between two
    requests by the server.  Use `bounded`.
    """

    head_seconds: ClassVar[float]
    most: ClassVar[int]

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse one too many; else wait for the head of a request."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(_REFUSAL)
            transport.close()
        else:
            self._time_head()

    def data_received(self, data: bytes) -> None:
        """Go on waiting, or stop, as far as the head has come."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop()
        super().connection_lost(exc)

    def _time_head(self) -> None:
        """Whatever arrived: is it still the beginning of a head that is waited for?"""
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def bounded(head_seconds: float, most: int) -> type[BoundedConnection]:
    """The protocol of a server with at most ``most`` open connections."""
    limits = {"head_seconds": head_seconds, "most": most}
    return type("LimitedConnection", (BoundedConnection,), limits)
