"""Who may call, and what a browser may do with the answers."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from ranmask.serving.problems import Problem
from ranmask.serving.settings import ServiceSettings, is_loopback

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import ASGIApp, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""On every answer.  A page of the service loads nothing from elsewhere, and cannot be framed."""

_BEARER = "bearer "
_OPEN = frozenset({"/", "/docs", "/docs.css", "/openapi.json", "/healthz", "/readyz"})


class AuthMiddleware:
    """Middleware: lets a request in if it has the key, or, without one, if it calls this machine.

    Without a key the name that a request calls must be one of this machine: a web page whose own
    name was made to point here would otherwise read the answers.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._key = None if settings.api_key is None else _digest(settings.api_key)
        self._names = {name.lower() for name in settings.allowed_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or raise `Problem`."""
        if scope["type"] == "http":
            from starlette.datastructures import Headers

            headers = Headers(scope=scope)
            if self._key is None:
                self._check_name(headers)
            elif needs_key(scope["path"]):
                self._check_key(headers, self._key)
        await self._app(scope, receive, send)

    def _check_key(self, headers: Headers, key: bytes) -> None:
        sent = sent_key(headers)
        # Digests of one length, compared in constant time: nothing is learnt by guessing.
        if sent is None or not hmac.compare_digest(_digest(sent), key):
            raise Problem(
                401,
                "wrong_key",
                "send the API key as `Authorization: Bearer KEY` or `X-API-Key: KEY`",
                {"WWW-Authenticate": "Bearer"},
            )

    def _check_name(self, headers: Headers) -> None:
        host = headers.get("host", "").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if not is_loopback(name) and name not in self._names:
            raise Problem(
                421,
                "wrong_host",
                "without an API key this service answers to localhost only: name further hosts "
                "with --allowed-host when it is started",
            )


def sent_key(headers: Headers) -> str | None:
    """The key that a request brings."""
    sent = headers.get("x-api-key")
    authorization = headers.get("authorization", "")
    if sent is None and authorization[: len(_BEARER)].lower() == _BEARER:
        return authorization[len(_BEARER) :].strip()
    return sent


def needs_key(path: str) -> bool:
    """Whether a path asks for the key: all but the page, its files and the health checks do.

    What is open is listed, not what is closed: routes match more spellings than their own.
    """
    return path not in _OPEN and not path.startswith("/page/")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
