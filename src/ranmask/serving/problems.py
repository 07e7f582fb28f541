"""Answers that are not results: one shape, `{"error": {"code", "message", "request_id"}}`."""

from __future__ import annotations

import difflib
import json
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

UNKNOWN_FIELD = "unknown_field"
"""The kind of error that a request with a field which there is not is refused with."""

_MOST_CHARACTERS = 500
_MOST_REPEATED = 40
_WANTED = {
    "string_type": "a string",
    "string_unicode": "valid Unicode",
    "string_too_short": "a string of at least {min_length} characters",
    "string_too_long": "a string of at most {max_length} characters",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "list_type": "a list",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "model_type": "a JSON object",
    "model_attributes_type": "a JSON object",
}
"""What must be there, by the kind of pydantic's error."""

_PAIR = "a string, or a list of two strings for a pair of premise and hypothesis"
_BY_FIELD = {
    "budget": "radius, radius+1, or a whole number from 1 to 1000",
    "name": "the name of a file, without folders, of at most 100 characters",
}
"""What must be there, by the field, where no kind of error says it all."""


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


class WrongKind(Problem):
    """A classifier was asked what a detector answers, or the other way round.

    ``kinds``: of all that are served, by their names.
    """

    def __init__(self, name: str, kinds: Mapping[str, str]) -> None:
        others = [other for other, kind in kinds.items() if kind != kinds.get(name)]
        if kinds.get(name) == "detector":
            what = f"{name!r} is a detector, which flags texts and has no labels or votes"
            instead, there = "POST /v1/detect, or a job with kind=detect", "classifiers"
        else:
            what = f"{name!r} is a classifier, which labels texts and flags none"
            instead, there = "POST /v1/certify", "detectors"
        known = f"{there} here: {', '.join(others)}" if others else f"no {there} are served here"
        super().__init__(422, "wrong_kind", f"{what}: {instead}; {known}")


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


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """A body that is not JSON, or is not what the description asks for.

    ``errors`` are those of pydantic, of which the first is put into words: where it is, what
    should be there, and what was sent.  Long values, and what lists and objects hold, are not
    repeated.
    """
    first = errors[0]
    kind, about = first["type"], first.get("ctx") or {}
    if kind == "json_invalid":
        at = "".join(f" from character {at} on" for at in first["loc"] if isinstance(at, int))
        said = f"the body is not valid JSON{at}, or nested too deep: check how it is made"
        return Problem(400, "invalid_json", said)
    parts, wanted = _place(first["loc"])
    if kind == UNKNOWN_FIELD:
        named = _spelt([*parts, about["field"]])
        near = difflib.get_close_matches(about["field"], about["known"], 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(about['known'])}"
        message = f"{named[:100]} is no field here: leave it out; {hint}"
    elif kind == "missing":
        wanted = wanted or ("a string" if parts == ["text"] else "it as /docs describes")
        message = f"{_spelt(parts)} is missing: send {wanted}"
    else:
        wanted = wanted or _WANTED.get(kind, "as /docs describes it").format_map(
            {key: _listed(value) for key, value in about.items()}
        )
        message = f"{_spelt(parts)} must be {wanted}, not {_sent(first.get('input'))}"
    return Problem(422, "invalid_request", shown(message))


def _place(location: Sequence[int | str]) -> tuple[list[int | str], str | None]:
    """The fields that lead to an error, and what must be there where that is one of several."""
    parts = [part for part in location if part not in ("body", "one", "many")]
    if not parts:
        return [], "a JSON object with the text in `text`, or several in `texts`"
    text = {"text": 1, "texts": 2}.get(str(parts[0]))
    if text is not None:  # what is inside one is said where it may be a pair
        return parts[:text], _PAIR if len(parts) > text else None
    return parts[:1] if parts[0] in _BY_FIELD else parts, _BY_FIELD.get(str(parts[0]))


def _spelt(parts: Sequence[int | str]) -> str:
    """A field as a reader would write it: ``options.threats[1]``."""
    spelt = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return spelt.removeprefix(".") or "the body"


def _listed(value: object) -> object:
    """What pydantic expects, without its quotes."""
    return value.replace("'", "") if isinstance(value, str) else value


def _sent(value: object) -> str:
    """What was sent, in a few words."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str) and len(value) > _MOST_REPEATED:
        return f"one of {len(value)} characters"
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return "something else"


def shown(message: str) -> str:
    """A message that can be sent: short, valid Unicode, without the folders of this machine."""
    cut = folders_cut(message)
    if len(cut) > _MOST_CHARACTERS:
        cut = cut[: _MOST_CHARACTERS - 3] + "..."
    return cut.encode("utf-8", "backslashreplace").decode("utf-8")
