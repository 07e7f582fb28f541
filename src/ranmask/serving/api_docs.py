"""The OpenAPI description of a service as it is set, and a page to read it on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Any

from fastapi import FastAPI

from ranmask.serving.answers import ErrorAnswer
from ranmask.serving.auth import needs_key
from ranmask.serving.settings import ServiceSettings

CURL = "x-curl"
"""In an operation: the ``query`` and ``arguments`` for curl, where its example is no JSON."""

ERRORS = {
    400: "The body is not JSON, or is nested too deep.",
    401: "The API key is missing or wrong.",
    404: "No such model, job or route.",
    405: "The route answers to another method.",
    408: "The body took too long to arrive.",
    409: "The job has no result yet.",
    413: "The body is too large.",
    415: "The body is not sent as the route takes it.",
    421: "Without an API key, the service was called by a name that is not this machine's.",
    422: "The request is not what this description asks for; its options do not go together; "
    "the model is of another kind; or none of its texts can be classified.",
    429: "Too much work is waiting, or this key has sent too many requests; Retry-After says when "
    "to ask again.",
    500: "Something went wrong here; the log has it by request_id.",
    503: "The service is shutting down, or lacks an optional part.",
    504: "No answer before the deadline.",
}
_OF_EVERY_ROUTE = (405, 421, 500)
_WITH_RETRY = (429, 503)
_RETRY = {
    "Retry-After": {
        "description": "Seconds after which to ask again.",
        "schema": {"type": "integer", "minimum": 1},
        "example": 2,
    }
}


def documented(
    answer: type, *statuses: int, about: str = "The answer.", status: int = 200
) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route: its answer, and the errors it may give."""
    found: dict[int | str, dict[str, Any]] = {status: {"model": answer, "description": about}}
    for code in sorted({*statuses, *_OF_EVERY_ROUTE}):
        found[code] = {"model": ErrorAnswer, "description": ERRORS[code]}
        if code in _WITH_RETRY:
            found[code]["headers"] = _RETRY
    return found


def describe(app: FastAPI, settings: ServiceSettings, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The description of the application, with its limits and where an API key must be sent.

    ``schemas``: those that its routes refer to by themselves.
    """
    described = app.openapi()
    described["components"]["schemas"] |= schemas
    described["info"]["description"] += (
        f"\n\nA request holds at most {settings.most_texts:,} texts of {settings.most_words:,} "
        f"words each, in {settings.body_bytes:,} bytes, and is answered within "
        f"{settings.deadline_seconds:g} s or refused."
    )
    if settings.jobs is not None:
        described["info"]["description"] += (
            f" A job holds at most {settings.job_rows:,} rows in {settings.job_bytes:,} bytes; at "
            f"most {settings.most_jobs:,} jobs are kept for a key, each for {settings.job_days:g} "
            "days after its end."
        )
    else:
        described["info"]["description"] += " It takes no jobs: it has no folder to keep them in."
    for name in ("ManyTexts", "DetectTexts"):
        texts = described["components"]["schemas"][name]["properties"]["texts"]
        texts["maxItems"] = min(texts["maxItems"], settings.most_texts)
    keyed = settings.keyed
    if keyed:
        described["components"]["securitySchemes"] = {
            "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "The API key: `Authorization: Bearer KEY`.",
            },
            "header": {
                "type": "apiKey",
                "in": "header",
                "name": "X-API-Key",
                "description": "The API key: `X-API-Key: KEY`.",
            },
        }
    for path, methods in described["paths"].items():
        for operation in methods.values():
            if keyed and needs_key(path):
                operation["security"] = [{"bearer": []}, {"header": []}]
            else:
                operation["responses"].pop("401", None)
            if keyed:
                operation["responses"].pop("421", None)
    return described


def documentation(description: Mapping[str, Any], settings: ServiceSettings) -> tuple[bytes, str]:
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
    # An address of all interfaces, or one with colons, is none to paste.
    named = settings.host.strip("0.") and ":" not in settings.host
    address = f"{settings.host if named else 'localhost'}:{settings.port or type(settings).port}"
    page = template.render(
        api=description,
        address=address,
        operations=operations,
        type=_type,
        sent=_sent,
        curl=partial(_curl, address),
    )
    return page.encode(), "text/html; charset=utf-8"


def _curl(address: str, operation: Mapping[str, Any]) -> str:
    """A command to paste into a shell."""
    method, path = operation["method"], operation["path"].replace("{id}", "$JOB")
    given = operation.get(CURL, {})
    how = "" if method in ("GET", "POST") else f"-X {method} "
    parts = [f'curl -s {how}"{address}{path}{given.get("query", "")}"']
    if "security" in operation:
        parts.append('-H "Authorization: Bearer $RANMASK_API_KEY"')
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if "arguments" in given:
        parts.append(given["arguments"])
    elif body is not None:
        example = next(iter(body["examples"].values()))["value"]
        parts.append("-H 'Content-Type: application/json'")
        parts.append(f"-d {shlex.quote(json.dumps(example))}")
    return " \\\n  ".join(parts)


def _sent(message: Mapping[str, Any]) -> str:
    """The type of what is sent with a request or an answer, in words."""
    kinds = [_type(media.get("schema", {})) for media in message.get("content", {}).values()]
    return " or ".join(dict.fromkeys(kinds))


def _type(schema: Mapping[str, Any]) -> str:
    """A type in words: ``string``, ``list of integer``, ``one of "a", "b"``."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value) for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_type(kind) for kind in schema[several])
    if "prefixItems" in schema:
        return f"[{', '.join(_type(kind) for kind in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        most = f", at most {schema['maxItems']:,}" if "maxItems" in schema else ""
        return f"list of {_type(schema.get('items', {}))}{most}"
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
