"""Bodies that are too large, too slow or not JSON never reach the service."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ranmask.serving.problems import Cancelled, Problem
from ranmask.serving.settings import ServiceSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

UPLOADS = frozenset({"/v1/jobs"})
"""Paths that take files: what is posted there, but for JSON, is read and limited where it goes."""


class BodyLimitsMiddleware:
    """Middleware: reads the body of a request, within its limits, before anything else sees it."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._bytes = settings.body_bytes
        self._seconds = settings.arrival_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or raise `Problem`."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["path"] in UPLOADS and kind != b"application/json":
            await self._app(scope, receive, send)
            return
        # Refused before it is sent, where it says how long it is; counted in any case.
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._bytes:
            raise self._too_large()
        body = await self._whole(receive)
        if body and kind != b"application/json":
            raise Problem(
                415, "not_json", "send the body as JSON, with Content-Type: application/json"
            )
        # The body once, then what really comes: the news that the client went away.
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, receive_again, send)

    async def _whole(self, receive: Receive) -> bytes:
        parts = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Cancelled
                    parts += message.get("body", b"")
                    if len(parts) > self._bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return bytes(parts)
        except TimeoutError:
            late = f"the body did not arrive within {self._seconds:g} s"
            raise Problem(408, "slow_body", late, {"Connection": "close"}) from None

    def _too_large(self) -> Problem:
        message = f"the body is larger than {self._bytes} bytes: send fewer texts at once"
        return Problem(413, "body_too_large", message, {"Connection": "close"})
