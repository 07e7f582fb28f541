"""``ranmask serve``: parse, call."""

from __future__ import annotations

import os
from importlib.util import find_spec

from ranmask.cli.command import Given, command
from ranmask.errors import MissingDependencyError
from ranmask.serving.settings import KEY_VARIABLE, ServiceSettings

_NEEDED = ("fastapi", "httptools", "prometheus_client", "uvicorn")


@command(ServiceSettings)
def serve(given: Given) -> None:
    """Serve models over HTTP, with a web page to try them on, until it is stopped.

    Example: ranmask serve --model news --model spam-sms --port 8000
    """
    for name in _NEEDED:
        if find_spec(name) is None:
            raise MissingDependencyError(name, "serve")
    from ranmask.serving.processes import serve as serve_until_told

    # Never the key itself as an option, which other users of the machine could read.
    key = None if "api_key_file" in given else os.environ.get(KEY_VARIABLE) or None
    serve_until_told(ServiceSettings(**given.of(ServiceSettings), api_key=key))
