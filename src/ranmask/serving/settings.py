"""How the service is set: where it listens, for whom, and how much it takes on."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar

from ranmask.errors import OptionError
from ranmask.options.fields import Checked, Option

_KEY_CHARACTERS = 16
_of_models = partial(Option, group="Models")
_access = partial(Option, group="Access")
_limit = partial(Option, above=0, group="Limits")
_wait = partial(Option, least=0, group="Limits")


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(Checked):
    """Settings of one service.  Checked when built.

    **It refuses to listen beyond this machine without an API key.**
    """

    GROUP: ClassVar[str] = "Service"

    host: Annotated[str, Option("Address to listen on; beyond this machine, a key is needed.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Option("Port to listen on; 0 takes a free one.", least=0, most=65535)] = (
        8000
    )
    processes: Annotated[
        int,
        Option("Processes that answer, each with models of its own; more for a CPU.", least=1),
    ] = 1
    models: Annotated[
        tuple[str, ...],
        _of_models(
            "A model to serve, as for certify, or NAME=MODEL; may be given several times. The "
            "first answers where a request names none.",
            flag="model",
            short="m",
            repeated=True,
        ),
    ] = ("news",)
    keep: Annotated[int | None, _of_models("Words that each copy shows.", "as saved", least=1)] = (
        None
    )
    mask_rate: Annotated[
        float | None, _of_models("Or: share of words that is hidden.", least=0, below=1)
    ] = None
    device: Annotated[str | None, _of_models("cpu, cuda and so on.", "a GPU if there is one")] = (
        None
    )
    api_key: str | None = field(default=None, repr=False)
    cors_origins: Annotated[
        tuple[str, ...],
        _access(
            "A web page of this origin, as https://example.org, may call; may be given several "
            "times.",
            flag="cors-origin",
            repeated=True,
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        _access(
            "A further name by which the service may be called without a key.",
            flag="allowed-host",
            repeated=True,
        ),
    ] = ()
    body_bytes: Annotated[int, _limit("Largest body of a request.")] = 1 << 20
    arrival_seconds: Annotated[
        float,
        _limit("Most seconds for the head of a request to arrive, and its body.", flag="arrival"),
    ] = 10.0
    connections: Annotated[int, _limit("Most connections that are open.")] = 1024
    most_texts: Annotated[int, _limit("Most texts in one request, up to 10,000.")] = 256
    most_words: Annotated[int, _limit("Most words in one text, premise included.")] = 2000
    deadline_seconds: Annotated[float, _limit("Most seconds for one answer.", flag="deadline")] = (
        30.0
    )
    drain_seconds: Annotated[
        float,
        _wait("Seconds from SIGTERM, when /readyz says no, to closing the port.", flag="drain"),
    ] = 1.0
    batch_copies: Annotated[int, _limit("Most copies scored at once.")] = 4096
    waiting_copies: Annotated[int, _limit("Most copies that wait for a model; beyond it, 429.")] = (
        1_000_000
    )
    threads: Annotated[
        int,
        _limit(
            "Requests that are worked on at once; short ones have as many threads of their own."
        ),
    ] = 16
    waiting_requests: Annotated[int, _wait("Further requests that wait for a thread.")] = 128
    log_texts: Annotated[bool, _access("Write the texts to the log too.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models:
            raise OptionError("models is empty: name at least one, such as news", "models")
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
