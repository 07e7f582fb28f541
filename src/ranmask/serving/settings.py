"""How the service is set: where it listens, for whom, and how much it takes on."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field

from ranmask.errors import OptionError

_MOST_PORT = 65535
_KEY_CHARACTERS = 16


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of one service.  Checked when built.

    **It refuses to listen beyond this machine without an API key.**

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        processes: How many processes answer, each with models of its own.
        models: Names of models; the first one answers where a request names none.
        keep: Words that each copy shows, for all models; None leaves each as it is saved.
        mask_rate: Or the share that it hides.
        device: Where encoders compute; None lets the model choose.
        api_key: What callers must send; None asks for nothing, on this machine only.
        cors_origins: Web pages of other origins that may call, as ``https://example.org``.
        allowed_hosts: Further names by which the service may be called without a key.
        body_bytes: Largest body of a request.
        arrival_seconds: Longest time that the head of a request, and then its body, may take to
            arrive.
        connections: Most connections that are open at once.
        most_texts: Most texts in one request, up to 10,000.
        most_words: Most words in one text, premise included.
        deadline_seconds: Longest time for the answer to one request.
        drain_seconds: How long ``/readyz`` says no before the port is closed, after SIGTERM.
        batch_copies: Most masked copies that a model scores at once.
        waiting_copies: Most masked copies that wait for one model.
        threads: Requests that are worked on at once; short ones have as many threads of their own.
        waiting_requests: Further requests that wait for a thread.
        log_texts: Whether texts appear in the log.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    processes: int = 1
    models: tuple[str, ...] = ("news",)
    keep: int | None = None
    mask_rate: float | None = None
    device: str | None = None
    api_key: str | None = field(default=None, repr=False)
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    body_bytes: int = 1 << 20
    arrival_seconds: float = 10.0
    connections: int = 1024
    most_texts: int = 256
    most_words: int = 2000
    deadline_seconds: float = 30.0
    drain_seconds: float = 1.0
    batch_copies: int = 4096
    waiting_copies: int = 1_000_000
    threads: int = 16
    waiting_requests: int = 128
    log_texts: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= _MOST_PORT:
            raise OptionError(f"port must lie between 0 and {_MOST_PORT}, not {self.port!r}")
        if not self.models:
            raise OptionError("models is empty: name at least one, such as news")
        for name in (
            *("body_bytes", "arrival_seconds", "most_texts", "most_words", "deadline_seconds"),
            *("batch_copies", "waiting_copies", "threads", "connections", "processes"),
        ):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} must be above 0, not {getattr(self, name)!r}")
        for name in ("arrival_seconds", "deadline_seconds", "drain_seconds"):
            if math.isinf(getattr(self, name)):
                raise OptionError(f"{name} must be a finite number, not {getattr(self, name)!r}")
        for name in ("drain_seconds", "waiting_requests"):
            if not getattr(self, name) >= 0:
                raise OptionError(f"{name} must be at least 0, not {getattr(self, name)!r}")
        for origin in self.cors_origins:
            if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
                raise OptionError(
                    f"cors_origins: {origin!r} is no origin: write it as https://example.org, "
                    "one for each page that may call"
                )
        self._check_key()

    def _check_key(self) -> None:
        if self.api_key is None:
            if not is_loopback(self.host):
                raise OptionError(
                    f"will not listen on {self.host!r}, which other machines can reach, without "
                    "an API key: give one (--api-key-file, or RANMASK_API_KEY), or listen on "
                    "127.0.0.1"
                )
        elif len(self.api_key) < _KEY_CHARACTERS or not (
            self.api_key.isascii() and self.api_key.isprintable() and " " not in self.api_key
        ):
            raise OptionError(
                f"the API key must be at least {_KEY_CHARACTERS} printable ASCII characters "
                "without blanks: make one with `openssl rand -hex 32`"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
