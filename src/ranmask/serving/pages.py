"""What people see in a browser: the page, and the documentation, all from this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}


@dataclass(frozen=True)
class StaticFile:
    """A file as it is served."""

    content: bytes
    kind: str


def page_files() -> dict[str, StaticFile]:
    """The files of the page by the path that they are served at; ``/`` is ``index.html``."""
    found = {}
    for file in (resources.files("ranmask.serving") / "page").iterdir():
        kind = _KINDS.get(file.name.rpartition(".")[2])
        if kind is not None and file.is_file():
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = StaticFile(file.read_bytes(), kind)
    style = resources.files("ranmask.serving") / "templates" / "docs.css"
    found["/docs.css"] = StaticFile(style.read_bytes(), _KINDS["css"])
    return found


def documentation(description: Mapping[str, Any]) -> StaticFile:
    """The OpenAPI description as a page to read, without a script."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    source = resources.files("ranmask.serving") / "templates" / "docs.html"
    template = environment.from_string(source.read_text(encoding="utf-8"))
    page = template.render(
        about=description["info"],
        operations=_operations(description),
        schemas=_schemas(description["components"]["schemas"]),
        keyed="securitySchemes" in description["components"],
    )
    return StaticFile(page.encode(), _KINDS["html"])


def _operations(description: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "path": path,
            "method": method.upper(),
            "description": one.get("description", ""),
            "keyed": "security" in one,
            "body": _body(one),
            "answers": [
                (status, answer["description"], _first_type(answer.get("content", {})))
                for status, answer in one["responses"].items()
            ],
        }
        for path, methods in description["paths"].items()
        for method, one in methods.items()
    ]


def _body(operation: Mapping[str, Any]) -> str:
    return _first_type(operation.get("requestBody", {}).get("content", {}))


def _first_type(content: Mapping[str, Any]) -> str:
    for media in content.values():
        return _type(media.get("schema", {}))
    return ""


def _schemas(schemas: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": schema.get("description", ""),
            "fields": [
                (field, _type(one), field in schema.get("required", ()), one.get("description", ""))
                for field, one in schema.get("properties", {}).items()
            ],
        }
        for name, schema in sorted(schemas.items())
    ]


def _type(schema: Mapping[str, Any]) -> str:
    """A type in words: ``string``, ``list of integer``, ``one of "a", "b"``."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value) for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_type(one) for one in schema[several])
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
