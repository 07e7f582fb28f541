"""What opens an HTTP address: nothing is sent on elsewhere, and one deadline bounds a request.

The timeout of a socket bounds a single wait, so that a server that sends a byte now and then would
never be late.  Here it bounds connecting, the headers and the body together.
"""

from __future__ import annotations

import socket
import ssl
import time
from functools import partial
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)


def opener(url: str) -> OpenerDirector:
    """What opens an address: by a proxy where the environment names one, TLS being verified."""
    if not url.startswith("https:"):
        return build_opener(_NotSentOn, _PlainHandler)
    # Made once: it reads the certificates of the system.
    context = ssl.create_default_context()
    context.sslsocket_class = _SecureSocket
    return build_opener(_NotSentOn, _PlainHandler, _SecureHandler(context))


class _NotSentOn(HTTPRedirectHandler):
    """Neither texts nor the key go to an address that the user did not give."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Deadline:
    """The moment after which a request is late."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._late = seconds, time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that are left."""
        left = self._late - time.monotonic()
        if left <= 0:
            raise self.missed()
        return left

    def missed(self) -> TimeoutError:
        """What is said of a request that is late."""
        return TimeoutError(f"timed out: the answer took more than {self._seconds:g} seconds")


class _PlainSocket(socket.socket):
    deadline: _Deadline

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        self.settimeout(self.deadline.left())
        try:
            return super().recv_into(*arguments, **options)
        except TimeoutError:
            raise self.deadline.missed() from None

    def send(self, *arguments: Any, **options: Any) -> int:
        self.settimeout(self.deadline.left())
        return super().send(*arguments, **options)


class _SecureSocket(_PlainSocket, ssl.SSLSocket):
    pass


class _PlainConnection(HTTPConnection):
    def connect(self) -> None:
        deadline = _Deadline(float(self.timeout or 0))
        self._create_connection = partial(_connected, deadline)
        super().connect()
        sock: Any = self.sock  # TLS has put one of its own around the other
        sock.deadline = deadline


class _SecureConnection(_PlainConnection, HTTPSConnection):
    pass


def _connected(deadline: _Deadline, address: tuple[str, int], *_: Any) -> socket.socket:
    """A socket to the first of a host's addresses that answers."""
    problem = OSError(f"{address[0]} has no address")
    for family, kind, protocol, _name, place in socket.getaddrinfo(*address, 0, socket.SOCK_STREAM):
        found = _PlainSocket(family, kind, protocol)
        found.deadline = deadline
        try:
            found.settimeout(deadline.left())
            found.connect(place)
            found.settimeout(deadline.left())  # for sending, and for a handshake
        except OSError as error:
            found.close()
            problem = error
        else:
            return found
    raise problem


class _PlainHandler(HTTPHandler):
    def http_open(self, request: Request) -> Any:
        return self.do_open(_PlainConnection, request)


class _SecureHandler(HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._trusted = context

    def https_open(self, request: Request) -> Any:
        return self.do_open(_SecureConnection, request, context=self._trusted)
