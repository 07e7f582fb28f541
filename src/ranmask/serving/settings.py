"""How the service is set: where it listens, for whom, and how much it takes on."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

from ranmask.errors import OptionError
from ranmask.options import LABELS
from ranmask.options.fields import Checked, option
from ranmask.words import Hiding

KEY_VARIABLE = "RANMASK_API_KEY"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What keys and models may be called."""

_KEY_CHARACTERS = 16
_model_option = partial(option, group="Models")
_access_option = partial(option, group="Access")
_limit_option = partial(option, group="Limits")
_job_option = partial(option, group="Jobs")


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(Checked, group="Service"):
    """Settings of one service.  Checked when built.

    **It refuses to listen beyond this machine without an API key.**
    """

    host: str = option("Address to listen on; beyond this machine, a key is needed.", "127.0.0.1")
    port: int = option("Port to listen on; 0 takes a free one.", 8000, least=0, most=65535)
    processes: int = option(
        "Processes that answer, each with models of its own; more for a CPU.", 1, least=1
    )
    models: tuple[str, ...] = _model_option(
        "A model to serve, as for certify, or a detector, as for detect; or NAME=MODEL; may be "
        "given several times. The first of its kind answers where a request names none.",
        ("news",),
        flag="model",
        short="m",
        repeated=True,
    )
    keep: int | None = _model_option("Words that each copy shows.", unset="as saved", least=1)
    mask_rate: float | None = _model_option("Or: share of words that is hidden.", least=0, below=1)
    hide: Hiding | None = _model_option(
        "How words are hidden: left out (drop), or a token for each (mask).",
        unset="as saved, else mask",
    )
    labels: tuple[str, ...] | None = LABELS(group="Models")
    reader: str | None = _model_option(
        "The reader of a protected model whose folder only names it, as for certify."
    )
    synonyms: str | None = _model_option(
        "Table for threat synonyms, as for certify.", unset="the model's"
    )
    device: str | None = _model_option("cpu, cuda and so on.", unset="a GPU if there is one")
    models_file: Path | None = _model_option(
        "File with further models, one NAME=MODEL a line; read again on SIGHUP."
    )
    api_key: str | None = field(default=None, repr=False)
    api_key_file: Path | None = _access_option(
        "File with API keys: KEY, NAME KEY or NAME KEY REQUESTS_A_MINUTE, one a line; read again "
        f"on SIGHUP. For one key, {KEY_VARIABLE} instead."
    )
    cors_origins: tuple[str, ...] = _access_option(
        "A web page of this origin, as https://example.org, may call; may be given several times.",
        (),
        flag="cors-origin",
        repeated=True,
    )
    allowed_hosts: tuple[str, ...] = _access_option(
        "A further name by which the service may be called without a key.",
        (),
        flag="allowed-host",
        repeated=True,
    )
    body_bytes: int = _limit_option("Largest body of a request.", 1 << 20, above=0)
    arrival_seconds: float = _limit_option(
        "Most seconds for the head of a request to arrive, and its body.",
        10.0,
        above=0,
        flag="arrival",
    )
    connections: int = _limit_option("Most connections that are open.", 1024, above=0)
    most_texts: int = _limit_option("Most texts in one request, up to 10,000.", 256, above=0)
    most_words: int = _limit_option("Most words in one text, premise included.", 2000, above=0)
    deadline_seconds: float = _limit_option(
        "Most seconds for one answer.", 30.0, above=0, flag="deadline"
    )
    drain_seconds: float = _limit_option(
        "Seconds from SIGTERM, when /readyz says no, to closing the port.",
        1.0,
        least=0,
        flag="drain",
    )
    batch_copies: int = _limit_option("Most copies scored at once.", 4096, above=0)
    waiting_copies: int = _limit_option(
        "Most copies that wait for a model; beyond it, 429.", 1_000_000, above=0
    )
    threads: int = _limit_option(
        "Requests that are worked on at once; short ones have as many threads of their own.",
        16,
        above=0,
    )
    waiting_requests: int = _limit_option("Further requests that wait for a thread.", 128, least=0)
    jobs: str | None = _job_option(
        "Folder that keeps jobs for files (/v1/jobs), so that a service that is started again goes "
        "on with them.",
        unset="none are taken",
    )
    job_bytes: int = _job_option("Largest file of a job.", 64 << 20, above=0)
    job_rows: int = _job_option("Most rows of a job.", 1_000_000, above=0)
    most_jobs: int = _job_option("Most jobs that are kept for one key.", 100, above=0)
    job_days: float = _job_option(
        "Days that a job is kept after its end, with its texts.", 7.0, above=0
    )
    log_texts: bool = _access_option("Write the texts to the log too.", False)

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

    @property
    def keyed(self) -> bool:
        """Whether callers need a key."""
        return self.api_key is not None or self.api_key_file is not None

    def _check_key(self) -> None:
        if not self.keyed and not is_loopback(self.host):
            raise OptionError(
                f"will not listen on {self.host!r}, which other machines can reach, without "
                f"an API key: give one (--api-key-file, or {KEY_VARIABLE}), or listen on "
                "127.0.0.1"
            )
        if self.api_key is not None:
            check_key(self.api_key, "the API key")


def listed_in(path: Path, what: str) -> str:
    """What a file that settings name says; ``what`` it lists."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read the {what} from {path}: {error}") from error


def check_key(key: str, place: str) -> None:
    """Refuse a key that is easily guessed, or that no header holds; it is not repeated."""
    if len(key) < _KEY_CHARACTERS or not (key.isascii() and key.isprintable() and " " not in key):
        raise OptionError(
            f"{place}: a key must be at least {_KEY_CHARACTERS} printable ASCII characters "
            "without blanks: make one with `openssl rand -hex 32`"
        )


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
