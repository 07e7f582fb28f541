"""Bodies within their limits, and clients that go away, as an ASGI server reports them."""

import asyncio
import json
import threading
import time

import pytest

from ranmask.serving.app import create_app
from ranmask.serving.limits import DEEPEST, too_deep
from ranmask.serving.problems import Cancelled
from ranmask.serving.scorer import PoolFigures
from ranmask.serving.settings import ServiceSettings


class NoModels:
    """A host whose requests wait until they are given up."""

    def __init__(self):
        self.entered = threading.Event()
        self.given_up = threading.Event()

    def names(self):
        return ("waiting",)

    def answering(self, command, name):
        return "waiting"

    def about(self, name):
        return {}

    def figures(self, name):
        return PoolFigures()

    def copies(self, name, texts, **options):
        return len(texts)

    def smoothed(self, name, context, **options):
        self.entered.set()
        for _ in range(1000):
            if context.cancelled:
                self.given_up.set()
                raise Cancelled
            time.sleep(0.01)
        raise AssertionError("nobody gave the request up")


class Client:
    """What a server hands to the application, message by message."""

    def __init__(self, settings, host=None):
        self.app = create_app(host or NoModels(), settings)

    async def post(self, messages, headers=()):
        """``messages`` is an asynchronous generator of what the client sends."""
        sent = []

        async def send(message):
            sent.append(message)

        async def receive():
            message = await anext(messages, None)
            return message or await asyncio.Event().wait()

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/predict",
            "raw_path": b"/v1/predict",
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "server": ("localhost", 80),
            "headers": [
                (b"host", b"localhost"),
                (b"content-type", b"application/json"),
                *headers,
            ],
        }
        await asyncio.wait_for(self.app(scope, receive, send), 20)
        start = sent[0]
        self.headers = dict(start["headers"])
        return start["status"], json.loads(sent[1]["body"])["error"]["code"]


def part(body, more=True):
    return {"type": "http.request", "body": body, "more_body": more}


class TestBodies:
    settings = ServiceSettings(body_bytes=1000, arrival_seconds=0.2)

    def answer(self, messages, headers=()):
        client = Client(self.settings)
        answer = asyncio.run(client.post(messages, headers))
        # Where a body was not read, what follows cannot be told from its rest.
        assert (client.headers.get(b"connection") == b"close") is (answer[0] in (408, 413))
        return answer

    def test_a_length_that_is_too_large_is_refused_unread(self):
        async def nothing():
            raise AssertionError("the body was read")
            yield

        assert self.answer(nothing(), [(b"content-length", b"1001")]) == (413, "body_too_large")

    def test_a_body_that_does_not_say_its_length_is_counted(self):
        read = []

        async def endless():
            while True:
                read.append(1)
                yield part(b" " * 100)

        assert self.answer(endless()) == (413, "body_too_large")
        assert len(read) == 11

    @pytest.mark.parametrize("told", [True, False])
    def test_a_body_may_be_as_large_as_the_limit(self, told):
        def sent(length):
            async def body():
                yield part(b"{" + b" " * (length - 1), more=False)

            return body(), [(b"content-length", b"%d" % length)] if told else []

        assert self.answer(*sent(1000)) == (400, "invalid_json")
        assert self.answer(*sent(1001)) == (413, "body_too_large")

    @pytest.mark.parametrize("kind", [b"Application/JSON", b" application/json ; charset=utf-8"])
    def test_spellings_of_json(self, kind):
        async def body():
            yield part(b"{", more=False)

        assert self.answer(body(), [(b"content-type", kind)]) == (400, "invalid_json")

    def test_a_slow_body(self):
        async def slow():
            while True:
                yield part(b" ")
                await asyncio.sleep(0.05)

        assert self.answer(slow()) == (408, "slow_body")

    def test_a_client_that_leaves_before_its_body_is_whole(self):
        async def leaving():
            yield part(b"{")
            yield {"type": "http.disconnect"}

        assert self.answer(leaving()) == (499, "client_gone")

    @pytest.mark.parametrize("kind", [b"text/plain", b"", b"application/x-www-form-urlencoded"])
    def test_other_kinds(self, kind):
        async def plain():
            yield part(b'{"text": "a"}', more=False)

        headers = [(b"content-type", kind)]
        assert self.answer(plain(), headers) == (415, "not_json")

    def test_deep(self):
        async def deep():
            yield part(b"[" * 900, more=False)

        assert self.answer(deep()) == (400, "too_deep")


@pytest.mark.parametrize(
    ("body", "deep"),
    [
        (b"[" * DEEPEST + b"]" * DEEPEST, False),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), True),
        (b'{"a":' * DEEPEST + b"1" + b"}" * DEEPEST, False),
        (b'[{"a":' * DEEPEST + b"1" + b"}]" * DEEPEST, True),
        (b"[],{}," * 1000, False),
        (b'["' + b"[" * 100 + b'"]', False),
        (b'["\\"' + b"[" * 100 + b'"]', False),
        (b'["\\\\"' + b"[" * 100, True),
        (b"[" * 100, True),
        (b"[" * DEEPEST, False),
        (b"[" * (DEEPEST + 1), True),
        (b"]" * 100, False),
    ],
)
def test_depth(body, deep):
    assert too_deep(body) is deep


def test_work_stops_when_the_client_goes_away():
    host = NoModels()

    async def asking():
        yield part(b'{"text": "a"}', more=False)
        await asyncio.to_thread(host.entered.wait, 10)
        yield {"type": "http.disconnect"}

    client = Client(ServiceSettings(), host)
    assert asyncio.run(client.post(asking())) == (499, "client_gone")
    assert host.given_up.wait(10)
    client.app.state.service.gathering.close()
