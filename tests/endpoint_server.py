"""A real HTTP server for tests: whatever is posted is counted, and answered as a test wants."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

from ranmask.models.http_client import Clock


class FakeClock(Clock):
    """Time passes only while somebody sleeps."""

    def __init__(self):
        self.time, self.slept = 1000.0, []

    def now(self):
        return self.time

    def sleep(self, seconds, stop):
        if seconds > 0:
            self.slept.append(seconds)
            self.time += seconds


class Endpoint(ThreadingHTTPServer):
    """``answer(handler, content)`` replies; ``asked``: what was posted, in order."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.asked, self.headers, self.paths = answer, [], [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def server_bind(self):
        TCPServer.server_bind(self)  # HTTPServer would look its name up as well
        self.server_name, self.server_port = self.server_address

    def handle_error(self, request, client_address):
        pass  # a client that went away


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(content)
        self.server.headers.append(dict(self.headers))
        self.server.paths.append(self.path)
        self.server.answer(self, content)

    def do_GET(self):
        self.server.asked.append(None)
        self.reply({})

    def reply(self, content, status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def endpoint(answer):
    """A server that runs in a thread of its own."""
    server = Endpoint(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def chat(said):
    """The body of a chat that says something."""
    return {"choices": [{"message": {"role": "assistant", "content": said}}]}


def text_of(content):
    """The text in a chat's request."""
    return content["messages"][1]["content"].removeprefix("<text>\n").removesuffix("\n</text>")


def by_word(handler, content):
    """Chat or JSON: texts with "good" are positive."""
    if "messages" in content:
        handler.reply(chat("positive" if "good" in text_of(content) else "negative"))
    else:
        handler.reply(
            {"scores": [[0.25, 0.75] if "good" in t else [1, 0] for t in content["texts"]]}
        )
