"""The OpenAPI description: every status that a route may answer with, and the key where needed."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from ranmask.serving.auth import needs_key
from ranmask.serving.schemas import ErrorAnswer

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
