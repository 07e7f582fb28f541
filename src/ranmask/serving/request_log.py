"""The outermost middleware: every request has an id, an answer, a line in the log."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ranmask.serving.auth import HEADERS
from ranmask.serving.problems import problem_of
from ranmask.serving.telemetry import Telemetry, log, log_failure

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FACTS = "ranmask.facts"
"""In a scope: what the log says about its request; ``request_id`` is always there."""

OTHER_ROUTE = OTHER_METHOD = "other"
"""In logs and metrics: whatever a client made up."""

_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_USABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_INTERNAL = 500
_METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")


class RequestLogMiddleware:
    """Middleware: request ids in and out, headers, metrics, the log; errors to JSON.

    A request keeps the id that it brings in ``X-Request-ID``, where that is usable.  While the
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
        request_id = _request_id(scope)
        facts: dict[str, Any] = {"request_id": request_id}
        scope[FACTS] = facts
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), *_HEADERS]
                headers.append((b"x-request-id", request_id.encode()))
                if scope["path"].startswith("/v1/"):
                    headers.append((b"cache-control", b"no-store"))
                if self._closing():
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            await send(message)

        begun = time.perf_counter()
        self._telemetry.begun()
        try:
            await self._app(scope, receive, send_marked)
        except Exception as error:
            problem = problem_of(error)
            if problem.status == _INTERNAL:
                log_failure("internal error", error, request_id=request_id)
            facts["code"] = problem.code
            if not status:
                await problem.response(request_id)(scope, receive, send_marked)
        finally:
            seconds = time.perf_counter() - begun
            # The router notes which route it found: the path of a job says which job.
            path = getattr(scope.get("route"), "path", scope["path"])
            route = path if path in self._routes else OTHER_ROUTE
            self._telemetry.answered(route, status, seconds)
            log(
                "request",
                method=scope["method"] if scope["method"] in _METHODS else OTHER_METHOD,
                route=route,
                status=status,
                seconds=round(seconds, 4),
                **facts,
            )


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _USABLE_ID.fullmatch(value):
            return str(value.decode("ascii"))
    return secrets.token_hex(8)
