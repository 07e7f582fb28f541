"""When a connection is given up: the protocol over a transport that does not send."""

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from ranmask.serving.connections import BoundedConnection

SECONDS = 0.1


class Transport:
    """What the event loop gives a protocol; ``unsent`` is what its client has not read."""

    def __init__(self):
        self.unsent = 0
        self.written = b""
        self.closing = False
        self.aborted = False

    def get_extra_info(self, name, default=None):
        return default

    def get_write_buffer_size(self):
        return self.unsent

    def write(self, data):
        self.written += data

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    def abort(self):
        self.closing = self.aborted = True

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def connected(state=None, most=4):
    config = uvicorn.Config(
        app, http="httptools", log_config=None, timeout_keep_alive=1000, lifespan="off"
    )
    protocol = BoundedConnection(config, state or ServerState(), {}, most=most)
    protocol.connection_made(Transport())
    return protocol


def played(scene):
    """How a connection stands a while after ``scene``: open, closing or aborted."""

    async def look(protocol):
        while True:  # as the server does
            await asyncio.sleep(SECONDS / 5)
            protocol.close_if_late(SECONDS)

    async def play():
        protocol = connected()
        looking = asyncio.create_task(look(protocol))
        await asyncio.wait_for(scene(protocol), 10)
        await asyncio.sleep(3 * SECONDS)
        transport = protocol.transport
        found = "aborted" if transport.aborted else "closing" if transport.closing else "open"
        looking.cancel()
        protocol.connection_lost(None)
        return found

    return asyncio.run(play())


async def answered(protocol, request=b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
    protocol.data_received(request)
    while b" 204 " not in protocol.transport.written:
        await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_a_connection_between_requests_is_left_to_the_server():
    assert played(answered) == "open"


def test_no_head():
    async def scene(protocol):
        protocol.data_received(b"GET / HT")
        await asyncio.sleep(1.5 * SECONDS)
        assert protocol.transport.closing
        assert not protocol.transport.aborted

    played(scene)


def test_a_head_that_drips_does_not_gain_time():
    async def scene(protocol):
        for byte in b"GET / HTTP/1.1\r\nX: aaaaaaaaaaaaaaaaaaaaa":
            protocol.data_received(bytes([byte]))
            await asyncio.sleep(SECONDS / 10)
        assert protocol.transport.closing

    played(scene)


@pytest.mark.parametrize("closing", ["keep-alive", "shutdown", "no head", "answered", "paused"])
@pytest.mark.parametrize("read", [True, False])
def test_answers_that_are_not_read(closing, read):
    async def scene(protocol):
        if closing != "no head":
            await answered(protocol)
            assert protocol._kept_since is None
            protocol.transport.unsent = 100
        if closing == "keep-alive":
            protocol.timeout_keep_alive_handler()
        elif closing == "shutdown":
            protocol.shutdown()
        elif closing == "paused":
            protocol.pause_writing()
        elif closing == "answered":
            protocol.on_response_complete()
        elif closing == "no head":
            protocol.data_received(b"GET")
            await asyncio.sleep(1.5 * SECONDS)
            assert protocol.transport.closing
            assert not protocol.transport.aborted
            protocol.transport.unsent = 100
        if read:
            protocol.transport.unsent = 0
            if protocol.transport.closing:
                protocol.connection_lost(None)  # as a transport does when all is sent
            else:
                protocol.resume_writing()

    assert (played(scene) == "aborted") is not read


def test_a_client_that_reads_between_two_answers_has_time_for_both():
    async def scene(protocol):
        await answered(protocol)
        for _ in range(4):
            protocol.transport.unsent = 100
            protocol.on_response_complete()
            await asyncio.sleep(0.6 * SECONDS)
            protocol.transport.unsent = 0
            protocol.on_response_complete()

    assert played(scene) == "open"


@pytest.mark.parametrize("ends", [True, False])
def test_a_body_that_goes_on_after_its_answer(ends):
    async def scene(protocol):
        await answered(protocol, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n")
        assert protocol._in_body
        for _ in range(2 if ends else 20):
            protocol.data_received(b"x" * (25 if ends else 1))
            await asyncio.sleep(SECONDS / 5)
        if ends:
            await answered(protocol)

    assert played(scene) == ("open" if ends else "aborted")


def test_a_body_that_is_awaited_is_not_timed_here():
    async def waits(scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass

    async def scene(protocol):
        protocol.app = waits
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\nabc")

    assert played(scene) == "open"


@pytest.mark.parametrize(
    "said",
    [
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * (1 << 16) + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "
        + b"a" * (1 << 17),
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_closed(said):
    async def scene(protocol):
        for start in range(0, len(said), 50_000):
            protocol.data_received(said[start : start + 50_000])
        await asyncio.sleep(0)
        assert b" 400 " in protocol.transport.written
        assert b"Connection: close" in protocol.transport.written
        assert protocol.transport.closing
        before = protocol.transport.written
        protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.sleep(0)
        assert protocol.transport.written == before

    played(scene)


@pytest.mark.parametrize(
    "asked",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
        b"Content-Length: 2\r\n\r\n{}",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ],
)
def test_answered_and_then_closed(asked):
    async def scene(protocol):
        await answered(protocol, asked)
        assert b"connection: close" in protocol.transport.written
        assert protocol.transport.closing

    played(scene)


def test_what_follows_a_request_does_not_take_its_answer_away():
    async def scene(protocol):
        await answered(protocol, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n")
        assert b" 400 " not in protocol.transport.written
        assert protocol.transport.closing

    played(scene)


def test_requests_that_wait_for_each_other_are_not_too_many():
    async def scene(protocol):
        protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)
        assert len(protocol.pipeline) == 100
        while not protocol.transport.closing:
            await asyncio.sleep(0)
        assert protocol.transport.written.count(b" 204 ") == 101
        assert b" 400 " not in protocol.transport.written

    played(scene)


def test_fields_after_a_body_are_no_headers():
    seen = []

    async def keeps(scope, receive, send):
        seen.extend(name for name, _ in scope["headers"])
        await app(scope, receive, send)

    async def scene(protocol):
        protocol.app = keeps
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        await answered(protocol, head + b"1\r\na\r\n0\r\nX-API-Key: b\r\n\r\n")
        await answered(protocol)

    assert played(scene) == "open"
    assert b"x-api-key" not in seen


def test_one_too_many_is_refused_and_makes_no_request():
    async def scene():
        state = ServerState()
        kept = [connected(state, most=2) for _ in range(2)]
        refused = connected(state, most=2)
        assert b" 503 " in refused.transport.written
        assert b"too_many_connections" in refused.transport.written
        assert refused.transport.closing
        refused.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert not state.tasks
        assert not any(one.transport.closing for one in kept)
        for one in (*kept, refused):
            one.connection_lost(None)

    asyncio.run(scene())
