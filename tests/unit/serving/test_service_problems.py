"""What callers are told when something is wrong: one shape, and nothing about this machine."""

import asyncio

import pytest

from ranmask.errors import (
    ClassifierError,
    DataError,
    MissingDependencyError,
    ModelError,
    OptionError,
    TextError,
)
from ranmask.serving.classifying import classified
from ranmask.serving.context import RequestContext
from ranmask.serving.problems import (
    Busy,
    Cancelled,
    Closing,
    DeadlinePassed,
    Problem,
    UnknownModel,
    problem_of,
    shown,
)
from ranmask.serving.request_log import RequestLogMiddleware
from ranmask.serving.sizing import read_texts
from ranmask.serving.telemetry import Telemetry
from ranmask.words import Document


@pytest.mark.parametrize(
    ("error", "status", "code", "retry"),
    [
        (TextError("no words"), 422, "unusable_text", None),
        (OptionError("keep must be 1"), 422, "wrong_option", None),
        (ClassifierError("single texts only"), 422, "unusable_model", None),
        (ModelError("no pairs"), 422, "unusable_model", None),
        (UnknownModel("x", ["news"]), 404, "unknown_model", None),
        (Busy(2.3), 429, "busy", "3"),
        (Busy(0.0), 429, "busy", "1"),
        (Cancelled(), 499, "client_gone", None),
        (DeadlinePassed(), 504, "deadline", None),
        (Closing(), 503, "closing", "5"),
        (MissingDependencyError("torch", "hf"), 503, "not_installed", None),
        (DataError("cannot read rows.csv"), 500, "internal", None),
        (OSError("/home/somebody/secret"), 500, "internal", None),
    ],
)
def test_every_failure_has_its_answer(error, status, code, retry):
    problem = problem_of(error)
    assert (problem.status, problem.code) == (status, code)
    assert problem.headers.get("Retry-After") == retry
    if status == 500:
        assert str(error) not in problem.message


def test_a_problem_is_passed_on_as_it_is():
    problem = Problem(413, "body_too_large", "too large", {"Connection": "close"})
    assert problem_of(problem) is problem


def test_seconds_are_rounded_up():
    assert [Busy(seconds).headers["Retry-After"] for seconds in (0, 1, 1.01, 59.5)] == [
        *("1", "1", "2", "60"),
    ]


def test_what_is_shown_is_short_and_can_be_sent():
    assert shown("a" * 500) == "a" * 500
    assert shown("a" * 501) == "a" * 497 + "..."
    assert shown("half \ud800").encode() == b"half \\ud800"
    assert shown("cannot open /home/somebody/best: no") == "cannot open best: no"


def test_nothing_is_begun_for_a_request_that_is_over():
    context, asked = RequestContext(), []

    def classify(texts):
        asked.append(len(texts))
        context.cancel()
        raise OptionError("never mind")

    with pytest.raises(Cancelled):
        classified(classify, read_texts(["a", *[""] * 63, "b"], 65, 65), context)
    assert asked == [1], "the texts after the first 64 were not asked about"


def test_a_model_that_fails_is_not_asked_about_the_next_text_after_the_deadline():
    context, asked = RequestContext(), []

    def classify(texts):
        asked.append(len(texts))
        context.deadline = 0.0 if len(asked) == 3 else context.deadline
        raise ClassifierError("the model is gone")

    with pytest.raises(DeadlinePassed):
        classified(classify, [Document(("one",))] * 64, context)
    assert asked == [64, 1, 1]


def test_a_text_is_not_numbered_by_its_place_in_a_group():
    def classify(texts):
        raise TextError("cannot be used", texts.index(Document(("bad",))))

    [answer] = classified(classify, [Document(("bad",))], RequestContext())
    assert answer == {"error": "cannot be used"}


def test_a_failure_after_the_answer_began_does_not_begin_another():
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise OSError("in the middle")

    async def send(message):
        sent.append(message["type"])

    observed = RequestLogMiddleware(
        app, Telemetry(dict, lambda: 0), frozenset({"/"}), lambda: False
    )
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    asyncio.run(observed(scope, None, send))
    assert sent == ["http.response.start"]
