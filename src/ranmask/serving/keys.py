"""API keys by name, and how many requests a minute each may send.

A file has one key a line: ``KEY``, ``NAME KEY`` or ``NAME KEY REQUESTS_A_MINUTE``; lines that begin
with ``#`` are comments.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ranmask.errors import OptionError
from ranmask.serving.problems import RateExceeded
from ranmask.serving.settings import NAME, ServiceSettings, check_key, listed_in

_ONLY_NAME = "default"
_MOST_RATE = 10_000_000
_NUMBER = struct.Struct("d")
_BURST_SECONDS = 10.0  # what a key may send in these, it may send at once


@dataclass(frozen=True)
class ApiKey:
    """Who may call; ``a_minute`` None: as often as they like."""

    name: str
    digest: bytes = field(repr=False)
    a_minute: int | None = None


class Keys:
    """The keys of a service, which may change while it runs; none: no key is needed."""

    def __init__(self, keys: Sequence[ApiKey]) -> None:
        self.all = tuple(keys)

    def find(self, sent: str) -> ApiKey | None:
        """The key that was sent."""
        # Digests of one length, all compared, in constant time: nothing is learnt by guessing.
        digest = _digest(sent)
        found = [key for key in self.all if hmac.compare_digest(key.digest, digest)]
        return found[0] if found else None


def read_keys(settings: ServiceSettings) -> list[ApiKey]:
    """The keys that the settings name, with those of their file as it is now."""
    keys = []
    if settings.api_key is not None:
        keys.append(ApiKey(_ONLY_NAME, _digest(settings.api_key)))
    if settings.api_key_file is not None:
        text = listed_in(settings.api_key_file, "API keys")
        keys += parsed_keys(text, str(settings.api_key_file))
    return keys


def parsed_keys(text: str, file: str) -> list[ApiKey]:
    """The keys of a file.  What is wrong is told by its line; a key is never repeated.

    >>> parsed_keys("alice 0123456789abcdef 600", "keys")
    [ApiKey(name='alice', a_minute=600)]
    """
    keys: list[ApiKey] = []
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        place = f"{file}, line {number}"
        if len(parts) > 3:
            raise OptionError(f"{place}: expected NAME KEY REQUESTS_A_MINUTE, the last one if any")
        name, key, *rate = parts if len(parts) > 1 else [_ONLY_NAME, *parts]
        if not NAME.fullmatch(name):
            raise OptionError(
                f"{place}: a name has at most 64 letters, digits, dots, dashes and underscores"
            )
        check_key(key, place)
        if rate and not (
            rate[0].isascii() and rate[0].isdigit() and 0 < int(rate[0]) <= _MOST_RATE
        ):
            raise OptionError(
                f"{place}: requests a minute must be a whole number from 1 to {_MOST_RATE}"
            )
        read = ApiKey(name, _digest(key), int(rate[0]) if rate else None)
        if any(other.name == name or other.digest == read.digest for other in keys):
            raise OptionError(f"{place}: the name {name!r} or its key is there before")
        keys.append(read)
    if not keys:
        raise OptionError(f"{file} holds no API key: write one a line, as NAME KEY")
    return keys


class RateLimits:
    """Counts the requests of keys; with a ``folder``, together with other processes.

    One number a key: until when its requests so far would have taken, one after another (the
    generic cell rate algorithm).
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._cells: dict[str, io.BytesIO | io.FileIO] = {}

    def count(self, key: ApiKey) -> None:
        """Count one request; raises `RateExceeded` where the key has sent too many."""
        if key.a_minute is None:
            return
        interval = 60 / key.a_minute
        with self._lock, self._locked(key.name) as cell:
            now = time.monotonic()  # of the machine, not of the process
            cell.seek(0)
            busy_until = max(*_NUMBER.unpack(cell.read() or bytes(_NUMBER.size)), now)
            ahead = busy_until + interval - now - max(interval, _BURST_SECONDS)
            if ahead > 1e-9:
                raise RateExceeded(key.a_minute, ahead)
            cell.seek(0)
            cell.write(_NUMBER.pack(busy_until + interval))

    @contextmanager
    def _locked(self, name: str) -> Iterator[io.BytesIO | io.FileIO]:
        """The file of a key's number, which no other process reads meanwhile."""
        if self._folder is None:
            yield self._cells.setdefault(name, io.BytesIO())
            return
        import fcntl

        if name not in self._cells:
            file = os.open(Path(self._folder, f"rate-{name}"), os.O_RDWR | os.O_CREAT, 0o600)
            self._cells[name] = io.FileIO(file, "r+", closefd=False)  # open until the process ends
        cell = self._cells[name]
        fcntl.flock(cell, fcntl.LOCK_EX)
        try:
            yield cell
        finally:
            fcntl.flock(cell, fcntl.LOCK_UN)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
