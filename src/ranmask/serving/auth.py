"""Who may call, and what a browser may do with the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ranmask.serving.keys import ApiKey, Keys, RateLimits
from ranmask.serving.problems import Problem
from ranmask.serving.settings import ServiceSettings, is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

FACTS = "ranmask.facts"
"""In a scope: what the log says about its request; ``request_id`` is always there."""

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

_BEARER = b"bearer "
_OPEN = frozenset({"/", "/docs", "/docs.css", "/openapi.json", "/healthz", "/readyz"})


class AuthMiddleware:
    """Middleware: lets a request in if it has a key, or, without any, if it calls this machine.

    Without keys the name that a request calls must be one of this machine: a web page whose own
    name was made to point here would otherwise read the answers.
    """

    def __init__(
        self, app: ASGIApp, settings: ServiceSettings, keys: Keys, rates: RateLimits
    ) -> None:
        self._app, self._keys, self._rates = app, keys, rates
        self._keyed = settings.keyed
        self._names = {name.lower() for name in settings.allowed_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or raise `Problem`."""
        if scope["type"] == "http":
            headers = dict(reversed(scope["headers"]))  # of several, the first
            if not self._keyed:
                self._check_name(headers)
            elif needs_key(scope["path"]):
                key = self._key_of(headers)
                scope[FACTS]["key"] = key.name
                self._rates.count(key)
        await self._app(scope, receive, send)

    def _key_of(self, headers: Mapping[bytes, bytes]) -> ApiKey:
        sent = headers.get(b"x-api-key")
        if sent is None:
            authorization = headers.get(b"authorization", b"")
            if authorization[: len(_BEARER)].lower() == _BEARER:
                sent = authorization[len(_BEARER) :].strip()
        key = None if sent is None else self._keys.find(sent.decode("latin-1"))
        if key is None:
            raise Problem(
                401,
                "wrong_key",
                "send the API key as `Authorization: Bearer KEY` or `X-API-Key: KEY`",
                {"WWW-Authenticate": "Bearer"},
            )
        return key

    def _check_name(self, headers: Mapping[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if not is_loopback(name) and name not in self._names:
            raise Problem(
                421,
                "wrong_host",
                "without an API key this service answers to localhost only: name further hosts "
                "with --allowed-host when it is started",
            )


def needs_key(path: str) -> bool:
    """Whether a path asks for the key: all but the page, its files and the health checks do.

    What is open is listed, not what is closed: routes match more spellings than their own.
    """
    return path not in _OPEN and not path.startswith("/page/")
