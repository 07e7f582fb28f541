"""``ranmask serve``: parse, call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ranmask.cli.command import Given, command
from ranmask.errors import MissingDependencyError, OptionError
from ranmask.options.fields import Checked, option
from ranmask.serving.settings import ServiceSettings

KEY_VARIABLE = "RANMASK_API_KEY"

_NEEDED = ("fastapi", "httptools", "prometheus_client", "uvicorn")


@dataclass(frozen=True, kw_only=True)
class KeyOption(Checked, group="Access"):
    """Where the key is; never the key itself, which other users of the machine could read."""

    api_key_file: Path | None = option(f"File that holds the API key; or set {KEY_VARIABLE}.")

    def key(self) -> str | None:
        """What callers must send."""
        if self.api_key_file is None:
            return os.environ.get(KEY_VARIABLE) or None
        try:
            return self.api_key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(
                f"cannot read the API key from {self.api_key_file}: {error}"
            ) from error


@command(ServiceSettings, KeyOption)
def serve(given: Given) -> None:
    """Answer over HTTP as certify does, with a page to try it on, until it is told to end."""
    for name in _NEEDED:
        if find_spec(name) is None:
            raise MissingDependencyError(name, "serve")
    from ranmask.serving.processes import serve as serve_until_told

    key = given.build(KeyOption).key()
    serve_until_told(ServiceSettings(**given.of(ServiceSettings), api_key=key))
