"""What people see in a browser: the page, and the documentation, all from this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}


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
