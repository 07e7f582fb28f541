"""The outermost middleware: every request has an id, an answer, a line in the log."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ranmask.serving.auth import FACTS, HEADERS
from ranmask.serving.problems import problem_of
from ranmask.serving.telemetry import Telemetry, log, log_failure

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OTHER_ROUTE = OTHER_METHOD = "other"
"""In logs and metrics: whatever a client made up."""

_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_USABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
_INTERNAL = 500
_WARNINGS = (401, 408, 413, 421, 429, 503, 504)  # what an operator may have to do something about
_METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")


class RequestLogMiddleware:
    """Middleware: request ids in and out, headers, metrics, the log; errors to JSON.

    A request keeps the id that it brings in ``X-Request-ID``, where that is usable, and the trace
    of its ``traceparent``.  ``HEAD`` is ``GET`` without the body.  While the
    service is ``closing``, connections are closed after their answers: no client is then in the
    middle of another request when the service ends.
    """

    def __init__(
        self,
        app: ASGIApp,
        telemetry: Telemetry,
        routes: frozenset[str],
        closing: Callable[[], bool],
    ) -> None:
        self._app, self._telemetry, self._routes = app, telemetry, routes
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens further in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = dict(reversed(scope["headers"]))  # of several, the first
        request_id = _request_id(sent)
        facts: dict[str, Any] = {"request_id": request_id}
        added = [*_HEADERS, (b"x-request-id", request_id.encode())]
        if (trace := _TRACEPARENT.fullmatch(sent.get(b"traceparent", b""))) is not None:
            added.append((b"traceparent", _continued(trace, facts)))
        if scope["path"].startswith("/v1/"):
            added.append((b"cache-control", b"no-store"))
        status = 0
        head = scope["method"] == "HEAD"

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), *added]
                if self._closing():
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            elif head:
                message = {**message, "body": b""}
            await send(message)

        begun = time.perf_counter()
        self._telemetry.begun()
        inner = {**scope, FACTS: facts, "method": "GET" if head else scope["method"]}
        try:
            await self._app(inner, receive, send_marked)
        except Exception as error:
            problem = problem_of(error)
            if problem.status == _INTERNAL:
                log_failure("internal error", error, request_id=request_id)
            facts["code"] = problem.code
            if not status:
                await problem.response(request_id)(inner, receive, send_marked)
        finally:
            seconds = time.perf_counter() - begun
            # The router notes which route it found: the path of a job says which job.
            path = getattr(inner.get("route"), "path", scope["path"])
            route = path if path in self._routes else OTHER_ROUTE
            self._telemetry.answered(route, status, seconds, facts.get("key"))
            level = logging.INFO
            if status in _WARNINGS or status >= _INTERNAL:
                level = logging.WARNING
                facts["client"] = scope["client"][0] if scope.get("client") else None
            log(
                "request",
                level,
                method=scope["method"] if scope["method"] in _METHODS else OTHER_METHOD,
                route=route,
                status=status,
                seconds=round(seconds, 4),
                **facts,
            )


def _request_id(sent: Mapping[bytes, bytes]) -> str:
    value = sent.get(b"x-request-id", b"")
    return value.decode("ascii") if _USABLE_ID.fullmatch(value) else secrets.token_hex(8)


def _continued(trace: re.Match[bytes], facts: dict[str, Any]) -> bytes:
    """The caller's trace with a span of our own, as W3C Trace Context has it; both are noted."""
    trace_id, parent, flags = (part.decode("ascii") for part in trace.groups())
    span = secrets.token_hex(8)
    facts.update(trace_id=trace_id, span_id=span, parent_id=parent)
    return f"00-{trace_id}-{span}-{flags}".encode()
