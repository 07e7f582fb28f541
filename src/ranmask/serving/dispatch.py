"""Questions go straight to their handlers; FastAPI describes them, and routes everything else.

Its router and its dependencies would take longer than the certificate of a word table.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from ranmask.serving.problems import invalid

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

Handler: TypeAlias = Callable[[Request, Any], Awaitable[Response]]
"""Answers a request whose body was read."""


class Json(Response):
    """An answer in JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body."""
        return to_json(content)


def read_json(body: bytes, wanted: TypeAdapter[Any]) -> Any:
    """What a body says; raises `Problem` where it is not JSON, or not what is wanted.

    However deep it is nested: both parsers stop long before the stack ends.
    """
    try:
        try:
            return wanted.validate_json(body)
        except ValidationError as error:
            if error.errors()[0]["type"] != "json_invalid":
                raise
        # Python reads half a surrogate pair, of which the texts say what is wrong with it.
        return wanted.validate_python(json.loads(body) if body else None)
    except ValidationError as error:
        raise invalid(list(error.errors())) from None
    except (ValueError, RecursionError) as error:
        place = ("body", getattr(error, "pos", "body"))
        raise invalid([{"type": "json_invalid", "loc": place}]) from None


class Question:
    """A handler, and what the body of its requests must be."""

    def __init__(self, handler: Handler, body: Any) -> None:
        self.handler = handler
        self.body: TypeAdapter[Any] = TypeAdapter(body)


class DispatchMiddleware:
    """The innermost middleware: answers ``questions``, each posted to its path."""

    def __init__(self, app: ASGIApp, questions: Mapping[str, Question]) -> None:
        self._app, self._questions = app, questions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a question, or pass a request on."""
        question = None
        if scope["type"] == "http" and scope["method"] == "POST":
            question = self._questions.get(scope["path"])
        if question is None:
            await self._app(scope, receive, send)
            return
        # `BodyLimitsMiddleware` has all of it.
        body = read_json((await receive())["body"], question.body)
        response = await question.handler(Request(scope, receive), body)
        await response(scope, receive, send)
