"""What people see in a browser: the page, the OpenAPI description, and a page to read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from fastapi import FastAPI

from ranmask.serving.auth import needs_key
from ranmask.serving.schemas import ErrorAnswer

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}


ERRORS = {
    400: "The body is not JSON, or is nested too deep.",
    401: "The API key is missing or wrong.",
    404: "No such model, or no such route.",
    405: "The route answers to another method.",
    408: "The body took too long to arrive.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    421: "Without an API key, the service was called by a name that is not this machine's.",
    422: "The request is not what this description asks for; its options do not go together; or "
    "none of its texts can be classified.",
    429: "Too much work is waiting; Retry-After says when to ask again.",
    500: "Something went wrong here; the log has it by request_id.",
    503: "The service is shutting down, or lacks an optional part.",
    504: "No answer before the deadline.",
}
_OF_EVERY_ROUTE = (405, 421, 500)


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and type of the page's files by the paths that they are served at."""
    package = resources.files("ranmask.serving")
    found = {"/docs.css": ((package / "templates" / "docs.css").read_bytes(), _KINDS["css"])}
    for file in (package / "page").iterdir():
        kind = _KINDS.get(file.name.rpartition(".")[2])
        if kind is not None and file.is_file():
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = (file.read_bytes(), kind)
    return found


def documented(answer: type, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route: its answer, and the errors it may give."""
    errors = sorted({*statuses, *_OF_EVERY_ROUTE})
    return {
        200: {"model": answer, "description": "The answer."},
        **{code: {"model": ErrorAnswer, "description": ERRORS[code]} for code in errors},
    }


def describe(app: FastAPI, *, key: bool) -> dict[str, Any]:
    """The description of the application; with ``key``, of where the API key must be sent."""
    described = app.openapi()
    if key:
        described["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        for path, methods in described["paths"].items():
            for operation in methods.values():
                if needs_key(path):
                    operation["security"] = [{"bearer": []}, {"header": []}]
    return described


def documentation(description: Mapping[str, Any]) -> tuple[bytes, str]:
    """The OpenAPI description as a page to read, without a script."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    source = resources.files("ranmask.serving") / "templates" / "docs.html"
    template = environment.from_string(source.read_text(encoding="utf-8"))
    operations = [
        {"path": path, "method": method.upper(), **operation}
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    page = template.render(api=description, operations=operations, type=_type, sent=_sent)
    return page.encode(), _KINDS["html"]


def _sent(message: Mapping[str, Any]) -> str:
    """The type of what is sent with a request or an answer, in words."""
    media = next(iter(message.get("content", {}).values()), None)
    return "" if media is None else _type(media.get("schema", {}))


def _type(schema: Mapping[str, Any]) -> str:
    """A type in words: ``string``, ``list of integer``, ``one of "a", "b"``."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value) for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_type(kind) for kind in schema[several])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    bounds = [
        f"{sign} {schema[key]}"
        for key, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        )
        if key in schema
    ]
    return " ".join([str(schema.get("type", "anything")), *bounds])
