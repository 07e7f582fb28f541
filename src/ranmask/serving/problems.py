"""Answers that are not results: one shape, `{"error": {"code", "message", "request_id"}}`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ranmask.errors import (
    ClassifierError,
    MissingDependencyError,
    ModelError,
    OptionError,
    RanmaskError,
    TextError,
    folders_cut,
)

if TYPE_CHECKING:
    from starlette.responses import JSONResponse

CLIENT_GONE = 499
"""The status in logs of a request whose client did not wait; nobody receives it."""

_MOST_CHARACTERS = 500


class Problem(Exception):  # noqa: N818 - an answer, not a failure of ours
    """A request is answered with an error: an HTTP status, a code for programs, a message."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})

    def response(self, request_id: str) -> JSONResponse:
        """The answer, which names the request."""
        from starlette.responses import JSONResponse

        return JSONResponse(
            {"error": {"code": self.code, "message": self.message, "request_id": request_id}},
            self.status,
            self.headers,
        )


class UnknownModel(Problem):
    """No model of that name is served."""

    def __init__(self, name: str, served: Sequence[str]) -> None:
        message = f"no model {name!r} is served here; there are {', '.join(served)}"
        super().__init__(404, "unknown_model", shown(message))


class Busy(Problem):
    """Too much is waiting already.  ``seconds`` is an estimate of when there will be room."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        wait = max(1, math.ceil(seconds))
        message = f"too much work is waiting: ask again in {wait} s"
        super().__init__(429, "busy", message, {"Retry-After": str(wait)})


class RateExceeded(Problem):
    """A key has sent more requests than it may; in ``seconds`` it may send the next."""

    def __init__(self, a_minute: int, seconds: float) -> None:
        wait = max(1, math.ceil(seconds))
        message = f"this key may send {a_minute} requests a minute: ask again in {wait} s"
        super().__init__(429, "rate_limited", message, {"Retry-After": str(wait)})


class Closing(Problem):
    """The service is about to end, and takes no more work."""

    def __init__(self) -> None:
        message = "the service is shutting down: send the request to another one, or later"
        super().__init__(503, "closing", message, {"Retry-After": "5"})


class Cancelled(Problem):
    """The client went away; what was not computed yet never will be."""

    def __init__(self) -> None:
        super().__init__(CLIENT_GONE, "client_gone", "the client closed the connection")


class DeadlinePassed(Problem):
    """The request's time is over; what was not computed yet never will be."""

    def __init__(self) -> None:
        message = "no answer before the deadline: send fewer texts, or ask for fewer masks"
        super().__init__(504, "deadline", message)


def problem_of(error: Exception) -> Problem:
    """What a caller is told about an exception: never a folder, never a traceback.

    What was not raised on purpose, or is about this machine, is an ``internal`` error.
    """
    if isinstance(error, Problem):
        return error
    for kind, status, code in (
        (TextError, 422, "unusable_text"),
        (OptionError, 422, "wrong_option"),
        (MissingDependencyError, 503, "not_installed"),
    ):
        if isinstance(error, kind):
            return Problem(status, code, shown(str(error)))
    if isinstance(error, RanmaskError) and is_callers(error):
        return Problem(422, "unusable_model", shown(str(error)))
    return Problem(500, "internal", "something went wrong here; the log has it by request_id")


def is_callers(error: RanmaskError) -> bool:
    """Whether the text or the options are to blame, so that the caller may read the message.

    A model that raised something else is not the caller's doing, and may say anything.
    """
    if isinstance(error, ClassifierError):
        return error.__cause__ is None
    return isinstance(error, TextError | OptionError | ModelError)


def invalid(errors: list[Any]) -> Problem:
    """A body that is not JSON, or is not what the description asks for.

    What was sent is never repeated, but for the names of its fields.
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return Problem(400, "invalid_json", "the body is not valid JSON")
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "one", "many"))
    return Problem(422, "invalid_request", shown(f"{place or 'body'}: {first['msg']}"))


def shown(message: str) -> str:
    """A message that can be sent: short, valid Unicode, without the folders of this machine."""
    cut = folders_cut(message)
    if len(cut) > _MOST_CHARACTERS:
        cut = cut[: _MOST_CHARACTERS - 3] + "..."
    return cut.encode("utf-8", "backslashreplace").decode("utf-8")
